#include "common/measure/replicas.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace grove::measure {
namespace {

using Timings = std::vector<const v1::BaselineTiming*>;

bool HasFigures(const v1::BaselineTiming& timing) {
  return timing.unavailable().empty() && timing.speedup_low() > 0 && timing.speedup_low() <= timing.speedup() &&
         timing.speedup() <= timing.speedup_high() && std::isfinite(timing.speedup_high());
}

template <typename Get>
double GeometricMean(const Timings& timings, const Get& get) {
  double sum = 0;
  for (const v1::BaselineTiming* timing : timings) sum += std::log(get(*timing));
  return std::exp(sum / static_cast<double>(timings.size()));
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

template <typename Message, typename Get>
double MedianOf(const std::vector<const Message*>& messages, const Get& get) {
  std::vector<double> values;
  for (const Message* message : messages) values.push_back(get(*message));
  return Median(std::move(values));
}

v1::BaselineTiming Combine(const Timings& timings) {
  v1::BaselineTiming combined;
  combined.set_baseline(timings[0]->baseline());
  const double count = static_cast<double>(timings.size());
  std::vector<double> logs;
  double mean = 0, widths = 0;
  for (size_t i = 0; i < timings.size(); ++i) {
    const v1::BaselineTiming& timing = *timings[i];
    if (!HasFigures(timing)) {
      combined.set_unavailable(
          absl::StrCat("in pair of processes ", i + 1, ": ",
                       timing.unavailable().empty() ? "there is no figure" : timing.unavailable()));
      return combined;
    }
    logs.push_back(std::log(timing.speedup()));
    mean += logs.back() / count;
    const double half = std::log(timing.speedup_high() / timing.speedup_low()) / 2;
    widths += half * half;
  }
  double squares = 0;
  for (double one : logs) squares += (one - mean) * (one - mean);
  const double between =
      StudentQuantile(static_cast<int>(timings.size()) - 1) * std::sqrt(squares / (count - 1) / count);
  const double within = std::sqrt(widths) / count;
  const double half = std::max(between, within);
  combined.set_speedup(std::exp(mean));
  combined.set_speedup_low(std::exp(mean - half));
  combined.set_speedup_high(std::exp(mean + half));
  combined.set_reference_median_seconds(
      GeometricMean(timings, [](const v1::BaselineTiming& t) { return t.reference_median_seconds(); }));
  combined.set_candidate_median_seconds(
      GeometricMean(timings, [](const v1::BaselineTiming& t) { return t.candidate_median_seconds(); }));
  combined.set_replicas(static_cast<int>(timings.size()));
  for (const v1::BaselineTiming* timing : timings) {
    combined.set_samples(combined.samples() + timing->samples());
    if (timing->sample_states_size() > 0) {  // each at its pair: of many pairs a replica has the first ones' alone
      while (combined.sample_states_size() < combined.reference_seconds_size()) combined.add_sample_states();
    }
    combined.mutable_reference_seconds()->MergeFrom(timing->reference_seconds());
    combined.mutable_candidate_seconds()->MergeFrom(timing->candidate_seconds());
    combined.mutable_sample_states()->MergeFrom(timing->sample_states());
    v1::ReplicaTiming* each = combined.add_each_replica();
    each->set_speedup(timing->speedup());
    each->set_speedup_low(timing->speedup_low());
    each->set_speedup_high(timing->speedup_high());
    each->set_samples(timing->samples());
  }
  return combined;
}

v1::DeviceState CombineStates(const std::vector<v1::TimingReport>& replicas) {
  std::vector<const v1::DeviceState*> states;
  std::string unavailable;
  std::optional<int> foreign;
  for (const v1::TimingReport& timing : replicas) {
    const v1::DeviceState& state = timing.device_state();
    if (unavailable.empty()) unavailable = state.unavailable();
    if (state.has_foreign_processes()) foreign = std::max(foreign.value_or(0), state.foreign_processes());
    if (state.readings() > 0) states.push_back(&state);
  }
  v1::DeviceState combined = states.empty() ? v1::DeviceState() : *states[0];
  combined.clear_readings();
  combined.set_unavailable(unavailable);
  if (foreign.has_value()) combined.set_foreign_processes(*foreign);
  if (states.empty()) return combined;
  for (const v1::DeviceState* state : states) {
    combined.set_sm_clock_mhz_low(std::min(combined.sm_clock_mhz_low(), state->sm_clock_mhz_low()));
    combined.set_sm_clock_mhz_high(std::max(combined.sm_clock_mhz_high(), state->sm_clock_mhz_high()));
    combined.set_memory_clock_mhz(std::max(combined.memory_clock_mhz(), state->memory_clock_mhz()));
    combined.set_temperature_celsius_high(
        std::max(combined.temperature_celsius_high(), state->temperature_celsius_high()));
    combined.set_readings(combined.readings() + state->readings());
    for (const std::string& reason : state->throttle_reasons()) {
      const auto& known = combined.throttle_reasons();
      if (std::find(known.begin(), known.end(), reason) == known.end()) combined.add_throttle_reasons(reason);
    }
  }
  combined.set_sm_clock_mhz_median(MedianOf(states, [](const v1::DeviceState& s) { return s.sm_clock_mhz_median(); }));
  combined.set_power_watts_median(MedianOf(states, [](const v1::DeviceState& s) { return s.power_watts_median(); }));
  return combined;
}

}  // namespace

double StudentQuantile(int degrees) {
  constexpr double kTable[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                               2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314};
  constexpr int kEntries = static_cast<int>(std::size(kTable));
  if (degrees <= kEntries) return kTable[std::max(degrees, 1) - 1];
  // The expansion of Cornish and Fisher (Abramowitz and Stegun 26.7.5): here exact to 1e-4.
  constexpr double z = 1.959964;
  constexpr double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  constexpr double g1 = (z3 + z) / 4, g2 = (5 * z5 + 16 * z3 + 3 * z) / 96,
                   g3 = (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / 384;
  const double n = degrees;
  return z + g1 / n + g2 / (n * n) + g3 / (n * n * n);
}

v1::TimingReport CombineReplicas(const std::vector<v1::TimingReport>& replicas) {
  if (replicas.size() == 1) return replicas[0];
  // What is the same in all: method, cache, flushed bytes, sets.
  v1::TimingReport combined = replicas[0];
  combined.clear_baselines();
  for (const v1::BaselineTiming& first : replicas[0].baselines()) {
    const v1::BaselineTiming absent;
    Timings same;
    for (const v1::TimingReport& timing : replicas) {
      const auto found =
          std::find_if(timing.baselines().begin(), timing.baselines().end(),
                       [&](const v1::BaselineTiming& other) { return other.baseline() == first.baseline(); });
      same.push_back(found == timing.baselines().end() ? &absent : &*found);
    }
    *combined.add_baselines() = Combine(same);
  }
  absl::StrAppend(combined.mutable_method(), ", in ", replicas.size(), " pairs of processes");
  std::map<std::string, int> discards;
  std::vector<const v1::TimingReport*> all;
  combined.clear_discarded();
  combined.clear_discards();
  combined.clear_sampling_seconds();
  combined.clear_outputs_verified();
  combined.clear_outputs_timed();
  combined.clear_reruns();
  for (const v1::TimingReport& timing : replicas) {
    all.push_back(&timing);
    for (const v1::DiscardCount& discard : timing.discards()) discards[discard.reason()] += discard.count();
    combined.set_discarded(combined.discarded() + timing.discarded());
    combined.set_sampling_seconds(combined.sampling_seconds() + timing.sampling_seconds());
    combined.set_outputs_verified(combined.outputs_verified() + timing.outputs_verified());
    combined.set_outputs_timed(combined.outputs_timed() + timing.outputs_timed());
    combined.set_reruns(combined.reruns() + timing.reruns());
    // The shortest run says what the device resolves.
    combined.set_calls_per_sample(std::min(combined.calls_per_sample(), timing.calls_per_sample()));
  }
  for (const auto& [reason, count] : discards) {
    v1::DiscardCount* discard = combined.add_discards();
    discard->set_reason(reason);
    discard->set_count(count);
  }
  combined.set_slope_seconds(MedianOf(all, [](const v1::TimingReport& t) { return t.slope_seconds(); }));
  combined.set_claimed_median_seconds(
      MedianOf(all, [](const v1::TimingReport& t) { return t.claimed_median_seconds(); }));
  std::vector<double> alone;  // of those that know it
  for (const v1::TimingReport& timing : replicas) {
    if (timing.alone_seconds() > 0) alone.push_back(timing.alone_seconds());
  }
  combined.set_alone_seconds(alone.empty() ? 0 : Median(std::move(alone)));
  if (combined.has_device_state()) *combined.mutable_device_state() = CombineStates(replicas);
  return combined;
}

}  // namespace grove::measure
