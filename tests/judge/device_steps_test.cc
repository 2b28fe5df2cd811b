// The judge's half of steps on a GPU, on memory of the host.
#include "worker/judge/device_steps.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <vector>

#include "tests/judge/fake_device.h"

namespace grove::judge {
namespace {

class Watched : public FakeDevice {
 public:
  std::function<void()> before_copy = [] {}, on_flush = [] {};
  std::size_t copies = 0, small = 0, flushes = 0, since_flush = 0;
  void CopyBeside(char* to, const char* from, const Rows& rows) override {
    CHECK(rows.width * rows.count <= DeviceOps::kMostBeside);
    CHECK(rows.width <= rows.pitch);
    before_copy();
    ++copies;
    ++since_flush;
    if ((rows.count == 1 || rows.width == rows.pitch) && rows.width * rows.count < kLeastPlain) ++small;
    FakeDevice::CopyBeside(to, from, rows);
  }
  void FlushBeside() override {
    on_flush();
    ++flushes;
    since_flush = 0;
  }
};

std::vector<char> SomeValues(std::size_t bytes) {
  std::vector<char> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<char>((i * 2654435761U >> 24) | 1);
  return values;
}

TEST_CASE("All of a step's inputs are written, whatever their size, and nothing beside them") {
  Random random(1);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{512}, std::size_t{2047}, std::size_t{2048}, std::size_t{65536},
        std::size_t{65537}, std::size_t{68607}, std::size_t{68608}, std::size_t{68672}, std::size_t{68673},
        (std::size_t{3} << 20) + 5, (std::size_t{70} << 20) + 3}) {
    CAPTURE(bytes);
    const std::vector<char> values = SomeValues(bytes);
    for (int attempt = 0; attempt < (bytes < 100000 ? 200 : 3); ++attempt) {
      Watched device;
      constexpr std::size_t kBeside = 256;
      std::vector<char> inputs(bytes + 2 * kBeside, '\0');
      DeviceSteps steps(device, random, {{inputs.data() + kBeside, values.data(), bytes, {}}});
      steps.Hand(0, /*cold=*/attempt % 2 == 1);
      REQUIRE(device.flushes == static_cast<std::size_t>(attempt % 2));
      REQUIRE(std::equal(values.begin(), values.end(), inputs.begin() + kBeside));
      REQUIRE(std::count(inputs.begin(), inputs.end(), '\0') == 2 * kBeside);
    }
  }
}

// Inputs with the guard behind them are multiples of 256 bytes.
TEST_CASE("No copy to a step's inputs is so small that it would be somebody's turn") {
  Random random(5);
  const std::vector<char> values = SomeValues(std::size_t{1} << 20);
  std::vector<char> inputs(values.size());
  for (std::size_t bytes = 512; bytes <= values.size(); bytes += bytes < 200000 ? 256 : 50176) {
    for (const bool cold : {false, true}) {
      CAPTURE(bytes, cold);
      Watched device;
      DeviceSteps steps(device, random, {{inputs.data(), values.data(), bytes, {}}});
      steps.Hand(0, cold);
      REQUIRE(device.copies > 0);
      REQUIRE(device.small == 0);
    }
  }
}

// Whoever watches them arrive cannot be done with any stretch of them before the end, nor with the beginning of every
// row, however long rows are.
TEST_CASE("Before the last copy some of a step's inputs are missing everywhere, and at the beginning of some row") {
  Random random(2);
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{4} << 20, std::size_t{32} << 20}) {
    CAPTURE(bytes);
    const std::vector<char> values = SomeValues(bytes);
    for (int attempt = 0; attempt < 3; ++attempt) {
      Watched device;
      std::vector<char> inputs(bytes, '\0');
      std::vector<std::size_t> missing;  // before the last copy
      device.before_copy = [&] {
        missing.clear();
        for (std::size_t i = 0; i < bytes && missing.size() < bytes / 32; ++i) {
          if (inputs[i] == '\0') missing.push_back(i);
        }
      };
      DeviceSteps steps(device, random, {{inputs.data(), values.data(), bytes, {}}});
      steps.Hand(0);
      REQUIRE(device.copies > 1);
      REQUIRE_FALSE(missing.empty());
      CHECK(missing.size() <= 1024 * 64);
      // From one to the next, and to both ends.
      std::size_t longest = std::max(missing.front(), bytes - missing.back());
      for (std::size_t i = 1; i < missing.size(); ++i) longest = std::max(longest, missing[i] - missing[i - 1]);
      CHECK(longest <= 2 * std::max<std::size_t>(4288, bytes / 1024 + 256) + DeviceOps::kLeastPlain);
      for (const std::size_t row : {256, 1000, 1024, 4096, 16384, 40000}) {
        CHECK(std::any_of(missing.begin(), missing.end(), [row](std::size_t at) { return at % row < row / 8; }));
      }
    }
  }
}

// What is written after the flush is in a cache when the step begins: little of it, and in one copy, as long as it
// takes to write it; what is there before can be worked on meanwhile.
TEST_CASE("Where caches are to be cold most of a step's inputs come before the flush, some everywhere behind it") {
  Random random(6);
  for (const std::size_t bytes : {std::size_t{512}, std::size_t{2048}, std::size_t{12800}, std::size_t{13056},
                                  std::size_t{32768}, std::size_t{1} << 20}) {
    CAPTURE(bytes);
    const std::vector<char> values = SomeValues(bytes);
    for (int attempt = 0; attempt < 20; ++attempt) {
      Watched device;
      std::vector<char> inputs(bytes, '\0');
      std::vector<std::size_t> missing;
      device.on_flush = [&] {
        for (std::size_t i = 0; i < bytes; ++i) {
          if (inputs[i] == '\0') missing.push_back(i);
        }
      };
      DeviceSteps steps(device, random, {{inputs.data(), values.data(), bytes, {}}});
      steps.Hand(0, /*cold=*/true);
      REQUIRE(device.flushes == 1);
      REQUIRE(device.since_flush == 1);
      REQUIRE_FALSE(missing.empty());
      CHECK(missing.size() <= (bytes < std::size_t{3} * 4288 ? bytes / 2 : bytes / 60));
      std::size_t longest = std::max(missing.front(), bytes - missing.back());
      for (std::size_t i = 1; i < missing.size(); ++i) longest = std::max(longest, missing[i] - missing[i - 1]);
      CHECK(longest <= (bytes < std::size_t{3} * 4288 ? 128 : 2 * 4288 + DeviceOps::kLeastPlain));
    }
  }
}

// Outputs of all sizes, one beside which the others are nothing, and one that holds nearly always the same.
TEST_CASE("Any output that is written after its step was done is found, and one that was there is not") {
  Random random(3);
  const std::vector<std::size_t> sizes{7, 0, 1, std::size_t{4} << 20, 4096};
  std::vector<std::vector<char>> outputs;
  DeviceSteps::Places places{nullptr, nullptr, 0, {}};
  for (const std::size_t bytes : sizes) {
    outputs.emplace_back(bytes, '?');
    places.outputs.emplace_back(outputs.back().data(), bytes);
  }
  FakeDevice device;
  const auto now = [&](const DeviceSteps::Output& output) { return outputs[output.index].data(); };
  const auto write = [&](char value) {
    for (auto& output : outputs) std::fill(output.begin(), output.end(), value);
  };
  DeviceSteps steps(device, random, std::vector<DeviceSteps::Places>(3, places));
  for (const std::size_t i : {0, 1}) {
    steps.Hand(i);
    write('y');
    steps.Look(i);
  }
  steps.Hand(2);  // and not given: there was no time
  CHECK(steps.Differing(now).empty());
  steps.Look(2);
  outputs[4][4095] = 'z';
  std::vector<DeviceSteps::Output> late = steps.Differing(now);
  CHECK(late.size() == 3);
  CHECK(std::all_of(late.begin(), late.end(), [](const auto& output) { return output.index == 4; }));
  write('z');
  std::set<std::pair<std::size_t, std::size_t>> all;
  for (const auto& [step, index] : steps.Differing(now)) all.emplace(step, index);
  CHECK(all.size() == 3 * 4);
}

TEST_CASE("Of a hundred outputs some are looked at, and of none none") {
  Random random(4);
  FakeDevice device;
  std::vector<char> output(100, '?');
  DeviceSteps::Places places{nullptr, nullptr, 0, {}};
  for (char& one : output) places.outputs.emplace_back(&one, 1);
  DeviceSteps steps(device, random, {places, {nullptr, nullptr, 0, {}}});
  for (const std::size_t i : {0, 1}) {
    steps.Hand(i);
    steps.Look(i);
  }
  std::fill(output.begin(), output.end(), 'y');
  const auto late = steps.Differing([&](const DeviceSteps::Output& one) { return &output[one.index]; });
  CHECK(late.size() == 64);
}

TEST_CASE("A look that takes far longer than in practice belongs to its step") {
  LookTimes looks;
  for (int i = 1; i <= 10; ++i) CHECK(looks.Late(i * 1e-6) == 0);
  looks.Practised();
  CHECK(looks.Late(10e-6) == 0);
  CHECK(looks.Late(17e-6) == 0);
  CHECK(looks.Late(21e-6) == 21e-6);
  CHECK(looks.Late(1) == 1);
  CHECK(looks.Late(1) == 1);
  looks.Practised();  // late ones were no practice
  CHECK(looks.Late(21e-6) == 21e-6);
}

}  // namespace
}  // namespace grove::judge
