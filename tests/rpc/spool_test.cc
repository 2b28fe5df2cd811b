#include "worker/rpc/spool.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "tests/support/temp_folder.h"
#include "worker/rpc/sendable.h"
#include "worker/rpc/state_folder.h"

namespace grove::worker {
namespace {

v1::WorkResult ResultOf(const std::string& work, int attempt, const std::string& reason = "ok") {
  v1::WorkResult result;
  *result.mutable_lease() = LeaseOf({work, attempt});
  result.mutable_evaluation()->set_verdict(v1::VERDICT_CORRECT);
  result.mutable_evaluation()->set_reason(reason);
  return result;
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().string());
  return names;
}

TEST_CASE("A spooled result is there after a restart and gone after its acknowledgement", "[spool]") {
  testing::TempFolder folder;
  {
    auto spool = Spool::Open(folder / "spool");
    REQUIRE(spool.ok());
    REQUIRE(spool->Put(ResultOf("j-a/k1", 1, "first")).ok());
    REQUIRE(spool->Put(ResultOf("j-a/k1", 2, "second")).ok());
    REQUIRE(spool->Put(ResultOf("../../etc/passwd", 1)).ok());
  }
  auto spool = Spool::Open(folder / "spool");
  REQUIRE(spool.ok());
  CHECK(spool->Leases() == std::vector<LeaseKey>{{"../../etc/passwd", 1}, {"j-a/k1", 1}, {"j-a/k1", 2}});
  CHECK(spool->Get({"j-a/k1", 2})->evaluation().reason() == "second");
  CHECK(spool->Remove({"j-a/k1", 1}).ok());
  CHECK(spool->Remove({"j-a/k1", 1}).ok());
  CHECK(absl::IsNotFound(spool->Get({"j-a/k1", 1}).status()));
  CHECK(FilesIn(folder / "spool").size() == 2);
  auto again = Spool::Open(folder / "spool");
  CHECK(again->size() == 2);
}

TEST_CASE("A spool equals a map under random puts, removals and restarts", "[spool]") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  testing::TempFolder folder;
  std::map<LeaseKey, std::string> model;
  auto spool = Spool::Open(folder / "spool");
  for (int step = 0; step < 120; ++step) {
    const LeaseKey key{absl::StrCat("j-x/k", random() % 5), static_cast<int>(random() % 3 + 1)};
    switch (random() % 5) {
      case 0:
      case 1:
      case 2: {
        const std::string reason(random() % 100, 'r');
        REQUIRE(spool->Put(ResultOf(key.first, key.second, reason)).ok());
        model[key] = reason;
        break;
      }
      case 3:
        REQUIRE(spool->Remove(key).ok());
        model.erase(key);
        break;
      default:
        spool = Spool::Open(folder / "spool");
        REQUIRE(spool.ok());
    }
    REQUIRE(spool->size() == model.size());
  }
  for (const auto& [key, reason] : model) CHECK(spool->Get(key)->evaluation().reason() == reason);
}

TEST_CASE("A damaged or cut file is put aside and harms no other", "[spool]") {
  testing::TempFolder folder;
  auto spool = Spool::Open(folder / "spool");
  REQUIRE(spool->Put(ResultOf("j-a/k1", 1)).ok());
  const std::string file = FilesIn(folder / "spool").at(0);
  const std::string content = *ReadFile(file, 1 << 20);
  std::string damaged = content;
  const std::string how = GENERATE("flip", "cut", "empty", "text");
  CAPTURE(how);
  if (how == "flip") damaged.back() = static_cast<char>(damaged.back() ^ 1);
  if (how == "cut") damaged.resize(damaged.size() / 2);
  if (how == "empty") damaged.clear();
  if (how == "text") damaged = "hello";
  REQUIRE(WriteFileAtomically(file, damaged).ok());
  CHECK(absl::IsDataLoss(spool->Get({"j-a/k1", 1}).status()));
  CHECK(spool->size() == 0);
  CHECK(spool->bytes() == 0);
  REQUIRE(spool->Put(ResultOf("j-a/k2", 1)).ok());
  auto again = Spool::Open(folder / "spool");
  REQUIRE(again.ok());
  CHECK(again->Leases() == std::vector<LeaseKey>{{"j-a/k2", 1}});
}

TEST_CASE("Leftovers of an interrupted write are cleared at the next start", "[spool]") {
  testing::TempFolder folder;
  REQUIRE(MakeDirs(folder / "spool").ok());
  REQUIRE(WriteFileAtomically(folder / "spool/abc.result.tmp.1.2", "half").ok());
  auto spool = Spool::Open(folder / "spool");
  REQUIRE(spool.ok());
  CHECK(spool->size() == 0);
  CHECK(FilesIn(folder / "spool").empty());
}

TEST_CASE("A full spool says so and takes results again after acknowledgements", "[spool]") {
  testing::TempFolder folder;
  Spool::Options few;
  few.max_files = 2;
  auto spool = Spool::Open(folder / "spool", few);
  REQUIRE(spool->Put(ResultOf("j-a/k1", 1)).ok());
  REQUIRE(spool->Put(ResultOf("j-a/k2", 1)).ok());
  CHECK(absl::IsResourceExhausted(spool->Put(ResultOf("j-a/k3", 1))));
  CHECK(spool->Put(ResultOf("j-a/k2", 1, "replaced")).ok());
  REQUIRE(spool->Remove({"j-a/k1", 1}).ok());
  CHECK(spool->Put(ResultOf("j-a/k3", 1)).ok());
  Spool::Options small;
  small.max_bytes = 200;
  auto narrow = Spool::Open(folder / "narrow", small);
  CHECK(absl::IsResourceExhausted(narrow->Put(ResultOf("j-a/k1", 1, std::string(500, 'x')))));
  CHECK(narrow->Put(ResultOf("j-a/k1", 1)).ok());
}

TEST_CASE("Ill-formed UTF-8 is repaired in every text of a result, and well-formed text is left alone", "[spool]") {
  v1::WorkResult result = ResultOf("j-a/k1", 1, "caf\xC3\xA9 \xFF end");
  result.mutable_evaluation()->mutable_build()->set_log(
      "a\xC0\x80"
      "b\xED\xA0\x80"
      "c\xF5"
      "d\xE4\xB8\xAD");
  result.mutable_evaluation()->mutable_correctness()->add_also_passes("ok\x80");
  result.mutable_evaluation()->mutable_correctness()->add_outputs()->set_path("[0]\xE2\x82");
  MakeSendable(result);
  v1::WorkResult parsed;
  REQUIRE(parsed.ParseFromString(result.SerializeAsString()));
  CHECK(parsed.evaluation().reason() == "caf\xC3\xA9 \xEF\xBF\xBD end");
  CHECK(parsed.evaluation().correctness().also_passes(0) == "ok\xEF\xBF\xBD");
  CHECK(absl::EndsWith(parsed.evaluation().build().log(), "d\xE4\xB8\xAD"));
}

TEST_CASE("Random bytes in a result always end as a message that parses", "[spool]") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    std::string noise(random() % 64, ' ');
    for (char& c : noise) c = static_cast<char>(random() % 4 == 0 ? random() : 0xE0 + random() % 32);
    v1::WorkResult result = ResultOf("j-a/k1", 1, noise);
    MakeSendable(result);
    v1::WorkResult parsed;
    REQUIRE(parsed.ParseFromString(result.SerializeAsString()));
  }
}

TEST_CASE("A result too large to send becomes a failure that says so", "[spool]") {
  v1::WorkResult result = ResultOf("j-a/k1", 1);
  result.mutable_evaluation()->mutable_build()->set_log(std::string(kMaxResultBytes + 1, 'x'));
  MakeSendable(result);
  CHECK(absl::StrContains(result.infrastructure_failure(), "bytes"));
  CHECK(result.lease().work() == "j-a/k1");
  v1::WorkResult empty;
  *empty.mutable_lease() = LeaseOf({"j-a/k1", 1});
  MakeSendable(empty);
  CHECK_FALSE(empty.infrastructure_failure().empty());
}

TEST_CASE("A worker keeps its name over restarts, and its folder to itself", "[spool]") {
  testing::TempFolder folder;
  std::string id;
  {
    auto state = OpenStateFolder(folder / "state");
    REQUIRE(state.ok());
    id = state->worker_id;
    CHECK(absl::StartsWith(id, "w-"));
    auto second = OpenStateFolder(folder / "state");
    CHECK(absl::IsFailedPrecondition(second.status()));
    CHECK(absl::StrContains(second.status().message(), "--state-dir"));
  }
  auto again = OpenStateFolder(folder / "state");
  REQUIRE(again.ok());
  CHECK(again->worker_id == id);
  CHECK(OpenStateFolder(folder / "other")->worker_id != id);
}

TEST_CASE("A worker id that was damaged is made anew, and a file in the way is named", "[spool]") {
  testing::TempFolder folder;
  REQUIRE(MakeDirs(folder / "state").ok());
  REQUIRE(WriteFileAtomically(folder / "state/worker-id", "w-../../x\n").ok());
  auto state = OpenStateFolder(folder / "state");
  REQUIRE(state.ok());
  CHECK_FALSE(absl::StrContains(state->worker_id, "."));
  REQUIRE(WriteFileAtomically(folder / "file", "x").ok());
  auto blocked = OpenStateFolder(folder / "file");
  CHECK_FALSE(blocked.ok());
  CHECK(absl::StrContains(blocked.status().message(), folder / "file"));
}

}  // namespace
}  // namespace grove::worker
