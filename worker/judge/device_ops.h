// What differs between the CPU and a CUDA device for the judge: shared memory, waiting, caches. No torch here. Owned
// and used by the judge's main thread. On a GPU everything goes to the default stream, in order, as torch's own work
// does (but for what is done "beside"); what is "queued" is done after Synchronize. Errors are std::runtime_error: the
// environment's fault.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/wire/dtype.h"
#include "worker/judge/spoiled.h"

namespace grove::judge {

class MemoryBlock {
 public:
  virtual ~MemoryBlock() = default;
  virtual char* data() = 0;  // device address on a GPU
  virtual std::size_t bytes() const = 0;
};

// A piece of memory that can be handed to a candidate. The judge keeps its own mapping.
class SharedBlock : public MemoryBlock {
 public:
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
  virtual void ReleaseCache() {}  // gives back device memory that torch keeps for later
  virtual std::unique_ptr<SharedBlock> Allocate(std::size_t bytes) = 0;
  // Another process's piece of this device's memory, by a descriptor of its making, which stays the caller's. Counts as
  // that process's. Null where the descriptor is none of such memory, or of less than so many bytes; always on a CPU.
  virtual std::unique_ptr<MemoryBlock> Import(int, std::size_t) { return nullptr; }
  virtual void Copy(void* to, const void* from, std::size_t bytes) = 0;  // on the device; queued
  // Pieces of `bytes` (whole words of 16), each `offset` bytes from `to` and `from`, in one step; queued.
  virtual void CopyPieces(char* to, const char* from, const std::vector<std::size_t>& offsets, std::size_t bytes) = 0;
  // Up to kMostGlances places at once, in one small kernel: its bytes of each, kGlanceBytes apart, are written to `to`
  // on the host by Glanced, which waits. On a GPU; elsewhere nobody works on when the processes stand.
  struct Place {
    const void* at;
    std::size_t bytes;  // for Glance up to kGlanceBytes
  };
  static constexpr std::size_t kMostGlances = 256, kGlanceBytes = 4;
  virtual void Glance(const std::vector<Place>& /*places*/) {}  // queued
  virtual void Glanced(unsigned char* /*to*/) {}
  virtual void ToHost(void* to, const void* from, std::size_t bytes) = 0;    // waits
  virtual void FromHost(void* to, const void* from, std::size_t bytes) = 0;  // waits
  // Beside whatever is at work on a GPU and whatever was queued, by its copy engines alone; done when it returns. Up to
  // kMostBeside bytes in all, on the device (by way of the host) or from it. Also from another thread than the main one
  // while that waits for it. (Elsewhere plain copies.)
  static constexpr std::size_t kMostBeside = std::size_t{8} << 20;
  // Fewer bytes in one row come to a GPU through the engine that runs kernels: it is taken from the candidate's process
  // for them, and both wait some 145 us. Measured: 1024 do, 1259 do not, and rows do not (docs/results/gpu-h200.md).
  static constexpr std::size_t kLeastPlain = 2048;
  struct Rows {
    std::size_t pitch, width, count;  // bytes from one to the next, bytes of each, and how many
  };
  virtual void CopyBeside(char* to, const char* from, const Rows& rows) {
    for (std::size_t i = 0; i < rows.count; ++i) std::memcpy(to + i * rows.pitch, from + i * rows.pitch, rows.width);
  }
  // These pieces, one behind the other.
  virtual void ReadBeside(char* to, const std::vector<Place>& pieces) {
    for (const Place& piece : pieces) {
      std::memcpy(to, piece.at, piece.bytes);
      to += piece.bytes;
    }
  }
  // Writes `element_bytes` (1 to 16) of `pattern` over and over; queued.
  virtual void Fill(void* to, const unsigned char* pattern, std::size_t element_bytes, std::size_t bytes) = 0;
  // Looks for bytes that differ between two pieces of device memory; queued. Differed tells whether any comparison
  // since the last Differed found some; waits.
  virtual void Compare(const void* a, const void* b, std::size_t bytes, const Spoiled& spoiled) = 0;
  virtual bool Differed() = 0;
  bool Equal(const void* a, const void* b, std::size_t bytes) {
    Compare(a, b, bytes, {});
    return !Differed();
  }
  // Writes ones (NaN as a float, -1 as an integer) over what a comparison with `spoiled` leaves out; queued. Its phase
  // is 0.
  virtual void Spoil(void* at, std::size_t bytes, const Spoiled& spoiled) = 0;
  virtual void Synchronize() = 0;
  // A pause before a timed run, after which asking costs the same however long nothing was asked: on a CPU the
  // processors are kept awake, on a GPU's host the one where who is asked next stood last (negative = not known).
  // `fill` is called in it: on a GPU behind the pause, where nothing may come between the inputs and the run; on a CPU
  // before it. What it queues is done when this returns. Seconds of the device's own clock that it took; 0 on a CPU.
  virtual double Rest(int processor, const std::function<void()>& fill) = 0;
  // How long an answer is waited for without falling asleep. Not on a CPU, where the candidate needs the processors.
  virtual std::chrono::nanoseconds Spin() const { return std::chrono::nanoseconds(0); }
  // One kernel that does nothing, and waiting for it: what a run of no calls costs. Nothing on a CPU.
  virtual void EmptyRun() = 0;

  // On a GPU: the last-level cache holds nothing afterwards but what was read here, flush_bytes() of memory of its own.
  // Queued. A CPU's is shared with other programs and may be larger than what is timed by far: there Evict does it.
  virtual std::size_t flush_bytes() const = 0;  // 0 = Flush does nothing
  virtual void Flush() = 0;
  // The same, but that the cache holds what was written to that memory, beside others as CopyBeside: a kernel would
  // take the device from whoever is timed next, for some 145 us. Done when it returns. Nothing where Flush does
  // nothing.
  virtual void FlushBeside() {}
  // On a CPU: no cache holds any of this afterwards, whoever maps it. Nothing on a GPU.
  virtual void Evict(const void* at, std::size_t bytes) = 0;
  virtual void Touch(const void* at, std::size_t bytes) = 0;   // reads it, so that caches hold what fits; queued
  virtual double Time(const std::function<void()>& call) = 0;  // seconds on the device's own clock; waits
  virtual double LaunchSeconds() { return 0; }  // of one empty kernel after another; 0 where nothing is launched
};

// `processors`: those that the sides' threads are bound to; empty where they are not. `most_memory`: bytes that this
// process may have; 0 = as many as are free.
std::unique_ptr<DeviceOps> MakeCpuOps(int threads, std::vector<int> processors = {}, std::size_t most_memory = 0);
std::unique_ptr<DeviceOps> MakeCudaOps(int ordinal);  // throws where built without CUDA

}  // namespace grove::judge
