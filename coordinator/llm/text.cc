#include "coordinator/llm/text.h"

#include <algorithm>

namespace grove::llm {
namespace {

// Length of the well-formed UTF-8 character at the start of `text`, 0 if there is none. RFC 3629, section 4.
size_t CharLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  if (text.empty()) return 0;
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return tail(1) ? 2 : 0;
  if (first < 0xF0) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first < 0xF5) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = CharLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

absl::string_view CutUtf8(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

std::string CleanText(absl::string_view text, size_t max_bytes) {
  std::string out;
  out.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    const size_t length = CharLength(text);
    absl::string_view piece = length == 0 ? kReplacement : text.substr(0, length);
    size_t used = std::max<size_t>(length, 1);
    if (length == 1) {
      const unsigned char c = static_cast<unsigned char>(text[0]);
      if (c == '\r') {
        piece = "\n";
        if (text.size() > 1 && text[1] == '\n') used = 2;
      } else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F) {
        piece = " ";
      }
    }
    if (out.size() + piece.size() > max_bytes) break;
    out.append(piece.data(), piece.size());
    text.remove_prefix(used);
  }
  return out;
}

bool JsonNestingWithin(absl::string_view text, int depth) {
  int open = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++open > depth) return false;
    } else if (c == ']' || c == '}') {
      --open;
    }
  }
  return true;
}

std::string OneLine(absl::string_view text, size_t max_bytes) {
  // Four times the limit is read: enough to fill a line from text that is mostly white space, and still bounded.
  const std::string clean = CleanText(text, 4 * max_bytes);
  std::string out;
  bool blank = false;
  for (char c : clean) {
    if (c == ' ' || c == '\n' || c == '\t') {
      blank = !out.empty();
      continue;
    }
    if (blank) out.push_back(' ');
    blank = false;
    out.push_back(c);
  }
  if (out.size() <= max_bytes) return out;
  const absl::string_view dots = max_bytes >= 3 ? "..." : "";
  const absl::string_view kept = CutUtf8(out, max_bytes - dots.size());
  return std::string(kept) + std::string(dots);
}

}  // namespace grove::llm
