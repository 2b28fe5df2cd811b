#include "worker/judge/returned_memory.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/judge/fake_device.h"
#include "worker/judge/verdict.h"

namespace grove::judge {
namespace {

class Block : public MemoryBlock {
 public:
  Block(std::string* memory, int* alive) : memory_(memory), alive_(alive) { ++*alive_; }
  ~Block() override { --*alive_; }
  char* data() override { return memory_->data(); }
  std::size_t bytes() const override { return memory_->size(); }

 private:
  std::string* memory_;
  int* alive_;
};

// Descriptors are numbers that nobody opened: which of them are memory, a test says.
class Pieces {
 public:
  Pieces() {
    device_.import = [this](int fd, std::size_t bytes) -> std::unique_ptr<MemoryBlock> {
      const auto found = memory.find(fd);
      if (found == memory.end() || found->second.size() != bytes) return nullptr;
      return std::make_unique<Block>(&found->second, &alive);
    };
  }

  std::map<int, std::string> memory;
  int alive = 0;
  FakeDevice& device() { return device_; }

  // (number, bytes, descriptor); the descriptors are not closed.
  static void Tell(DeviceResults* results, const std::vector<std::tuple<std::uint64_t, std::size_t, int>>& pieces,
                   const std::vector<std::uint64_t>& freed = {}) {
    std::vector<Piece> told;
    for (const auto& [number, bytes, fd] : pieces) told.push_back({number, bytes, wire::UniqueFd(fd)});
    results->Hear(std::move(told), freed);
  }

 private:
  FakeDevice device_;
};

std::uint64_t At(std::uint64_t number, std::uint64_t offset) { return number << 40 | offset; }

// What no process has open.
constexpr int kFirst = 1000001, kSecond = 1000002, kNone = 1000003;

TEST_CASE("Results are read where their piece has them, and nowhere else", "[returned_memory]") {
  Pieces pieces;
  pieces.memory = {{kFirst, "0123456789abcdef"}, {kSecond, "ABCDEFGH"}};
  DeviceResults results(pieces.device(), 1 << 20);
  Pieces::Tell(&results, {{1, 16, kFirst}, {7, 8, kSecond}, {9, 8, kNone}, {10, 9, kSecond}});
  CHECK(pieces.alive == 2);

  char got[5] = "....";
  CHECK(results.Read(At(1, 10), got, 4));
  CHECK(std::string(got) == "abcd");
  CHECK(results.Read(At(7, 4), got, 4));
  CHECK(std::string(got) == "EFGH");
  for (const std::uint64_t place : {At(7, 5), At(7, 8), At(7, 9), At(7, (std::uint64_t{1} << 40) - 1), At(9, 0),
                                    At(10, 0), At(8, 0), At(0, 0), ~std::uint64_t{0}}) {
    CAPTURE(place);
    CHECK_FALSE(results.Read(place, got, 4));
  }
  CHECK(std::string(got) == "EFGH");

  results.Write(At(7, 6), reinterpret_cast<const unsigned char*>("xy"), 2);
  results.Write(At(7, 7), reinterpret_cast<const unsigned char*>("zz"), 2);  // half of it beyond the end
  CHECK(pieces.memory[kSecond] == "ABCDEFxy");
}

TEST_CASE("A number is one piece until it is freed", "[returned_memory]") {
  Pieces pieces;
  pieces.memory = {{kFirst, "first..."}, {kSecond, "second.."}};
  DeviceResults results(pieces.device(), 1 << 20);
  Pieces::Tell(&results, {{3, 8, kFirst}});
  Pieces::Tell(&results, {{3, 8, kSecond}}, {4, 0});
  char got[6] = ".....";
  CHECK(results.Read(At(3, 0), got, 5));
  CHECK(std::string(got) == "first");
  Pieces::Tell(&results, {{3, 8, kSecond}}, {3});
  CHECK(results.Read(At(3, 0), got, 5));
  CHECK(std::string(got) == "secon");
  Pieces::Tell(&results, {}, {3, 3});
  CHECK(pieces.alive == 0);
  CHECK_FALSE(results.Read(At(3, 0), got, 5));
}

TEST_CASE("Two numbers of one allocation are found out, and nothing of what is in it is lost", "[returned_memory]") {
  Pieces pieces;
  pieces.memory = {{kFirst, "0123456789abcdef"}, {kSecond, "ABCDEFGHIJKLMNOP"}};
  const auto memory = pieces.memory;
  DeviceResults results(pieces.device(), 1 << 20);
  Pieces::Tell(&results, {{1, 16, kFirst}, {2, 16, kSecond}, {3, 16, kFirst}});
  CHECK_NOTHROW(results.RefuseAliases({At(1, 0), At(1, 8), At(2, 4), At(5, 0), 0, 1}));
  CHECK(pieces.memory == memory);
  const auto refused = [&](const std::vector<std::uint64_t>& places) {
    try {
      results.RefuseAliases(places);
    } catch (const Verdict& verdict) {
      return verdict.verdict + ": " + verdict.fault["evidence"].get<std::string>();
    }
    return std::string();
  };
  CHECK(refused({At(1, 0), At(2, 0), At(3, 8)}) ==
        "VERDICT_CHEATED: what the judge wrote to piece 3 of its memory was read in piece 1, which are two allocations "
        "as its process says");
  CHECK(pieces.memory == memory);
}

// Whatever is written there, somebody else writes at once.
class Contested : public FakeDevice {
 public:
  void Fill(void* to, const unsigned char* pattern, std::size_t element_bytes, std::size_t bytes) override {
    FakeDevice::Fill(to, pattern, element_bytes, bytes);
    std::memcpy(to, "theirs!!", 8);
  }
};

TEST_CASE("What somebody else writes to a piece is no other piece's", "[returned_memory]") {
  Contested device;
  int alive = 0;
  std::map<int, std::string> memory = {{kFirst, "0123456789abcdef"}, {kSecond, "ABCDEFGHIJKLMNOP"}};
  device.import = [&](int fd, std::size_t) { return std::make_unique<Block>(&memory.at(fd), &alive); };
  DeviceResults results(device, 1 << 20);
  Pieces::Tell(&results, {{1, 16, kFirst}, {2, 16, kSecond}});
  CHECK_NOTHROW(results.RefuseAliases({At(1, 0), At(2, 0)}));
  CHECK(memory[kFirst] == "theirs!!89abcdef");
}

TEST_CASE("Pieces are no more than the device has", "[returned_memory]") {
  Pieces pieces;
  pieces.memory = {{kFirst, std::string(100, 'a')}, {kSecond, std::string(60, 'b')}};
  {
    DeviceResults results(pieces.device(), 150);
    // The same memory under several names counts as often.
    Pieces::Tell(&results, {{1, 100, kFirst}, {2, 100, kFirst}, {3, 60, kSecond}, {0, 60, kSecond}});
    CHECK(pieces.alive == 1);
    Pieces::Tell(&results, {{2, 60, kSecond}, {std::uint64_t{1} << 24, 60, kSecond}, {4, 60, kSecond}}, {1});
    CHECK(pieces.alive == 2);
  }
  CHECK(pieces.alive == 0);
}

}  // namespace
}  // namespace grove::judge
