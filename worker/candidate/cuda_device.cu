#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>

#include "worker/candidate/cuda_canary.h"
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

// An empty run has an empty kernel, so that what it costs has a launch in it, as the judge's own has.
__global__ void Empty() {}

// Some tens of launches.
constexpr unsigned long long kCoverNanoseconds = 100000;

__global__ void Busy(unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}

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
  std::string Cover() override {
    Busy<<<1, 1, 0, stream_>>>(kCoverNanoseconds);
    cudaError_t status = cudaPeekAtLastError();
    return status == cudaSuccess ? "" : Text("work before a call", status);
  }
  std::string Practice() override {
    if (practice_ == nullptr) {
      Busy<<<1, 1, 0, stream_>>>(0);  // its code is loaded while nobody else's is: later there may be no memory for it
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
  std::string Wait() override {
    const cudaError_t status = cudaDeviceSynchronize();
    return status == cudaSuccess ? "" : Text("the kernel", status);
  }
  std::string Finish(std::vector<std::int64_t>* nanoseconds) override {
    if (std::string error = Wait(); !error.empty()) return error;
    nanoseconds->clear();
    if (count_ == 0) return "";
    float milliseconds = 0;
    cudaError_t status = cudaEventElapsedTime(&milliseconds, begin_, end_);
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

  std::string SelfTest(double* seconds) override { return RunCanary(ordinal_, stream_, seconds); }
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
