#include "worker/rpc/state_folder.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace grove::worker {
namespace {

bool IsWorkerId(absl::string_view text) {
  if (!absl::StartsWith(text, "w-") || text.size() < 6 || text.size() > 64) return false;
  for (char c : text) {
    if (!absl::ascii_islower(static_cast<unsigned char>(c)) && !absl::ascii_isdigit(static_cast<unsigned char>(c)) &&
        c != '-') {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<StateFolder> OpenStateFolder(const std::string& path) {
  StateFolder folder;
  if (absl::Status made = MakeDirs(path); !made.ok()) {
    return absl::Status(made.code(), absl::StrCat("the state folder cannot be used: ", made.message(),
                                                  "; choose another with --state-dir"));
  }
  char absolute[PATH_MAX];
  if (realpath(path.c_str(), absolute) == nullptr) return ErrnoStatus(errno, absl::StrCat("cannot resolve ", path));
  folder.path = absolute;

  absl::StatusOr<std::unique_ptr<FileLock>> lock = FileLock::Acquire(folder.path + "/lock");
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("the state folder ", folder.path,
                     " is used by another worker; stop that one, or give this one its own with --state-dir"));
  }
  if (!lock.ok()) {
    return absl::Status(lock.status().code(), absl::StrCat("the state folder cannot be used: ", lock.status().message(),
                                                           "; choose another with --state-dir"));
  }
  folder.lock = *std::move(lock);

  const std::string file = folder.path + "/worker-id";
  absl::StatusOr<std::string> id = ReadFile(file, 4096);
  if (id.ok()) folder.worker_id = std::string(absl::StripAsciiWhitespace(*id));
  if (!id.ok() && !absl::IsNotFound(id.status())) return id.status();
  if (!IsWorkerId(folder.worker_id)) {
    if (id.ok()) LogWarning("worker", file, " holds no worker id; making a new one");
    folder.worker_id = RandomId("w-", 8);
    GROVE_RETURN_IF_ERROR(WriteFileAtomically(file, folder.worker_id + "\n"));
  }
  return folder;
}

}  // namespace grove::worker
