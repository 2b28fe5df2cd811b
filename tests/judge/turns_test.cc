#include "worker/judge/turns.h"

#include <catch2/catch.hpp>

namespace grove::judge {
namespace {

TEST_CASE("Evaluations are counted in what one takes at best, and no more are begun than fit", "[turns]") {
  Turns turns(1);
  CHECK(turns.Take(0.25));
  CHECK(turns.Take(0.5));
  CHECK_FALSE(turns.Take(0.5));  // more than is left
  CHECK(turns.Take(0.25));
  CHECK_FALSE(turns.Take(0.25));
  // What is not known to take any time is bounded by its caller and by the clock.
  CHECK(turns.Take(-1));
  CHECK(turns.Take(0));
}

TEST_CASE("Without time there is no evaluation", "[turns]") {
  Turns turns(0);
  CHECK_FALSE(turns.Take(1e-9));
}

}  // namespace
}  // namespace grove::judge
