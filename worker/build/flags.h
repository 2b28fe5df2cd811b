// Which compiler flags a candidate may bring.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "grove/v1/types.pb.h"

namespace grove::build {

// OK when all are on the list: -D, -O, -m, -std, the families of -f flags in flags.cc; for CUDA -Xptxas,
// --use_fast_math, -maxrregcount and the like; and no character that nvcc would hand to a shell. INVALID_ARGUMENT names
// the first that is not, and the list. At most 64 flags of 256 characters.
absl::Status CheckFlags(const std::vector<std::string>& flags, v1::CandidateFormat format);

}  // namespace grove::build
