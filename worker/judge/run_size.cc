#include "worker/judge/run_size.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace grove::judge {
namespace {

// Of a timed run, on the faster side, as far as slots go: asking is known to some ten microseconds, and a wake-up on a
// CPU to some more.
constexpr double kSpanCuda = 10e-3, kSpanCpu = 3e-3;
// Where intervals are to be finer than usual, runs on a GPU are longer by as much, up to this: what is not known of
// asking is a smaller part of them. On a CPU they are limited by what caches hold.
constexpr double kLongerRuns = 4, kUsualWidth = 0.02;
constexpr int kPracticeCuda = 20, kPracticeCpu = 12;  // on a GPU two contexts take turns, and runs differ more
constexpr double kMorePractice = 2.5;                 // where runs are longer
// Of each of several pairs of processes: all of them together practise as often as one alone, or more. What is not
// known of asking differs from pair to pair, and is in what they differ by.
constexpr int kLeastPractice = 16;
constexpr double kShare = 0.25, kLongerShare = 0.4;  // of the free memory, for what a run of a candidate holds
constexpr std::size_t kMaxCalls = 1024;
constexpr std::size_t kMaxBytesCuda = std::size_t{16} << 30, kMaxBytesCpu = std::size_t{64} << 20;
// Nothing is faster: bytes per second, seconds per call, and times the reference's speed.
constexpr double kMaxBandwidthCuda = 8e12, kMaxBandwidthCpu = 100e9, kLeastCuda = 1.5e-6, kLeastCpu = 0.2e-6;
constexpr double kMaxSpeedup = 50;

double LongerBy(const DeviceOps& ops, const EvaluationSettings& settings) {
  return ops.cuda() ? std::clamp(kUsualWidth / settings.settle_width, 1.0, kLongerRuns) : 1;
}

}  // namespace

std::size_t TimedSlots(const DeviceOps& ops, const LoadedProblem& problem, const EvaluationSettings& settings,
                       std::size_t in_bytes, std::size_t out_bytes) {
  const bool cuda = ops.cuda();
  // Of each set: inputs here and there, outputs there and the reference's.
  const double bytes = static_cast<double>(in_bytes + out_bytes), held = std::max(2 * bytes, 1.0);
  const double fastest = std::max({bytes / (cuda ? kMaxBandwidthCuda : kMaxBandwidthCpu), cuda ? kLeastCuda : kLeastCpu,
                                   problem.reference_seconds / kMaxSpeedup});
  const double longer = LongerBy(ops, settings);
  double wanted = std::ceil(longer * std::min((cuda ? kSpanCuda : kSpanCpu) / fastest, static_cast<double>(kMaxCalls)));
  const double free = static_cast<double>(ops.free_bytes()) * (longer > 1 ? kLongerShare : kShare);
  wanted = std::min(wanted, std::min(free, longer * static_cast<double>(cuda ? kMaxBytesCuda : kMaxBytesCpu)) / held);
  if (settings.Warm()) {
    // All inputs and outputs of a run are to stay in the cache.
    wanted = std::min(wanted, static_cast<double>(ops.cache_bytes()) / 2 / std::max(bytes, 1.0));
  }
  // A second one, so that runs of one call and of two can be told apart, where it fits.
  return static_cast<std::size_t>(std::max(wanted, free >= 2 * held ? 2.0 : 1.0));
}

double RunSpan(const DeviceOps& ops, const EvaluationSettings& settings) {
  return (ops.cuda() ? kSpanCuda : kSpanCpu) * LongerBy(ops, settings);
}

RunLengths LengthsOfRuns(const DeviceOps& ops, const LoadedProblem& problem, const EvaluationSettings& settings,
                         std::size_t slots) {
  const double call = std::max(problem.reference_seconds, 1e-7);
  const double calls = std::clamp(std::ceil(RunSpan(ops, settings) / call), 1.0, static_cast<double>(slots));
  return {slots, static_cast<std::size_t>(calls), calls * call};
}

int PracticeRuns(const DeviceOps& ops, const EvaluationSettings& settings) {
  if (!ops.cuda()) return kPracticeCpu;
  if (LongerBy(ops, settings) <= 1) return kPracticeCuda;
  return std::max(static_cast<int>(kMorePractice * kPracticeCuda) / settings.replicas, kLeastPractice);
}

}  // namespace grove::judge
