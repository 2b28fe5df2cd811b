// Stands in front of the CUDA runtime in a script's process (grove-candidate-python loads it before torch): device
// memory that cudaMalloc gives for whole granules, as torch's caching allocator asks for all of its memory, is made so
// that another process can map it. The judge then reads results where they lie. Everything else goes to the runtime.
//
// CUDA's memory of this kind: "Virtual Memory Management" in the CUDA driver API (cuMemCreate and so on). Loaded into a
// process with a driver and a runtime of its own choice, it links neither: it takes both from what is there.
#include <cuda.h>
#include <dlfcn.h>
#include <driver_types.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <type_traits>
#include <vector>

#define GROVE_EXPORT __attribute__((visibility("default")))

namespace {

struct Runtime {
  cudaError_t (*allocate)(void**, std::size_t) = nullptr;
  cudaError_t (*release)(void*) = nullptr;

  Runtime() {
    const char* path = nullptr;
    ::dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* found) {
          const char* slash = std::strrchr(object->dlpi_name, '/');
          const char* name = slash != nullptr ? slash + 1 : object->dlpi_name;
          if (std::strncmp(name, "libcudart", 9) != 0) return 0;  // libcudart.so.13, libcudart-1b2c3d4e.so.12
          *static_cast<const char**>(found) = object->dlpi_name;
          return 1;
        },
        &path);
    void* library = path != nullptr ? ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    if (library == nullptr) return;
    allocate = reinterpret_cast<decltype(allocate)>(::dlsym(library, "cudaMalloc"));
    release = reinterpret_cast<decltype(release)>(::dlsym(library, "cudaFree"));
  }
};

Runtime& TheRuntime() {
  static Runtime runtime;  // first asked by who calls it, so that it is there
  return runtime;
}

struct Driver {
  CUresult (*context_device)(CUdevice*) = nullptr;
  CUresult (*wait)() = nullptr;
  CUresult (*granularity)(std::size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) = nullptr;
  CUresult (*create)(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*,
                     unsigned long long) = nullptr;
  CUresult (*release)(CUmemGenericAllocationHandle) = nullptr;
  CUresult (*share)(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long) = nullptr;
  CUresult (*reserve)(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long) = nullptr;
  CUresult (*free_address)(CUdeviceptr, std::size_t) = nullptr;
  CUresult (*map)(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long) = nullptr;
  CUresult (*unmap)(CUdeviceptr, std::size_t) = nullptr;
  CUresult (*set_access)(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) = nullptr;
  bool complete = false;

  Driver() {
    void* library = ::dlopen("libcuda.so.1", RTLD_LAZY);
    if (library == nullptr) return;
    const auto find = [library](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(::dlsym(library, name));
      return *function != nullptr;
    };
    complete = find("cuCtxGetDevice", &context_device) && find("cuCtxSynchronize", &wait) &&
               find("cuMemGetAllocationGranularity", &granularity) && find("cuMemCreate", &create) &&
               find("cuMemRelease", &release) && find("cuMemExportToShareableHandle", &share) &&
               find("cuMemAddressReserve", &reserve) && find("cuMemAddressFree", &free_address) &&
               find("cuMemMap", &map) && find("cuMemUnmap", &unmap) && find("cuMemSetAccess", &set_access);
  }
};

Driver& TheDriver() {
  static Driver driver;
  return driver;
}

struct Piece {
  std::uint64_t number;  // from 1 on, none twice
  std::size_t bytes;
  CUmemGenericAllocationHandle handle;
  bool wanted = false, taken = false;  // a place in it was asked for; a descriptor was given for it
};

// Never destroyed: torch may give memory back while the process ends.
std::mutex& mutex = *new std::mutex;                                       // guards what follows
std::map<CUdeviceptr, Piece>& pieces = *new std::map<CUdeviceptr, Piece>;  // by their addresses
std::vector<std::uint64_t>& freed = *new std::vector<std::uint64_t>;       // taken before
std::uint64_t next_number = 1;
constexpr int kOffsetBits = 40;  // of a place: below it, in bytes; above it the piece's number

CUmemAllocationProp KindOn(CUdevice device) {
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  kind.location.id = device;
  kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return kind;
}

// The device of this thread's context, which the runtime makes where there is none yet. False where it cannot.
bool HasContext(CUdevice* device) {
  if (TheDriver().context_device(device) == CUDA_SUCCESS) return true;
  if (TheRuntime().release == nullptr || TheRuntime().release(nullptr) != cudaSuccess) return false;
  return TheDriver().context_device(device) == CUDA_SUCCESS;
}

// kNo: the runtime is to be asked instead. `bytes` are no whole granules, or such memory cannot be had.
enum class Made { kYes, kNo, kNoMemory };
Made Make(void** address, std::size_t bytes) {
  Driver& driver = TheDriver();
  constexpr std::size_t kLeast = std::size_t{2}
                                 << 20;  // the granule of every GPU so far; small ones are not asked about
  if (!driver.complete || bytes < kLeast || bytes % kLeast != 0) return Made::kNo;
  CUdevice device = 0;
  if (!HasContext(&device)) return Made::kNo;
  const CUmemAllocationProp kind = KindOn(device);
  std::size_t granule = 0;
  if (driver.granularity(&granule, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS || granule == 0 ||
      bytes % granule != 0) {
    return Made::kNo;
  }
  Piece piece{0, bytes, 0};
  const CUresult created = driver.create(&piece.handle, bytes, &kind, 0);
  if (created != CUDA_SUCCESS) return created == CUDA_ERROR_OUT_OF_MEMORY ? Made::kNoMemory : Made::kNo;
  CUdeviceptr at = 0;
  bool reserved = false, mapped = false;
  CUmemAccessDesc access{};
  access.location = kind.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  reserved = driver.reserve(&at, bytes, 0, 0, 0) == CUDA_SUCCESS;
  mapped = reserved && driver.map(at, bytes, 0, piece.handle, 0) == CUDA_SUCCESS;
  if (mapped && driver.set_access(at, bytes, &access, 1) == CUDA_SUCCESS) {
    const std::lock_guard lock(mutex);
    piece.number = next_number++;
    pieces.emplace(at, piece);
    *address = reinterpret_cast<void*>(at);
    return Made::kYes;
  }
  if (mapped) driver.unmap(at, bytes);
  if (reserved) driver.free_address(at, bytes);
  driver.release(piece.handle);
  return Made::kNo;
}

}  // namespace

extern "C" {

GROVE_EXPORT cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  if (address != nullptr) {
    const Made made = Make(address, bytes);
    if (made != Made::kNo) return made == Made::kYes ? cudaSuccess : cudaErrorMemoryAllocation;
  }
  return TheRuntime().allocate != nullptr ? TheRuntime().allocate(address, bytes) : cudaErrorInitializationError;
}

GROVE_EXPORT cudaError_t cudaFree(void* address) {
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  Piece piece{};
  {
    const std::lock_guard lock(mutex);
    const auto found = pieces.find(at);
    if (found != pieces.end()) {
      piece = found->second;
      pieces.erase(found);
      if (piece.taken) freed.push_back(piece.number);
    }
  }
  if (piece.number == 0) {
    return TheRuntime().release != nullptr ? TheRuntime().release(address) : cudaErrorInitializationError;
  }
  Driver& driver = TheDriver();
  CUdevice device = 0;
  if (HasContext(&device)) driver.wait();  // as cudaFree does
  driver.unmap(at, piece.bytes);
  driver.free_address(at, piece.bytes);
  driver.release(piece.handle);
  return cudaSuccess;
}

// Where each of these device addresses lies: (number of its piece << 40) | offset in bytes, or 0 where it is in no such
// memory. How many are.
GROVE_EXPORT std::size_t grove_shareable_locate(const std::uint64_t* addresses, std::size_t count,
                                                std::uint64_t* places) {
  const std::lock_guard lock(mutex);
  std::size_t found = 0;
  auto last = pieces.end();
  for (std::size_t i = 0; i < count; ++i) {
    const CUdeviceptr address = addresses[i];
    places[i] = 0;
    if (last == pieces.end() || address < last->first || address - last->first >= last->second.bytes) {
      const auto behind = pieces.upper_bound(address);
      if (behind == pieces.begin() || address - std::prev(behind)->first >= std::prev(behind)->second.bytes) continue;
      last = std::prev(behind);
    }
    last->second.wanted = true;
    places[i] = (last->second.number << kOffsetBits) | (address - last->first);
    ++found;
  }
  return found;
}

// Pieces that were named by locate since and not taken: their numbers, bytes, and a new descriptor for each, which is
// the caller's. At most `most`; how many.
GROVE_EXPORT std::size_t grove_shareable_take(std::uint64_t* numbers, std::uint64_t* bytes, int* fds,
                                              std::size_t most) {
  const std::lock_guard lock(mutex);
  std::size_t count = 0;
  for (auto& [at, piece] : pieces) {
    if (count == most) break;
    if (!piece.wanted || piece.taken) continue;
    int fd = -1;
    if (TheDriver().share(&fd, piece.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS) continue;
    piece.taken = true;
    numbers[count] = piece.number;
    bytes[count] = piece.bytes;
    fds[count++] = fd;
  }
  return count;
}

// Pieces that were taken and are memory no more; each is said once. At most `most`; how many.
GROVE_EXPORT std::size_t grove_shareable_freed(std::uint64_t* numbers, std::size_t most) {
  const std::lock_guard lock(mutex);
  std::size_t count = 0;
  for (; count < most && !freed.empty(); ++count) {
    numbers[count] = freed.back();
    freed.pop_back();
  }
  return count;
}

}  // extern "C"
