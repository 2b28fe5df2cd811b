// Which outputs of timed runs are compared (outputs.h compares them): as many as time allows, and nobody can know
// which. All times are seconds. docs/timing.md derives every constant.
#pragma once

#include "worker/judge/check.h"
#include "worker/judge/outputs.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/samples.h"
#include "worker/judge/side.h"
#include "worker/judge/timed_runs.h"
#include "worker/judge/values.h"

namespace grove::judge {

class SampledOutputs {
 public:
  // References outlive this.
  SampledOutputs(LoadedProblem& problem, Check& check, Values& values, CandidateSide& candidate, Random& random,
                 bool cuda)
      : problem_(problem),
        check_(check),
        values_(values),
        candidate_(candidate),
        random_(random),
        cuda_(cuda),
        outputs_(problem, check, values, cuda) {}

  // Before a run: which of its outputs will be compared, and that both sides keep them. All while that costs no more
  // than a share of the time spent `sampling` until now and there is room, else those that the reference computes
  // anyway, else one; which ones, nobody can know. `series`: whose other side runs on these values, too; may be null.
  void Choose(Series* series, const Sets& timed, double sampling);
  // After it. `series`: null where the other side's run is not to be looked at. Throws Check's verdict on the
  // candidate.
  void Verify(Series* series);
  // All of these, which the candidate, or its rival, has kept. Throws the check's verdict on it.
  void VerifyKept(CandidateSide* side, Check* check, const Sets& sets);
  // Sampling begins anew.
  void BeginAnew() { spent_ = 0; }
  int verified() const { return verified_; }

 private:
  LoadedProblem& problem_;
  Check& check_;
  Values& values_;
  CandidateSide& candidate_;
  Random& random_;
  const bool cuda_;
  Outputs outputs_;
  double spent_ = 0, each_ = 0;  // in all; for one set, without what comparing by all criteria took
  Sets chosen_, rival_chosen_;
  int verified_ = 0;
};

}  // namespace grove::judge
