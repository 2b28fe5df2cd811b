#include "worker/pipeline/slot_clock.h"

#include <catch2/catch.hpp>

namespace grove::worker {
namespace {

TEST_CASE("The time of the slot is shared out among its states without rest", "[slot]") {
  const absl::Time start = absl::UnixEpoch();
  SlotClock clock(start);
  clock.Enter("awaiting_build", start + absl::Seconds(2));
  clock.Enter("checking", start + absl::Seconds(5));
  clock.Enter("timing", start + absl::Seconds(6));
  clock.Enter("no_work", start + absl::Seconds(10));
  clock.Enter("checking", start + absl::Seconds(11));
  const auto seconds = clock.Seconds(start + absl::Seconds(13));
  CHECK(seconds.at("no_work") == 3);
  CHECK(seconds.at("awaiting_build") == 3);
  CHECK(seconds.at("checking") == 3);
  CHECK(seconds.at("timing") == 4);
  CHECK(clock.state() == "checking");
  double all = 0;
  for (const auto& [state, one] : seconds) all += one;
  CHECK(all == 13);
}

TEST_CASE("A wall clock that is set back takes no time away", "[slot]") {
  const absl::Time start = absl::UnixEpoch();
  SlotClock clock(start);
  clock.Enter("checking", start + absl::Seconds(4));
  clock.Enter("timing", start + absl::Seconds(1));
  clock.Enter("no_work", start + absl::Seconds(6));
  const auto seconds = clock.Seconds(start + absl::Seconds(2));
  CHECK(seconds.at("no_work") == 4);
  CHECK(seconds.at("checking") == 0);
  CHECK(seconds.at("timing") == 2);
}

}  // namespace
}  // namespace grove::worker
