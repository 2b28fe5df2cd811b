// The outputs of timed runs, many at a time. What a check of one slot after another would decide is decided here for a
// run in a few steps: an output whose error is no larger than one that Check has already passed is right; any other is
// given to Check, which alone decides.
#pragma once

#include <functional>
#include <vector>

#include "worker/judge/check.h"
#include "worker/judge/compare_gpu.h"
#include "worker/judge/random.h"
#include "worker/judge/side.h"

namespace grove::judge {

class Outputs {
 public:
  Outputs(LoadedProblem& problem, Check& check, Values& values, bool cuda)
      : problem_(problem), check_(check), values_(values), cuda_(cuda) {}

  // Throws Check's verdict when one of these sets' outputs is wrong, or when memory was written that must not be.
  // `expected` gives the reference's outputs of a set.
  void Verify(CandidateSide* side, const std::vector<std::size_t>& sets,
              const std::function<std::vector<at::Tensor>(std::size_t)>& expected);
  // Seconds of the last Verify that went into comparing one output by all criteria.
  double whole_seconds() const { return whole_seconds_; }

  // Shares of an output's elements, by how far they are off in units of themselves.
  struct Off {
    double slightly = 0, much = 0;
  };

 private:
  // Counts what was expected and excused in one set. Throws the Verdict when it is too much over all sets: a few
  // elements of every output might be excused, and no honest program has as many in each.
  void CountJumps(bool verified);
  // `whole`: by this draw's own evaluation in float64, with all criteria.
  bool VerifyOne(CandidateSide* side, std::size_t set, const std::vector<at::Tensor>& expected, bool whole);

  LoadedProblem& problem_;
  Check& check_;
  Values& values_;
  const bool cuda_;
  Random random_ = Random::Secret();
  double whole_seconds_ = 0;
  // The largest that Check passed, of each output. Not with elements that it excused: their errors have no bound, and
  // would be an excuse for all others.
  std::vector<RowError> passed_;
  // The largest that Check passed, too, with those that it excused: a share has a bound. By what was not looked at it
  // would double from run to run.
  std::vector<Off> off_passed_;
  std::vector<Check::Jumps> jumps_;       // of each output, over all sets
  std::vector<std::int64_t> most_jumps_;  // of each output, that were excused in one set
};

}  // namespace grove::judge
