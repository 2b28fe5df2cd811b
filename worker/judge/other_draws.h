// Draws of values that the problem does not give: which of them say something about a kernel, by what rules it is
// judged there, and why others are left out. Knows nothing of the candidate, but for what Expecting was told.
// docs/correctness.md derives every constant.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/judge/distributions.h"
#include "worker/judge/expected.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/slots.h"

namespace grove::judge {

// The rules by which a draw's outputs are judged.
struct Rules {
  Rule rule;                        // of all of them
  std::vector<double> units;        // Rule::unit of each; none where empty
  std::vector<bool> one_term = {};  // Rule::one_term of each; none where empty
  Rule Of(std::size_t output) const;
  // Of keys that positions were chosen by; `given`: their rms on the problem's own values.
  Rule OfKeys(double given) const;
};

// On a form of another distribution; kGiven: on values that lean. `given`: the rule on the problem's own values;
// `reduced`: the rms error that reduced precision may have; `given_rms`: of each output, the largest of any draw of the
// problem's own values.
Rules RulesOn(Distribution distribution, int form, const Rule& given, double reduced,
              const std::vector<double>& given_rms);

// Whether such values are for the first shape set alone: what the graph names, and which places there are, is known of
// that. (Few of their own values, which go by both.)
bool OfFirstShapes(Distribution distribution, int form);
bool HasExact(const Slot& slot);  // among its outputs there are some of exact types

struct OtherDraw {
  Distribution distribution;
  int form;
  std::vector<Leaf> leaves;
  Expected expected;
  std::string how, skipped;         // skipped: why it is of no use
  std::vector<bool> one_term = {};  // outputs whose sums have one term there; none where empty
  bool as_drawn = false;            // the problem's own values as they are (kAsDrawn)
  bool no_memory = false;           // why it is skipped
  double crowded = 1;               // Expected::crowded
};

class OtherDraws {
 public:
  // References outlive this.
  OtherDraws(LoadedProblem& problem, DeviceOps& ops, Expecting& expecting, double reduced)
      : problem_(problem), reference_(*problem.reference), ops_(ops), expecting_(expecting), reduced_(reduced) {}

  // What is expected of a draw of the problem's own values, of each of them.
  void Saw(const Expected& given);

  // Such a draw moved (kLeaning), with what is expected of it, where that says something. The shape set is selected.
  std::optional<OtherDraw> Lean(const Slot& slot, const std::vector<Leaf>& leaves);
  // One draw of another distribution, for this slot; `rules`: by which it would be judged. Leaves shape set 0 selected.
  OtherDraw Draw(Distribution distribution, int form, const Slot& slot, const Rules& rules);
  // Its two halves: the values, which take little time and no more memory than they are; and what is expected of them,
  // which says whether they are of use.
  OtherDraw DrawValues(Distribution distribution, int form, const Slot& slot);
  void Expect(const Slot& slot, const Rules& rules, OtherDraw* drawn);
  // Why the problem says that such values are not worth a draw; empty = they are, as all but RARE and INTEGERS
  // are always.
  std::string Idle(Distribution distribution) const;
  bool Idle(Distribution distribution, int form) const;

  // These values, of shape set 0, were of use, and may be drawn again.
  void Keep(const OtherDraw& drawn, const Slot& slot);
  void KeepGiven(int form);
  // One of those, each once, in random order (those of GIVEN first where sums are long): a distribution and its form.
  std::optional<std::pair<Distribution, int>> TakeKept();
  // Whether evaluations that such values had when they were kept are missing now, for want of memory.
  bool Lacks(const OtherDraw& drawn) const;
  // How many of them a candidate is to meet again at least, however long they take.
  std::size_t LeastAgain() const;
  // So long that the errors of lower precision average out on the problem's own values.
  bool LongSums() const;

 private:
  // The input that a form of this distribution leaves one term of; nothing where the form is another, or there is none.
  std::optional<std::size_t> FactorOf(Distribution distribution, int form) const;
  Transformed Make(Distribution distribution, int form, OtherDraw* drawn);
  // What is behind a normalisation of zeros is rounding or nothing: that it is a number is all that is asked of it.
  void AskForNumbers(const Slot& slot, const Rules& rules, OtherDraw* drawn);
  void LeaveOutIndices(const Slot& slot, const Rules& rules, OtherDraw* drawn);
  void LeaveOutRounded(OtherDraw* drawn);
  // Expected::by_keys of an output: nothing where its keys say nothing either.
  std::optional<double> KeysSaySomething(std::size_t output, std::size_t shape_set, const OtherDraw& drawn,
                                         const Rules& rules);
  bool Parted(std::size_t output, const OtherDraw& drawn);
  // Whether the reference does on these values what it does not on the problem's own: makes integers of what they
  // cannot hold; gives other fractions where equal keys are put in another order.
  bool MakesNoIntegers(const std::vector<Leaf>& leaves);
  bool EqualKeysDecide(const Expected& expected, const std::vector<Leaf>& leaves, const Rules& rules);
  bool Decide(const Expected& expected, const std::vector<Leaf>& leaves, const Rules& rules);
  bool ClosesRows(const std::vector<Leaf>& leaves);
  // Why these values say nothing about a kernel; empty = they do.
  std::string Unusable(const OtherDraw& drawn, const Rules& rules);

  LoadedProblem& problem_;
  Reference& reference_;
  DeviceOps& ops_;
  Expecting& expecting_;
  const double reduced_;
  bool given_finite_ = true;
  // Of the problem's own values; once asked for.
  std::optional<bool> given_overflows_, given_decide_;
  std::map<std::size_t, std::vector<std::optional<double>>> given_keys_;  // KeySizes, by shape set
  std::vector<std::pair<Distribution, int>> kept_;
  struct Evaluations {
    bool high = false, nudged = false;
  };
  std::map<std::pair<Distribution, int>, Evaluations> had_;
  std::size_t kept_given_ = 0;
  int closes_rows_ = -1;  // the form of RARE that did last
  Random secret_ = Random::Secret();
};

}  // namespace grove::judge
