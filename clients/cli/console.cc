#include "clients/cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace grove::cli {
namespace {

bool IsUtf8Locale(const GetEnv& env) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = absl::AsciiStrToUpper(env(name));
    if (!value.empty()) return absl::StrContains(value, "UTF-8") || absl::StrContains(value, "UTF8");
  }
  return false;
}

winsize SizeOf(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0) size = winsize{};
  return size;
}

bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

Console::Console(const ConsoleOptions& options, const GetEnv& env) : options_(options) {
  const std::string term = env("TERM");
  const bool capable = term != "dumb" && !term.empty();
  const bool color = !options.no_color && env("NO_COLOR").empty() && capable;
  const bool unicode = IsUtf8Locale(env) && term != "dumb";
  out_is_terminal_ = isatty(STDOUT_FILENO) == 1;
  const bool err_is_terminal = isatty(STDERR_FILENO) == 1;
  out_style_ = Style{.color = color && out_is_terminal_, .unicode = unicode};
  err_style_ = Style{.color = color && err_is_terminal, .unicode = unicode};
  live_ = err_is_terminal && capable && !options.quiet;
}

Console::~Console() { ClearBlock(); }

size_t Console::width() const {
  const size_t columns = SizeOf(STDERR_FILENO).ws_col;
  return columns == 0 ? 80 : columns;
}

size_t Console::out_width() const { return out_is_terminal_ ? SizeOf(STDOUT_FILENO).ws_col : 0; }

size_t Console::height() const {
  const size_t rows = SizeOf(STDERR_FILENO).ws_row;
  return rows == 0 ? 24 : rows;
}

void Console::EraseBlock() {
  if (drawn_ == 0) return;
  WriteAll(STDERR_FILENO, absl::StrCat("\x1b[", drawn_, "A\r\x1b[J"));
  drawn_ = 0;
}

void Console::DrawBlock() {
  if (!live_ || block_.empty()) return;
  std::string text;
  for (const std::string& line : block_) absl::StrAppend(&text, line, "\n");
  WriteAll(STDERR_FILENO, text);
  drawn_ = block_.size();
}

void Console::SetBlock(const std::vector<std::string>& lines) {
  if (!live_) return;
  absl::MutexLock lock(&mutex_);
  if (lines == block_ && drawn_ == block_.size()) return;
  EraseBlock();
  block_ = lines;
  DrawBlock();
}

void Console::Message(absl::string_view text) {
  if (options_.quiet) return;
  absl::MutexLock lock(&mutex_);
  EraseBlock();
  WriteAll(STDERR_FILENO, absl::StrCat(text, "\n"));
  DrawBlock();
}

void Console::Error(absl::string_view text) {
  absl::MutexLock lock(&mutex_);
  EraseBlock();
  WriteAll(STDERR_FILENO, absl::StrCat(err_style_.Red("grove:"), " ", text, "\n"));
  DrawBlock();
}

bool Console::Out(absl::string_view text) {
  absl::MutexLock lock(&mutex_);
  if (out_failed_) return false;
  EraseBlock();
  if (!WriteAll(STDOUT_FILENO, text)) {
    out_failed_ = true;
    WriteAll(STDERR_FILENO, absl::StrCat("grove: cannot write to stdout: ", std::strerror(errno), "\n"));
  }
  DrawBlock();
  return !out_failed_;
}

}  // namespace grove::cli
