// One candidate's turn on the device: its process and its rival's meet the problem's judge, are looked at from outside
// while they work, and are ended. What came of it is not a result yet (ResultOf).
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/pipeline/candidate_process.h"
#include "worker/pipeline/health.h"
#include "worker/pipeline/judge_process.h"
#include "worker/pipeline/meters.h"
#include "worker/pipeline/process_pool.h"
#include "worker/pipeline/work.h"
#include "worker/pipeline/work_policy.h"
#include "worker/pipeline/work_watch.h"

namespace grove::worker {

// After a candidate's own time is up the judge has only statistics left to do; past this it hangs.
inline constexpr absl::Duration kJudgeGrace = absl::Seconds(60);
// After Cancel the judge is given this long to notice that the candidate is gone.
inline constexpr absl::Duration kCancelGrace = absl::Seconds(5);

// The program goes ahead of the judge's first word, through the same socket.
// `own`: also gets which files the candidate's own objects are.
absl::Status SendProgram(const v1::Candidate& candidate, const build::BuildOutcome& built, StartedProcess* process,
                         std::set<sandbox::FileIdentity>* own);

// What came of a turn.
struct TurnOutcome {
  JudgeAnswer answer;
  bool gone = false, rival_gone = false;  // closed its channel before the end
  sandbox::Ending ending;
  std::optional<sandbox::Ending> rival_ending;
  SeenCode code;
  std::optional<int> foreign;  // the most processes of others seen on the device; nothing = not known
};

// Begin, then Run, once. Device thread only.
class DeviceTurn {
 public:
  // All of it outlives the turn. `options` are the work's, with every limit set.
  struct Tools {
    ProcessPool& pool;
    const CandidateConfig& candidates;
    const DeviceHealth& health;
    Meters& meters;
    std::function<void(const std::string& stage, const std::string& detail)> progress;
    std::function<void(const std::string& stage, absl::Time begin)> record;
    bool cuda = false;
  };
  DeviceTurn(Tools tools, const Work& work, const v1::EvaluationOptions& options);

  // Has the processes started and given their programs. UNAVAILABLE: a process did not start, which may be the
  // device's doing; any other error: one took no program.
  absl::Status Begin();
  // All of it, to the end of the processes.
  TurnOutcome Run(JudgeProcess& judge);

 private:
  bool Cancelled();
  // What code it has in memory, seen while it works: at the start of every draw, and now and then while it is timed.
  void Look(bool timing, bool changes);
  void LookForOthers();
  void EndWatch();
  bool OnWatch(bool on);
  void OnProgress(const std::string& stage, const std::string& detail);

  const Tools tools_;
  const Work& work_;
  const v1::EvaluateWork& evaluate_;
  const v1::EvaluationOptions& options_;
  const bool python_, rival_python_, compared_;
  // Whose work it is matters, and is watched from outside.
  const bool policy_;
  StartedProcess candidate_;
  std::optional<StartedProcess> rival_;
  absl::Time cancelled_at_ = absl::InfiniteFuture(), next_look_ = absl::InfinitePast();
  std::string stage_;
  std::atomic<bool> held_{false};
  std::optional<WorkWatch> watch_;
  bool looked_for_others_ = false;
  TurnOutcome outcome_;
};

// The judge's result with what the worker knows of the turn: how the processes ended, who shared the device, whose work
// it was. INTERNAL: the judge gave none.
absl::StatusOr<v1::EvaluationResult> ResultOf(const TurnOutcome& turn, const Work& work,
                                              const v1::EvaluationOptions& options, bool cuda);

}  // namespace grove::worker
