// Which of the two kinds of candidates one is.
#pragma once

#include "grove/v1/types.pb.h"

namespace grove::worker {

// Run by a Python interpreter (KernelBench's ModelNew), and not a library that grove-candidate loads.
inline bool IsPython(const v1::Candidate& candidate) { return candidate.format() == v1::CANDIDATE_FORMAT_KERNELBENCH; }

}  // namespace grove::worker
