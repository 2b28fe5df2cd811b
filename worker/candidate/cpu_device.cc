#include <sys/mman.h>
#include <time.h>

#include <cerrno>
#include <cstring>

#include "worker/candidate/device.h"

namespace grove::candidate {
namespace {

std::int64_t Now() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

class CpuDevice : public Device {
 public:
  void* Map(int fd, std::size_t bytes, std::string* error) override {
    // Faulted in here, so that no timed call pays for the page tables of memory that it touches first.
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (at == MAP_FAILED) {
      *error = std::string("mmap: ") + std::strerror(errno);
      return nullptr;
    }
    return at;
  }
  DLDevice Where() const override { return {1, 0}; }
  void* Stream() const override { return nullptr; }

  std::string Prepare(std::size_t count) override {
    begin_.assign(count, 0);
    end_.assign(count, 0);
    return "";
  }
  std::string Begin(std::size_t index) override {
    begin_[index] = Now();
    return "";
  }
  std::string End(std::size_t index) override {
    end_[index] = Now();
    return "";
  }
  std::string Finish(std::vector<std::int64_t>* nanoseconds) override {
    nanoseconds->resize(begin_.size());
    for (std::size_t i = 0; i < begin_.size(); ++i) (*nanoseconds)[i] = end_[i] - begin_[i];
    return "";
  }
  std::string SelfTest() override {
    volatile float sum = 0;
    for (int i = 1; i <= 1000; ++i) sum = sum + static_cast<float>(i);
    return sum == 500500.0f ? "" : "the processor added 1 to 1000 and got something else than 500500";
  }
  std::string Name() const override { return "cpu"; }

 private:
  std::vector<std::int64_t> begin_, end_;
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace grove::candidate
