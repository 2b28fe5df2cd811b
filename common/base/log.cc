#include "common/base/log.h"

#include <unistd.h>

#include <atomic>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace grove {
namespace {
std::atomic<LogLevel> g_level{LogLevel::kInfo};
}  // namespace

void SetLogLevel(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }
LogLevel GetLogLevel() { return g_level.load(std::memory_order_relaxed); }

void LogLine(LogLevel level, absl::string_view component, absl::string_view message) {
  if (level < GetLogLevel()) return;
  static constexpr char kLetters[] = "DIWE";
  std::string line = absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()), " ",
                                  std::string(1, kLetters[static_cast<int>(level)]), " ", component, ": ", message);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t') c = ' ';  // one line each, no terminal escapes from outside
  }
  line.push_back('\n');
  // One write, so that lines of several threads do not mix; a failed write to stderr has nowhere to be reported.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace grove
