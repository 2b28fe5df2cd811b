// Results by the content of what was asked, for jobs that allow an earlier result in place of a new evaluation.
//
// A key holds all that shapes a verdict and a time but the machine: problem, candidate, options. The machine is
// compared when a result is taken: an equal device with equal driver, toolkit and PyTorch, run by the same version of
// this project. Only where the job asks for it (options.reuse_result): a time that was measured once says nothing of
// today. The limits in a key are the job's: what it leaves open the worker fills in, with other values after a restart,
// so that what a limit ended is not kept (StandsForEqual).
#pragma once

#include <cstdint>
#include <list>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "grove/v1/types.pb.h"

namespace grove::coordinator {

// 64 hex digits. `candidate` without its source, whose hash is given.
// The problem's name is a label and no part of it. `salt` is the operator's: EngineOptions.cache_salt.
std::string ResultKey(const v1::Problem& problem, const v1::Candidate& candidate, const std::string& source_sha256,
                      const v1::EvaluationOptions& options, const std::string& salt);

// Whether an equal evaluation may be given this one's result: not what could not be measured, and not what a limit
// ended, in the build, in the run or in one of several combinations. Those are worth another try.
bool StandsForEqual(const v1::EvaluationResult& result);

// Whether a result of `result_device` would come out on `device` as well.
bool SameMachine(const v1::DeviceInfo& result_device, const v1::DeviceInfo& device);

// From key to the event that holds the result, the newest for each; at most `max` keys, the least recently used go
// first. In memory: a restarted coordinator begins anew. Owned by one thread.
class ResultIndex {
 public:
  explicit ResultIndex(size_t max = 20000) : max_(max) {}
  void Put(const std::string& key, uint64_t seq);
  uint64_t Get(const std::string& key);  // 0 = none

 private:
  struct Entry {
    uint64_t seq = 0;
    std::list<std::string>::iterator place;
  };
  const size_t max_;
  std::list<std::string> order_;  // most recently used first
  absl::flat_hash_map<std::string, Entry> entries_;
};

}  // namespace grove::coordinator
