#include "worker/judge/steps.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "worker/judge/candidate_steps.h"
#include "worker/judge/statistics.h"
#include "worker/judge/verdict.h"

namespace grove::judge {
namespace {

// A call in steps may take twice what one in a run takes, as one by itself may (single_calls.cc); of what a step costs
// a share; and a moment: on a GPU what launching and waiting for it take, which calls in a row share.
constexpr double kMore = 2, kDearerCpu = 0.25, kDearerCuda = 0.1, kOnceCpu = 3e-6, kOnceCuda = 8e-6;
// Besides, so many times what the judge's own thread waits when it is asked in the same way: on a machine that is not
// busy, up to so much; what it waits beyond that explains what a candidate waits, but clears nobody.
constexpr double kOwn = 4, kOwnSleeping = 1;
constexpr double kQuietOwn = 2e-6, kQuietOwnSleeping = 50e-6;
constexpr int kAttempts = 3, kAttemptsUnsure = 6;  // that say the same; as many as may be made for that
constexpr std::size_t kFewCalls = 3;               // of a run
constexpr std::size_t kLeastSteps = 9;
constexpr double kLongest = 10e-3;  // of a call: work for many of them shows in single calls, on a GPU
// Of drawing the values of one attempt, handing them over and computing its results, but for the least of them; and for
// one step at most.
constexpr double kChecking = 0.1, kCheckingOnce = 0.1;

// With evidence: who may have brought it about gets no second attempt by itself.
[[noreturn]] void Unmeasurable(const std::string& reason, const std::string& evidence) {
  throw Verdict{"VERDICT_UNMEASURABLE", reason, {{"stage", "time"}, {"evidence", evidence}}};
}

enum class Found {
  kAsInRuns,
  kUnsure,  // a thread of the judge's own waited as well
  kFarMore,
};

struct Attempt {
  Found found = Found::kAsInRuns;
  double seconds = 0;         // of a step, by the median
  double own = 0;             // of one of the judge's own thread
  bool may_starve = false;    // whoever looks for an answer: threads that never rest
  bool machine_busy = false;  // it was so while the candidate stood
};

class Steps {
 public:
  Steps(const InSteps& in, std::size_t count) : in_(in), count_(count) {}

  Attempt Try(Waiting waiting, bool cold = false) {
    CandidateSteps& steps = *in_.candidate.steps();
    const bool looking = waiting == Waiting::kLooking;
    const double asking = steps.asking(waiting);
    const Sets sets = in_.timed.Pick(count_);
    in_.values.Refill(sets);
    const OwnSteps own = GiveOwnSteps(in_.candidate.processor(), waiting);
    GivenSteps given = steps.Run(sets, waiting, cold);
    if (given.seconds.size() != sets.size()) {
      throw Verdict{"VERDICT_UNMEASURABLE",
                    "calls that were given one at a time did not answer one at a time, but " +
                        std::to_string(given.seconds.size()) + " of " + std::to_string(sets.size()),
                    // Cold ones come when steps count already: who breaks them off gets no second attempt.
                    cold ? nlohmann::json{{"stage", "time"}, {"evidence", "it broke off calls with cold caches"}}
                         : nlohmann::json()};
    }
    in_.sampled.VerifyKept(&in_.candidate, &in_.check, sets);
    given.seconds.erase(given.seconds.begin());  // wakes up
    const double times = looking ? kOwn : kOwnSleeping,
                 quiet = std::min(own.seconds, looking ? kQuietOwn : kQuietOwnSleeping);
    const double most = kMore * std::max(in_.each, 0.0) +
                        (in_.cuda ? kDearerCuda * asking + kOnceCuda : kDearerCpu * asking + kOnceCpu) + times * quiet;
    // A machine that is busy keeps some of them waiting.
    const double taken = Quantile(given.seconds, 0.25) - asking;
    Attempt attempt{.found = Found::kAsInRuns,
                    .seconds = Median(given.seconds),
                    .own = own.seconds,
                    .may_starve = given.MayHaveStarved(),
                    .machine_busy = own.starved};
    if (taken > most) attempt.found = taken > most + times * (own.seconds - quiet) ? Found::kFarMore : Found::kUnsure;
    return attempt;
  }

 private:
  const InSteps& in_;
  const std::size_t count_;
};

}  // namespace

Beyond BeyondInSteps(const InSteps& in) {
  CandidateSteps* const candidate = in.candidate.steps();
  const double each = in.each;
  const double computing =
      in.values.RefillSeconds(kLeastSteps) / static_cast<double>(kLeastSteps) + in.reference_seconds;
  const double checking = computing + (candidate != nullptr ? candidate->handing() : 0);
  if (candidate == nullptr || candidate->asking(Waiting::kLooking) <= 0 || in.calls < kFewCalls || each > kLongest ||
      checking > kCheckingOnce) {
    return {};
  }
  const auto fit =
      static_cast<std::size_t>(std::min(kChecking / std::max(checking, 1e-9), double{CandidateSteps::kMost}));
  const std::size_t count = std::min({std::max(fit, kLeastSteps), in.timed.slots(), in.candidate.MostKept()});
  if (count < kFewCalls) return {};
  // What was measured is not to be lost for it: all attempts, in either way.
  const double longest =
      2 * kAttemptsUnsure * static_cast<double>(count) * (checking + kMore * std::max(each, 0.0)) + 1;
  const double left = in.candidate.conversation().Left();
  char text[300];
  if (left < longest) {
    // There was time when sampling ended, and single calls have used it up; of that what the judge does for them is
    // its own.
    constexpr double kSingleCalls = 54;  // six attempts of nine (lies.cc, single_calls.cc)
    if (longest + kSingleCalls * computing <= in.left_by_sampling) {
      std::snprintf(text, sizeof text,
                    "runs of a few single calls after all that was timed took so long that %.3g s of "
                    "run_wall_seconds are left, and calls cannot be given one at a time any more",
                    left);
      Unmeasurable(text, text);
    }
    return {.no_time = true};
  }
  Steps steps(in, count);
  double beyond = 0, own = 0, more = 0;
  int plain = 0, crowded = 0;
  for (int i = 0; i < kAttemptsUnsure && plain < kAttempts && crowded < kAttempts; ++i) {
    Attempt attempt = steps.Try(Waiting::kLooking);
    const bool starved = attempt.found != Found::kAsInRuns && attempt.may_starve;
    if (starved && attempt.machine_busy) {
      attempt.found = Found::kUnsure;
    } else if (starved && candidate->sleeps()) {
      attempt = steps.Try(Waiting::kSleeping);
    }
    if (attempt.found == Found::kAsInRuns) return {};
    more = attempt.seconds;
    own = std::max(own, attempt.own);
    if (attempt.found == Found::kUnsure) continue;
    ++(starved ? crowded : plain);
    // With what handing over takes, which nobody can tell from work; and on a CPU inputs that were just handed over lie
    // in a cache, those of timed runs do not.
    beyond = plain + crowded == 1 ? attempt.seconds - each : std::min(beyond, attempt.seconds - each);
  }
  if (plain == kAttempts) {
    // So they do on a GPU, where caches can be cold: what counts is the longer, so that whoever begins while inputs
    // come, for which there is more time then, gains nothing by it.
    if (in.cuda && in.cold) {
      double cold = std::numeric_limits<double>::infinity();
      for (int i = 0; i < kAttempts; ++i) cold = std::min(cold, steps.Try(Waiting::kLooking, /*cold=*/true).seconds);
      beyond = std::max(beyond, cold - each);
    }
    return {.seconds = beyond};
  }
  std::snprintf(text, sizeof text, "a call takes %.3g s when it is given by itself and %.3g s in a run", more, each);
  if (crowded < kAttempts) {
    char why[600];
    std::snprintf(why, sizeof why,
                  "%s; a thread of the judge's own that was asked in the same way took up to %.3g s: the machine has "
                  "more work than processors; ask again when it has less",
                  text, own);
    Unmeasurable(why, text);
  }
  throw Verdict{"VERDICT_UNMEASURABLE",
                std::string(text) +
                    ", and threads that never rest have all processors, so that it cannot be told why: "
                    "let them sleep while there is nothing to do, or leave a processor free",
                {}};
}

}  // namespace grove::judge
