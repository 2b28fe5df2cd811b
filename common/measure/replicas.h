// One figure from several pairs of processes. Two processes of one and the same program differ by more than the pairs
// of runs inside them show (on an H200 by 0.3 % of 100 us), so a comparison that is to hold starts both sides afresh
// some times; each such replica is one sample, whatever it holds of pairs. docs/comparing.md derives it. Pure.
#pragma once

#include <algorithm>
#include <vector>

#include "grove/v1/types.pb.h"

namespace grove::measure {

// Of `grove compare`, unless more are asked for: what processes differ by is known from the calibration
// (measure::Widen). Where there is none, four hold the truth, and take twice the time; three are too few to gain by
// (Student's factor is 4.3).
inline constexpr int kDefaultReplicas = 1;
inline constexpr int kMostReplicas = 16;

// Of EvaluationOptions and BaselineTiming, where 0 stands for one.
template <typename Message>
int ReplicasOf(const Message& message) {
  return std::clamp<int>(message.replicas(), 1, kMostReplicas);
}

// The 97.5 % point of Student's distribution, of 1 degree of freedom or more.
double StudentQuantile(int degrees);

// The replicas' timings as one; not empty. A baseline's figure is the geometric mean of theirs; its interval is
// Student's for the mean of the logarithms of their ratios, and never narrower than what their own intervals leave of
// the mean's, the root of the sum of their squares over the count. A baseline that one of them has no figure for has
// none. Counts are sums, states of the device extremes. One alone stays as it is.
v1::TimingReport CombineReplicas(const std::vector<v1::TimingReport>& replicas);

}  // namespace grove::measure
