// Which pairs count, by readings that were never taken.
#include "worker/judge/gpu_health.h"

#include <catch2/catch.hpp>

#include "worker/judge/reruns.h"

namespace grove::judge {
namespace {

using std::chrono::milliseconds;
constexpr unsigned long long kPowerCap = 0x4, kHwSlowdown = 0x8, kThermal = 0x40;

GpuWatch::Clock::time_point At(int milliseconds_since) {
  return GpuWatch::Clock::time_point(milliseconds(milliseconds_since));
}

GpuWatch::Reading Read(int at, double sm_mhz, unsigned long long reasons = 0) {
  GpuWatch::Reading reading;
  reading.at = At(at);
  reading.sm_mhz = sm_mhz;
  reading.memory_mhz = 2619;
  reading.celsius = 40 + at;
  reading.watts = 500;
  reading.reasons = reasons;
  return reading;
}

// The other side's run, then the candidate's.
const GpuHealth::Window kOther{At(0), At(10)}, kCandidate{At(20), At(30)};

std::string Refuse(GpuHealth* health, const std::vector<GpuWatch::Reading>& readings) {
  return health->Refuse(readings, kOther, kCandidate);
}

TEST_CASE("A pair counts while the clock is steady, and without any reading", "[gpu_health]") {
  GpuHealth health;
  CHECK(Refuse(&health, {}) == "");
  CHECK(Refuse(&health, {Read(5, 1980)}) == "");
  CHECK(Refuse(&health, {Read(5, 1980), Read(25, 1930)}) == "");
  // The middle of each side's: one reading may be odd.
  CHECK(Refuse(&health, {Read(2, 1980), Read(5, 1200), Read(8, 1980), Read(25, 1980)}) == "");
  // A driver that does not say the clock.
  CHECK(Refuse(&health, {Read(5, 0), Read(25, 0)}) == "");
}

TEST_CASE("A clock more than 3 % apart between the sides refuses a pair, whichever is faster", "[gpu_health]") {
  const auto [one, two] = GENERATE(table<double, double>({{1980, 1900}, {1900, 1980}, {345, 1980}}));
  CAPTURE(one, two);
  GpuHealth health;
  CHECK(Refuse(&health, {Read(5, one), Read(25, two)}) == "the GPU's clock differed between the two sides");
  // What was read outside of the runs says nothing of them.
  CHECK(Refuse(&health, {Read(-5, 300), Read(5, 1980), Read(15, 300), Read(25, 1980), Read(40, 300)}) == "");
}

TEST_CASE("A slowdown within a pair refuses it, between its runs too, and a power cap does not", "[gpu_health]") {
  GpuHealth health;
  for (int at : {0, 5, 15, 25, 30}) {
    CAPTURE(at);
    CHECK(Refuse(&health, {Read(at, 1980, kHwSlowdown | kPowerCap)}) ==
          "the GPU slowed down: sw_power_cap, hw_slowdown");
  }
  CHECK(Refuse(&health, {Read(-1, 1980, kHwSlowdown), Read(31, 1980, kHwSlowdown)}) == "");
  CHECK(Refuse(&health, {Read(5, 1980, kPowerCap), Read(25, 1980, kPowerCap)}) == "");
  // The candidate may have been first.
  CHECK(health.Refuse({Read(15, 1980, kThermal)}, kCandidate, kOther) == "the GPU slowed down: hw_thermal_slowdown");
}

TEST_CASE("All begins anew when more than half of ten pairs were refused", "[gpu_health]") {
  GpuHealth health;
  for (int i = 0; i < 5; ++i) Refuse(&health, {Read(5, 1980, kHwSlowdown)});
  CHECK_FALSE(health.MostRefused());
  for (int i = 0; i < 5; ++i) Refuse(&health, {Read(5, 1980)});
  CHECK_FALSE(health.MostRefused());
  Refuse(&health, {Read(5, 1980, kHwSlowdown)});
  CHECK(health.MostRefused());
  health.BeginAnew();
  CHECK_FALSE(health.MostRefused());
  CHECK(health.State("") == nlohmann::json{{"unavailable", "no reading fell into a timed run"}});
}

TEST_CASE("A measurement begins anew once, when most of it was refused, and not again", "[gpu_health]") {
  GpuHealth health;
  Reruns reruns;
  const auto pairs = [&health](int count, unsigned long long reasons) {
    for (int i = 0; i < count; ++i) Refuse(&health, {Read(5, 1980, reasons)});
  };
  CHECK_FALSE(reruns.Due(health));
  pairs(9, kHwSlowdown);
  CHECK_FALSE(reruns.Due(health));  // too few pairs to say
  pairs(1, kHwSlowdown);
  CHECK(reruns.Due(health));
  CHECK(reruns.count() == 1);
  health.BeginAnew();
  CHECK_FALSE(reruns.Due(health));
  pairs(20, kHwSlowdown);
  CHECK(health.MostRefused());
  CHECK_FALSE(reruns.Due(health));
  CHECK(reruns.count() == 1);
  // One that is well never does.
  health.BeginAnew();
  Reruns none;
  pairs(20, 0);
  CHECK_FALSE(none.Due(health));
  CHECK(none.count() == 0);
}

TEST_CASE("The state is that of the runs that count, and says when the readings ended", "[gpu_health]") {
  GpuHealth health;
  CHECK(health.State("NVML does not answer") == nlohmann::json{{"unavailable", "NVML does not answer"}});
  Refuse(&health, {Read(2, 1900, kPowerCap), Read(5, 1980), Read(15, 100), Read(25, 1950)});
  Refuse(&health, {Read(5, 345, kHwSlowdown), Read(25, 345)});
  nlohmann::json state = health.State("");
  CHECK(state["sm_clock_mhz_low"] == 1900);
  CHECK(state["sm_clock_mhz_median"] == 1950);
  CHECK(state["sm_clock_mhz_high"] == 1980);
  CHECK(state["memory_clock_mhz"] == 2619);
  CHECK(state["temperature_celsius_high"] == 65);
  CHECK(state["power_watts_median"] == 500);
  CHECK(state["throttle_reasons"] == nlohmann::json{"sw_power_cap"});
  CHECK(state["readings"] == 3);
  CHECK_FALSE(state.contains("unavailable"));
  state = health.State("NVML does not answer");
  CHECK(state["readings"] == 3);
  CHECK(state["unavailable"] == "the readings ended before the timing: NVML does not answer");
}

TEST_CASE("Of each pair that counts there is what was read in it, its clocks for each side", "[gpu_health]") {
  GpuHealth health;
  CHECK(health.LastPair() == nlohmann::json::object());
  REQUIRE(Refuse(&health, {Read(-1, 300), Read(2, 1900), Read(5, 1980), Read(8, 1950), Read(15, 1000, kPowerCap),
                           Read(25, 1940), Read(31, 300, kHwSlowdown)}) == "");
  const nlohmann::json first = health.LastPair();
  CHECK(first["reference_sm_mhz"] == 1950);
  CHECK(first["candidate_sm_mhz"] == 1940);
  CHECK(first["memory_mhz"] == 2619);
  CHECK(first["temperature_celsius"] == 65);
  CHECK(first["power_watts"] == 500);
  CHECK(first["throttle_reasons"] == nlohmann::json{"sw_power_cap"});
  CHECK(first["readings"] == 5);
  // One that does not count leaves nothing.
  REQUIRE(Refuse(&health, {Read(5, 1980, kThermal)}) != "");
  CHECK(health.LastPair() == first);
  // Nor does one in which nothing was read have what was read before.
  REQUIRE(Refuse(&health, {Read(-1, 300), Read(31, 300)}) == "");
  CHECK(health.LastPair()["readings"] == 0);
  CHECK(health.LastPair()["reference_sm_mhz"] == 0);
  CHECK(health.LastPair()["throttle_reasons"].empty());
  // Between its runs the pair's temperature was read, and no clock of either side.
  REQUIRE(Refuse(&health, {Read(15, 1000)}) == "");
  CHECK(health.LastPair()["readings"] == 1);
  CHECK(health.LastPair()["candidate_sm_mhz"] == 0);
  CHECK(health.LastPair()["temperature_celsius"] == 55);
  health.BeginAnew();
  CHECK(health.LastPair() == nlohmann::json::object());
}

TEST_CASE("Who is at work when timing begins does not raise what an empty kernel may take", "[gpu_health]") {
  CHECK(AllowedForNothing(20e-6) == Approx(300e-6));
  CHECK(AllowedForNothing(155e-6) == Approx(975e-6));  // as on an H200
  CHECK(AllowedForNothing(2e-3) == Approx(1e-3));
  CHECK(AllowedForNothing(1) == Approx(1e-3));
}

}  // namespace
}  // namespace grove::judge
