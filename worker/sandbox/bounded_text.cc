#include "worker/sandbox/bounded_text.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace grove::sandbox {

void BoundedText::Add(absl::string_view text) {
  total_ += static_cast<int64_t>(text.size());
  if (head_.size() < half_) {
    const size_t n = std::min(half_ - head_.size(), text.size());
    head_.append(text.data(), n);
    text.remove_prefix(n);
  }
  if (text.empty()) return;
  tail_.append(text.data(), text.size());
  if (tail_.size() > 2 * half_ + 65536) Trim();
}

std::string BoundedText::Text() {
  Trim();
  if (!truncated()) return head_ + tail_;
  return absl::StrCat(head_, "\n... ", total_ - static_cast<int64_t>(head_.size() + tail_.size()),
                      " bytes left out ...\n", tail_);
}

void BoundedText::Trim() {
  if (tail_.size() > half_) tail_.erase(0, tail_.size() - half_);
}

bool Drain(int fd, BoundedText* text) {
  char chunk[65536];
  for (int i = 0; i < 16; ++i) {
    const ssize_t n = read(fd, chunk, sizeof(chunk));
    if (n > 0) {
      text->Add(absl::string_view(chunk, static_cast<size_t>(n)));
      continue;
    }
    if (n == 0) return false;
    return errno == EAGAIN || errno == EINTR;
  }
  return true;
}

}  // namespace grove::sandbox
