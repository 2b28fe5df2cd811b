// The provider's key: read when a call is made, wiped when the call is over.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/llm/settings.h"

namespace grove::llm {

// A string that is overwritten before its memory is given back. Move-only, so that copies are not made by accident.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { Wipe(); }

  bool empty() const { return value_.empty(); }
  const std::string& value() const { return value_; }

 private:
  void Wipe();
  std::string value_;
};

// The key of `settings`: from its file, else from its environment variable; empty when neither is set. UNAUTHENTICATED,
// with where it looked and what to do but never with what it found, for a file that cannot be read, is empty, is larger
// than 16 KiB, or holds anything but printable ASCII (a line break in a key would forge HTTP headers).
absl::StatusOr<Secret> ReadApiKey(const Settings& settings);

// `text` with every occurrence of `key` replaced by "[key]": servers have been seen to echo it. Keys of fewer than 12
// characters are left alone: they are stand-ins such as "EMPTY" for servers that want any, and may well occur in code.
std::string Redact(absl::string_view text, const Secret& key);

}  // namespace grove::llm
