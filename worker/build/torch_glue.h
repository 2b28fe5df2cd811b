// The object that extensions built with the small headers are linked with (worker/candidate/torch_lite): compiled once
// per machine against PyTorch's full headers, by `grove-worker setup` or at first use.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/toolchain.h"

namespace grove::build {

struct TorchGlueOptions {
  std::string libexec_dir;  // holds torch_lite_build.py and torch_lite/
  device::Python python;
  device::Compiler cxx;
  std::string cuda_home;  // empty: none
};

// Of all that the object depends on; 64 hex digits. NOT_FOUND: the small headers are not installed.
absl::StatusOr<std::string> TorchGlueKey(const TorchGlueOptions& options);

// "<folder>/<key>.o". The first of `folders` that has it; else it is made (20 s or so, a minute on a busy machine) in
// the last of them; `making` is called before that.
absl::StatusOr<std::string> FindOrMakeTorchGlue(const TorchGlueOptions& options,
                                                const std::vector<std::string>& folders,
                                                const std::function<void()>& making = nullptr);

}  // namespace grove::build
