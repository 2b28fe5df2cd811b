// Pooling of one plane as source text.
#pragma once

#include <string>

#include "coordinator/generate/catalogue/cpu/cpu_source.h"

namespace grove::generate::catalogue::cpu {

// Statements that pool plane P (h x w floats) to D (oh x ow floats). Row-wise loops over the window when `rows`.
std::string PoolPlane(const Pool2dSpec& pool, bool rows, const std::string& indent);

}  // namespace grove::generate::catalogue::cpu
