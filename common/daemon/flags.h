// Values that the flags of both daemons share. No CLI11 here: main.cc binds them.
#pragma once

#include <string>

#include "common/base/log.h"

namespace grove {

// "debug", "info", "warning", "error"; anything else is info (the flag itself accepts nothing else).
inline LogLevel LogLevelFromName(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

// $VARIABLE/grove, or ~/FALLBACK/grove when it is not set, or /tmp/grove-UID without a home.
std::string XdgFolder(const char* variable, const char* fallback);

// Exit codes of the daemons.
inline constexpr int kExitOk = 0;
inline constexpr int kExitCannotRun = 1;  // the environment: port, folder, sandbox, refused by the other side
inline constexpr int kExitUsage = 2;
inline constexpr int kExitForced = 130;  // a second signal cut the draining short

}  // namespace grove
