// What excuses elements that differ from the reference's: an honest program may choose otherwise among equal keys, and
// its own rounding may take an element over a threshold. Evaluations of the reference on the same draw have to show an
// element where the candidate has it, also of those few that the comparison lets through by their number, where there
// is time for it. docs/correctness.md derives every constant.
#pragma once

#include <vector>

#include "worker/judge/choices.h"
#include "worker/judge/compare_tensors.h"
#include "worker/judge/expected.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/turns.h"

namespace grove::judge {

// Which output of a run on which draw.
struct Source {
  std::size_t output;
  const std::vector<Leaf>& leaves;
  std::size_t shape_set;
  bool by_keys = false;  // of positions nothing is asked but the keys that stand there (by_keys.h)
};

class Excuses {
 public:
  // Seconds of evaluations that may go into looking for excuses, at a time.
  static constexpr double kMostSeconds = 4;

  // What a candidate is seen to choose among equal keys, `expecting` is told. References outlive this.
  Excuses(LoadedProblem& problem, Expecting& expecting)
      : problem_(problem), reference_(*problem.reference), expecting_(expecting) {}

  // What CompareTensors says, or, where there are elements beyond the limit that an honest program may have as they
  // are, what it says of the others (Comparison::excused). Of an exact type it says, too, where a few elements that
  // rounding may have otherwise as far as their number goes are none that it takes there. `turns`: how many evaluations
  // there may be to find elements beyond thresholds. Leaves shape set 0 selected where it looks.
  Comparison Compare(const Source& of, ComparedTensors tensors, const Rule& rule, Turns* turns);

 private:
  // Where a few elements are beyond the limit that the work's own rounding can bring where they are (past a threshold
  // that is small beside the output, which no other nudge is seen to cross), what is found of the others.
  Comparison BeyondThresholds(const Source& of, ComparedTensors tensors, Comparison compared, const Rule& rule,
                              Turns* turns);
  // Of few elements, whose sums may cancel where nudges move nothing (exp(0) - exp(0)), what is found with the rounding
  // of each operation on these values as the size of errors. Of many the same where each is off by what rounding makes
  // of it (the sine of a running sum: nudges of its terms average out, and rounding of the sum does not). `inside`:
  // FindInside.
  Comparison OfInnerRounding(const Source& of, const ComparedTensors& tensors, Comparison compared, const Rule& rule,
                             at::Tensor* inside);
  // On values that the problem does not give, against what the program gives where its masks mask all the same.
  Comparison OfClosedMasks(const Source& of, ComparedTensors tensors, Comparison compared, const Rule& rule);
  // Fills in RoundingInside, unless it is known; whether it is.
  bool FindInside(const Source& of, const ComparedTensors& tensors, const Rule& rule, at::Tensor* inside);
  // ReachedByRounding, in the type that the program works in.
  Reached OfRounding(const Source& of, const ComparedTensors& tensors, const at::Tensor& allowed, Turns* turns);
  // Of an exact type, a few elements that rounding may have otherwise as far as their number goes: condemns those that
  // no nudge, far larger than the work's rounding, brings where the candidate has them. A number alone would be leave
  // to leave out as many, wherever most of the work is.
  void AskForJumps(const Source& of, const ComparedTensors& tensors, const Rule& rule, Comparison* compared);
  // By the keys that stand at these positions alone; UNMEASURABLE (a Verdict) where there is no memory for it now.
  Comparison ByKeys(const Source& of, const at::Tensor& got, const Rule& rule);
  // Where the reference's choice among equal keys is one of many, or rounding of what is made of whole numbers takes
  // elements to where the candidate has them, what is found of the others.
  Comparison OtherwiseAsGood(const Source& of, ComparedTensors tensors, Comparison compared, const Rule& rule);

  LoadedProblem& problem_;
  Reference& reference_;
  Expecting& expecting_;
  Random secret_ = Random::Secret();
};

}  // namespace grove::judge
