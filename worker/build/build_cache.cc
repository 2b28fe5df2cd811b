#include "worker/build/build_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace grove::build {
namespace {

// "GROVEB2\n", SHA-256 of the rest in hex, then length-prefixed parts: report, reason, then (key, name, content) per
// object.
constexpr absl::string_view kMagic = "GROVEB2\n";
constexpr size_t kHashLength = 64;
constexpr int64_t kMaxEntryBytes = int64_t{1} << 30;

void AppendPart(std::string* out, absl::string_view part) {
  const uint64_t size = part.size();
  out->append(reinterpret_cast<const char*>(&size), sizeof(size));
  out->append(part.data(), part.size());
}

bool TakePart(absl::string_view* rest, absl::string_view* part) {
  uint64_t size = 0;
  if (rest->size() < sizeof(size)) return false;
  memcpy(&size, rest->data(), sizeof(size));
  rest->remove_prefix(sizeof(size));
  if (size > rest->size()) return false;
  *part = rest->substr(0, size);
  rest->remove_prefix(size);
  return true;
}

std::optional<CachedBuild> Parse(absl::string_view text) {
  if (text.size() < kMagic.size() + kHashLength || text.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  text.remove_prefix(kMagic.size());
  const absl::string_view hash = text.substr(0, kHashLength);
  text.remove_prefix(kHashLength);
  if (Sha256Hex(text) != hash) return std::nullopt;
  CachedBuild build;
  absl::string_view part;
  if (!TakePart(&text, &part) || !build.report.ParseFromArray(part.data(), static_cast<int>(part.size()))) {
    return std::nullopt;
  }
  if (!TakePart(&text, &part)) return std::nullopt;
  build.reason = std::string(part);
  while (!text.empty()) {
    absl::string_view key, name, content;
    if (!TakePart(&text, &key) || !TakePart(&text, &name) || !TakePart(&text, &content)) return std::nullopt;
    build.objects.push_back({std::string(key), std::string(name), std::string(content)});
  }
  return build;
}

}  // namespace

BuildCache::BuildCache(std::string folder, int64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {
  if (absl::Status status = MakeDirs(folder_); !status.ok()) {
    LogWarning("build", "no build cache: ", std::string(status.message()));
    return;
  }
  DIR* dir = opendir(folder_.c_str());
  if (dir == nullptr) return;
  while (dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    const std::string path = absl::StrCat(folder_, "/", name);
    struct stat info {};
    if (name[0] == '.' || stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (!IsSha256Hex(name)) {
      // What a process that died while writing left behind.
      if (absl::Now() - absl::FromTimeT(info.st_mtime) > absl::Hours(1)) unlink(path.c_str());
      continue;
    }
    entries_[name] = {info.st_size, info.st_mtim.tv_sec * int64_t{1000000000} + info.st_mtim.tv_nsec};
    total_ += info.st_size;
  }
  closedir(dir);
  EvictLocked();
}

std::string BuildCache::PathOf(const std::string& key) const { return absl::StrCat(folder_, "/", key); }

std::optional<CachedBuild> BuildCache::Get(const std::string& key) {
  if (!IsSha256Hex(key)) return std::nullopt;
  const std::string path = PathOf(key);
  auto text = ReadFile(path, kMaxEntryBytes);
  if (!text.ok()) return std::nullopt;
  std::optional<CachedBuild> build = Parse(*text);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!build.has_value()) {
    LogWarning("build", "cache entry ", key, " is damaged; it is built anew");
    unlink(path.c_str());
    if (auto it = entries_.find(key); it != entries_.end()) {
      total_ -= it->second.bytes;
      entries_.erase(it);
    }
    return std::nullopt;
  }
  (void)!utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // its time of change is its time of last use
  Entry& entry = entries_[key];
  total_ += static_cast<int64_t>(text->size()) - entry.bytes;
  entry = {static_cast<int64_t>(text->size()), absl::GetCurrentTimeNanos()};
  return build;
}

absl::Status BuildCache::Put(const std::string& key, const CachedBuild& build) {
  if (!IsSha256Hex(key)) return absl::InvalidArgumentError("a cache key is 64 hex digits");
  std::string body;
  AppendPart(&body, build.report.SerializeAsString());
  AppendPart(&body, build.reason);
  for (const BuiltObject& object : build.objects) {
    AppendPart(&body, object.key);
    AppendPart(&body, object.name);
    AppendPart(&body, object.content);
  }
  const std::string text = absl::StrCat(kMagic, Sha256Hex(body), body);
  if (static_cast<int64_t>(text.size()) > std::min(max_bytes_, kMaxEntryBytes)) return absl::OkStatus();
  GROVE_RETURN_IF_ERROR(WriteFileAtomically(PathOf(key), text));
  std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = entries_[key];
  total_ += static_cast<int64_t>(text.size()) - entry.bytes;
  entry = {static_cast<int64_t>(text.size()), absl::GetCurrentTimeNanos()};
  EvictLocked();
  return absl::OkStatus();
}

int64_t BuildCache::TotalBytes() {
  std::lock_guard<std::mutex> lock(mutex_);
  return total_;
}

void BuildCache::EvictLocked() {
  while (total_ > max_bytes_ && !entries_.empty()) {
    auto oldest = entries_.begin();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->second.used_nanos < oldest->second.used_nanos) oldest = it;
    }
    unlink(PathOf(oldest->first).c_str());
    total_ -= oldest->second.bytes;
    entries_.erase(oldest);
  }
}

}  // namespace grove::build
