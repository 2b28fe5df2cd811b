// A coordinator with canned answers behind a real gRPC server on a free loopback port. It can go away and come back on
// the same port, cut a watch short, and refuse.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "grove/v1/services.pb.h"

namespace grove::cli {

class FakeCoordinator {
 public:
  FakeCoordinator();
  ~FakeCoordinator();

  const std::string& address() const;

  // What GetJob answers, and WatchJob streams; a submitted job becomes `next_job` of its name.
  void SetJob(v1::Job job, std::vector<v1::Event> events, std::vector<v1::TreeNode> nodes);

  // A watch ends with UNAVAILABLE after so many events of one attachment (0 = never).
  void CutWatchAfter(int events);
  // Keeps a watch open after its last event until the client leaves or the server stops.
  void HoldWatchOpen(bool hold);
  // The next `count` unary calls are answered with this error.
  void FailNext(int count, absl::Status error);

  void Stop();     // connections break as when the process dies
  void Restart();  // on the same port

  std::vector<v1::SubmitJobRequest> submitted() const;
  std::vector<uint64_t> watched_from() const;  // after_seq of each attachment
  int calls(const std::string& method) const;
  // Blocks until that many watches have been attached in all, at most 20 s.
  bool WaitForWatches(size_t count) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grove::cli
