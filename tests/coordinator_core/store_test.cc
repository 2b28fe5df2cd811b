#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <random>

#include "common/base/hash.h"
#include "coordinator/store/sqlite_store.h"
#include "tests/support/temp_dir.h"

namespace grove::store {
namespace {

using grove::testing::TempDir;

EventRow Event(uint64_t seq, const std::string& job, const std::string& payload) { return {seq, job, 10, 0, payload}; }

std::string Noise(size_t size, int seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::vector<std::string> Payloads(Store& store, const std::string& job, uint64_t after = 0, int64_t max = 0) {
  std::vector<std::string> found;
  REQUIRE(store
              .ReadEvents(job, after, max,
                          [&](uint64_t, absl::string_view payload) {
                            found.emplace_back(payload);
                            return true;
                          })
              .ok());
  return found;
}

TEST_CASE("What was committed is there after the store was opened again", "[store]") {
  TempDir dir;
  const std::string small = "int x;";
  const std::string large = Noise(200'000, 1);
  {
    auto store = OpenSqliteStore(dir.path());
    REQUIRE(store.ok());
    WriteBatch batch;
    batch.events = {Event(1, "j-a", "one"), Event(2, "j-b", "two"), Event(3, "j-a", "three")};
    batch.jobs = {{"j-a", "key-a", 5, false, "summary"}, {"j-b", "key-b", 6, false, ""}};
    batch.blobs = {{Sha256Hex(small), small}, {Sha256Hex(large), large}};
    batch.bank_put = {{"b-1", "softmax", 1, "entry", Sha256Hex(small)}};
    REQUIRE((*store)->Commit(batch).ok());
    WriteBatch second;
    second.jobs = {{"j-b", "key-b", 6, true, "ended"}};
    REQUIRE((*store)->Commit(second).ok());
  }
  auto store = OpenSqliteStore(dir.path());
  REQUIRE(store.ok());
  CHECK(*(*store)->LastSeq() == 3);
  CHECK(Payloads(**store, "j-a") == std::vector<std::string>{"one", "three"});
  CHECK(Payloads(**store, "j-a", 1) == std::vector<std::string>{"three"});
  CHECK(Payloads(**store, "j-a", 0, 1) == std::vector<std::string>{"one"});
  CHECK(*(*store)->ReadEvent(2) == "two");
  CHECK(absl::IsNotFound((*store)->ReadEvent(9).status()));
  CHECK(*(*store)->ReadBlob(Sha256Hex(small)) == small);
  CHECK(*(*store)->ReadBlob(Sha256Hex(large)) == large);
  CHECK(absl::IsNotFound((*store)->ReadBlob(Sha256Hex("nothing")).status()));
  CHECK(absl::IsInvalidArgument((*store)->ReadBlob("../../etc/passwd").status()));
  auto jobs = (*store)->ReadJobs();
  REQUIRE(jobs->size() == 2);
  CHECK((*jobs)[0].id == "j-a");
  CHECK((*jobs)[1].ended);
  CHECK((*jobs)[1].summary == "ended");
  CHECK((*store)->ReadBank()->size() == 1);
  CHECK((*store)->SizeBytes() > 200'000);
}

TEST_CASE("Committing the same batch again changes nothing, another event under a used number is refused", "[store]") {
  TempDir dir;
  auto store = OpenSqliteStore(dir.path());
  REQUIRE(store.ok());
  const std::string large = Noise(100'000, 2);
  WriteBatch batch;
  batch.events = {Event(1, "j-a", "one"), Event(2, "j-a", "two")};
  batch.jobs = {{"j-a", "key-a", 5, false, ""}};
  batch.blobs = {{Sha256Hex(large), large}};
  REQUIRE((*store)->Commit(batch).ok());
  const int64_t size = (*store)->SizeBytes();
  REQUIRE((*store)->Commit(batch).ok());
  CHECK((*store)->SizeBytes() == size);
  CHECK(Payloads(**store, "j-a").size() == 2);
  batch.events[1].payload = "another";
  batch.events.push_back(Event(3, "j-a", "three"));
  CHECK(absl::IsDataLoss((*store)->Commit(batch)));
  CHECK(Payloads(**store, "j-a") == std::vector<std::string>{"one", "two"});
}

TEST_CASE("One idempotency key belongs to one job", "[store]") {
  TempDir dir;
  auto store = OpenSqliteStore(dir.path());
  WriteBatch batch;
  batch.jobs = {{"j-a", "key", 5, false, ""}};
  REQUIRE((*store)->Commit(batch).ok());
  batch.jobs = {{"j-b", "key", 5, false, ""}};
  CHECK(!(*store)->Commit(batch).ok());
  CHECK((*store)->ReadJobs()->size() == 1);
}

TEST_CASE("Two coordinators cannot share a data folder", "[store]") {
  TempDir dir;
  auto first = OpenSqliteStore(dir.path());
  REQUIRE(first.ok());
  auto second = OpenSqliteStore(dir.path());
  CHECK(absl::IsFailedPrecondition(second.status()));
  CHECK(second.status().message().find(dir.path()) != absl::string_view::npos);
  first->reset();
  CHECK(OpenSqliteStore(dir.path()).ok());
}

TEST_CASE("A data folder of a newer version is refused and left as it is", "[store]") {
  TempDir dir;
  OpenSqliteStore(dir.path()).value().reset();
  const std::string path = dir.path() + "/journal.db";
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  REQUIRE(sqlite3_exec(db, "UPDATE meta SET value = '99' WHERE key = 'schema_version'", nullptr, nullptr, nullptr) ==
          SQLITE_OK);
  sqlite3_close(db);
  auto store = OpenSqliteStore(dir.path());
  CHECK(absl::IsFailedPrecondition(store.status()));
  CHECK(store.status().message().find("newer grove (schema 99") != absl::string_view::npos);
}

TEST_CASE("A journal that is no database is refused with the file's name", "[store]") {
  TempDir dir;
  std::ofstream(dir.path() + "/journal.db") << std::string(10'000, 'x');
  auto store = OpenSqliteStore(dir.path());
  CHECK(absl::IsDataLoss(store.status()));
}

TEST_CASE("A damaged or missing blob is told and not served", "[store]") {
  TempDir dir;
  auto store = OpenSqliteStore(dir.path());
  const std::string large = Noise(300'000, 3);
  const std::string sha256 = Sha256Hex(large);
  WriteBatch batch;
  batch.blobs = {{sha256, large}};
  REQUIRE((*store)->Commit(batch).ok());
  const std::string path = dir.path() + "/blobs/" + sha256.substr(0, 2) + "/" + sha256;
  REQUIRE(std::filesystem::exists(path));
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1000);
    file.put('?');
  }
  CHECK(absl::IsDataLoss((*store)->ReadBlob(sha256).status()));
  std::filesystem::remove(path);
  CHECK(absl::IsDataLoss((*store)->ReadBlob(sha256).status()));
}

TEST_CASE("A blob that is too large or has no name is refused", "[store]") {
  TempDir dir;
  auto store = OpenSqliteStore(dir.path());
  WriteBatch batch;
  batch.blobs = {{Sha256Hex("x"), std::string(kMaxBlobBytes + 1, 'x')}};
  CHECK(absl::IsInvalidArgument((*store)->Commit(batch)));
  batch.blobs = {{"x", "x"}};
  CHECK(absl::IsInvalidArgument((*store)->Commit(batch)));
}

TEST_CASE("When files may not grow a commit fails whole, reading goes on, and the same batch is stored later",
          "[store]") {
  TempDir dir;
  auto store = OpenSqliteStore(dir.path());
  WriteBatch first;
  first.events = {Event(1, "j-a", "one")};
  REQUIRE((*store)->Commit(first).ok());

  WriteBatch batch;
  batch.events = {Event(2, "j-a", Noise(600'000, 4)), Event(3, "j-a", "three")};
  const std::string large = Noise(600'000, 5);
  batch.blobs = {{Sha256Hex(large), large}};
  signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit tight = old;
  tight.rlim_cur = 300'000;
  setrlimit(RLIMIT_FSIZE, &tight);
  const absl::Status blob = (*store)->Commit(batch);
  WriteBatch events_only = batch;
  events_only.blobs.clear();
  const absl::Status events = (*store)->Commit(events_only);
  const std::vector<std::string> meanwhile = Payloads(**store, "j-a");
  setrlimit(RLIMIT_FSIZE, &old);
  CHECK(!blob.ok());
  CHECK(!events.ok());
  CHECK(meanwhile == std::vector<std::string>{"one"});
  REQUIRE((*store)->Commit(batch).ok());
  CHECK(Payloads(**store, "j-a").size() == 3);
  CHECK(*(*store)->ReadBlob(Sha256Hex(large)) == large);
}

}  // namespace
}  // namespace grove::store
