#include "common/wire/places.h"

#include <sched.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace grove::wire {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

TEST_CASE("Places are read as they were written", "[places]") {
  for (const std::vector<int>& processors : std::vector<std::vector<int>>{{}, {0}, {3, 1, 200}}) {
    CHECK(ProcessorsOf(PlacesOf(processors).c_str()) == processors);
  }
  CHECK(PlacesOf({0, 12}) == "{0},{12}");
  CHECK(ProcessorsOf(nullptr).empty());
  CHECK(ProcessorsOf("cores").empty());
}

TEST_CASE("A judge binds its threads where it has all processors", "[places]") {
  CHECK(JudgePlaces(2, {4, 5}) ==
        Variables{{"OMP_PLACES", "{4},{5}"}, {"OMP_PROC_BIND", "close"}, {kJudgePlaces, "{4},{5}"}});
  CHECK(JudgePlaces(8, {4, 5}).size() == 3);
  CHECK(JudgePlaces(1, {4, 5}).empty());
  CHECK(JudgePlaces(1, {}).empty());
}

TEST_CASE("Threads are free whatever the thread is bound to that makes them", "[places]") {
  const std::vector<int> all = Processors();
  REQUIRE(!all.empty());
  std::vector<int> bound, freed;
  bool said = false;
  // In a thread of its own, which ends with what it is bound to.
  std::thread([&] {
    said = FreeThreads(all);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(all[0], &one);
    sched_setaffinity(0, sizeof one, &one);
    bound = Processors();
    std::thread([&] { freed = Processors(); }).join();
  }).join();
  CHECK(said);
  CHECK(bound == std::vector<int>{all[0]});
  CHECK(freed == all);
}

}  // namespace
}  // namespace grove::wire
