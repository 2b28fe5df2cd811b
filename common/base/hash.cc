#include "common/base/hash.h"

#include <openssl/evp.h>

#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace grove {
namespace {

struct ContextDeleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void Add(absl::string_view data) { EVP_DigestUpdate(context_.get(), data.data(), data.size()); }
  std::string Hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &size);
    return absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(digest), size));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, ContextDeleter> context_;
};

}  // namespace

std::string Sha256Hex(absl::string_view data) {
  Sha256 hash;
  hash.Add(data);
  return hash.Hex();
}

std::string Sha256HexOfParts(std::initializer_list<absl::string_view> parts) {
  Sha256 hash;
  for (absl::string_view part : parts) {
    hash.Add(absl::StrCat(part.size(), ":"));
    hash.Add(part);
  }
  return hash.Hex();
}

bool IsSha256Hex(absl::string_view text) {
  if (text.size() != 64) return false;
  for (char c : text) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
}

}  // namespace grove
