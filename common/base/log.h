// Lines on stderr: "2026-01-31T12:00:00.123Z I scheduler: lease of j-x/k3 expired". Thread-safe.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace grove {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Lines below this level are dropped. Default kInfo.
void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();

void LogLine(LogLevel level, absl::string_view component, absl::string_view message);

template <typename... Args>
void LogDebug(absl::string_view component, const Args&... args) {
  if (GetLogLevel() <= LogLevel::kDebug) LogLine(LogLevel::kDebug, component, absl::StrCat(args...));
}
template <typename... Args>
void LogInfo(absl::string_view component, const Args&... args) {
  if (GetLogLevel() <= LogLevel::kInfo) LogLine(LogLevel::kInfo, component, absl::StrCat(args...));
}
template <typename... Args>
void LogWarning(absl::string_view component, const Args&... args) {
  LogLine(LogLevel::kWarning, component, absl::StrCat(args...));
}
template <typename... Args>
void LogError(absl::string_view component, const Args&... args) {
  LogLine(LogLevel::kError, component, absl::StrCat(args...));
}

}  // namespace grove
