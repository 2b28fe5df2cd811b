// Where the coordinator's state lives: an append-only journal of events, jobs by idempotency key, the bank, and blobs
// named by their SHA-256. The tree of a job is the fold of its events, so the journal is the only truth; a job's row is
// a summary that spares folding jobs that have ended.
//
// Thread rules: owned by one thread (the engine's). Nothing here knows the meaning of an event.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grove::store {

// 64 MiB: four times the largest thing accepted from outside (a recording of 16 MiB).
inline constexpr int64_t kMaxBlobBytes = int64_t{64} << 20;

struct EventRow {
  uint64_t seq = 0;  // given by the writer: the store's last + 1, without gaps
  std::string job;
  int kind = 0;  // field number of the event's body in tree.proto, for people with an SQL prompt
  int64_t time_unix_nanos = 0;
  std::string payload;  // serialised v1::Event
};

struct JobRow {
  std::string id;
  std::string idempotency_key;  // unique over the store
  int64_t created_unix_nanos = 0;
  bool ended = false;
  std::string summary;  // serialised v1::Job without spec sources, true as of last_seq
};

struct BankRow {
  std::string id;
  std::string operation;
  int device = 0;
  std::string payload;  // serialised v1::BankEntry with an empty source
  std::string source_sha256;
};

struct BlobWrite {
  std::string sha256;  // of content
  std::string content;
};

// Everything that one turn of the engine changes.
struct WriteBatch {
  std::vector<EventRow> events;
  std::vector<JobRow> jobs;       // inserted or replaced by id
  std::vector<BlobWrite> blobs;   // stored before the events that name them
  std::vector<BankRow> bank_put;  // inserted or replaced by id
  std::vector<std::string> bank_remove;

  bool empty() const {
    return events.empty() && jobs.empty() && blobs.empty() && bank_put.empty() && bank_remove.empty();
  }
};

class Store {
 public:
  virtual ~Store() = default;

  // All or nothing, and durable when it returns OK. After an error nothing may be assumed: the same batch may have been
  // stored all the same, so a caller commits the *same* batch again until it gets OK; that changes nothing the second
  // time. Errors: RESOURCE_EXHAUSTED (disk full), UNAVAILABLE (cannot be written now), DATA_LOSS (damaged),
  // INVALID_ARGUMENT (a blob too large or not what its name says).
  virtual absl::Status Commit(const WriteBatch& batch) = 0;

  // Rows of `job` with seq > after_seq in order, at most `max` (0 = all), until `visit` returns false.
  // The view is valid during the call only.
  virtual absl::Status ReadEvents(const std::string& job, uint64_t after_seq, int64_t max,
                                  const std::function<bool(uint64_t seq, absl::string_view payload)>& visit) = 0;
  // The payload of one event. NOT_FOUND.
  virtual absl::StatusOr<std::string> ReadEvent(uint64_t seq) = 0;
  // In order of creation.
  virtual absl::StatusOr<std::vector<JobRow>> ReadJobs() = 0;
  virtual absl::StatusOr<std::vector<BankRow>> ReadBank() = 0;
  // The content, checked against its name. NOT_FOUND, DATA_LOSS.
  virtual absl::StatusOr<std::string> ReadBlob(const std::string& sha256) = 0;

  // The highest seq stored, 0 = none.
  virtual absl::StatusOr<uint64_t> LastSeq() = 0;
  // Bytes on disk: journal and blobs, as of opening plus what was written since.
  virtual int64_t SizeBytes() = 0;
};

}  // namespace grove::store
