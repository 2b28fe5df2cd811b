// `grove-worker setup`: builds grove-judge and grove-candidate against this host's PyTorch and CUDA, from the sources
// that an installation carries in <prefix>/share/grove/src.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "worker/pipeline/pipeline.h"

namespace grove::worker {

struct SetupOptions {
  WorkerPaths paths;
  std::string source_dir;  // empty = <bin_dir>/../share/grove/src, else the folder above bin_dir's build tree is tried
  std::string output_dir;  // where libexec/grove goes; empty = RuntimeFolder(), worker/pipeline/programs.h
  std::string python;      // interpreter with torch; empty = found
  std::string nvcc;        // empty = found
  std::string cxx;         // empty = $CXX, else g++
  std::string cuda = "auto";  // "auto", "on", "off"
  int jobs = 0;               // 0 = all hardware threads
};

// Says what it does on `out`, step by step. Errors name what is missing (FAILED_PRECONDITION) with the remedy, or what
// failed to build with the log's last lines. Installs only when everything was built; an older result stays until then.
// FAILED_PRECONDITION while another one works in the same folder.
absl::Status RunSetup(const SetupOptions& options, std::ostream& out);

}  // namespace grove::worker
