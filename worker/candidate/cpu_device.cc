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

std::int64_t ThreadTime() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

// Numerical Recipes, "An even quicker generator": any odd factor does.
constexpr std::uint32_t kFactor = 1664525, kSummand = 1013904223;

constexpr std::size_t kPracticeFloats = 1 << 16;

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
  std::string Cover() override { return "no call is timed by itself on a CPU"; }
  std::string Practice() override {
    practice_.resize(kPracticeFloats, 1.0f);
    for (float& value : practice_) value = value * 0.5f + 0.5f;
    return "";
  }
  void EndPractice() override { practice_ = {}; }
  std::string Wait() override { return ""; }
  std::string Finish(std::vector<std::int64_t>* nanoseconds) override {
    nanoseconds->resize(begin_.size());
    for (std::size_t i = 0; i < begin_.size(); ++i) (*nanoseconds)[i] = end_[i] - begin_[i];
    return "";
  }
  std::string Profile(bool) override { return ""; }
  std::string SelfTest(double* seconds) override {
    volatile float sum = 0;
    for (int i = 1; i <= 1000; ++i) sum = sum + static_cast<float>(i);
    if (sum != 500500.0f) return "the processor added 1 to 1000 and got something else than 500500";
    // A linear congruence step by step, and the same in one step by its closed form.
    constexpr std::uint32_t kSteps = 1 << 20;
    std::uint32_t factor = 1, summand = 0;
    for (std::uint32_t i = 0; i < kSteps; ++i) {
      summand = summand * kFactor + kSummand;
      factor *= kFactor;
    }
    *seconds = 0;
    for (int round = 0; round < 3; ++round) {
      const std::int64_t begin = ThreadTime();
      volatile std::uint32_t start = 12345;
      std::uint32_t value = start;
      for (std::uint32_t i = 0; i < kSteps; ++i) value = value * kFactor + kSummand;
      volatile std::uint32_t got = value;
      const double took = 1e-9 * static_cast<double>(ThreadTime() - begin);
      if (got != 12345u * factor + summand) return "the processor computed a known sequence wrongly";
      if (round == 0 || took < *seconds) *seconds = took;
    }
    return "";
  }
  std::string Name() const override { return "cpu"; }

 private:
  std::vector<std::int64_t> begin_, end_;
  std::vector<float> practice_;
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace grove::candidate
