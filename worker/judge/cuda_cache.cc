// Torch's caching allocator keeps freed device memory, out of reach of shared blocks and of the candidate; and it alone
// knows how much torch has taken.
#include <c10/cuda/CUDACachingAllocator.h>

namespace grove::judge {

std::size_t CudaCacheBytes(int device);
std::size_t CudaCacheBytes(int device) {
  // The aggregate over both pools comes first.
  return static_cast<std::size_t>(
      c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device)).reserved_bytes[0].current);
}

void ReleaseCudaCache();
void ReleaseCudaCache() { c10::cuda::CUDACachingAllocator::emptyCache(); }

}  // namespace grove::judge
