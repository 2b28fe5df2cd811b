// What a pipeline works with on this machine: found and tried once, when it starts.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grove/v1/types.pb.h"
#include "worker/build/builder.h"
#include "worker/pipeline/candidate_process.h"
#include "worker/pipeline/health.h"
#include "worker/pipeline/judge_process.h"
#include "worker/pipeline/pipeline.h"
#include "worker/pipeline/process_pool.h"
#include "worker/sandbox/self_test.h"

namespace grove::worker {

struct Equipment {
  v1::DeviceInfo device;
  sandbox::SelfTestReport self_test;
  std::unique_ptr<DeviceHealth> health;
  std::unique_ptr<build::Builder> builder;
  CandidateConfig candidates;
  JudgeConfig judges;
  std::string calibration_key;
  // Judges are started ahead: not where they could not be held while something is timed, nor where a device has little
  // memory for one context more.
  bool judges_ahead = false;
};

// Probes sandbox, device and compilers. `options.build_slots` of 0 becomes what fits the machine. Errors say what is
// missing and what to do about it.
absl::StatusOr<Equipment> FindEquipment(PipelineOptions* options);

// A pool that starts what these say.
std::unique_ptr<ProcessPool> MakePool(const CandidateConfig& candidates, const JudgeConfig& judges);

}  // namespace grove::worker
