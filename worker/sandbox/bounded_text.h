// What a program writes, bounded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace grove::sandbox {

// Beginning and end of a stream.
class BoundedText {
 public:
  explicit BoundedText(int64_t kept) : half_(static_cast<size_t>(std::max<int64_t>(kept, 2) / 2)) {}
  void Add(absl::string_view text);
  int64_t total() const { return total_; }
  bool truncated() const { return total_ > static_cast<int64_t>(2 * half_); }
  std::string Text();

 private:
  void Trim();
  const size_t half_;
  std::string head_, tail_;
  int64_t total_ = 0;
};

// Reads what is there, at most 1 MiB so that a flood cannot keep the supervisor from its other work. False at the end.
bool Drain(int fd, BoundedText* text);

}  // namespace grove::sandbox
