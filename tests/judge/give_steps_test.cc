// Calls that are given one at a time.
#include "worker/judge/give_steps.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/wire/steps.h"

namespace grove::judge {
namespace {

struct Words {
  alignas(64) std::uint64_t given = 0;
  alignas(64) std::uint64_t done = 0;
  StepWords both() { return {reinterpret_cast<char*>(&given), reinterpret_cast<char*>(&done)}; }
};

bool Never() { return false; }

TEST_CASE("Inputs lie at whole lines behind the words, and outputs behind them") {
  STATIC_REQUIRE(wire::StepsOutputs(0) == wire::kStepsInputs);
  STATIC_REQUIRE(wire::StepsOutputs(1) == wire::kStepsInputs + wire::kStepsAlignment);
  STATIC_REQUIRE(wire::StepsOutputs(256) == wire::kStepsInputs + 256);
  STATIC_REQUIRE(wire::StepsOutputs(257) == wire::kStepsInputs + 512);
}

TEST_CASE("The inputs of a step come when the outputs of the one before were taken, and no sooner") {
  const Waiting waiting = GENERATE(Waiting::kLooking, Waiting::kSleeping);
  constexpr std::size_t kSteps = 200;
  Words words;
  std::size_t input = 0, output = 0;  // one at a time: ordered by the words alone
  std::vector<std::size_t> taken;
  std::thread other([&] {
    for (std::size_t i = 1; i <= kSteps; ++i) {
      wire::AwaitStep(words.both().given, i, waiting, Never);
      output = input * input;
      wire::SetStep(words.both().done, i, waiting);
    }
  });
  const std::vector<double> seconds = GiveSteps(words.both(), kSteps, -1, waiting, 10,
                                                {.before = [&](std::size_t i) { input = i + 1; },
                                                 .after = [&](std::size_t) { taken.push_back(output); }},
                                                Never)
                                          .seconds;
  other.join();
  REQUIRE(seconds.size() == kSteps);
  REQUIRE(taken.size() == kSteps);
  for (std::size_t i = 0; i < kSteps; ++i) {
    CHECK(taken[i] == (i + 1) * (i + 1));
    CHECK(seconds[i] > 0);
  }
}

TEST_CASE("A step's time is all that passes until its outputs are there") {
  Words words;
  std::thread other([&] {
    wire::AwaitStep(words.both().given, 1, Waiting::kLooking, Never);
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(5)) ::sched_yield();
    wire::SetStep(words.both().done, 1);
  });
  const std::vector<double> seconds = GiveSteps(words.both(), 1, -1, Waiting::kLooking, 10, {}, Never).seconds;
  other.join();
  REQUIRE(seconds.size() == 1);
  CHECK(seconds[0] >= 5e-3);
}

TEST_CASE("Who speaks before all is done gets no more, and whoever waits is let go") {
  constexpr std::size_t kSteps = 5;
  Words words;
  std::atomic<bool> spoken{false};
  std::thread other([&] {
    for (std::size_t i = 1; i <= 2; ++i) {
      wire::AwaitStep(words.both().given, i, Waiting::kLooking, Never);
      wire::SetStep(words.both().done, i);
    }
    wire::AwaitStep(words.both().given, 3, Waiting::kLooking, Never);
    spoken = true;
    wire::AwaitStep(words.both().given, kSteps, Waiting::kLooking, Never);  // would be waiting still
  });
  std::size_t begun = 0, ended = 0;
  const std::vector<double> seconds =
      GiveSteps(words.both(), kSteps, -1, Waiting::kLooking, 60,
                {.before = [&](std::size_t) { ++begun; }, .after = [&](std::size_t) { ++ended; }},
                [&] { return spoken.load(); })
          .seconds;
  other.join();
  CHECK(seconds.size() == 2);
  CHECK(begun == 3);
  CHECK(ended == 2);
}

TEST_CASE("Who speaks behind the last step has done it") {
  Words words;
  wire::SetStep(words.both().done, 1);
  std::uint64_t none = 0;
  CHECK(wire::AwaitStep(words.both().done, 1, Waiting::kLooking, [] { return true; }));
  // Done while it was asked whether to give up.
  CHECK(wire::AwaitStep(reinterpret_cast<char*>(&none), 1, Waiting::kLooking, [&] {
    wire::SetStep(reinterpret_cast<char*>(&none), 1);
    return true;
  }));
}

TEST_CASE("A step that takes too long is the last") {
  Words words;
  CHECK(GiveSteps(words.both(), 3, -1, Waiting::kSleeping, 1e-3, {}, Never).seconds.empty());
  CHECK(words.given == 3);
}

// Where the judge writes inputs itself, they are there before the candidate is told, and on nobody's clock.
TEST_CASE("What is done ahead of a step and behind it is not in its time, but for what is said to be") {
  constexpr std::size_t kSteps = 3;
  Words words;
  std::thread other([&] {
    for (std::size_t i = 1; i <= kSteps; ++i) {
      wire::AwaitStep(words.both().given, i, Waiting::kSleeping, Never);
      wire::SetStep(words.both().done, i, Waiting::kSleeping);
    }
  });
  const auto take_long = [] {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(200)) ::sched_yield();
  };
  std::string order;
  const std::vector<double> seconds = GiveSteps(words.both(), kSteps, -1, Waiting::kSleeping, 60,
                                                {.ahead =
                                                     [&](std::size_t i) {
                                                       CHECK(words.given == i);
                                                       order += 'a';
                                                       take_long();
                                                     },
                                                 .before = [&](std::size_t) { order += 'b'; },
                                                 .after = [&](std::size_t) { order += 'c'; },
                                                 .behind =
                                                     [&](std::size_t i) {
                                                       order += 'd';
                                                       take_long();
                                                       return i == 1 ? 7.0 : 0.0;
                                                     }},
                                                Never)
                                          .seconds;
  other.join();
  CHECK(order == "abcdabcdabcd");
  REQUIRE(seconds.size() == kSteps);
  CHECK(*std::min_element(seconds.begin(), seconds.end()) < 0.2);
  CHECK(seconds[1] >= 7);
}

TEST_CASE("What fails for a step is heard of, and whoever waits is let go") {
  Words words;
  const StepWork fails{.ahead = [](std::size_t i) {
    if (i == 1) throw std::runtime_error("no device any more");
  }};
  wire::SetStep(words.both().done, 1);
  CHECK_THROWS_WITH(GiveSteps(words.both(), 3, -1, Waiting::kSleeping, 60, fails, Never), "no device any more");
  CHECK(words.given == 3);
}

TEST_CASE("A step of the judge's own takes some time, and not long") {
  if (!ProcessorsForSteps()) return;
  const double seconds = GiveOwnSteps(0, Waiting::kLooking).seconds;
  CHECK(seconds > 0);
  CHECK(seconds < 1);
  const double sleeping = GiveOwnSteps(0, Waiting::kSleeping).seconds;
  CHECK(sleeping > 0);
  CHECK(sleeping < 1);
}

}  // namespace
}  // namespace grove::judge
