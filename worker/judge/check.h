// Is what the candidate computes right? Draws values, computes what is expected, compares, and says what is wrong.
// docs/correctness.md derives every constant.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/judge/choices.h"
#include "worker/judge/compare_tensors.h"
#include "worker/judge/conversation.h"
#include "worker/judge/distributions.h"
#include "worker/judge/expected.h"
#include "worker/judge/problem.h"
#include "worker/judge/settings.h"
#include "worker/judge/slots.h"

namespace grove::judge {

// How the check goes on one distribution of values.
struct Outcome {
  Distribution distribution = Distribution::kGiven;
  int trials = 0, passed = 0;
  std::string how, skipped;
  double error = 0;  // the largest rms error over rms
};

class Check {
 public:
  // `high_fits`: device memory has room for a float64 evaluation beside everything else.
  Check(LoadedProblem& problem, DeviceOps& ops, const EvaluationSettings& settings, bool high_fits);

  // The check proper: `trials` secret draws over all shape sets (one of them leaning, kLeaning), then one of every
  // other distribution, in random order. The first `timed_slots` slots of the arena have shape set 0, the following
  // ones the others in order. Throws the Verdict when one is wrong.
  void Run(Conversation* conversation, Arena* arena, std::size_t timed_slots, Random* random, const Progress& progress);

  // What is expected of a draw, of equal keys those chosen that the candidate was seen to choose.
  Expected Compute(const std::vector<Leaf>& leaves, bool high, bool nudge = false);
  bool chooses_otherwise() const { return chosen_ != Reached::kOther; }  // than torch does
  // Compares what a slot holds after a run of the draw `leaves`. Throws the Verdict when it is not right. Returns
  // whether elements were let through that are beyond the limit (Comparison::excused).
  bool Verify(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply, const Expected& expected,
              const std::vector<Leaf>& leaves, int trial);
  // The same; where `expected` was not evaluated in float64 and for nudged inputs, what is known of rounding is of
  // another draw, and condemns nobody: this draw's own evaluations, of `leaves`, are made then and decide. True, too,
  // where they did. `timed`: what this draw shows of rounding is kept for no other, and one that rounding decides
  // passes.
  bool VerifyFairly(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                    const Expected& expected, const std::vector<Leaf>& leaves, int trial, bool timed);

  // A draw on values that the problem does not give.
  struct Elsewhere {
    Distribution distribution;
    std::vector<Leaf> leaves;
    Expected expected;
    std::string how, skipped;  // skipped: why it is of no use
  };
  // One more of each that Run found to be of use, in random order (the leaning one first where sums are long), for a
  // slot of shape set 0: who counts calls knows when the check is over. Nothing where there is none left.
  std::optional<Elsewhere> DrawAgain(Slot* slot);
  // How many of them there are to be at least, however long they take.
  std::size_t LeastAgain() const;
  // Compares what that slot holds after a run on them. Throws the Verdict when it is not right.
  void VerifyAgain(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                   const Elsewhere& drawn);

  // The reference's parameters are not as they were built: said of what is wrong.
  void ParametersVaried() { varied_ = true; }

  // Of output `i` as it was last verified: how many of its elements an honest program has otherwise on average, and how
  // many were excused.
  struct Jumps {
    double expected = 0;
    std::int64_t excused = 0;
  };
  Jumps JumpsOf(std::size_t i) const { return i < jumps_.size() ? jumps_[i] : Jumps(); }

  int trials() const { return trials_; }
  nlohmann::json Report() const;                                       // CorrectnessReport
  const nlohmann::json& work() const { return work_; }                 // WorkReport of the observed call; null = none
  const std::vector<double>& claims() const { return first_claims_; }  // of the check's calls

 private:
  std::vector<double> MeanJumps(const Expected& expected, bool given);
  Elsewhere DrawElsewhere(Distribution distribution, int form, std::size_t set, Slot* slot);
  // Does `work` as on this distribution, knowing nothing of rounding, and goes back to GIVEN as drawn.
  template <typename Work>
  void OnOthers(Distribution distribution, const Work& work);
  bool LongSums() const;
  // Moves the values of a draw of GIVEN (kLeaning) and computes what is expected of them, where that says something.
  bool Leans(const Slot& slot, std::vector<Leaf>* leaves, Expected* expected);
  // torch keeps what the evaluations of large problems have freed; the candidate, or the next one, needs it.
  void MakeRoom();
  // One draw (SCALED: up to two) on values that the problem does not give. Throws the Verdict.
  void Try(Distribution distribution, Conversation* conversation, Arena* arena, std::size_t timed_slots,
           Random* random);
  // Of a crash it says on which values.
  Reply RunThere(Conversation* conversation, std::size_t index);
  // What output `i` is compared by. `got` may be undefined; `noise`: of other draws.
  ComparedTensors Measured(std::size_t i, const at::Tensor& got, const Expected& expected, const ReferenceNoise& noise,
                           double jumps) const;
  // What CompareTensors says; where it finds a few elements beyond the limit that the work's own rounding can bring
  // where they are (past a threshold that is small beside the output, which no other nudge is seen to cross), what it
  // says of the others. `turns`: how many evaluations there may be to find that out.
  Comparison CompareOrExcuse(std::size_t i, ComparedTensors tensors, const Rule& rule, const std::vector<Leaf>& leaves,
                             std::size_t shape_set, Turns* turns);
  // Of an exact type, a few elements that rounding may have otherwise as far as their number goes: condemns those that
  // no nudge, far larger than the work's rounding, brings where the candidate has them. A number alone would be leave
  // to leave out as many, wherever most of the work is.
  void AskForJumps(std::size_t i, const ComparedTensors& tensors, const Rule& rule, const std::vector<Leaf>& leaves,
                   std::size_t shape_set, Comparison* compared);
  // The same for what it would not let pass: where the reference's choice among equal keys is one of many, or rounding
  // of what is made of whole numbers takes elements to where the candidate has them, what it says of the others.
  Comparison Excuse(std::size_t i, ComparedTensors tensors, Comparison compared, const Rule& rule,
                    const std::vector<Leaf>& leaves, std::size_t shape_set);
  bool Indices(const Slot& slot) const;
  // Whether the reference does on these values what it does not on the problem's own: makes integers of what they
  // cannot hold; gives other fractions where equal keys are put in another order.
  bool MakesNoIntegers(const std::vector<Leaf>& leaves);
  bool EqualKeysDecide(const Expected& expected, const std::vector<Leaf>& leaves);
  bool Decide(const Expected& expected, const std::vector<Leaf>& leaves);
  // Why these values say nothing about a kernel; empty = they do.
  std::string Unusable(const Expected& expected, const std::vector<Leaf>& leaves);
  Rule ForeignRule() const;
  Rule RuleOf(std::size_t output) const;  // of the values at hand
  std::string Precision() const;          // in words
  void KeepWorst(const std::vector<nlohmann::json>& outputs);
  void CheckTypes(const Conversation& conversation, const Reply& reply, const Expected& expected, bool held_out,
                  std::vector<nlohmann::json>* outputs, std::string* failure) const;
  std::string Path(std::size_t i) const;
  std::string Output(std::size_t i, std::size_t count) const;
  nlohmann::json Describe(std::size_t i, const at::Tensor& expected, const Comparison& compared, bool quiet,
                          bool held_out) const;
  std::string Explain(std::size_t i, std::size_t count, const at::Tensor& got, const at::Tensor& expected,
                      const Comparison& compared, int trial, bool quiet, bool held_out) const;
  std::string OnTheseInputs(const std::string& failure) const;
  std::string RuleText() const;

  LoadedProblem& problem_;
  Reference& reference_;
  DeviceOps& ops_;
  const EvaluationSettings& settings_;
  Rule rule_;
  Expecting expecting_;
  bool varied_ = false;
  std::vector<std::string> paths_;
  nlohmann::json work_;
  int trials_ = 0, trials_passed_ = 0, first_failing_ = 0;
  bool inputs_modified_ = false;
  struct Figures {  // on the values given
    bool also_1e4 = true, also_1e2 = true, also_scaled = true;
    double worst_allowed = 0, error_found = 0, error_same = 0, condition = 1, reference_noise = 0;
  };
  Figures figures_;
  bool given_finite_ = true;
  std::optional<bool> given_overflows_, given_decide_;  // of the problem's own values; once asked for
  double longest_other_ = 0;  // seconds of one draw of another distribution and what is computed for it
  double foreign_wall_ = 0;   // seconds that the candidate took for its calls on other distributions
  Outcome* current_;          // the distribution that is tried now
  std::vector<Outcome> outcomes_;
  std::vector<std::pair<Distribution, int>> usable_;  // of shape set 0, with their forms
  Rule verify_rule_;
  Random secret_;
  std::vector<nlohmann::json> outputs_;
  std::vector<ReferenceNoise> noise_;
  std::vector<double> given_rms_;                               // of each output, the largest of any draw of GIVEN
  std::map<std::pair<std::size_t, std::size_t>, double> ties_;  // by shape set and output: most of any draw of GIVEN
  std::vector<Jumps> jumps_;
  Reached::Order chosen_ = Reached::kOther;
  std::vector<double> drawn_jumps_;  // of each output: the sum of Expected::jumps over the draws of GIVEN
  int draws_ = 0;
  std::vector<double> first_claims_;
};

}  // namespace grove::judge
