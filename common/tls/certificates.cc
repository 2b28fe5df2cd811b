#include "common/tls/certificates.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace grove::tls {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
void FreeBio(BIO* bio) { BIO_free_all(bio); }
void FreeNames(GENERAL_NAMES* names) { GENERAL_NAMES_free(names); }
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Bio = std::unique_ptr<BIO, Deleter<FreeBio>>;
using Names = std::unique_ptr<GENERAL_NAMES, Deleter<FreeNames>>;

// A certificate that starts a little in the past is accepted by machines whose clocks run behind.
constexpr absl::Duration kClockSkew = absl::Minutes(5);
constexpr int64_t kMaxPemBytes = 1 << 20;

absl::Status OpenSslError(absl::string_view what) {
  char text[256] = "unknown OpenSSL error";
  if (unsigned long code = ERR_get_error()) ERR_error_string_n(code, text, sizeof(text));
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": ", text));
}

std::string ToText(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<std::string> KeyPem(EVP_PKEY* key) {
  Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpenSslError("cannot encode a private key");
  }
  return ToText(bio.get());
}

absl::StatusOr<std::string> CertificatePem(X509* certificate) {
  Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), certificate) != 1) return OpenSslError("cannot encode a certificate");
  return ToText(bio.get());
}

// No terminal prompt for an encrypted key: a daemon has no terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

Key ParseKey(absl::string_view pem) {
  Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr) : nullptr);
}

Certificate ParseCertificate(absl::string_view pem) {
  Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Certificate(bio ? PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr) : nullptr);
}

absl::Status AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpenSslError(absl::StrCat("cannot add extension ", OBJ_nid2sn(nid)));
  }
  return absl::OkStatus();
}

absl::Status SetTime(ASN1_TIME* field, absl::Time time) {
  // GeneralizedTime or UTCTime by the year, as RFC 5280 4.1.2.5 wants it.
  if (ASN1_TIME_adj(field, absl::ToTimeT(time), 0, 0) == nullptr) return OpenSslError("cannot set a validity time");
  return absl::OkStatus();
}

absl::StatusOr<Certificate> NewCertificate(EVP_PKEY* key, absl::string_view common_name, absl::Time from,
                                           absl::Duration validity) {
  if (validity <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("a certificate's validity must be longer than nothing");
  }
  Certificate certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1) {
    return OpenSslError("cannot make a certificate");
  }
  // 127 random bits, positive: RFC 5280 4.1.2.2 allows 20 octets, CA/B rules ask for 64 bits of entropy.
  std::unique_ptr<BIGNUM, Deleter<BN_free>> serial(BN_new());
  if (!serial || BN_rand(serial.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())) == nullptr) {
    return OpenSslError("cannot make a serial number");
  }
  GROVE_RETURN_IF_ERROR(SetTime(X509_getm_notBefore(certificate.get()), from - kClockSkew));
  GROVE_RETURN_IF_ERROR(SetTime(X509_getm_notAfter(certificate.get()), from + validity));
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  if (X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common_name.data()),
                                 static_cast<int>(common_name.size()), -1, 0) != 1 ||
      X509_set_pubkey(certificate.get(), key) != 1) {
    return OpenSslError("cannot fill in a certificate");
  }
  return certificate;
}

absl::Status WriteNew(const std::string& path, absl::string_view content, int mode, bool overwrite) {
  if (!overwrite && access(path.c_str(), F_OK) == 0) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " exists already; remove it, or give --force if you mean to replace it"));
  }
  return WriteFileAtomically(path, content, mode);
}

// Letters, digits, '-' and '.' in labels of 1 to 63, "*" as a whole first label.
bool IsDnsName(absl::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  bool first = true;
  for (absl::string_view label : absl::StrSplit(name, '.')) {
    const bool wildcard = first && label == "*" && name.size() > 2;
    first = false;
    if (wildcard) continue;
    if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-') return false;
    for (char c : label) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') return false;
    }
  }
  return true;
}

bool LooksLikeIpV4(absl::string_view text) { return text.find_first_not_of("0123456789.") == absl::string_view::npos; }

absl::Status AddSans(X509* certificate, const std::vector<std::string>& sans) {
  Names names(sk_GENERAL_NAME_new_null());
  if (!names) return OpenSslError("cannot make the list of names");
  for (const std::string& san : sans) {
    unsigned char ip[16];
    int ip_bytes = 0;
    if (inet_pton(AF_INET, san.c_str(), ip) == 1) {
      ip_bytes = 4;
    } else if (inet_pton(AF_INET6, san.c_str(), ip) == 1) {
      ip_bytes = 16;
    } else if (LooksLikeIpV4(san) || !IsDnsName(san)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", san, "\" is neither a DNS name nor an IP address; write it without scheme, port or brackets"));
    }
    std::unique_ptr<GENERAL_NAME, Deleter<GENERAL_NAME_free>> name(GENERAL_NAME_new());
    ASN1_STRING* value = ip_bytes > 0 ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
    const void* bytes = ip_bytes > 0 ? static_cast<const void*>(ip) : san.data();
    if (!name || value == nullptr ||
        ASN1_STRING_set(value, bytes, ip_bytes > 0 ? ip_bytes : static_cast<int>(san.size())) != 1) {
      ASN1_STRING_free(value);
      return OpenSslError("cannot make a name");
    }
    GENERAL_NAME_set0_value(name.get(), ip_bytes > 0 ? GEN_IPADD : GEN_DNS, value);
    if (sk_GENERAL_NAME_push(names.get(), name.get()) <= 0) return OpenSslError("cannot add a name");
    [[maybe_unused]] GENERAL_NAME* owned = name.release();  // by `names` now
  }
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) != 1) {
    return OpenSslError("cannot add the alternative names");
  }
  return absl::OkStatus();
}

absl::Status CheckName(absl::string_view name) {
  bool good = !name.empty() && name.size() <= 64 && name.front() != '.' && name.front() != '-';
  for (char c : name) {
    good = good && (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_');
  }
  if (!good) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name,
        "\" cannot name a certificate: use 1 to 64 letters, digits, '.', '-', '_', not starting with '.' or '-'"));
  }
  if (name == "ca") return absl::InvalidArgumentError("\"ca\" is the authority itself; choose another name");
  return absl::OkStatus();
}

}  // namespace

absl::Status InitCa(const std::string& dir, const CaOptions& options) {
  if (options.common_name.empty() || options.common_name.size() > 64) {
    return absl::InvalidArgumentError("the authority's common name needs 1 to 64 bytes");
  }
  const bool existed = access(dir.c_str(), F_OK) == 0;
  GROVE_RETURN_IF_ERROR(MakeDirs(dir));
  if (!existed && chmod(dir.c_str(), 0700) != 0) return ErrnoStatus(errno, absl::StrCat("cannot protect ", dir));
  for (const char* file : {"/ca.key", "/ca.crt"}) {
    if (!options.overwrite && access((dir + file).c_str(), F_OK) == 0) {
      return absl::AlreadyExistsError(absl::StrCat(dir, file,
                                                   " exists already: this folder has an authority. Replacing it ",
                                                   "makes every certificate that it signed useless"));
    }
  }

  Key key(EVP_EC_gen("P-256"));
  if (!key) return OpenSslError("cannot make a P-256 key");
  GROVE_ASSIGN_OR_RETURN(Certificate ca, NewCertificate(key.get(), options.common_name, options.now, options.validity));
  X509* x = ca.get();
  if (X509_set_issuer_name(x, X509_get_subject_name(x)) != 1) return OpenSslError("cannot set the issuer");
  // pathlen:0: the CA signs leaves only, so that a stolen leaf key cannot make more certificates.
  GROVE_RETURN_IF_ERROR(AddExtension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  GROVE_RETURN_IF_ERROR(AddExtension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign"));
  GROVE_RETURN_IF_ERROR(AddExtension(x, x, NID_subject_key_identifier, "hash"));
  if (X509_sign(x, key.get(), EVP_sha256()) == 0) return OpenSslError("cannot sign the authority's certificate");

  GROVE_ASSIGN_OR_RETURN(std::string key_pem, KeyPem(key.get()));
  GROVE_ASSIGN_OR_RETURN(std::string ca_pem, CertificatePem(x));
  GROVE_RETURN_IF_ERROR(WriteNew(dir + "/ca.key", key_pem, 0600, options.overwrite));
  return WriteNew(dir + "/ca.crt", ca_pem, 0644, options.overwrite);
}

absl::StatusOr<IssuedFiles> Issue(const std::string& dir, const std::string& name, const std::vector<std::string>& sans,
                                  const IssueOptions& options) {
  GROVE_RETURN_IF_ERROR(CheckName(name));
  auto read = [&](const std::string& file) -> absl::StatusOr<std::string> {
    absl::StatusOr<std::string> content = ReadFile(dir + file, kMaxPemBytes);
    if (absl::IsNotFound(content.status())) {
      return absl::NotFoundError(absl::StrCat("there is no certificate authority in ", dir, " (", file.substr(1),
                                              " is missing); make one with: grove certs init --dir ", dir));
    }
    return content;
  };
  GROVE_ASSIGN_OR_RETURN(std::string ca_pem, read("/ca.crt"));
  GROVE_ASSIGN_OR_RETURN(std::string ca_key_pem, read("/ca.key"));
  GROVE_RETURN_IF_ERROR(CheckKeyPair(ca_pem, ca_key_pem, "", options.now, dir + "/ca.crt and ca.key"));
  Certificate ca = ParseCertificate(ca_pem);
  Key ca_key = ParseKey(ca_key_pem);

  IssuedFiles files{dir + "/" + name + ".crt", dir + "/" + name + ".key", dir + "/ca.crt"};
  for (const std::string& path : {files.certificate, files.key}) {
    if (!options.overwrite && access(path.c_str(), F_OK) == 0) {
      return absl::AlreadyExistsError(
          absl::StrCat(path, " exists already; remove it, or give --force if you mean to replace it"));
    }
  }

  Key key(EVP_EC_gen("P-256"));
  if (!key) return OpenSslError("cannot make a P-256 key");
  GROVE_ASSIGN_OR_RETURN(Certificate leaf, NewCertificate(key.get(), name, options.now, options.validity));
  X509* x = leaf.get();
  if (X509_set_issuer_name(x, X509_get_subject_name(ca.get())) != 1) return OpenSslError("cannot set the issuer");
  GROVE_RETURN_IF_ERROR(AddExtension(x, ca.get(), NID_basic_constraints, "critical,CA:FALSE"));
  GROVE_RETURN_IF_ERROR(AddExtension(x, ca.get(), NID_key_usage, "critical,digitalSignature"));
  GROVE_RETURN_IF_ERROR(AddExtension(x, ca.get(), NID_ext_key_usage, "serverAuth,clientAuth"));
  GROVE_RETURN_IF_ERROR(AddExtension(x, ca.get(), NID_subject_key_identifier, "hash"));
  GROVE_RETURN_IF_ERROR(AddExtension(x, ca.get(), NID_authority_key_identifier, "keyid:always"));
  GROVE_RETURN_IF_ERROR(AddSans(x, sans.empty() ? std::vector<std::string>{"localhost", "127.0.0.1", "::1"} : sans));
  if (X509_sign(x, ca_key.get(), EVP_sha256()) == 0) return OpenSslError("cannot sign the certificate");

  GROVE_ASSIGN_OR_RETURN(std::string key_pem, KeyPem(key.get()));
  GROVE_ASSIGN_OR_RETURN(std::string leaf_pem, CertificatePem(x));
  GROVE_RETURN_IF_ERROR(WriteNew(files.key, key_pem, 0600, options.overwrite));
  GROVE_RETURN_IF_ERROR(WriteNew(files.certificate, leaf_pem, 0644, options.overwrite));
  return files;
}

absl::Status CheckKeyPair(absl::string_view certificate_pem, absl::string_view key_pem, absl::string_view ca_pem,
                          absl::Time now, absl::string_view what) {
  ERR_clear_error();
  Certificate certificate = ParseCertificate(certificate_pem);
  if (!certificate) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat(what, ": the certificate is not a PEM X.509 certificate"));
  }
  Key key = ParseKey(key_pem);
  if (!key) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": the key is not an unencrypted PEM private key (keys with a passphrase are not supported)"));
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat(what, ": the key does not belong to the certificate"));
  }
  if (!ca_pem.empty() && !ParseCertificate(ca_pem)) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat(what, ": the CA file holds no PEM certificate"));
  }
  time_t instant = absl::ToTimeT(now);
  if (X509_cmp_time(X509_get0_notAfter(certificate.get()), &instant) < 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": the certificate has expired; issue a new one"));
  }
  if (X509_cmp_time(X509_get0_notBefore(certificate.get()), &instant) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": the certificate is not valid yet; is this machine's clock right?"));
  }
  return absl::OkStatus();
}

}  // namespace grove::tls
