// What differs between the CPU and a CUDA device for the judge: shared memory, waiting, flushing, timing. No torch
// here. Owned and used by the judge's main thread. Errors are std::runtime_error: the environment's fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace grove::judge {

// A piece of memory that can be handed to a candidate. The judge keeps its own mapping.
class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  virtual char* data() = 0;  // device address on a GPU
  virtual std::size_t bytes() const = 0;
  virtual int fd() const = 0;  // owned by the block
};

class DeviceOps {
 public:
  virtual ~DeviceOps() = default;
  virtual bool cuda() const = 0;
  virtual nlohmann::json Info() const = 0;      // DeviceInfo without torch and toolkit
  virtual std::size_t cache_bytes() const = 0;  // last level
  virtual std::size_t free_bytes() const = 0;   // memory that may be taken now; what torch caches does not count
  // Device memory in use that is not this process's: other processes' and the driver's. 0 on a CPU.
  virtual std::int64_t others_bytes() const { return 0; }
  virtual void ReleaseCache() {}                // gives back device memory that torch keeps for later
  virtual std::unique_ptr<SharedBlock> Allocate(std::size_t bytes) = 0;
  virtual void Copy(void* to, const void* from, std::size_t bytes) = 0;      // on the device; waits
  virtual void ToHost(void* to, const void* from, std::size_t bytes) = 0;    // waits
  virtual void FromHost(void* to, const void* from, std::size_t bytes) = 0;  // waits
  // Writes `element_bytes` (1 to 16) of `pattern` over and over.
  virtual void Fill(void* to, const unsigned char* pattern, std::size_t element_bytes, std::size_t bytes) = 0;
  // Bytes that differ between two pieces of device memory.
  virtual bool Equal(const void* a, const void* b, std::size_t bytes) = 0;
  virtual void Synchronize() = 0;
  virtual std::size_t flush_bytes() const = 0;                 // 0 = Flush does nothing
  virtual void Flush() = 0;                                    // evicts the last-level cache; waits
  virtual double Time(const std::function<void()>& call) = 0;  // seconds on the device's own clock; waits
};

std::unique_ptr<DeviceOps> MakeCpuOps(int threads);
std::unique_ptr<DeviceOps> MakeCudaOps(int ordinal);  // throws where built without CUDA

}  // namespace grove::judge
