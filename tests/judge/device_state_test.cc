// What the judge writes of a GPU's state, as the services read it: the same names and types.
#include <google/protobuf/util/json_util.h>

#include <catch2/catch.hpp>
#include <string>

#include "grove/v1/types.pb.h"
#include "worker/judge/gpu_health.h"

namespace grove::judge {
namespace {

using std::chrono::milliseconds;

GpuWatch::Clock::time_point At(int milliseconds_since) {
  return GpuWatch::Clock::time_point(milliseconds(milliseconds_since));
}

TEST_CASE("A GPU's state, of all pairs and of one, is read as it was written", "[gpu_health]") {
  constexpr unsigned long long kPowerCap = 0x4;
  GpuHealth health;
  REQUIRE(health.Refuse({{At(5), 1980, 2619, 61, 511.5, kPowerCap}, {At(25), 1965, 2619, 62, 512.5, 0}},
                        {At(0), At(10)}, {At(20), At(30)}) == "");
  // Unknown names are errors here.
  v1::SampleState pair;
  REQUIRE(google::protobuf::util::JsonStringToMessage(health.LastPair().dump(), &pair).ok());
  CHECK(pair.reference_sm_mhz() == 1980);
  CHECK(pair.candidate_sm_mhz() == 1965);
  CHECK(pair.memory_mhz() == 2619);
  CHECK(pair.temperature_celsius() == 62);
  CHECK(pair.power_watts() == 512);
  REQUIRE(pair.throttle_reasons_size() == 1);
  CHECK(pair.throttle_reasons(0) == "sw_power_cap");
  CHECK(pair.readings() == 2);
  v1::DeviceState all;
  REQUIRE(google::protobuf::util::JsonStringToMessage(health.State("it ended").dump(), &all).ok());
  CHECK(all.sm_clock_mhz_low() == 1965);
  CHECK(all.readings() == 2);
  CHECK(all.throttle_reasons_size() == 1);
}

}  // namespace
}  // namespace grove::judge
