// A timing that could not be finished is tried once more, by itself: what was in the way (another program on the
// device, say) may have gone. Not for who may have lied to a busy judge. Pure.
#pragma once

#include "grove/v1/types.pb.h"

namespace grove::worker {

// A first attempt whose timing took longer (seconds) is the last: the time was used, and there was not enough in it.
inline constexpr double kMostOfFirstAttempt = 10;

// Whether a judge's result says that its timing, and nothing before it, could not be finished.
bool WorthTimingAgain(const v1::EvaluationResult& result);

// What is told of `first` by the result of the second attempt, whatever became of that.
void MergeFirstAttempt(const v1::EvaluationResult& first, v1::EvaluationResult* second);

}  // namespace grove::worker
