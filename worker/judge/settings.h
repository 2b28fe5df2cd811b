// EvaluationOptions as the judge uses them: defaults filled in, values checked.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "worker/judge/candidate_memory.h"
#include "worker/judge/compare.h"
#include "worker/judge/distributions.h"
#include "worker/judge/hold.h"

namespace grove::judge {

// Two kernels are compared more closely than a kernel with its reference: what tells them apart may be a hundredth.
inline constexpr double kRivalSettleWidth = 0.004;

struct EvaluationSettings {
  bool python_candidate = false;
  int trials = 5;
  std::optional<Rule> rule;
  std::optional<std::vector<Distribution>> distributions;  // of the check beside GIVEN; none = all, by the scaled rule
  double reduced = 0;                                      // rms error that reduced precision may have; 0 = none
  std::vector<std::string> baselines;                      // "BASELINE_EAGER", "BASELINE_COMPILE"
  bool skip_timing = false;
  bool keep_samples = false;
  std::string cache = "CACHE_POLICY_COLD";  // or "CACHE_POLICY_WARM"
  bool Warm() const { return cache == "CACHE_POLICY_WARM"; }
  bool observe = false;  // a work policy is to be decided: Python candidates say what did the work of the last draw
  // The worker looks from outside at what the candidate runs from now on, or no longer: whether it has seen enough by
  // then. Empty where nobody asks whose work it is.
  std::function<bool(bool on)> watch;
  double min_time = 0.2, max_time = 1.5;
  int min_samples = 10, max_samples = 500;
  double call_wall = 10, run_wall = 120;
  double device_memory = 0;  // bytes that the candidate (with its rival) may hold on a GPU; 0 = any
  Hold hold;                 // empty where it cannot be done
  std::shared_ptr<const CandidateMemory> memory;  // of a script on a CPU; null where it may not be read
  // Another candidate to be timed against, in a process of its own: BASELINE_RIVAL.
  bool rival = false, rival_python = false;
  Hold hold_rival;
  std::shared_ptr<const CandidateMemory> rival_memory;
  // Sampling may stop early once every interval is narrower than this share of its ratio. Who wants it finer gets
  // longer runs.
  double settle_width = 0.02;
  // This is one of so many pairs of processes that make a comparison together: times and samples above are its part.
  int replicas = 1;
  int least_accused = 10;  // runs by which a clock may be said to lie: min_samples before it was divided
};

using Progress = std::function<void(const std::string& stage, const std::string& detail)>;

// Reads EvaluationOptions (proto3 JSON); zero and absent mean the default. Throws std::runtime_error naming the field.
EvaluationSettings ParseSettings(const nlohmann::json& options, bool python_candidate);

}  // namespace grove::judge
