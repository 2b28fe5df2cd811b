// Results that the coordinator has not acknowledged, on disk: one file per lease, durable before it is sent, gone once
// acknowledged.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grove/v1/services.pb.h"

namespace grove::worker {

// work and attempt, ordered: a lease as a map key.
using LeaseKey = std::pair<std::string, int32_t>;
inline LeaseKey KeyOf(const v1::Lease& lease) { return {lease.work(), lease.attempt()}; }
inline v1::Lease LeaseOf(const LeaseKey& key) {
  v1::Lease lease;
  lease.set_work(key.first);
  lease.set_attempt(key.second);
  return lease;
}

// A file holds 64 hex digits (SHA-256 of the rest), a newline and a serialised WorkResult. Files that do not fit this
// are put aside as
// "*.bad" with a warning: their lease runs out, and the coordinator has the work done again. Thread-compatible.
class Spool {
 public:
  struct Options {
    // A worker gets no new work while the coordinator is away, so that at most its capacity (a few) piles up; the
    // bounds are for a coordinator that never acknowledges.
    std::size_t max_files = 1024;
    int64_t max_bytes = int64_t{1} << 30;
  };

  // Makes the folder if it is absent, removes leftovers of interrupted writes, and reads which leases there are.
  static absl::StatusOr<Spool> Open(std::string dir, Options options);
  static absl::StatusOr<Spool> Open(std::string dir) { return Open(std::move(dir), Options()); }

  // Durable when OK. The same lease again replaces the result. RESOURCE_EXHAUSTED: a bound, or the disk is full.
  absl::Status Put(const v1::WorkResult& result);
  // NOT_FOUND; DATA_LOSS, after which the file is put aside and the lease forgotten.
  absl::StatusOr<v1::WorkResult> Get(const LeaseKey& lease);
  // Absent is OK: an ack may come twice.
  absl::Status Remove(const LeaseKey& lease);

  std::vector<LeaseKey> Leases() const;
  bool Contains(const LeaseKey& lease) const { return files_.count(lease) > 0; }
  std::size_t size() const { return files_.size(); }
  int64_t bytes() const { return bytes_; }

 private:
  struct File {
    std::string path;
    int64_t bytes = 0;
  };
  Spool(std::string dir, Options options) : dir_(std::move(dir)), options_(options) {}

  std::string dir_;
  Options options_;
  std::map<LeaseKey, File> files_;
  int64_t bytes_ = 0;
};

}  // namespace grove::worker
