#include "clients/cli/suggest.h"

#include <catch2/catch.hpp>

namespace grove::cli {
namespace {

TEST_CASE("Edit distance counts inserts, deletes, replacements and swaps", "[cli]") {
  CHECK(EditDistance("", "") == 0);
  CHECK(EditDistance("search", "search") == 0);
  CHECK(EditDistance("serch", "search") == 1);
  CHECK(EditDistance("saerch", "search") == 1);
  CHECK(EditDistance("", "abc") == 3);
  CHECK(EditDistance("kitten", "sitting") == 3);
  for (const char* a : {"up", "eval", "workers"}) {
    for (const char* b : {"tree", "bank", "x"}) CHECK(EditDistance(a, b) == EditDistance(b, a));
  }
}

TEST_CASE("The nearest name is suggested only when it is near", "[cli]") {
  const std::vector<std::string> names = {"up",    "search", "eval",   "jobs",   "job",
                                          "watch", "cancel", "resume", "workers"};
  CHECK(ClosestName("serch", names) == "search");
  CHECK(ClosestName("evla", names) == "eval");
  CHECK(ClosestName("worker", names) == "workers");
  CHECK(ClosestName("res", names) == "resume");
  CHECK(ClosestName("frobnicate", names).empty());
  CHECK(ClosestName("", names).empty());
  CHECK(ClosestName("search", {}).empty());
}

}  // namespace
}  // namespace grove::cli
