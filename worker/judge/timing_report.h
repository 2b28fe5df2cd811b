// What is said of a measurement: TimingReport (proto/grove/v1/types.proto), with ratios and their intervals.
// docs/timing.md derives every constant. All times are seconds.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/judge/samples.h"
#include "worker/judge/settings.h"

namespace grove::judge {

struct TimingFacts {
  const EvaluationSettings& settings;
  const std::vector<Series>& series;
  const CandidateRuns& runs;
  const Reckoning& reckoning;
  double asking;                               // of the candidate's runs
  double sampling;                             // since the first pair
  const std::map<std::string, int>& discards;  // pairs, by the reason
  bool cuda, held;                             // the candidate stands between runs
  bool copies_late;                            // a script, which copies its results when the clock has stopped
  bool repeated, known_draws;  // Values: some came more than once; some do not come from the judge's seeds
  bool no_time_for_steps;      // calls were not given one at a time, though they might have been
  bool host_paced;             // both sides ran on one processor of the host, in turns
  std::size_t flush_bytes, slots;
  int outputs_verified, outputs_timed, reruns;
};

// Throws UNMEASURABLE where too few pairs say anything.
nlohmann::json ReportTiming(const TimingFacts& facts);

// One line of a report; `trials`: draws on which the candidate was right.
std::string TimingReason(const nlohmann::json& report, int trials);

}  // namespace grove::judge
