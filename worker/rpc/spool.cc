#include "worker/rpc/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace grove::worker {
namespace {

constexpr absl::string_view kSuffix = ".result";
constexpr std::size_t kHashBytes = 64;
constexpr int64_t kMaxFileBytes = int64_t{80} << 20;  // a message (64 MiB) and room

absl::StatusOr<v1::WorkResult> Parse(const std::string& path, const std::string& content) {
  if (content.size() <= kHashBytes || content[kHashBytes] != '\n')
    return absl::DataLossError(absl::StrCat(path, " is cut off"));
  const absl::string_view payload = absl::string_view(content).substr(kHashBytes + 1);
  if (Sha256Hex(payload) != content.substr(0, kHashBytes))
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  v1::WorkResult result;
  if (!result.ParseFromArray(payload.data(), static_cast<int>(payload.size())) || result.lease().work().empty() ||
      result.outcome_case() == v1::WorkResult::OUTCOME_NOT_SET) {
    return absl::DataLossError(absl::StrCat(path, " holds no result"));
  }
  return result;
}

void PutAside(const std::string& path, const absl::Status& why) {
  LogWarning("spool", why.message(), "; put aside as ", path, ".bad, the work will be done again");
  if (rename(path.c_str(), (path + ".bad").c_str()) != 0) unlink(path.c_str());
}

}  // namespace

absl::StatusOr<Spool> Spool::Open(std::string dir, Options options) {
  GROVE_RETURN_IF_ERROR(MakeDirs(dir));
  Spool spool(std::move(dir), options);
  DIR* folder = opendir(spool.dir_.c_str());
  if (folder == nullptr) return ErrnoStatus(errno, absl::StrCat("cannot read folder ", spool.dir_));
  std::vector<std::string> names;
  while (const dirent* entry = readdir(folder)) names.emplace_back(entry->d_name);
  closedir(folder);
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(spool.dir_, "/", name);
    if (absl::StrContains(name, ".tmp.")) {
      unlink(path.c_str());
      continue;
    }
    if (!absl::EndsWith(name, kSuffix)) continue;
    absl::StatusOr<std::string> content = ReadFile(path, kMaxFileBytes);
    absl::StatusOr<v1::WorkResult> result = content.ok() ? Parse(path, *content) : content.status();
    if (!result.ok()) {
      PutAside(path, result.status());
      continue;
    }
    spool.files_[KeyOf(result->lease())] = {path, static_cast<int64_t>(content->size())};
    spool.bytes_ += static_cast<int64_t>(content->size());
  }
  return spool;
}

absl::Status Spool::Put(const v1::WorkResult& result) {
  const LeaseKey key = KeyOf(result.lease());
  std::string payload;
  if (!result.SerializeToString(&payload)) return absl::InternalError("cannot serialise a result");
  const std::string content = absl::StrCat(Sha256Hex(payload), "\n", payload);
  const auto old = files_.find(key);
  const int64_t old_bytes = old == files_.end() ? 0 : old->second.bytes;
  const int64_t bytes = static_cast<int64_t>(content.size());
  if ((old == files_.end() && files_.size() >= options_.max_files) || bytes_ - old_bytes + bytes > options_.max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the spool ", dir_, " is full (", files_.size(), " results, ",
                                                     bytes_,
                                                     " bytes): the coordinator has acknowledged nothing for long"));
  }
  // A lease's name has slashes; its hash is a file name.
  const std::string path = absl::StrCat(dir_, "/", Sha256HexOfParts({key.first, absl::StrCat(key.second)}), kSuffix);
  GROVE_RETURN_IF_ERROR(WriteFileAtomically(path, content));
  files_[key] = {path, bytes};
  bytes_ += bytes - old_bytes;
  return absl::OkStatus();
}

absl::StatusOr<v1::WorkResult> Spool::Get(const LeaseKey& lease) {
  const auto found = files_.find(lease);
  if (found == files_.end()) return absl::NotFoundError(absl::StrCat("no result of ", lease.first));
  const std::string path = found->second.path;
  absl::StatusOr<std::string> content = ReadFile(path, kMaxFileBytes);
  absl::StatusOr<v1::WorkResult> result = content.ok() ? Parse(path, *content) : content.status();
  if (result.ok() && KeyOf(result->lease()) == lease) return result;
  absl::Status why = result.ok() ? absl::DataLossError(absl::StrCat(path, " is another lease's")) : result.status();
  PutAside(path, why);
  bytes_ -= found->second.bytes;
  files_.erase(found);
  return absl::DataLossError(why.message());
}

absl::Status Spool::Remove(const LeaseKey& lease) {
  const auto found = files_.find(lease);
  if (found == files_.end()) return absl::OkStatus();
  // Not fsynced: a file that comes back after a power cut is sent once more and refused as stale.
  const int failed = unlink(found->second.path.c_str());
  const int error = errno;
  const std::string path = found->second.path;
  bytes_ -= found->second.bytes;
  files_.erase(found);
  if (failed != 0 && error != ENOENT) return ErrnoStatus(error, absl::StrCat("cannot remove ", path));
  return absl::OkStatus();
}

std::vector<LeaseKey> Spool::Leases() const {
  std::vector<LeaseKey> leases;
  for (const auto& [key, file] : files_) leases.push_back(key);
  return leases;
}

}  // namespace grove::worker
