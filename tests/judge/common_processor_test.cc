#include "worker/judge/common_processor.h"

#include <sched.h>

#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace grove::judge {
namespace {

std::set<int> Mine() {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(::sched_getaffinity(0, sizeof set, &set) == 0);
  std::set<int> found;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &set)) found.insert(processor);
  }
  return found;
}

TEST_CASE("Both sides' processor is one of ours, kept free while the other side runs, and given back in the end") {
  const std::set<int> before = Mine();
  if (before.size() < 2) {
    WARN("a single processor: there is no other to wait on");
    return;
  }
  {
    Random random(7);
    CommonProcessor common(random);
    CHECK(common.possible() == (before.size() >= 4));
    std::set<int> seen;
    int moves = 0;
    const int pairs = 40 * static_cast<int>(before.size());
    for (int pair = 0; pair < pairs; ++pair) {
      const bool moved = common.Next();
      moves += moved;
      REQUIRE(before.count(common.now()) == 1);
      CHECK((moved || seen.count(common.now()) == 1));
      seen.insert(common.now());
      std::set<int> others = before;
      others.erase(common.now());
      CHECK(Mine() == others);
      {
        const CommonProcessor::There there(common);
        CHECK(Mine() == std::set<int>{common.now()});
        CHECK(::sched_getcpu() == common.now());
      }
      CHECK(Mine() == others);
    }
    CHECK(seen == before);      // 20 draws for each of them: none is left out
    CHECK(moves <= pairs / 2);  // it stays for two pairs
  }
  CHECK(Mine() == before);
}

TEST_CASE("What was never placed is left as it was") {
  const std::set<int> before = Mine();
  {
    Random random(1);
    const CommonProcessor common(random);
    CHECK(common.now() < 0);
  }
  CHECK(Mine() == before);
}

}  // namespace
}  // namespace grove::judge
