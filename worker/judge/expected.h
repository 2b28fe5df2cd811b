// What is expected of one draw of the inputs: the reference's outputs, the same in float64, and what rounding does to
// them, by evaluations on inputs that are moved a little. docs/correctness.md derives every constant.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "worker/judge/choices.h"
#include "worker/judge/compare_tensors.h"
#include "worker/judge/device_ops.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/turns.h"

namespace grove::judge {

struct Expected {
  std::vector<at::Tensor> plain;
  std::vector<at::Tensor> high;    // in float64; empty where there is none
  std::vector<at::Tensor> nudged;  // the same for nudged inputs; empty where there is none
  std::vector<at::Tensor> wide;    // the same for inputs nudged further, where an output has steps
  std::vector<double> jumps;       // share of each output that jumps in a nudge; empty where none of them is known to
  // Of outputs of exact types: which elements at least one of so many nudges turned over; undefined for others, empty
  // where that was not asked.
  struct Turned {
    at::Tensor elements;
    int turns = 0;
  };
  std::vector<Turned> turned;
  // Of outputs of few elements: the rms of the reference's own errors, of each element the one that is typical on these
  // inputs and inputs beside them; 0 of others, empty where that was not asked.
  std::vector<double> errors;
  double crowded = 1;  // terms that may meet in one sum on these values, whatever LoadedProblem::ReductionOf says
  // Asked is alone whether there are numbers where the reference has numbers: what they are is not said.
  bool numbers_alone = false;
  bool no_room = false;   // evaluations in float64 are missing for want of memory, beyond those that only add to them
  bool had_high = false;  // there was one, whether it is still there
  std::vector<bool> left_out;  // outputs of which these values say nothing; empty where they say something of all
  bool LeftOut(std::size_t output) const { return output < left_out.size() && left_out[output]; }
  // Of positions that these values leave to rounding, or to equal keys, and that are judged by their keys (by_keys.h):
  // the keys' rms on the problem's own values. Nothing of others, empty where there are none.
  std::vector<std::optional<double>> by_keys;
  std::optional<double> ByKeys(std::size_t output) const {
    return output < by_keys.size() ? by_keys[output] : std::nullopt;
  }
};

// What output `i` is compared by. `got` may be undefined; `noise`: of other draws; `jumps`: Expected::jumps of it, or
// what is known better.
ComparedTensors Measured(const LoadedProblem& problem, std::size_t i, const at::Tensor& got, const Expected& expected,
                         const ReferenceNoise& noise, double jumps);

class Expecting {
 public:
  // `high_fits`: device memory has room for a float64 evaluation beside everything else.
  Expecting(LoadedProblem& problem, DeviceOps& ops, bool high_fits)
      : problem_(problem), reference_(*problem.reference), ops_(ops), high_fits_(high_fits) {}

  // Of equal keys those chosen that Choose named last. `nudge`: also in float64 with the inputs moved by roundings.
  Expected Compute(const std::vector<Leaf>& leaves, bool high, bool nudge = false);
  // What a candidate was seen to choose of equal keys: kOther as torch does, and so it is at first.
  void Choose(Reached::Order order) { chosen_ = order; }
  Reached::Order chosen() const { return chosen_; }

  // What Compute gave with `nudge` shows the response to one nudge. Of each element, in its place: the root mean square
  // of the responses to several. False where there were none, for want of time or memory.
  bool NudgeMore(const std::vector<Leaf>& leaves, Expected* expected);

  // Of outputs of so few elements errors of single evaluations say little of those of others.
  static constexpr std::int64_t kFew = 256;
  // Fills in `errors` of what Compute gave with `high`.
  void AddErrors(const std::vector<Leaf>& leaves, Expected* expected);

  static constexpr int kMostNudges = 24;  // of ComesOut
  // Which of the elements at these flat positions of output `output` come out within `allowed` (for each position) of
  // what `got` has there in at least one evaluation in float64 with the inputs moved by `size`, relative.
  // `turns`: how many of them there may be; `nudges` is raised by how many there were. `between`: what has come out on
  // both sides of what it has is enough.
  at::Tensor ComesOut(const std::vector<Leaf>& leaves, std::size_t output, const at::Tensor& positions,
                      const at::Tensor& got, const at::Tensor& allowed, double size, Turns* turns, bool between,
                      int* nudges = nullptr);
  bool has_high() const { return high_fits_ && problem_.double_seconds >= 0; }

 private:
  // The outputs of an evaluation in float64; none where they are not of the same shapes as `like`.
  std::vector<at::Tensor> InDouble(const std::vector<Leaf>& leaves, const std::vector<at::Tensor>& like);
  // Inputs moved by `size`, but for those that stay still.
  std::vector<Leaf> Moved(const std::vector<Leaf>& leaves, double size);
  // LoadedProblem::still, by the first draw whose exact outputs these are.
  void FindStill(const std::vector<Leaf>& leaves, const std::vector<at::Tensor>& high);
  void FollowInputs(Expected* expected) const;
  // Fills in `jumps`, from further evaluations in float64 with inputs moved further.
  void CountJumps(const std::vector<Leaf>& leaves, Expected* expected);
  void CountTies(const std::vector<Leaf>& leaves, Expected* expected);
  // Turns outputs of exact types over, those whose exactness is `which`, by nudges of this size.
  void TurnOver(Exactness which, const std::vector<Leaf>& leaves, double nudge, Expected* expected);
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 24;
  // Of outputs of no more elements than `most`, and of no more than kMostElements together.
  bool NudgeMore(const std::vector<Leaf>& leaves, std::int64_t most, Expected* expected);

  LoadedProblem& problem_;
  Reference& reference_;
  DeviceOps& ops_;
  const bool high_fits_;
  Reached::Order chosen_ = Reached::kOther;
  Random secret_ = Random::Secret();
};

}  // namespace grove::judge
