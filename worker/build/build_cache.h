// Built objects by the hash of all that went into them. Entries are written atomically and carry their own checksum,
// so that a torn or changed file is a miss and never a wrong kernel.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "grove/v1/types.pb.h"

namespace grove::build {

struct BuiltObject {
  std::string key;      // extensions: worker/candidate/extension_key.py; empty for native objects
  std::string name;     // module name of an extension
  std::string content;  // the shared object
};

struct CachedBuild {
  v1::BuildReport report;  // ok, or a compiler error: never a time-out or a fault of the machine
  std::string reason;      // of one that is not ok, in a line; the log need not have it
  std::vector<BuiltObject> objects;
};

// Thread-safe. Several processes may share a folder: a name always has the same meaning, and renames are atomic.
class BuildCache {
 public:
  // `max_bytes` bounds the folder; the least recently used entries go first.
  BuildCache(std::string folder, int64_t max_bytes);

  std::optional<CachedBuild> Get(const std::string& key);  // key: 64 hex digits
  // RESOURCE_EXHAUSTED on a full disk: the caller goes on without the cache.
  absl::Status Put(const std::string& key, const CachedBuild& build);
  int64_t TotalBytes();

 private:
  std::string PathOf(const std::string& key) const;
  void EvictLocked();

  struct Entry {
    int64_t bytes = 0;
    int64_t used_nanos = 0;
  };
  const std::string folder_;
  const int64_t max_bytes_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // by key
  int64_t total_ = 0;
};

}  // namespace grove::build
