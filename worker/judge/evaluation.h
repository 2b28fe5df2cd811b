// One candidate judged: checked on secret draws, then timed against the reference in a duet. docs/correctness.md and
// docs/timing.md derive every constant.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/wire/channel.h"
#include "worker/judge/compare.h"
#include "worker/judge/device_ops.h"
#include "worker/judge/reference.h"

namespace grove::judge {

// What the judge knows of its problem after `load`.
struct LoadedProblem {
  std::unique_ptr<Reference> reference;
  double reduction = 1;             // longest reduction in the graph
  double reference_seconds = 0;     // one warm eager call
  double draw_seconds = 0;          // one draw of the inputs
  double double_seconds = -1;       // one float64 evaluation; negative = not to be had
  std::size_t bytes = 0;            // of inputs, parameters and outputs together
  std::vector<bool> noisy_outputs;  // outputs that differ between two runs on the same input
};

struct EvaluationSettings {
  bool python_candidate = false;
  int trials = 5;
  std::optional<Rule> rule;
  std::vector<std::string> baselines;  // "BASELINE_EAGER", "BASELINE_COMPILE"
  bool skip_timing = false;
  bool keep_samples = false;
  double min_time = 0.2, max_time = 1.5;
  int min_samples = 10, max_samples = 500;
  double call_wall = 10, run_wall = 120;
  // Stops every process and thread of the candidate (returns once it stands) or lets it go on (returns at once). False
  // when that failed; empty where it cannot be done.
  std::function<bool(bool held)> hold;
};

// Reads EvaluationOptions (proto3 JSON); zero and absent mean the default. Throws std::runtime_error naming the field.
EvaluationSettings ParseSettings(const nlohmann::json& options, bool python_candidate);

struct EvaluationOutcome {
  nlohmann::json result;  // EvaluationResult
  bool candidate_gone = false;
};

using Progress = std::function<void(const std::string& stage, const std::string& detail)>;

// Throws std::exception when the environment is at fault; everything else is a verdict.
EvaluationOutcome Evaluate(LoadedProblem& problem, DeviceOps& ops, wire::Channel candidate,
                           const EvaluationSettings& settings, const Progress& progress);

std::string ShortType(at::ScalarType type);
std::string TypeText(const at::Tensor& tensor);  // "float32[4,8]"
std::uint64_t SecretSeed();

// Tensor(s) from the device, compared there when large. `high` may be undefined.
Comparison CompareTensors(const at::Tensor& got, const at::Tensor& reference, const at::Tensor& high, double reduction,
                          const ReferenceNoise& noise, const Rule& rule);

}  // namespace grove::judge
