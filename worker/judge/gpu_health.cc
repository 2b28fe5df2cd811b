#include "worker/judge/gpu_health.h"

#include <algorithm>
#include <cmath>

#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

constexpr double kClockShare = 0.03;  // by which the SM clock may differ between the two sides of a pair
constexpr int kEnoughPairs = 10;
// An empty kernel takes some 160 us on an H200, after a rest; two contexts that are both at work take turns of
// milliseconds.
constexpr double kMostForNothing = 1e-3;

}  // namespace

std::string GpuHealth::Refuse(const std::vector<GpuWatch::Reading>& readings, const Window& other,
                              const Window& candidate) {
  ++pairs_;
  std::vector<double> clocks[2];
  unsigned long long reasons = 0;
  std::vector<GpuWatch::Reading> within;
  for (const GpuWatch::Reading& reading : readings) {
    const Window* const windows[2] = {&other, &candidate};
    for (int i = 0; i < 2; ++i) {
      if (reading.at < windows[i]->begin || reading.at > windows[i]->end) continue;
      clocks[i].push_back(reading.sm_mhz);
      within.push_back(reading);
    }
    // Slowdowns last: one between the runs was there in them.
    if (reading.at >= std::min(other.begin, candidate.begin) && reading.at <= std::max(other.end, candidate.end)) {
      reasons |= reading.reasons;
    }
  }
  std::string refusal;
  if (GpuWatch::Slowed(reasons)) {
    for (const std::string& name : GpuWatch::Names(reasons)) refusal += (refusal.empty() ? "" : ", ") + name;
    refusal = "the GPU slowed down: " + refusal;
  } else if (!clocks[0].empty() && !clocks[1].empty()) {
    const double one = Median(clocks[0]), two = Median(clocks[1]);
    if (std::abs(one - two) > kClockShare * std::max(one, two)) {
      refusal = "the GPU's clock differed between the two sides";
    }
  }
  if (refusal.empty()) {
    readings_.insert(readings_.end(), within.begin(), within.end());
  } else {
    ++refused_;
  }
  return refusal;
}

bool GpuHealth::MostRefused() const { return pairs_ >= kEnoughPairs && 2 * refused_ > pairs_; }

void GpuHealth::BeginAnew() { *this = {}; }

nlohmann::json GpuHealth::State(const std::string& unavailable) const {
  if (readings_.empty()) {
    return {{"unavailable", unavailable.empty() ? "no reading fell into a timed run" : unavailable}};
  }
  std::vector<double> clocks, watts;
  double memory = 0, celsius = 0;
  unsigned long long reasons = 0;
  for (const GpuWatch::Reading& reading : readings_) {
    clocks.push_back(reading.sm_mhz);
    watts.push_back(reading.watts);
    memory = std::max(memory, reading.memory_mhz);
    celsius = std::max(celsius, reading.celsius);
    reasons |= reading.reasons;
  }
  nlohmann::json state{{"sm_clock_mhz_low", Quantile(clocks, 0)},      {"sm_clock_mhz_median", Median(clocks)},
                       {"sm_clock_mhz_high", Quantile(clocks, 1)},     {"memory_clock_mhz", memory},
                       {"temperature_celsius_high", celsius},          {"power_watts_median", Median(watts)},
                       {"throttle_reasons", GpuWatch::Names(reasons)}, {"readings", readings_.size()}};
  if (!unavailable.empty()) state["unavailable"] = "the readings ended before the timing: " + unavailable;
  return state;
}

double AllowedForNothing(double quiet) { return std::min(5 * quiet + 200e-6, kMostForNothing); }

}  // namespace grove::judge
