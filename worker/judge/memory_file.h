// The host's memory, to be shared with a candidate: a file without a name that cannot change its size.
#pragma once

#include <cstddef>
#include <memory>

#include "worker/judge/device_ops.h"

namespace grove::judge {

// All of it is taken at once. Throws std::system_error.
std::unique_ptr<SharedBlock> MakeMemoryFile(std::size_t bytes);

}  // namespace grove::judge
