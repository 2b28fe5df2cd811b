// Who has filled a device, by figures that no device gave.
#include "worker/judge/memory_watch.h"

#include <catch2/catch.hpp>
#include <utility>

#include "tests/judge/fake_device.h"
#include "worker/judge/problem_error.h"

namespace grove::judge {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST_CASE("A candidate holds what others hold more than before it had anything", "[memory_watch]") {
  FakeDevice device;
  device.others = 5 * kGiB;
  const MemoryWatch watch(device, 10.0 * kGiB);
  CHECK(watch.Held() == 0);
  CHECK_FALSE(watch.Filled());
  CHECK_NOTHROW(watch.Look("check"));
  device.others = 15 * kGiB - 1;
  CHECK_FALSE(watch.Filled());
  device.others = 15 * kGiB;
  CHECK(watch.Filled());
  // What the driver takes for itself is nobody's fault.
  device.others = 17 * kGiB;
  CHECK_NOTHROW(watch.Look("check"));
  device.others = 17 * kGiB + 1;
  try {
    watch.Look("check");
    FAIL("nothing was thrown");
  } catch (const Verdict& verdict) {
    CHECK(verdict.verdict == "VERDICT_LIMIT_EXCEEDED");
    CHECK(verdict.fault["limit_set"] == 10.0 * kGiB);
    CHECK(verdict.fault["limit_reached"] == 12.0 * kGiB + 1);
    CHECK(verdict.fault["stage"] == "check");
  }
}

TEST_CASE("What another has taken beside the candidate does not count against it", "[memory_watch]") {
  FakeDevice device;
  MemoryWatch watch(device, 10.0 * kGiB);
  device.others += 8 * kGiB;  // its own
  device.others += 7 * kGiB;  // another's
  watch.LeaveOut(7.0 * kGiB);
  CHECK(watch.Held() == 8.0 * kGiB);
  CHECK_FALSE(watch.Filled());
  CHECK_NOTHROW(watch.Look("time"));
  device.others += 5 * kGiB;
  CHECK(watch.Filled());
  CHECK_THROWS_AS(watch.Look("time"), Verdict);
}

TEST_CASE("Where nothing is watched, a full device is the candidate's doing, and it may hold anything",
          "[memory_watch]") {
  FakeDevice device;
  device.others = kGiB;
  const MemoryWatch watch(device, 0);
  CHECK(watch.Filled());
  device.others = 100 * kGiB;
  CHECK_NOTHROW(watch.Look("check"));
}

TEST_CASE("Want of memory is known by the words of whoever had none", "[memory_watch]") {
  CHECK(TellsOfMemory(std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB")));
  CHECK(
      TellsOfMemory(std::runtime_error("[enforce fail at alloc_cpu.cpp:66] . DefaultCPUAllocator: can't allocate "
                                       "memory: you tried to allocate 8589934592 bytes.")));
  CHECK(TellsOfMemory(std::bad_alloc()));
  CHECK(TellsOfMemory(ProblemError("p.py: forward failed", "MemoryError: Unable to allocate 8.00 GiB")));
  CHECK(TellsOfMemory(std::runtime_error("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate")));
  CHECK(!TellsOfMemory(ProblemError("p.py: forward failed", "an illegal memory access was encountered")));
  // The device's, wherever it stands; the host's is another matter.
  CHECK(TellsOfDeviceMemory(std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB")));
  CHECK(TellsOfDeviceMemory(ProblemError("p.py: forward failed", "in helper\nCUDA out of memory. Tried to allocate")));
  CHECK(!TellsOfDeviceMemory(std::bad_alloc()));
  CHECK(!TellsOfDeviceMemory(ProblemError("p.py: forward failed", "MemoryError: Unable to allocate 8.00 GiB")));
}

TEST_CASE("A problem that finds no memory does not fit, or others hold too much", "[memory_watch]") {
  FakeDevice device;
  // What the worker itself may have there is no reason: an eighth, and contexts.
  device.others = 13 * kGiB;
  CHECK(MemoryOfOthers(device).empty());
  device.others = 24 * kGiB;
  CHECK(MemoryOfOthers(device).empty());
  device.others = 25 * kGiB;
  CHECK(MemoryOfOthers(device) == "other processes hold 25600 MiB of the device's 81920 MiB: ");
  device.all = 8 * kGiB;
  device.others = 3 * kGiB;
  CHECK(MemoryOfOthers(device).empty());
  device.others = 3 * kGiB + 1;
  CHECK(MemoryOfOthers(device) == "other processes hold 3072 MiB of the device's 8192 MiB: ");
  device.all = 0;  // not known
  CHECK(MemoryOfOthers(device).empty());
}

}  // namespace
}  // namespace grove::judge
