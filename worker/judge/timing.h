// The candidate's speed against the reference's: pairs of timed runs in alternation, on the judge's clock alone.
// docs/timing.md derives every constant and says why no run can be cheated.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "worker/judge/check.h"
#include "worker/judge/common_processor.h"
#include "worker/judge/gpu_health.h"
#include "worker/judge/gpu_watch.h"
#include "worker/judge/lies.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/reruns.h"
#include "worker/judge/sampled_outputs.h"
#include "worker/judge/samples.h"
#include "worker/judge/settings.h"
#include "worker/judge/side.h"
#include "worker/judge/timed_runs.h"
#include "worker/judge/timing_report.h"
#include "worker/judge/values.h"

namespace grove::judge {

// Another program in the reference's place, for a baseline of its own.
struct Rival {
  std::string baseline;  // "BASELINE_RIVAL"
  CandidateSide* side;
  Check* check;  // its own: what it answers follows its kind, and its errors are not the candidate's
  // What its own side ends with is not the candidate's fault: the series becomes unavailable, the others go on.
  std::function<void(const Verdict& verdict)> on_failure;
};

// The order of things: when what is run for how long, what is looked at of its outputs, and when there is enough.
class Timing {
 public:
  // `values` has as many sets as slots are timed; they are the first of the candidate's arena. References outlive this.
  Timing(LoadedProblem& problem, DeviceOps& ops, const EvaluationSettings& settings, const Progress& progress,
         CandidateSide& candidate, Values& values, std::size_t slots, Check& check, Random& random,
         std::vector<Rival> rivals = {});

  // Throws Verdict: WRONG, CHEATED, UNMEASURABLE. The candidate is left as in timed runs: held between them.
  void Run();
  const nlohmann::json& report() const { return timing_; }                       // TimingReport; null before
  std::string Reason() const { return TimingReason(timing_, check_.trials()); }  // one line, of a report
  // What of a run is done behind its answer, as a share of it.
  double LateShare() const;
  // Has the candidate run once more as it is run for time, on new values. Seconds.
  double RunUntimed();
  // Called between timed pairs, at moments that nobody can know; its time is not sampling's.
  void SetBetween(std::function<void()> between) { between_ = std::move(between); }

 private:
  void Between(const std::function<void()>& work);
  void MeasureAsking(int count);
  void WarmUp(Series* series);
  void ShareProcessor();
  void PlaceSides();
  void Unplace();
  void LearnFirst(Series* series);
  double ProbeCandidate();
  void Pair(Series* series);
  void ShortRun();
  // One more of `elsewhere_`; false where there is none left.
  bool DrawElsewhere();
  // A run like all others but for one set, whose values are the next of `elsewhere_`.
  void RunElsewhere();
  double MeasureAlone();
  bool Settled() const;
  bool Longer();
  bool Healthy();
  void BeginAnew();
  [[noreturn]] void Cheated(const Lie& lie);

  LoadedProblem& problem_;
  DeviceOps& ops_;
  const EvaluationSettings& settings_;
  const Progress& progress_;
  CandidateSide& candidate_;
  Values& values_;
  std::function<void()> between_;
  const std::size_t slots_;
  const double span_;  // seconds of a timed run of the faster side, as far as slots go
  const bool has_rival_;
  Check& check_;
  Random& random_;
  CandidateRuns runs_;
  TimedRuns timed_;
  Reckoning reckoning_;
  SampledOutputs sampled_;
  std::vector<Series> series_;
  std::optional<CommonProcessor> common_;  // where the host sets the pace

  std::chrono::steady_clock::time_point begin_;
  std::map<std::string, int> discards_;
  double drawn_ = 0;  // seconds of drawing before begin_
  // Draws of other distributions for runs between the pairs, the first of them after so many: the check is not over
  // when timing begins. Made before it, so that no run is known by a pause before it.
  std::vector<OtherDraw> elsewhere_;
  std::size_t elsewhere_later_ = 0;  // that are drawn when the one that waits has been verified
  int first_elsewhere_ = 0;
  bool been_elsewhere_ = false;
  int pairs_ = 0;
  std::unique_ptr<GpuWatch> watch_;  // null on a CPU
  GpuHealth health_;                 // as the watch has it
  Reruns reruns_;
  nlohmann::json timing_;
};

}  // namespace grove::judge
