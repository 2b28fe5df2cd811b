#include <cpuid.h>
#include <malloc.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "worker/judge/awake.h"
#include "worker/judge/device_ops.h"
#include "worker/judge/memory_file.h"

namespace grove::judge {
namespace {

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0) {
      if (auto at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
    }
  }
  return "cpu";
}

std::string Arch() {
  if (__builtin_cpu_supports("avx512f")) return "x86-64/avx512";
  if (__builtin_cpu_supports("avx2")) return "x86-64/avx2";
  if (__builtin_cpu_supports("avx")) return "x86-64/avx";
  return "x86-64/sse2";
}

class CpuOps : public DeviceOps {
 public:
  CpuOps(int threads, std::vector<int> processors, std::size_t most_memory)
      : threads_(threads), most_memory_(most_memory), awake_(threads, std::move(processors)) {
    long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (bytes <= 0) bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    unsigned a = 0, b = 0, c = 0, d = 0;
    flush_opt_ = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 23)) != 0;
    cache_ = bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{32} << 20;
  }
  bool cuda() const override { return false; }
  nlohmann::json Info() const override {
    return {{"kind", "DEVICE_KIND_CPU"},
            {"index", 0},
            {"name", CpuName()},
            {"arch", Arch()},
            {"memory_bytes", static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE)},
            {"l2_bytes", static_cast<std::int64_t>(cache_)},
            {"multiprocessors", threads_}};
  }
  std::size_t cache_bytes() const override { return cache_; }
  std::size_t free_bytes() const override {
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::size_t kib = 0, free = std::size_t{1} << 30;
    std::string unit;
    while (file >> name >> kib) {
      std::getline(file, unit);
      if (name != "MemAvailable:") continue;
      free = kib << 10;
      break;
    }
    if (most_memory_ == 0) return free;
    // What is resident is counted against the limit, files that are mapped and shared memory, too; but not what was
    // given back to the heap, which keeps it for what comes next (main.cc).
    std::size_t pages = 0, held = 0;
    std::ifstream("/proc/self/statm") >> pages >> held;
    held *= static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    held -= std::min(held, ::mallinfo2().fordblks);
    return std::min(free, most_memory_ > held ? most_memory_ - held : 0);
  }
  std::unique_ptr<SharedBlock> Allocate(std::size_t bytes) override { return MakeMemoryFile(bytes); }
  void Copy(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void CopyPieces(char* to, const char* from, const std::vector<std::size_t>& offsets, std::size_t bytes) override {
    for (const std::size_t offset : offsets) std::memcpy(to + offset, from + offset, bytes);
  }
  void ToHost(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void FromHost(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void Fill(void* to, const unsigned char* pattern, std::size_t element_bytes, std::size_t bytes) override {
    char* out = static_cast<char*>(to);
    std::size_t done = std::min(element_bytes, bytes);
    std::memcpy(out, pattern, done);
    while (done < bytes) {  // doubles what is there; whole elements stay aligned to the pattern
      const std::size_t part = std::min(done, bytes - done);
      std::memcpy(out + done, out, part);
      done += part;
    }
  }
  void Compare(const void* a, const void* b, std::size_t bytes, const Spoiled& spoiled) override {
    const char *x = static_cast<const char*>(a), *y = static_cast<const char*>(b);
    if (spoiled.step == 0) {
      differed_ = differed_ || std::memcmp(x, y, bytes) != 0;
      return;
    }
    std::size_t at = 0;
    while (at < bytes && !differed_) {
      const std::size_t block = (spoiled.phase + at) / spoiled.step, within = (spoiled.phase + at) % spoiled.step;
      const std::size_t chosen = SpoiledAt(spoiled.key, spoiled.step, block);
      // The first bytes, what lies before the chosen ones, these, and what lies behind them.
      std::size_t until = spoiled.step;
      for (const std::size_t end : {chosen + kSpoilBytes, chosen, kSpoilBytes}) until = within < end ? end : until;
      const std::size_t part = std::min(until - within, bytes - at);
      differed_ = !LeftOut(spoiled, at) && std::memcmp(x + at, y + at, part) != 0;
      at += part;
    }
  }
  bool Differed() override { return std::exchange(differed_, false); }
  void Spoil(void* at, std::size_t bytes, const Spoiled& spoiled) override {
    char* out = static_cast<char*>(at);
    for (std::size_t i = 0; i < bytes; i += spoiled.step) {
      std::memset(out + i, 0xFF, std::min(kSpoilBytes, bytes - i));
      const std::size_t chosen = i + SpoiledAt(spoiled.key, spoiled.step, i / spoiled.step);
      if (chosen < bytes) std::memset(out + chosen, 0xFF, std::min(kSpoilBytes, bytes - chosen));
    }
  }
  void Synchronize() override {}
  double Rest(int, const std::function<void()>& fill) override {
    // Caches are emptied line by line, and the processors are to be awake at the end.
    fill();
    // On a busy machine the scheduler favours who has rested, as a candidate that was held has.
    awake_.Rest(std::chrono::milliseconds(2));
    return 0;
  }
  void EmptyRun() override {}
  std::size_t flush_bytes() const override { return 0; }
  void Flush() override {}
  void Evict(const void* at, std::size_t bytes) override {
    const char* data = static_cast<const char*>(at);
    for (std::size_t i = 0; i < bytes; i += kLine) {
      if (flush_opt_) {
        asm volatile(".byte 0x66; clflush %0" : : "m"(data[i]));  // clflushopt: does not wait for the one before
      } else {
        asm volatile("clflush %0" : : "m"(data[i]));
      }
    }
    asm volatile("mfence" : : : "memory");
  }
  void Touch(const void* at, std::size_t bytes) override {
    const char* data = static_cast<const char*>(at);
    unsigned sum = 0;
    for (std::size_t i = 0; i < bytes; i += kLine) sum += static_cast<unsigned char>(data[i]);
    volatile unsigned sink = sum;
    (void)sink;
  }
  double Time(const std::function<void()>& call) override {
    timespec begin, end;
    ::clock_gettime(CLOCK_MONOTONIC, &begin);
    call();
    ::clock_gettime(CLOCK_MONOTONIC, &end);
    return static_cast<double>(end.tv_sec - begin.tv_sec) + 1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
  }

 private:
  static constexpr std::size_t kLine = 64;

  int threads_;
  std::size_t most_memory_;
  Awake awake_;
  std::size_t cache_;
  bool differed_ = false;
  bool flush_opt_ = false;
};

}  // namespace

std::unique_ptr<DeviceOps> MakeCpuOps(int threads, std::vector<int> processors, std::size_t most_memory) {
  return std::make_unique<CpuOps>(threads, std::move(processors), most_memory);
}

}  // namespace grove::judge
