#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>

#include "worker/candidate/device.h"

namespace grove::candidate {
namespace {

std::string Text(const char* what, cudaError_t error) {
  return std::string(what) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error);
}

std::string Text(const char* what, CUresult error) { return std::string(what) + ": CUresult " + std::to_string(error); }

// The driver's functions by way of the runtime, so that this program needs no libcuda to start.
template <typename Function>
bool Resolve(const char* name, Function* function, std::string* error) {
  cudaDriverEntryPointQueryResult found;
  void* at = nullptr;
  cudaError_t status = cudaGetDriverEntryPointByVersion(name, &at, 12000, cudaEnableDefault, &found);
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess || at == nullptr) {
    *error = std::string("the driver has no ") + name;
    return false;
  }
  *function = reinterpret_cast<Function>(at);
  return true;
}

// The canary's known sequence: a linear congruence, whose value after any number of steps has a closed form.
constexpr std::uint32_t kFactor = 1664525, kSummand = 1013904223;
constexpr int kCanarySteps = 1 << 19;  // some 1 ms: long against the clock's resolution, short against a lease
constexpr std::size_t kCanaryBytes = std::size_t{64} << 20;

__global__ void RunSequence(std::uint32_t* out, int steps) {
  const std::uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;
  std::uint32_t value = id;
  for (int i = 0; i < steps; ++i) value = value * kFactor + kSummand;
  out[id] = value;
}

__global__ void WritePattern(std::uint32_t* out, std::size_t words) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < words; i += step) {
    out[i] = static_cast<std::uint32_t>(i) * kFactor + kSummand;
  }
}

// Read by another thread than the one that wrote.
__global__ void CheckPattern(const std::uint32_t* in, std::size_t words, unsigned int* wrong) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  unsigned int found = 0;
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < words; i += step) {
    const std::size_t at = words - 1 - i;
    found += in[at] != static_cast<std::uint32_t>(at) * kFactor + kSummand;
  }
  if (found != 0) atomicAdd(wrong, found);
}

// An empty run has an empty kernel, so that what it costs has a launch in it, as the judge's own has.
__global__ void Empty() {}

// 32 MiB read and written: longer than a launch, so that a row of these is bound by the device, as timed kernels are.
constexpr std::size_t kPracticeWords = std::size_t{8} << 20;

__global__ void Scale(float4* at, std::size_t count) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count; i += step) {
    float4 value = at[i];
    value.x = value.x * 0.5f + 0.5f;
    value.y = value.y * 0.5f + 0.5f;
    value.z = value.z * 0.5f + 0.5f;
    value.w = value.w * 0.5f + 0.5f;
    at[i] = value;
  }
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int ordinal) : ordinal_(ordinal) {}

  std::string Init() {
    cudaError_t status = cudaSetDevice(ordinal_);
    if (status == cudaSuccess) status = cudaFree(nullptr);
    if (status != cudaSuccess) return Text("cudaSetDevice", status);
    std::string error;
    if (!Resolve("cuMemImportFromShareableHandle", &import_, &error) ||
        !Resolve("cuMemAddressReserve", &reserve_, &error) || !Resolve("cuMemMap", &map_, &error) ||
        !Resolve("cuMemSetAccess", &set_access_, &error) || !Resolve("cuMemRelease", &release_, &error)) {
      return error;
    }
    status = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    if (status != cudaSuccess) return Text("cudaStreamCreate", status);
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, ordinal_) == cudaSuccess) name_ = properties.name;
    return "";
  }

  void* Map(int fd, std::size_t bytes, std::string* error) override {
    CUmemGenericAllocationHandle handle;
    CUresult status = import_(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (status != CUDA_SUCCESS) {
      *error = Text("cuMemImportFromShareableHandle", status);
      return nullptr;
    }
    CUdeviceptr at = 0;
    status = reserve_(&at, bytes, 0, 0, 0);
    if (status == CUDA_SUCCESS) status = map_(at, bytes, 0, handle, 0);
    if (status == CUDA_SUCCESS) {
      CUmemAccessDesc access{};
      access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      access.location.id = ordinal_;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      status = set_access_(at, bytes, &access, 1);
    }
    release_(handle);  // the mapping keeps the memory
    if (status != CUDA_SUCCESS) {
      *error = Text("cuMemMap", status);
      return nullptr;
    }
    return reinterpret_cast<void*>(at);
  }

  DLDevice Where() const override { return {2, ordinal_}; }
  void* Stream() const override { return stream_; }

  // Two events around the whole run: one around every call would stand between the calls on the stream.
  std::string Prepare(std::size_t count) override {
    count_ = count;
    for (cudaEvent_t* event : {&begin_, &end_}) {
      cudaError_t status = *event == nullptr ? cudaEventCreate(event) : cudaSuccess;
      if (status != cudaSuccess) return Text("cudaEventCreate", status);
    }
    if (count == 0) Empty<<<1, 32, 0, stream_>>>();
    return "";
  }
  std::string Begin(std::size_t index) override { return index == 0 ? Record(begin_) : ""; }
  std::string End(std::size_t index) override {
    cudaError_t launch = cudaPeekAtLastError();
    if (launch != cudaSuccess) return Text("the kernel's launch", launch);
    return index + 1 == count_ ? Record(end_) : "";
  }
  std::string Practice() override {
    if (practice_ == nullptr) {
      if (cudaMalloc(&practice_, kPracticeWords * sizeof(float)) != cudaSuccess) {
        // A problem that fills the device takes so long that what asking costs does not count.
        cudaGetLastError();
        practice_ = nullptr;
        Empty<<<1, 32, 0, stream_>>>();
        return "";
      }
      cudaError_t status = cudaMemsetAsync(practice_, 0, kPracticeWords * sizeof(float), stream_);
      if (status != cudaSuccess) return Text("memory for practice", status);
    }
    Scale<<<1024, 256, 0, stream_>>>(practice_, kPracticeWords / 4);
    return "";
  }
  void EndPractice() override {
    cudaFree(practice_);
    practice_ = nullptr;
  }
  std::string Finish(std::vector<std::int64_t>* nanoseconds) override {
    cudaError_t status = cudaDeviceSynchronize();
    if (status != cudaSuccess) return Text("the kernel", status);
    nanoseconds->clear();
    if (count_ == 0) return "";
    float milliseconds = 0;
    status = cudaEventElapsedTime(&milliseconds, begin_, end_);
    if (status != cudaSuccess) return Text("cudaEventElapsedTime", status);
    nanoseconds->assign(
        count_, static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6 / static_cast<double>(count_)));
    return "";
  }

  std::string Profile(bool on) override {
    // Nothing from before is seen, and nothing of it is missed.
    cudaError_t status = cudaDeviceSynchronize();
    if (status == cudaSuccess) status = on ? cudaProfilerStart() : cudaProfilerStop();
    return status == cudaSuccess ? "" : Text(on ? "cudaProfilerStart" : "cudaProfilerStop", status);
  }

  std::string SelfTest(double* seconds) override {
    // Threads: several waves of every multiprocessor, so that one that computes wrongly is met.
    cudaDeviceProp properties;
    cudaError_t status = cudaGetDeviceProperties(&properties, ordinal_);
    if (status != cudaSuccess) return Text("cudaGetDeviceProperties", status);
    const int threads = properties.multiProcessorCount * 8 * 256;
    const std::size_t words = kCanaryBytes / sizeof(std::uint32_t);
    std::uint32_t factor = 1, summand = 0;
    for (int i = 0; i < kCanarySteps; ++i) {
      summand = summand * kFactor + kSummand;
      factor *= kFactor;
    }
    std::uint32_t* memory = nullptr;
    unsigned int* wrong = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr;
    status = cudaMalloc(&memory, kCanaryBytes);
    if (status == cudaSuccess) status = cudaMalloc(&wrong, sizeof *wrong);
    if (status == cudaSuccess) status = cudaMemsetAsync(wrong, 0, sizeof *wrong, stream_);
    if (status == cudaSuccess) status = cudaEventCreate(&begin);
    if (status == cudaSuccess) status = cudaEventCreate(&end);
    std::vector<std::uint32_t> host(static_cast<std::size_t>(threads));
    std::string error;
    *seconds = 0;
    for (int round = 0; round < 3 && status == cudaSuccess && error.empty(); ++round) {
      status = cudaEventRecord(begin, stream_);
      RunSequence<<<threads / 256, 256, 0, stream_>>>(memory, kCanarySteps);
      if (status == cudaSuccess) status = cudaGetLastError();
      if (status == cudaSuccess) status = cudaEventRecord(end, stream_);
      if (status == cudaSuccess) status = cudaStreamSynchronize(stream_);
      float milliseconds = 0;
      if (status == cudaSuccess) status = cudaEventElapsedTime(&milliseconds, begin, end);
      if (status == cudaSuccess) {
        status = cudaMemcpy(host.data(), memory, host.size() * sizeof(std::uint32_t), cudaMemcpyDeviceToHost);
      }
      if (round == 0 || milliseconds * 1e-3 < *seconds) *seconds = milliseconds * 1e-3;
      for (std::size_t i = 0; status == cudaSuccess && i < host.size(); ++i) {
        if (host[i] == static_cast<std::uint32_t>(i) * factor + summand) continue;
        error = "thread " + std::to_string(i) + " of the test kernel computed a wrong value";
        break;
      }
    }
    // What is written to memory is what is read from it.
    if (status == cudaSuccess && error.empty()) {
      WritePattern<<<1024, 256, 0, stream_>>>(memory, words);
      CheckPattern<<<1024, 256, 0, stream_>>>(memory, words, wrong);
      unsigned int count = 1;
      status = cudaGetLastError();
      if (status == cudaSuccess) status = cudaStreamSynchronize(stream_);
      if (status == cudaSuccess) status = cudaMemcpy(&count, wrong, sizeof count, cudaMemcpyDeviceToHost);
      if (status == cudaSuccess && count != 0) {
        error = std::to_string(count) + " words of the test pattern were read otherwise than they were written";
      }
    }
    if (begin != nullptr) cudaEventDestroy(begin);
    if (end != nullptr) cudaEventDestroy(end);
    cudaFree(wrong);
    cudaFree(memory);
    return status == cudaSuccess ? error : Text("the test kernel", status);
  }
  std::string Name() const override { return name_; }

 private:
  std::string Record(cudaEvent_t event) {
    cudaError_t status = cudaEventRecord(event, stream_);
    return status == cudaSuccess ? "" : Text("the kernel", status);
  }

  int ordinal_;
  std::string name_ = "cuda";
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  float4* practice_ = nullptr;
  std::size_t count_ = 0;
  decltype(&cuMemImportFromShareableHandle) import_ = nullptr;
  decltype(&cuMemAddressReserve) reserve_ = nullptr;
  decltype(&cuMemMap) map_ = nullptr;
  decltype(&cuMemSetAccess) set_access_ = nullptr;
  decltype(&cuMemRelease) release_ = nullptr;
};

}  // namespace

std::unique_ptr<Device> MakeCudaDevice(int ordinal, std::string* error) {
  auto device = std::make_unique<CudaDevice>(ordinal);
  *error = device->Init();
  if (!error->empty()) return nullptr;
  return device;
}

}  // namespace grove::candidate
