// The judges that are kept with their problems loaded, and how the next one comes by its process.
//
// A judge's process is started ahead of its problem, once when the worker starts (by the pipeline) and after each
// problem from the second on: with torch and the device's context behind it, only the problem's own loading is left on
// the device's path.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "grove/v1/services.pb.h"
#include "worker/pipeline/judge_process.h"
#include "worker/pipeline/process_pool.h"

namespace grove::worker {

struct WarmJudge {
  std::string problem;  // key: its format, name and source
  std::unique_ptr<JudgeProcess> judge;
  v1::ProblemDescription description;
};

// Device thread only.
class WarmJudges {
 public:
  struct Options {
    JudgeConfig config;
    size_t most = 2;                 // kept at once
    int64_t most_memory_bytes = -1;  // of the device, by the problems of those that stay while another loads; -1 = any
    int64_t most_host_bytes = -1;  // of the host, by what all of them hold; the one in use stays in any case; -1 = any
    bool ahead = true;             // the next one's process is started ahead
    // What one holds of the host's memory now; by its sandbox unless a test says otherwise.
    std::function<int64_t(const WarmJudge&)> host_bytes = [](const WarmJudge& one) {
      return one.judge->process().MemoryBytes();
    };
  };
  // `pool` must outlive it; its judges are started with the same config.
  WarmJudges(Options options, ProcessPool* pool) : options_(std::move(options)), pool_(pool) {}

  // The living one that has this problem; null where there is none. Judges grow as they work, so others may have to go.
  WarmJudge* Find(const v1::Problem& problem);
  // Loads the problem into a judge of its own; those used longest ago make room for it. Null: `failure` says why, as a
  // problem error or an infrastructure failure. `check`: the description also says what is wrong with the problem, and
  // the judge is good for nothing else (Drop).
  WarmJudge* Load(const v1::Problem& problem, const v1::EvaluationOptions& options, bool check,
                  const JudgeProcess::OnProgress& on_progress, const JudgeProcess::Cancelled& cancelled,
                  v1::WorkResult* failure);
  // A process of its own for something else than a problem.
  absl::StatusOr<std::unique_ptr<JudgeProcess>> StartOne() { return JudgeProcess::Start(options_.config); }

  // By value: it is a judge's own, as a rule, and goes with it.
  void Drop(std::string problem);
  void Clear() { judges_.clear(); }

  // A death of its judge: an infrastructure failure, or the problem's own fault once it repeats.
  void Died(std::string problem, const std::string& message, v1::WorkResult* result);
  // It did what it was asked: deaths before this were no fault of the problem's.
  void Answered(const std::string& problem) { deaths_.erase(problem); }

 private:
  // Until the host's budget holds, those used longest ago go, but for `keep` of them that were used last.
  void FitHost(size_t keep);

  const Options options_;
  ProcessPool* const pool_;
  std::list<WarmJudge> judges_;  // most recently used first
  std::map<std::string, int> deaths_;
  std::string last_loaded_;
};

inline Ahead JudgeKind(bool python) { return python ? Ahead::kPythonJudge : Ahead::kNativeJudge; }

}  // namespace grove::worker
