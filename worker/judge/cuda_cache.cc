// Torch's caching allocator keeps freed device memory, out of reach of shared blocks and of the candidate.
#include <c10/cuda/CUDACachingAllocator.h>

namespace grove::judge {

void ReleaseCudaCache();
void ReleaseCudaCache() { c10::cuda::CUDACachingAllocator::emptyCache(); }

}  // namespace grove::judge
