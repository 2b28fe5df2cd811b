// The judge's half of a run in steps (common/wire/steps.h): a thread that gives call after call its inputs and takes
// the outputs, on another processor than the one that runs them.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace grove::judge {

struct StepWords {
  char *given = nullptr, *done = nullptr;
};

// Whether there is a processor for either side.
bool ProcessorsForSteps();

// Seconds that each of so many steps took, from when it was given until it was done; fewer where one took longer than
// `most` seconds or `give_up` said so (asked all the time). `processor`: where they are run; negative = not known.
// `before` and `after` are called with the number of each, on nobody's clock. Throws std::system_error.
std::vector<double> GiveSteps(const StepWords& words, std::size_t count, int processor, double most,
                              const std::function<void(std::size_t)>& before,
                              const std::function<void(std::size_t)>& after, const std::function<bool()>& give_up);

// Seconds that a step takes which a thread of the judge's own does there, and in which nothing is done: by the median.
double OwnStep(int processor);

}  // namespace grove::judge
