// Whether a candidate lies to the clock: claims that contradict it, and answers that are late on purpose. Nobody is
// accused but by runs beside which the judge has asked a thread of its own in the same way (claims.h decides). All
// times are seconds. docs/timing.md: "Lies that gain nothing are named all the same".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/judge/echo.h"
#include "worker/judge/sampled_outputs.h"
#include "worker/judge/samples.h"
#include "worker/judge/settings.h"
#include "worker/judge/timed_runs.h"
#include "worker/judge/values.h"

namespace grove::judge {

struct Lie {
  std::string evidence;
  double claimed, seconds;  // of a call: as the candidate says, and by the clock
};

class Lies {
 public:
  // When all is sampled. References outlive this.
  Lies(DeviceOps& ops, const EvaluationSettings& settings, CandidateSide& candidate, Check& check, Values& values,
       TimedRuns& timed, SampledOutputs& sampled, const CandidateRuns& runs, const Reckoning& reckoning)
      : ops_(ops),
        settings_(settings),
        candidate_(candidate),
        check_(check),
        values_(values),
        timed_(timed),
        sampled_(sampled),
        runs_(runs),
        reckoning_(reckoning) {}

  // No figure rests on a claim, so a lie gains nothing; it is named all the same: in the timed runs, or in single
  // calls, which a liar may treat differently. These say, too, what a call takes by itself: all inputs of a run lie
  // before the candidate at once, and on a GPU that one call does not fill the first could do the work of many. A
  // machine that has more work than processors keeps honest candidates waiting where no claim shows it: nobody is
  // accused but by runs beside which the judge has asked a thread of its own in the same way.
  // Throws UNMEASURABLE where the machine may be at fault.
  std::optional<Lie> InClaims(double asking);
  // CandidateRuns::apart, as InClaims found it.
  double apart() const { return apart_; }
  // Who answers late when it is asked to run nothing wants more to be taken off its runs. That is bounded already;
  // where it is plain, it is named: by what the same cost before its code was loaded, and by its own runs of two
  // lengths.
  std::optional<Lie> InAsking(double asking);

 private:
  // Whether threads of the candidate's that never rest have all processors: they keep each other waiting, and whoever
  // is to answer. On a CPU, where runs in steps of such a call say so.
  bool Crowded(double call);
  // One more run of the candidate, and what the judge's own thread waits when it is asked in the same way, which takes
  // as long to answer.
  TimedRun TimeWithWait(const Sets& sets, std::vector<double>* waits);

  DeviceOps& ops_;
  const EvaluationSettings& settings_;
  CandidateSide& candidate_;
  Check& check_;
  Values& values_;
  TimedRuns& timed_;
  SampledOutputs& sampled_;
  const CandidateRuns& runs_;
  const Reckoning& reckoning_;
  double apart_ = 0;
  std::unique_ptr<Echo> echo_;  // where someone may be accused
};

}  // namespace grove::judge
