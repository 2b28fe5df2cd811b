// What went wrong with a file that the user asked to be written, in words for the user.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace grove::cli {

// `flag` and `path` are what was asked, `written` is the error of WriteFileAtomically. INVALID_ARGUMENT where another
// path helps (no such folder, no permission, a folder), INTERNAL where the machine is at fault (a full disk).
absl::Status OutputFileError(absl::string_view flag, const std::string& path, const absl::Status& written);

}  // namespace grove::cli
