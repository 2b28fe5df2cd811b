#include "common/daemon/flags.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace grove {

std::string XdgFolder(const char* variable, const char* fallback) {
  // The XDG base directory specification ignores relative paths.
  if (const char* set = std::getenv(variable); set != nullptr && set[0] == '/') return absl::StrCat(set, "/grove");
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return absl::StrCat(home, "/", fallback, "/grove");
  return absl::StrCat("/tmp/grove-", getuid());
}

}  // namespace grove
