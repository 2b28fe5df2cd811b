#include "common/rpc/tls_files.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/tls/certificates.h"

namespace grove::rpc {
namespace {

absl::StatusOr<std::string> Read(absl::string_view flag, const std::string& path) {
  if (path.empty()) return std::string();
  absl::StatusOr<std::string> content = ReadFile(path, 1 << 20);
  if (!content.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", content.status().message()));
  }
  if (content->find("-----BEGIN ") == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", path, " is not a PEM file"));
  }
  return content;
}

}  // namespace

absl::StatusOr<TlsMaterial> LoadTls(const TlsFiles& files) {
  if (files.cert.empty() != files.key.empty()) {
    return absl::InvalidArgumentError(files.cert.empty() ? "--tls-key is given without --tls-cert; they come together"
                                                         : "--tls-cert is given without --tls-key; they come together");
  }
  TlsMaterial material;
  GROVE_ASSIGN_OR_RETURN(material.cert_pem, Read("--tls-cert", files.cert));
  GROVE_ASSIGN_OR_RETURN(material.key_pem, Read("--tls-key", files.key));
  GROVE_ASSIGN_OR_RETURN(material.ca_pem, Read("--tls-ca", files.ca));
  if (!files.cert.empty()) {
    GROVE_RETURN_IF_ERROR(tls::CheckKeyPair(material.cert_pem, material.key_pem, material.ca_pem, absl::Now(),
                                            absl::StrCat("--tls-cert ", files.cert, ", --tls-key ", files.key)));
  }
  return material;
}

}  // namespace grove::rpc
