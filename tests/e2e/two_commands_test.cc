// Two commands at once on one data folder, without `grove up`: the second works on the first one's coordinator.
#include <signal.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/scene.h"

namespace grove::e2e {
namespace {

using nlohmann::json;

TEST_CASE("A command whose coordinator ends with another command goes on by itself", "[cli]") {
  Scene scene;
  const std::string problem = TestCase("relu.py"), candidate = TestCase("relu.cpp");
  const bool interrupted = GENERATE(false, true);
  CAPTURE(interrupted);
  auto first = scene.StartGrove(Quick({"eval", problem, candidate, "--build-flag=-DFIRST"}));
  REQUIRE(Eventually([&] { return Contains(first->Err(), "started one for this command"); }));
  // Queued behind the first one's, and more of it.
  std::vector<std::string> arguments = Quick({"eval", problem, "--json"});
  for (int i = 0; i < 2; ++i)
    arguments.push_back(
        scene.Write("c" + std::to_string(i) + ".cpp", ReadText(candidate) + "// " + std::to_string(i) + "\n"));
  auto second = scene.StartGrove(arguments);
  REQUIRE(Eventually([&] { return Contains(second->Err(), "using the coordinator at") || !second->Running(); }));
  if (interrupted) first->Signal(SIGINT);
  const Ended one = first->Wait();
  CHECK((one.code == 0 || (interrupted && one.code == 130)));
  const Ended other = second->Wait();
  INFO(other.err);
  CHECK(other.code == 0);
  const json document = json::parse(other.out, nullptr, /*allow_exceptions=*/false);
  REQUIRE(document.is_object());
  CHECK(document["results"].size() == 2);
  CHECK(document["state"] == "DONE");
}

TEST_CASE("A GPU's number is said to be worth nothing where another coordinator serves", "[cli]") {
  Scene scene;
  const std::string problem = TestCase("relu.py"), candidate = TestCase("relu.cpp");
  auto first = scene.StartGrove(Quick({"eval", problem, candidate, "--build-flag=-DFIRST"}));
  REQUIRE(Eventually([&] { return Contains(first->Err(), "started one for this command"); }));
  auto second = scene.StartGrove({"eval", problem, candidate, "--device", "cuda:1"});
  CHECK(Eventually([&] { return Contains(second->Err(), "the number in --device cuda:1") || !second->Running(); }));
  second->Signal(SIGINT);
  const Ended other = second->Wait();
  INFO(other.err);
  CHECK(Contains(other.err, "the number in --device cuda:1"));
  CHECK_FALSE(Contains(first->Err(), "the number in"));
  first->Wait();
}

}  // namespace
}  // namespace grove::e2e
