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

// Figures of readings that there are.
struct Figures {
  std::vector<double> sm_mhz, watts;
  double memory_mhz = 0, celsius = 0;
  unsigned long long reasons = 0;
  void Add(const GpuWatch::Reading& reading) {
    sm_mhz.push_back(reading.sm_mhz);
    watts.push_back(reading.watts);
    memory_mhz = std::max(memory_mhz, reading.memory_mhz);
    celsius = std::max(celsius, reading.celsius);
    reasons |= reading.reasons;
  }
};

}  // namespace

std::string GpuHealth::Refuse(const std::vector<GpuWatch::Reading>& readings, const Window& other,
                              const Window& candidate) {
  ++pairs_;
  std::vector<double> clocks[2];
  Figures pair;
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
      pair.Add(reading);
    }
  }
  std::string refusal;
  if (GpuWatch::Slowed(pair.reasons)) {
    for (const std::string& name : GpuWatch::Names(pair.reasons)) refusal += (refusal.empty() ? "" : ", ") + name;
    refusal = "the GPU slowed down: " + refusal;
  } else if (!clocks[0].empty() && !clocks[1].empty()) {
    const double one = Median(clocks[0]), two = Median(clocks[1]);
    if (std::abs(one - two) > kClockShare * std::max(one, two)) {
      refusal = "the GPU's clock differed between the two sides";
    }
  }
  if (!refusal.empty()) {
    ++refused_;
    return refusal;
  }
  readings_.insert(readings_.end(), within.begin(), within.end());
  const auto middle = [](const std::vector<double>& values) { return values.empty() ? 0 : Median(values); };
  last_pair_ = {{"reference_sm_mhz", middle(clocks[0])}, {"candidate_sm_mhz", middle(clocks[1])},
                {"memory_mhz", pair.memory_mhz},         {"temperature_celsius", pair.celsius},
                {"power_watts", middle(pair.watts)},     {"throttle_reasons", GpuWatch::Names(pair.reasons)},
                {"readings", pair.sm_mhz.size()}};
  return "";
}

bool GpuHealth::MostRefused() const { return pairs_ >= kEnoughPairs && 2 * refused_ > pairs_; }

void GpuHealth::BeginAnew() { *this = {}; }

nlohmann::json GpuHealth::State(const std::string& unavailable) const {
  if (readings_.empty()) {
    return {{"unavailable", unavailable.empty() ? "no reading fell into a timed run" : unavailable}};
  }
  Figures all;
  for (const GpuWatch::Reading& reading : readings_) all.Add(reading);
  nlohmann::json state{{"sm_clock_mhz_low", Quantile(all.sm_mhz, 0)},      {"sm_clock_mhz_median", Median(all.sm_mhz)},
                       {"sm_clock_mhz_high", Quantile(all.sm_mhz, 1)},     {"memory_clock_mhz", all.memory_mhz},
                       {"temperature_celsius_high", all.celsius},          {"power_watts_median", Median(all.watts)},
                       {"throttle_reasons", GpuWatch::Names(all.reasons)}, {"readings", readings_.size()}};
  if (!unavailable.empty()) state["unavailable"] = "the readings ended before the timing: " + unavailable;
  return state;
}

double AllowedForNothing(double quiet) { return std::min(5 * quiet + 200e-6, kMostForNothing); }

}  // namespace grove::judge
