// The candidate's speed against the reference's: pairs of timed runs in alternation, on the judge's clock alone.
// docs/timing.md derives every constant and says why no run can be cheated.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/judge/check.h"
#include "worker/judge/echo.h"
#include "worker/judge/gpu_health.h"
#include "worker/judge/gpu_watch.h"
#include "worker/judge/outputs.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/settings.h"
#include "worker/judge/side.h"
#include "worker/judge/values.h"

namespace grove::judge {

// How many slots timed runs need, so that the calls of one run each have their own. `in_bytes` and `out_bytes`: of one
// set.
std::size_t TimedSlots(const DeviceOps& ops, const LoadedProblem& problem, const EvaluationSettings& settings,
                       std::size_t in_bytes, std::size_t out_bytes);

// Another program in the reference's place, for a baseline of its own.
struct Rival {
  std::string baseline;  // "BASELINE_RIVAL"
  CandidateSide* side;
  Check* check;  // its own: what it answers follows its kind, and its errors are not the candidate's
  // What its own side ends with is not the candidate's fault: the series becomes unavailable, the others go on.
  std::function<void(const Verdict& verdict)> on_failure;
};

// How often asking is tried before a candidate's program is loaded (CandidateSide::LearnAsking).
int PracticeRuns(const DeviceOps& ops, const EvaluationSettings& settings);

class Timing {
 public:
  // `values` has as many sets as slots are timed; they are the first of the candidate's arena. References outlive this.
  Timing(LoadedProblem& problem, DeviceOps& ops, const EvaluationSettings& settings, const Progress& progress,
         CandidateSide& candidate, Values& values, std::size_t slots, Check& check, Random& random,
         std::vector<Rival> rivals = {});

  // Throws Verdict: WRONG, CHEATED, UNMEASURABLE. The candidate is left as in timed runs: held between them.
  void Run();
  const nlohmann::json& report() const { return timing_; }  // TimingReport; null before
  std::string Reason() const;                               // one line, of a report
  // Has the candidate run once more as it is run for time, on new values. Seconds.
  double RunUntimed();
  // Called between timed pairs, at moments that nobody can know; its time is not sampling's.
  void SetBetween(std::function<void()> between) { between_ = std::move(between); }

 private:
  // One baseline: who stands in the reference's place, and the pairs.
  struct Series {
    std::string baseline;
    std::unique_ptr<ReferenceSide> reference;  // null where a rival stands
    CandidateSide* rival = nullptr;
    Check* rival_check = nullptr;
    std::function<void(const Verdict& verdict)> on_failure;
    std::string unavailable;
    std::size_t calls = 1;                 // of one timed run of the other side
    std::vector<double> other, candidate;  // seconds of whole runs, asking included
    std::vector<double> other_late, late;  // what handing over the same runs' outputs took beyond what copies take
    std::vector<double> other_empty;       // runs of no calls on the other side, the latest
    std::vector<double> waited;            // of the reference's runs on a CPU: share of the time without a processor
    double first = 0;                      // seconds of a reference's run beyond that, which do not grow with its calls
    double first_error = 0;                // its standard error; what is below two of them is not taken off
    Side& side() const { return reference != nullptr ? static_cast<Side&>(*reference) : *rival; }
  };

  using Sets = std::vector<std::size_t>;
  Sets Pick(std::size_t count);
  std::size_t Most() const { return std::min(slots_, values_.most_sets()); }  // calls of one run
  double TimeOther(Series* series, const Sets& sets);
  double TimeCandidate(const Sets& sets);
  double RunCandidate(const Sets& sets);  // which is not counted
  void WaitForIdle();
  bool HasRival() const;
  void Between(const std::function<void()>& work);
  void MeasureAsking(int count);
  void WarmUp(Series* series);
  void LearnFirst(Series* series);
  double ProbeCandidate();
  void Pair(Series* series);
  void ShortRun();
  // A run like all others but for one set, whose values are the next of `elsewhere_`.
  void RunElsewhere();
  void VerifyRun(Series* series, const Sets& timed);
  bool Settled() const;
  template <typename Work>
  bool Guarded(Series* series, const Work& work);
  bool Longer();
  bool Healthy();
  void BeginAnew();
  // Seconds of a call on the other side and on the candidate's, of the pairs that the clock resolves.
  struct Times {
    std::vector<double> other, candidate;
    int unresolved = 0;  // pairs in which asking took longer than the run
  };
  Times CallTimes(const Series& series, double asking) const;
  double Asking() const;  // of the candidate's runs, as it is known now
  // What the candidate's runs of K and of K/2 calls say that asking costs, with its standard error. Too few runs: an
  // infinite error.
  struct Implied {
    double seconds = 0, error = std::numeric_limits<double>::infinity();
  };
  Implied ImpliedAsking() const;
  // The same where it is used: beyond `plain`, what was learnt before the load.
  std::optional<Implied> DearerThan(double plain) const;
  double AskingShare(const Series& series, double asking, double empty) const;
  double EmptyOf(const Series& series) const;
  void CheckClaims(double asking);
  void CheckAsking(double asking);
  void TimeWithWait(const Sets& sets, std::vector<double>* waits);
  [[noreturn]] void Unsure(const std::string& evidence, const std::vector<double>& waits);
  [[noreturn]] void Cheated(const std::string& evidence, double claimed, double seconds);
  void Report(double asking);

  LoadedProblem& problem_;
  DeviceOps& ops_;
  const EvaluationSettings& settings_;
  const Progress& progress_;
  CandidateSide& candidate_;
  Values& values_;
  std::function<void()> between_;
  const std::size_t slots_;
  const double span_;  // seconds of a timed run of the faster side, as far as slots go
  Check& check_;
  Random& random_;
  Outputs outputs_;
  std::vector<Series> series_;

  std::chrono::steady_clock::time_point begin_;
  std::size_t calls_ = 1;                        // of one timed run of the candidate
  std::vector<double> empty_;                    // runs of no calls, the latest
  std::vector<double> runs_, claims_;            // seconds and claimed seconds of the candidate's runs of calls_
  std::vector<double> shorts_;                   // seconds of runs of half as many
  std::vector<double> runs_late_, shorts_late_;  // what of each came too late (Side::Collect)
  std::map<std::string, int> discards_;
  double verify_spent_ = 0, verify_each_ = 0, quiet_ = 0;
  double drawn_ = 0;                               // seconds of drawing before begin_
  double late_ = 0, other_late_ = 0, waited_ = 0;  // of the last runs
  double apart_ = 0;  // what a call by itself takes more than one of a run, where that is far more
  // Draws of other distributions for runs between the pairs, the first of them after so many: the check is not over
  // when timing begins. Made before it, so that no run is known by a pause before it.
  std::vector<OtherDraw> elsewhere_;
  int first_elsewhere_ = 0;
  bool been_elsewhere_ = false;
  int pairs_ = 0, outputs_timed_ = 0, outputs_verified_ = 0;
  std::unique_ptr<Echo> echo_;                         // where someone may be accused
  std::unique_ptr<GpuWatch> watch_;                    // null on a CPU
  GpuHealth health_;                                   // as the watch has it
  GpuHealth::Window other_window_, candidate_window_;  // of the last pair
  int reruns_ = 0;
  nlohmann::json timing_;
};

}  // namespace grove::judge
