// Is what the candidate computes right? Draws values, computes what is expected, compares, and says what is wrong.
// docs/correctness.md derives every constant.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/judge/conversation.h"
#include "worker/judge/distributions.h"
#include "worker/judge/excuse.h"
#include "worker/judge/expected.h"
#include "worker/judge/findings.h"
#include "worker/judge/other_draws.h"
#include "worker/judge/problem.h"
#include "worker/judge/settings.h"
#include "worker/judge/slots.h"

namespace grove::judge {

// Runs a candidate on draws and judges what it gives: choosing them, excuses and words are others' (other_draws.h,
// excuse.h, findings.h).
class Check {
 public:
  // `high_fits`: device memory has room for a float64 evaluation beside everything else.
  Check(LoadedProblem& problem, DeviceOps& ops, const EvaluationSettings& settings, bool high_fits);

  // The check proper: `trials` secret draws over all shape sets (one of them leaning, kLeaning), then one of every
  // other distribution, in random order. The first `timed_slots` slots of the arena have shape set 0, the following
  // ones the others in order. Throws the Verdict when one is wrong.
  void Run(Conversation* conversation, Arena* arena, std::size_t timed_slots, Random* random, const Progress& progress);

  // What is expected of a draw, of equal keys those chosen that the candidate was seen to choose.
  Expected Compute(const std::vector<Leaf>& leaves, bool high, bool nudge = false) {
    return expecting_.Compute(leaves, high, nudge);
  }
  bool chooses_otherwise() const { return expecting_.chosen() != Reached::kOther; }  // than torch does
  // Out of the candidate's reach: what a slot's outputs hold now, after a run. `expected`: what they must be like.
  std::vector<at::Tensor> Take(const Slot& slot, const Expected& expected);
  // Compares what was taken of a slot after a run of the draw `leaves`. Throws the Verdict when it is not right.
  // Returns whether elements were let through that are beyond the limit (Comparison::excused).
  bool Verify(const Conversation& conversation, Arena* arena, Slot* slot, std::vector<at::Tensor> got,
              const Reply& reply, const Expected& expected, const std::vector<Leaf>& leaves, int trial);
  // Where a draw comes from. Of kLeaning and kTimed what it shows of rounding is kept for no other, and one that
  // rounding decides passes; of kTimed so does one in many that is off by a little more than it may be (kSeldom).
  enum class Drawn { kForCheck, kLeaning, kTimed };
  // Compares them; and nobody is condemned by one nudge, or by what is known of rounding from another draw:
  // what is WRONG by `expected` is judged once more by evaluations of this draw, of `leaves`, in float64 and for
  // several nudges. True, too, where these let it pass.
  // `got`: taken once, before more is evaluated, while a candidate might go on to write.
  bool VerifyFairly(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                    const std::vector<at::Tensor>& got, const Expected& expected, const std::vector<Leaf>& leaves,
                    int trial, Drawn drawn);

  void CountTimed(std::size_t outputs) { timed_ += outputs; }  // that are compared, by whatever means

  // One more of each that Run found to be of use, in random order (the leaning one first where sums are long), for a
  // slot of shape set 0: who counts calls knows when the check is over. Nothing where there is none left.
  std::optional<OtherDraw> DrawAgain(const Slot& slot);
  // Whether these are values alone until they are verified: what is expected of a large problem's is several times as
  // large, and there may be no room for it beside what timed runs need. Then one waits at a time, too.
  bool ExpectsLater() const { return problem_.large(); }
  // How many of them there are to be at least, however long they take; seconds that one takes at best,
  // by what its evaluations took before there was a candidate.
  std::size_t LeastAgain() const { return others_.LeastAgain(); }
  double AgainSeconds() const;
  // Compares what that slot holds after a run on them. Throws the Verdict when it is not right, UNMEASURABLE where
  // there is no memory any more to say so. False where the values turn out to be of no use.
  bool VerifyAgain(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply, OtherDraw drawn);

  // The reference's parameters are not as they were built: said of what is wrong.
  void ParametersVaried() { varied_ = true; }

  // Of output `i` as it was last verified: how many of its elements an honest program has otherwise on average, and how
  // many were excused.
  struct Jumps {
    double expected = 0;
    std::int64_t excused = 0;
  };
  Jumps JumpsOf(std::size_t i) const { return i < jumps_.size() ? jumps_[i] : Jumps(); }

  int trials() const { return findings_.trials; }
  nlohmann::json Report() const { return findings_.Report(rule_, expecting_.has_high()); }  // CorrectnessReport
  const nlohmann::json& work() const { return work_; }                 // WorkReport of the observed call; null = none
  const std::vector<double>& claims() const { return first_claims_; }  // of the check's calls

 private:
  std::vector<double> MeanJumps(const Expected& expected, bool given);
  // Of a draw that was found WRONG by `expected`: what several nudges show, or nothing where there can be none.
  std::optional<Expected> Better(const Expected& expected, const std::vector<Leaf>& leaves, std::size_t shape_set);
  // Does `work` as on this form of a distribution, knowing nothing of rounding, and goes back to GIVEN as drawn.
  template <typename Work>
  void OnOthers(Distribution distribution, int form, const Work& work);
  // torch keeps what the evaluations of large problems have freed; the candidate, or the next one, needs it.
  void MakeRoom();
  bool LooksForMarks(const std::vector<Leaf>& leaves) const;
  std::vector<at::Tensor> Take(const Slot& slot);
  // What is wrong with outputs of these values, which pass, where rounded inputs have left their mark on them
  // (lowered.h); empty where nothing is.
  std::string MarkOfRounding(const std::vector<at::Tensor>& got, const Expected& expected,
                             const std::vector<Leaf>& leaves, const Secrecy& secret);
  // One draw (SCALED: up to two) on values that the problem does not give. Throws the Verdict.
  void Try(Distribution distribution, Conversation* conversation, Arena* arena, std::size_t timed_slots,
           Random* random);
  // VerifyFairly of values that the problem does not give.
  void VerifyOther(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                   std::vector<at::Tensor> got, const Expected& expected, const std::vector<Leaf>& leaves);
  // Of a crash it says on which values.
  Reply RunThere(Conversation* conversation, std::size_t index);

  LoadedProblem& problem_;
  Reference& reference_;
  DeviceOps& ops_;
  const EvaluationSettings& settings_;
  Rule rule_;
  Expecting expecting_;
  bool varied_ = false;
  bool fills_ = false;  // an output has been seen to hold such (fills.h)
  bool marks_ = false;  // of rounding are looked for in what is verified now
  Random secret_ = Random::Secret();
  Excuses excuses_;
  OtherDraws others_;
  OutputWords words_;
  nlohmann::json work_;
  Findings findings_;
  Outcome* current_;         // the distribution that is tried now, in findings_
  double foreign_wall_ = 0;  // seconds that the candidate took for its calls on other distributions
  Rules rules_;              // of the values at hand
  std::vector<ReferenceNoise> noise_;
  std::vector<double> given_rms_;                               // of each output, the largest of any draw of GIVEN
  std::map<std::pair<std::size_t, std::size_t>, double> ties_;  // by shape set and output: most of any draw of GIVEN
  std::vector<Jumps> jumps_;
  std::vector<double> drawn_jumps_;  // of each output: the sum of Expected::jumps over the draws of GIVEN
  int draws_ = 0;
  std::size_t timed_ = 0, beyond_ = 0;  // timed outputs that were compared, and those that were off by a little more
  std::vector<double> first_claims_;
};

}  // namespace grove::judge
