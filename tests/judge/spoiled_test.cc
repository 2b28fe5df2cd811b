#include "worker/judge/spoiled.h"

#include <catch2/catch.hpp>
#include <set>

namespace grove::judge {
namespace {

TEST_CASE("Of every block the first bytes and as many in a secret place are taken away", "[spoiled]") {
  for (const std::size_t step : {std::size_t{256}, std::size_t{4096}}) {
    const Spoiled spoiled{step, 0, 0x1234567890abcdef};
    std::set<std::size_t> places;
    for (std::size_t block = 0; block < 1000; ++block) {
      std::size_t left_out = 0, beyond_first = 0;
      for (std::size_t at = block * step; at < (block + 1) * step; ++at) {
        left_out += LeftOut(spoiled, at) ? 1 : 0;
        beyond_first += LeftOut(spoiled, at) && at % step >= kSpoilBytes ? 1 : 0;
      }
      CHECK(left_out == 2 * kSpoilBytes);
      CHECK(beyond_first == kSpoilBytes);
      const std::size_t chosen = SpoiledAt(spoiled.key, step, block);
      CHECK(chosen % kSpoilBytes == 0);
      CHECK(LeftOut(spoiled, block * step + chosen));
      places.insert(chosen);
    }
    // Every place is one: who keeps some words of each block, whichever these are, lacks one in the next.
    CHECK(places.size() > (step / kSpoilBytes - 1) / 2);
  }
}

TEST_CASE("A piece of what was taken away is left out where it lies, and another key leaves out another", "[spoiled]") {
  const Spoiled whole{256, 0, 77};
  Spoiled piece = whole;
  piece.phase = 512 + 64;
  for (std::size_t at = 0; at < 2000; ++at) CHECK(LeftOut(piece, at) == LeftOut(whole, piece.phase + at));
  CHECK_FALSE(LeftOut(Spoiled{}, 0));
  int same = 0;
  for (std::size_t block = 0; block < 1000; ++block) {
    same += SpoiledAt(77, 256, block) == SpoiledAt(78, 256, block) ? 1 : 0;
  }
  CHECK(same < 200);  // one in 15 by chance
}

}  // namespace
}  // namespace grove::judge
