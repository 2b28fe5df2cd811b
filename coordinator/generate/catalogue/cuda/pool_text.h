// Source text of 2-D pooling, one thread per output element.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/generate/operation.h"

namespace grove::generate::catalogue::cuda {

// Defines  __global__ Pool(<parameter>, float* out)  for blocks of 256 threads; `value` is the text of the input at the
// linear position `i` (of type Index, as are `plane` and `inside` = i within its plane).
std::string PoolText(const Pool2dSpec& pool, const std::string& parameter, const std::string& value);
int64_t PoolBlocks(const Pool2dSpec& pool);

}  // namespace grove::generate::catalogue::cuda
