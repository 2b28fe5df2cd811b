#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/wire/spin.h"
#include "worker/judge/awake.h"
#include "worker/judge/device_ops.h"

namespace grove::judge {

// cuda_cache.cc: torch's headers are not for nvcc
void ReleaseCudaCache();
std::size_t CudaCacheBytes(int device);  // that torch has from the driver

namespace {

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // or the next one asked would be told of it
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(status) + ": " + cudaGetErrorString(status));
}

void Check(CUresult status, const char* what) {
  if (status == CUDA_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": CUresult " + std::to_string(static_cast<int>(status)) +
                           (status == CUDA_ERROR_OUT_OF_MEMORY ? " (out of memory)" : ""));
}

// The driver's functions for shareable memory, by way of the runtime: nothing here links libcuda.
struct Driver {
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemExportToShareableHandle) export_handle = nullptr;
  decltype(&cuMemImportFromShareableHandle) import_handle = nullptr;
  decltype(&cuMemGetAllocationPropertiesFromHandle) properties = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free_address = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;

  Driver() {
    Resolve("cuMemGetAllocationGranularity", &granularity);
    Resolve("cuMemCreate", &create);
    Resolve("cuMemRelease", &release);
    Resolve("cuMemExportToShareableHandle", &export_handle);
    Resolve("cuMemImportFromShareableHandle", &import_handle);
    Resolve("cuMemGetAllocationPropertiesFromHandle", &properties);
    Resolve("cuMemAddressReserve", &reserve);
    Resolve("cuMemAddressFree", &free_address);
    Resolve("cuMemMap", &map);
    Resolve("cuMemUnmap", &unmap);
    Resolve("cuMemSetAccess", &set_access);
  }

 private:
  template <typename Function>
  static void Resolve(const char* name, Function* function) {
    cudaDriverEntryPointQueryResult found;
    void* at = nullptr;
    Check(cudaGetDriverEntryPointByVersion(name, &at, 12000, cudaEnableDefault, &found), name);
    if (found != cudaDriverEntryPointSuccess || at == nullptr)
      throw std::runtime_error(std::string("the driver has no ") + name);
    *function = reinterpret_cast<Function>(at);
  }
};

class DeviceBlock : public SharedBlock {
 public:
  // `counter`: the bytes of all blocks that are alive.
  DeviceBlock(const Driver& driver, int ordinal, std::size_t wanted, std::shared_ptr<std::size_t> counter)
      : driver_(driver), counter_(std::move(counter)) {
    CUmemAllocationProp kind{};
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    kind.location.id = ordinal;
    kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    std::size_t unit = 0;
    Check(driver_.granularity(&unit, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "cuMemGetAllocationGranularity");
    bytes_ = (std::max<std::size_t>(wanted, 1) + unit - 1) / unit * unit;
    CUmemGenericAllocationHandle handle;
    Check(driver_.create(&handle, bytes_, &kind, 0), "cuMemCreate");
    int fd = -1;
    CUresult status = driver_.export_handle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    fd_ = fd;
    if (status == CUDA_SUCCESS) status = driver_.reserve(&at_, bytes_, 0, 0, 0);
    if (status == CUDA_SUCCESS) {
      reserved_ = true;
      status = driver_.map(at_, bytes_, 0, handle, 0);
    }
    if (status == CUDA_SUCCESS) {
      mapped_ = true;
      *counter_ += bytes_;
      CUmemAccessDesc access{};
      access.location = kind.location;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      status = driver_.set_access(at_, bytes_, &access, 1);
    }
    driver_.release(handle);  // descriptor and mapping keep the memory
    if (status != CUDA_SUCCESS) {
      Free();
      Check(status, "sharing device memory");
    }
  }
  ~DeviceBlock() override { Free(); }
  char* data() override { return reinterpret_cast<char*>(at_); }
  std::size_t bytes() const override { return bytes_; }
  int fd() const override { return fd_; }

 private:
  void Free() {
    if (mapped_) {
      driver_.unmap(at_, bytes_);
      *counter_ -= bytes_;
    }
    if (reserved_) driver_.free_address(at_, bytes_);
    if (fd_ >= 0) ::close(fd_);
    mapped_ = reserved_ = false;
    fd_ = -1;
  }

  const Driver& driver_;
  const std::shared_ptr<std::size_t> counter_;
  CUdeviceptr at_ = 0;
  std::size_t bytes_ = 0;
  int fd_ = -1;
  bool reserved_ = false, mapped_ = false;
};

// Whatever comes from the other process may be anything: what does not fit is not mapped.
class ForeignBlock : public MemoryBlock {
 public:
  ForeignBlock(const Driver& driver, int ordinal, int fd, std::size_t bytes) : driver_(driver), bytes_(bytes) {
    CUmemGenericAllocationHandle handle;
    if (driver_.import_handle(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS) {
      return;
    }
    CUmemAllocationProp kind{};
    if (driver_.properties(&kind, handle) == CUDA_SUCCESS && kind.type == CU_MEM_ALLOCATION_TYPE_PINNED &&
        kind.location.type == CU_MEM_LOCATION_TYPE_DEVICE && kind.location.id == ordinal) {
      reserved_ = driver_.reserve(&at_, bytes_, 0, 0, 0) == CUDA_SUCCESS;
      mapped_ = reserved_ && driver_.map(at_, bytes_, 0, handle, 0) == CUDA_SUCCESS;
      CUmemAccessDesc access{};
      access.location = kind.location;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      usable_ = mapped_ && driver_.set_access(at_, bytes_, &access, 1) == CUDA_SUCCESS;
    }
    driver_.release(handle);  // the mapping keeps the memory
  }
  ~ForeignBlock() override {
    if (mapped_) driver_.unmap(at_, bytes_);
    if (reserved_) driver_.free_address(at_, bytes_);
  }
  bool usable() const { return usable_; }
  char* data() override { return reinterpret_cast<char*>(at_); }
  std::size_t bytes() const override { return bytes_; }

 private:
  const Driver& driver_;
  CUdeviceptr at_ = 0;
  const std::size_t bytes_;
  bool reserved_ = false, mapped_ = false, usable_ = false;
};

struct Pattern {
  unsigned char bytes[16];
};

// Whole 16-byte words where they are aligned, and the rest byte by byte.
__global__ void FillPattern(unsigned char* out, Pattern pattern, std::size_t bytes) {
  const bool aligned = (reinterpret_cast<std::uintptr_t>(out) & 15) == 0;
  const std::size_t words = aligned ? bytes / 16 : 0, step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  uint4 word;
  memcpy(&word, pattern.bytes, 16);
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::size_t i = first; i < words; i += step) reinterpret_cast<uint4*>(out)[i] = word;
  for (std::size_t i = words * 16 + first; i < bytes; i += step) out[i] = pattern.bytes[i % 16];
}

// A row of blocks for each piece.
__global__ void CopyWords(unsigned char* to, const unsigned char* from, const std::size_t* offsets, std::size_t words) {
  const std::size_t offset = offsets[blockIdx.y], stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  auto* out = reinterpret_cast<uint4*>(to + offset);
  const auto* in = reinterpret_cast<const uint4*>(from + offset);
#pragma unroll 4
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    out[i] = in[i];
  }
}

// By value: there is no moment to copy them.
struct GlancePlaces {
  const unsigned char* at[DeviceOps::kMostGlances];
  unsigned char bytes[DeviceOps::kMostGlances];
};
__global__ void TakeGlance(GlancePlaces places, unsigned int count, unsigned char* to) {
  for (unsigned int i = threadIdx.x; i < count; i += blockDim.x) {
    const auto* at = static_cast<const volatile unsigned char*>(places.at[i]);
    for (unsigned int k = 0; k < places.bytes[i]; ++k) to[i * DeviceOps::kGlanceBytes + k] = at[k];
  }
}

// Words of 16 bytes, and what is left of them.
__global__ void FindDifferent(const unsigned char* a, const unsigned char* b, std::size_t bytes, Spoiled spoiled,
                              unsigned int* different) {
  const bool aligned = ((reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) & 15) == 0;
  const std::size_t words = aligned ? bytes / 16 : 0, stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  bool found = false;
  for (std::size_t i = first; i < words; i += stride) {
    const uint4 x = reinterpret_cast<const uint4*>(a)[i], y = reinterpret_cast<const uint4*>(b)[i];
    const bool same = x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w;
    found = found || (!same && !LeftOut(spoiled, 16 * i));
  }
  for (std::size_t i = words * 16 + first; i < bytes; i += stride) {
    found = found || (a[i] != b[i] && !LeftOut(spoiled, i));
  }
  if (found) atomicOr(different, 1u);
}

__global__ void SpoilWords(unsigned char* at, std::size_t bytes, Spoiled spoiled) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x, step = spoiled.step;
  const uint4 ones = make_uint4(~0u, ~0u, ~0u, ~0u);
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i * step + 16 <= bytes;
       i += stride) {
    *reinterpret_cast<uint4*>(at + i * step) = ones;
    const std::size_t chosen = i * step + SpoiledAt(spoiled.key, step, i);
    if (chosen + 16 <= bytes) *reinterpret_cast<uint4*>(at + chosen) = ones;
  }
}

// Reads only: a cache full of what must be written back would slow down whoever comes next.
__global__ void ReadThrough(const uint4* at, std::size_t words, unsigned int* sink) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  unsigned int sum = 0;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    const uint4 word = at[i];
    sum += word.x ^ word.y ^ word.z ^ word.w;
  }
  if (sum == 0x5A17C0DEu) atomicOr(sink, 0u);  // changes nothing, and keeps the reads
}

__global__ void Empty() {}

// Keeps the stream busy while the host prepares what is timed: the clock then starts with the work already queued, and
// what it takes to launch is not counted, for the reference as for the candidate.
__global__ void Cover(unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}
constexpr unsigned long long kCoverNanoseconds =
    300000;  // a compiled module takes 200 us from call to launch when cold

class CudaOps : public DeviceOps {
 public:
  explicit CudaOps(int ordinal) : ordinal_(ordinal) {
    Check(cudaSetDevice(ordinal), "cudaSetDevice");
    Check(cudaFree(nullptr), "making the CUDA context");
    Check(cudaGetDeviceProperties(&properties_, ordinal), "cudaGetDeviceProperties");
    driver_ = std::make_unique<Driver>();
    Check(cudaEventCreate(&begin_), "cudaEventCreate");
    Check(cudaEventCreate(&end_), "cudaEventCreate");
    Check(cudaEventCreate(&rested_), "cudaEventCreate");
    Check(cudaEventCreate(&settled_), "cudaEventCreate");
    Check(cudaMalloc(&flag_, sizeof(unsigned int)), "cudaMalloc");
    Check(cudaMalloc(&glances_, kMostGlances * kGlanceBytes), "cudaMalloc");
    Check(cudaMemset(flag_, 0, sizeof(unsigned int)), "cudaMemset");
    // Twice the L2: read through, nothing of what was there before remains, also with a hashed or split cache.
    flush_bytes_ = 2 * static_cast<std::size_t>(std::max(properties_.l2CacheSize, 1 << 20));
    Check(cudaMalloc(&flush_, flush_bytes_), "cudaMalloc of the flush buffer");
    Check(cudaMemset(flush_, 0, flush_bytes_), "cudaMemset");
    Check(cudaStreamCreateWithFlags(&beside_, cudaStreamNonBlocking), "cudaStreamCreate");
    if (cudaMallocHost(&staging_, kMostBeside) != cudaSuccess) {  // copies are slower then
      cudaGetLastError();
      pageable_.resize(kMostBeside);
      staging_ = pageable_.data();
    }
  }

  bool cuda() const override { return true; }
  nlohmann::json Info() const override {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    char uuid[64];
    const auto* id = reinterpret_cast<const unsigned char*>(properties_.uuid.bytes);
    std::snprintf(uuid, sizeof uuid, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", id[0],
                  id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11], id[12], id[13], id[14],
                  id[15]);
    return {{"kind", "DEVICE_KIND_CUDA"},
            {"index", ordinal_},
            {"name", properties_.name},
            {"arch", "sm_" + std::to_string(properties_.major) + std::to_string(properties_.minor)},
            {"uuid", uuid},
            {"memory_bytes", static_cast<std::int64_t>(properties_.totalGlobalMem)},
            {"l2_bytes", properties_.l2CacheSize},
            {"multiprocessors", properties_.multiProcessorCount},
            {"driver", "CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10)}};
  }
  std::size_t cache_bytes() const override { return static_cast<std::size_t>(properties_.l2CacheSize); }
  std::size_t free_bytes() const override {
    std::size_t free = 0, total = 0;
    Check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }
  std::int64_t others_bytes() const override {
    std::size_t free = 0, total = 0;
    Check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return static_cast<std::int64_t>(total - free) - static_cast<std::int64_t>(CudaCacheBytes(ordinal_)) -
           static_cast<std::int64_t>(*shared_bytes_);
  }
  void ReleaseCache() override { ReleaseCudaCache(); }
  std::unique_ptr<SharedBlock> Allocate(std::size_t bytes) override {
    return std::make_unique<DeviceBlock>(*driver_, ordinal_, bytes, shared_bytes_);
  }
  std::unique_ptr<MemoryBlock> Import(int fd, std::size_t bytes) override {
    auto block = std::make_unique<ForeignBlock>(*driver_, ordinal_, fd, bytes);
    return block->usable() ? std::move(block) : nullptr;
  }
  void Copy(void* to, const void* from, std::size_t bytes) override {
    Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr), "copying on the device");
  }
  void CopyPieces(char* to, const char* from, const std::vector<std::size_t>& offsets, std::size_t bytes) override {
    if (offsets.empty() || bytes == 0) return;
    if (offsets.size() > offsets_room_) {
      // At once for as many calls as a timed run has (run_size.cc): growing would take time that is measured.
      constexpr std::size_t kOffsetsAtOnce = 4096;
      const std::size_t room = std::max(offsets.size(), kOffsetsAtOnce);
      Check(cudaFree(offsets_), "cudaFree");
      offsets_ = nullptr;
      offsets_room_ = 0;
      Check(cudaMalloc(&offsets_, room * sizeof(std::size_t)), "cudaMalloc");
      offsets_room_ = room;
    }
    Check(cudaMemcpyAsync(offsets_, offsets.data(), offsets.size() * sizeof(std::size_t), cudaMemcpyHostToDevice,
                          nullptr),
          "copying to the device");
    constexpr std::size_t kMostRows = 65535;  // of a grid
    for (std::size_t done = 0; done < offsets.size(); done += kMostRows) {
      const std::size_t rows = std::min(offsets.size() - done, kMostRows);
      const auto columns = std::max<std::size_t>(static_cast<std::size_t>(Blocks(rows * bytes)) / rows, 1);
      const dim3 grid(static_cast<unsigned int>(columns), static_cast<unsigned int>(rows));
      CopyWords<<<grid, 256>>>(reinterpret_cast<unsigned char*>(to), reinterpret_cast<const unsigned char*>(from),
                               offsets_ + done, bytes / 16);
    }
    Check(cudaGetLastError(), "copying on the device");
  }
  void Glance(const std::vector<Place>& places) override {
    GlancePlaces some{};
    const std::size_t count = std::min(places.size(), kMostGlances);
    for (std::size_t i = 0; i < count; ++i) {
      some.at[i] = static_cast<const unsigned char*>(places[i].at);
      some.bytes[i] = static_cast<unsigned char>(std::min(places[i].bytes, kGlanceBytes));
    }
    TakeGlance<<<1, kMostGlances>>>(some, static_cast<unsigned int>(count), glances_);
    Check(cudaGetLastError(), "reading device memory");
  }
  void Glanced(unsigned char* to) override { ToHost(to, glances_, kMostGlances * kGlanceBytes); }
  void ToHost(void* to, const void* from, std::size_t bytes) override {
    Check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copying from the device");
  }
  void FromHost(void* to, const void* from, std::size_t bytes) override {
    Check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copying to the device");
  }
  void CopyBeside(char* to, const char* from, const Rows& rows) override {
    if (rows.count == 0 || rows.width == 0) return;
    Check(cudaSetDevice(ordinal_), "cudaSetDevice");  // of this thread
    Check(cudaMemcpy2DAsync(staging_, rows.width, from, rows.pitch, rows.width, rows.count, cudaMemcpyDeviceToHost,
                            beside_),
          "copying from the device");
    Check(cudaMemcpy2DAsync(to, rows.pitch, staging_, rows.width, rows.width, rows.count, cudaMemcpyHostToDevice,
                            beside_),
          "copying to the device");
    Check(cudaStreamSynchronize(beside_), "copying beside others");
  }
  void ReadBeside(char* to, const std::vector<Place>& pieces) override {
    Check(cudaSetDevice(ordinal_), "cudaSetDevice");
    char* next = staging_;
    for (const Place& piece : pieces) {
      Check(cudaMemcpyAsync(next, piece.at, piece.bytes, cudaMemcpyDeviceToHost, beside_), "copying from the device");
      next += piece.bytes;
    }
    Check(cudaStreamSynchronize(beside_), "copying beside others");
    std::copy(staging_, next, to);
  }
  void Fill(void* to, const unsigned char* pattern, std::size_t element_bytes, std::size_t bytes) override {
    Pattern whole;
    for (std::size_t i = 0; i < sizeof whole.bytes; ++i) whole.bytes[i] = pattern[i % element_bytes];
    FillPattern<<<Blocks(bytes), 256>>>(static_cast<unsigned char*>(to), whole, bytes);
    Check(cudaGetLastError(), "filling device memory");
  }
  void Compare(const void* a, const void* b, std::size_t bytes, const Spoiled& spoiled) override {
    FindDifferent<<<Blocks(bytes), 256>>>(static_cast<const unsigned char*>(a), static_cast<const unsigned char*>(b),
                                          bytes, spoiled, flag_);
    Check(cudaGetLastError(), "comparing device memory");
  }
  bool Differed() override {
    unsigned int different = 1;
    ToHost(&different, flag_, sizeof different);
    if (different != 0) Check(cudaMemsetAsync(flag_, 0, sizeof different, nullptr), "cudaMemset");
    return different != 0;
  }
  void Spoil(void* at, std::size_t bytes, const Spoiled& spoiled) override {
    SpoilWords<<<Blocks(bytes / spoiled.step * 16), 256>>>(static_cast<unsigned char*>(at), bytes, spoiled);
    Check(cudaGetLastError(), "writing device memory");
  }
  void Synchronize() override { Check(cudaDeviceSynchronize(), "the device"); }
  double Rest(int processor, const std::function<void()>& fill) override {
    // Lines that somebody asked to persist would survive Flush.
    const cudaError_t reset = cudaCtxResetPersistingL2Cache();
    if (reset == cudaErrorNotSupported) {  // then nobody can ask for it either
      cudaGetLastError();
    } else {
      Check(reset, "cudaCtxResetPersistingL2Cache");
    }
    awake_.Begin(processor);
    // Whoever stands on that processor next, a thread of the judge's own among them, has it for himself.
    const std::unique_ptr<Awake, void (*)(Awake*)> release(&awake_, [](Awake* awake) { awake->Release(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Check(cudaEventRecord(rested_, nullptr), "cudaEventRecord");
    fill();
    Check(cudaEventRecord(settled_, nullptr), "cudaEventRecord");
    Synchronize();
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, rested_, settled_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }
  std::chrono::nanoseconds Spin() const override {
    // Longer than runs take. With few processors the candidate needs them.
    return std::chrono::milliseconds(std::thread::hardware_concurrency() >= wire::kProcessorsToSpin ? 100 : 0);
  }
  void EmptyRun() override {
    Empty<<<1, 32>>>();
    Synchronize();
  }
  std::size_t flush_bytes() const override { return flush_bytes_; }
  void Flush() override { Touch(flush_, flush_bytes_); }
  void FlushBeside() override {
    Check(cudaSetDevice(ordinal_), "cudaSetDevice");
    for (std::size_t at = 0; at < flush_bytes_; at += kMostBeside) {
      Check(cudaMemcpyAsync(static_cast<char*>(flush_) + at, staging_, std::min(kMostBeside, flush_bytes_ - at),
                            cudaMemcpyHostToDevice, beside_),
            "flushing the cache");
    }
    Check(cudaStreamSynchronize(beside_), "copying beside others");
  }
  void Evict(const void*, std::size_t) override {}
  void Touch(const void* at, std::size_t bytes) override {
    ReadThrough<<<Blocks(bytes), 256>>>(static_cast<const uint4*>(at), bytes / 16, flag_);
    Check(cudaGetLastError(), "reading device memory");
  }
  double Time(const std::function<void()>& call) override {
    Cover<<<1, 1>>>(kCoverNanoseconds);
    Check(cudaEventRecord(begin_, nullptr), "cudaEventRecord");
    call();
    Check(cudaEventRecord(end_, nullptr), "cudaEventRecord");
    Synchronize();
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }
  double LaunchSeconds() override {
    constexpr int kLaunches = 1000;
    const auto many = [] {
      for (int i = 0; i < kLaunches; ++i) Cover<<<1, 1>>>(0);
    };
    many();
    return Time(many) / kLaunches;
  }

 private:
  int Blocks(std::size_t bytes) const {
    return static_cast<int>(
        std::clamp<std::size_t>(bytes / 4096 + 1, 1, static_cast<std::size_t>(properties_.multiProcessorCount) * 8));
  }

  int ordinal_;
  std::shared_ptr<std::size_t> shared_bytes_ = std::make_shared<std::size_t>(0);
  cudaDeviceProp properties_{};
  std::unique_ptr<Driver> driver_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr, rested_ = nullptr, settled_ = nullptr;
  unsigned int* flag_ = nullptr;
  void* flush_ = nullptr;
  unsigned char* glances_ = nullptr;  // on the device
  std::size_t* offsets_ = nullptr;    // there, too
  std::size_t offsets_room_ = 0;
  std::size_t flush_bytes_ = 0;
  // For copies beside others: a stream that waits for no other, and kMostBeside bytes of the host.
  cudaStream_t beside_ = nullptr;
  char* staging_ = nullptr;
  std::vector<char> pageable_;
  Awake awake_{1, {}};
};

}  // namespace

std::unique_ptr<DeviceOps> MakeCudaOps(int ordinal) { return std::make_unique<CudaOps>(ordinal); }

}  // namespace grove::judge
