// The GPU's readings with an NVML that answers, that fails, that hangs from the start, and that begins to hang.
#include "worker/judge/gpu_watch.h"

#include <catch2/catch.hpp>
#include <thread>

#include "tests/device/fake_nvml.h"

namespace grove::judge {
namespace {

using std::chrono::milliseconds;
constexpr unsigned long long kPowerCap = 0x4, kHwSlowdown = 0x8, kThermal = 0x40;

// Until `done`, or a time that no test takes.
template <typename Done>
bool Await(const Done& done) {
  const auto deadline = GpuWatch::Clock::now() + std::chrono::seconds(60);
  while (!done()) {
    if (GpuWatch::Clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

bool Quick(GpuWatch::Clock::time_point begin) { return GpuWatch::Clock::now() - begin < std::chrono::seconds(20); }

TEST_CASE("Readings are what NVML says, and each comes once", "[gpu_watch]") {
  testing::FakeNvml fake;
  fake.Set("sm", 1980);
  fake.Set("memory", 2619);
  fake.Set("temperature", 41);
  fake.Set("power", 612500);
  fake.Set("reasons", kPowerCap | kHwSlowdown);
  const auto begin = GpuWatch::Clock::now();
  GpuWatch watch("GPU-fake", milliseconds(1));
  std::vector<GpuWatch::Reading> readings;
  REQUIRE(Await([&] {
    for (const GpuWatch::Reading& reading : watch.Take()) readings.push_back(reading);
    return readings.size() >= 3;
  }));
  CHECK(watch.Unavailable() == "");
  for (const GpuWatch::Reading& reading : readings) {
    CHECK(reading.sm_mhz == 1980);
    CHECK(reading.memory_mhz == 2619);
    CHECK(reading.celsius == 41);
    CHECK(reading.watts == Approx(612.5));
    CHECK(GpuWatch::Slowed(reading.reasons));
    CHECK(GpuWatch::Names(reading.reasons) == std::vector<std::string>{"sw_power_cap", "hw_slowdown"});
  }
  CHECK(readings[0].at >= begin);
  CHECK(readings[1].at > readings[0].at);
  CHECK(readings[2].at > readings[1].at);
}

TEST_CASE("Slowdowns of the hardware are no doing of a kernel, a power cap is", "[gpu_watch]") {
  CHECK_FALSE(GpuWatch::Slowed(0));
  CHECK_FALSE(GpuWatch::Slowed(kPowerCap | 0x1 | 0x2 | 0x10 | 0x100));
  for (unsigned long long reason : {kHwSlowdown, 0x20ull, kThermal, 0x80ull}) CHECK(GpuWatch::Slowed(reason | 0x1));
  CHECK(GpuWatch::Names(0x1).empty());
}

TEST_CASE("An NVML that hangs holds nobody up and is told, in every call", "[gpu_watch]") {
  const char* call = GENERATE("init", "handle", "sm", "reasons");
  CAPTURE(call);
  testing::FakeNvml fake;
  fake.Hang(call);
  const auto begin = GpuWatch::Clock::now();
  {
    GpuWatch watch("GPU-fake", milliseconds(1));
    CHECK(watch.Take().empty());
    CHECK(Await([&] { return watch.Unavailable() == "NVML does not answer"; }));
    CHECK(watch.Take().empty());
  }
  CHECK(Quick(begin));
}

TEST_CASE("An NVML that begins to hang is told beside the readings that it gave", "[gpu_watch]") {
  testing::FakeNvml fake;
  fake.Set("sm", 1980);
  const auto begin = GpuWatch::Clock::now();
  {
    GpuWatch watch("GPU-fake", milliseconds(1));
    REQUIRE(Await([&] { return !watch.Take().empty(); }));
    CHECK(watch.Unavailable() == "");
    fake.Hang("power");
    CHECK(Await([&] { return watch.Unavailable() == "NVML does not answer"; }));
    watch.Take();
    CHECK(watch.Take().empty());
    fake.Hang("");
    CHECK(Await([&] { return !watch.Take().empty(); }));
    CHECK(watch.Unavailable() == "");
    fake.Hang("power");
  }
  CHECK(Quick(begin));
}

TEST_CASE("A GPU that is lost gives no more readings, and none of a clock that stands still", "[gpu_watch]") {
  testing::FakeNvml fake;
  fake.Set("sm", 1980);
  GpuWatch watch("GPU-fake", milliseconds(1));
  REQUIRE(Await([&] { return !watch.Take().empty(); }));
  fake.Lost();
  REQUIRE(Await([&] { return !watch.Unavailable().empty(); }));
  CHECK_THAT(watch.Unavailable(), Catch::Contains("error 15"));
  for (const GpuWatch::Reading& reading : watch.Take()) CHECK(reading.sm_mhz == 1980);
}

TEST_CASE("What NVML does not know is said", "[gpu_watch]") {
  testing::FakeNvml fake;
  GpuWatch watch("GPU-other", milliseconds(1));
  CHECK(Await([&] { return watch.Unavailable() == "NVML does not know GPU-other (error 6)"; }));
  setenv("GROVE_NVML_LIBRARY", "/nonexistent/libnvidia-ml.so.1", 1);
  GpuWatch none("GPU-fake", milliseconds(1));
  CHECK(Await([&] { return none.Unavailable() != ""; }));
  CHECK_THAT(none.Unavailable(), Catch::Contains("cannot be loaded"));
}

}  // namespace
}  // namespace grove::judge
