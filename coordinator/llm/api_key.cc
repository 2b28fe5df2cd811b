#include "coordinator/llm/api_key.h"

#include <stdlib.h>
#include <string.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/files.h"

namespace grove::llm {
namespace {

constexpr int64_t kMaxKeyFile = 16 << 10;
constexpr size_t kShortestSecret = 12;

absl::StatusOr<Secret> Checked(Secret key, absl::string_view where) {
  for (char c : key.value()) {
    if (c <= ' ' || c > '~') {
      return absl::UnauthenticatedError(
          absl::StrCat("the API key in ", where,
                       " holds a blank or a character that is not printable ASCII; put the key "
                       "alone on the first line"));
    }
  }
  return key;
}

}  // namespace

Secret::Secret(Secret&& other) noexcept : value_(std::move(other.value_)) { other.Wipe(); }

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    Wipe();
    value_ = std::move(other.value_);
    other.Wipe();
  }
  return *this;
}

void Secret::Wipe() {
  // A short string lives inside the object and stays there when it is moved from, so its whole capacity is wiped.
  value_.resize(value_.capacity());
  explicit_bzero(value_.data(), value_.size());
  value_.clear();
}

absl::StatusOr<Secret> ReadApiKey(const Settings& settings) {
  if (!settings.api_key_file.empty()) {
    absl::StatusOr<std::string> content = ReadFile(settings.api_key_file, kMaxKeyFile);
    if (!content.ok()) {
      return absl::UnauthenticatedError(absl::StrCat("cannot read the API key: ", content.status().message(),
                                                     "; name a readable file that holds the key on its first line"));
    }
    const Secret whole(*std::move(content));
    const absl::string_view line = absl::string_view(whole.value()).substr(0, whole.value().find('\n'));
    Secret key{std::string(absl::StripAsciiWhitespace(line))};
    if (key.empty()) {
      return absl::UnauthenticatedError(
          absl::StrCat("the API key file ", settings.api_key_file, " is empty; put the key on its first line"));
    }
    return Checked(std::move(key), settings.api_key_file);
  }
  if (settings.api_key_env.empty()) return Secret();
  const char* value = getenv(settings.api_key_env.c_str());
  if (value == nullptr) return Secret();
  return Checked(Secret(std::string(absl::StripAsciiWhitespace(value))),
                 absl::StrCat("the environment variable ", settings.api_key_env));
}

std::string Redact(absl::string_view text, const Secret& key) {
  if (key.value().size() < kShortestSecret) return std::string(text);
  return absl::StrReplaceAll(text, {{key.value(), "[key]"}});
}

}  // namespace grove::llm
