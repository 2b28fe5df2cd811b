// `grove-worker doctor`: what this machine has, and a trial of every layer of the sandbox.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "worker/pipeline/pipeline.h"

namespace grove::worker {

struct DoctorOptions {
  WorkerPaths paths;
  v1::DeviceInfo device;  // kind and index as asked for; unspecified = CUDA when there is one, else CPU
  std::string python;     // as in PipelineOptions
  std::string nvcc;
  std::string cxx = "g++";
  std::string ncu;
  bool json = false;  // one JSON document instead of lines
};

// Prints each finding on a line ("ok", "--" absent but not needed, "!!" missing). OK when a worker would start;
// FAILED_PRECONDITION names what stands in the way.
absl::Status RunDoctor(const DoctorOptions& options, std::ostream& out);

}  // namespace grove::worker
