// The judge's half of a run in steps (common/wire/steps.h): a thread that gives call after call its inputs and takes
// the outputs, off the processor that runs them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "common/wire/steps.h"

namespace grove::judge {

struct StepWords {
  char *given = nullptr, *done = nullptr;
};

using wire::Waiting;

// What the judge does for each step, which is given to it. All are called by the other thread.
struct StepWork {
  using Do = std::function<void(std::size_t)>;
  static void Nothing(std::size_t) {}

  Do ahead = Nothing;   // before the step's time begins
  Do before = Nothing;  // within it: what is left to be done for the inputs
  Do after = Nothing;   // within it: when the answer is there
  // At once when its time is over; seconds that belong to it all the same.
  std::function<double(std::size_t)> behind = [](std::size_t) { return 0.0; };
};

struct GivenSteps {
  std::vector<double> seconds;  // of each step, `before` and `after` included
  // Share of the steps' time in which the judge's thread was ready and had no processor, by the median of the steps;
  // nothing where the kernel does not say (/proc/thread-self/schedstat).
  std::optional<double> starved;
  // Whether others may have had all processors: threads that never rest. Not known is no excuse to condemn anybody.
  bool MayHaveStarved() const { return starved.value_or(1) > kStarved; }
  static constexpr double kStarved = 0.2;
};

// Whether there is a processor for either side.
bool ProcessorsForSteps();

// Steps, up to `count`; fewer where one took longer than `most` seconds or `give_up` said so (asked all the time).
// `processor`: where they are run; negative = not known. Throws std::system_error, and what `work` throws.
GivenSteps GiveSteps(const StepWords& words, std::size_t count, int processor, Waiting waiting, double most,
                     const StepWork& work, const std::function<bool()>& give_up);

// Steps that a thread of the judge's own does there, and in which nothing is done.
struct OwnSteps {
  double seconds = 0;    // of one, by the median
  bool starved = false;  // others had all processors
};
OwnSteps GiveOwnSteps(int processor, Waiting waiting);

}  // namespace grove::judge
