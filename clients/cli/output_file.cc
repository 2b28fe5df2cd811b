#include "clients/cli/output_file.h"

#include "absl/strings/str_cat.h"

namespace grove::cli {

absl::Status OutputFileError(absl::string_view flag, const std::string& path, const absl::Status& written) {
  const std::string what = absl::StrCat(flag, " ", path, ": ");
  switch (written.code()) {
    case absl::StatusCode::kNotFound:
      return absl::InvalidArgumentError(absl::StrCat(what, "its folder does not exist; make it, or name another file"));
    case absl::StatusCode::kPermissionDenied:
      return absl::InvalidArgumentError(absl::StrCat(what, "you may not write there; name another file"));
    case absl::StatusCode::kInvalidArgument:
      return absl::InvalidArgumentError(absl::StrCat(what, "is a folder; name a file in it"));
    case absl::StatusCode::kResourceExhausted:
      return absl::InternalError(absl::StrCat(what, "no space left on that disk; free some, or name another file"));
    default:
      return absl::InternalError(absl::StrCat(what, written.message()));
  }
}

}  // namespace grove::cli
