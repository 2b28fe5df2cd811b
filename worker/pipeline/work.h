// One assignment on its way through the pipeline.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/tuning/declared.h"
#include "grove/v1/services.pb.h"
#include "worker/build/builder.h"

namespace grove::worker {

// Shared by a piece of work and those that are done on its behalf.
class Flag {
 public:
  operator bool() const { return *value_; }
  bool load() const { return *value_; }
  Flag& operator=(bool value) {
    *value_ = value;
    return *this;
  }
  void Follow(const Flag& other) { value_ = other.value_; }

 private:
  std::shared_ptr<std::atomic<bool>> value_ = std::make_shared<std::atomic<bool>>(false);
};

// One combination of the values of declared parameters. The objects are in the build cache: together they may be large.
struct Variant {
  std::vector<std::string> values;
  std::optional<v1::EvaluationResult> unbuilt;  // the result of one that was not built
  v1::BuildReport report;
  std::optional<build::InstructionMix> instructions;
  std::string no_instructions;
};

// Owned by whoever took it off a queue.
struct Work {
  v1::Assignment assignment;
  Flag cancelled;
  // Done on behalf of a calibration, of a candidate with declared parameters or of a comparison in several pairs of
  // processes: the result goes here, and nobody else hears of it.
  std::function<void(v1::WorkResult)> sink;
  // One pair of processes of this comparison, and which: its progress and the times of its stages are told as the
  // whole's.
  std::shared_ptr<Work> whole;
  std::string part;
  // Of a first attempt whose timing could not be finished; this is the second.
  std::optional<v1::EvaluationResult> first;
  v1::Limits limits;  // every field set
  std::string problem_sha256, candidate_sha256;
  std::optional<build::BuildOutcome> built, rival_built;
  std::optional<build::InstructionMix> instructions;  // with options.profile
  std::string no_instructions;                        // why there are none
  // Of a candidate that declares parameters: all combinations of their values.
  std::vector<tuning::Declared> declared;
  std::vector<Variant> variants;
  std::vector<std::pair<std::string, double>> stages;
  absl::Time submitted = SteadyNow(), ready = SteadyNow();  // for the device
};

using WorkPtr = std::shared_ptr<Work>;

}  // namespace grove::worker
