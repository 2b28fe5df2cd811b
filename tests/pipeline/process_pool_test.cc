#include "worker/pipeline/process_pool.h"

#include <poll.h>

#include <atomic>
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "worker/pipeline/candidate_process.h"
#include "worker/pipeline/equipment.h"
#include "worker/sandbox/limits.h"

namespace grove::worker {
namespace {

CandidateConfig NativeConfig(int ahead) {
  auto host = sandbox::SandboxHost::Create({});
  INFO(host.status());
  REQUIRE(host.ok());
  CandidateConfig config;
  config.host = *host;
  config.native_program = absl::StrCat(GROVE_LIBEXEC, "/grove-candidate");
  config.device_argument = "cpu";
  config.default_limits = sandbox::DefaultLimits(v1::DEVICE_KIND_CPU);
  config.native_ahead = ahead;
  return config;
}

constexpr Ahead kNative = Ahead::kNativeCandidate;

// Whether so many come to wait.
bool Comes(ProcessPool& pool, int count) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (pool.Waiting(kNative) != count && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
  return pool.Waiting(kNative) == count;
}

TEST_CASE("Candidates start ahead of their work, and none while something is timed", "[pool]") {
  const CandidateConfig config = NativeConfig(2);
  const auto pool = MakePool(config, {});
  CHECK(pool->Waiting(kNative) == 0);  // nobody has asked yet
  pool->Restock(kNative);
  REQUIRE(Comes(*pool, 2));
  pool->Quiet(true);
  pool->Restock(kNative);
  auto first = TakeCandidate(*pool, config, false, config.default_limits);
  auto second = TakeCandidate(*pool, config, false, config.default_limits);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  pool->Restock(kNative);
  // One that is needed comes all the same; none was started ahead meanwhile.
  auto third = TakeCandidate(*pool, config, false, config.default_limits);
  REQUIRE(third.ok());
  CHECK(pool->Waiting(kNative) == 0);
  CHECK(first->process->pid() != second->process->pid());
  CHECK(second->process->pid() != third->process->pid());
  pool->Quiet(false);
  CHECK(Comes(*pool, 2));
}

TEST_CASE("What started and was held for something timed goes on afterwards", "[pool]") {
  const CandidateConfig config = NativeConfig(4);
  const auto pool = MakePool(config, {});
  for (int round = 0; round < 5; ++round) {
    pool->Restock(kNative);
    pool->Quiet(true);
    auto taken = TakeCandidate(*pool, config, false, config.default_limits);  // ready or held half-way: it says hello
    REQUIRE(taken.ok());
    pool->Quiet(false);
  }
  pool->Restock(kNative);
  CHECK(Comes(*pool, 4));
}

TEST_CASE("A pool that has settled holds all that it may, ready", "[pool]") {
  const CandidateConfig config = NativeConfig(3);
  const auto pool = MakePool(config, {});
  pool->Settle(absl::Seconds(60));  // nobody has asked
  CHECK(pool->Waiting(kNative) == 0);
  pool->Restock(kNative);
  pool->Settle(absl::Seconds(60));
  REQUIRE(pool->Waiting(kNative) == 3);
  for (int i = 0; i < 3; ++i) {
    auto taken = pool->Take(kNative);
    REQUIRE(taken.has_value());
    pollfd ready{taken->channel.fd(), POLLIN, 0};
    CHECK(poll(&ready, 1, 0) == 1);
  }
}

TEST_CASE("A pool that is cleared starts none until it is asked again", "[pool]") {
  const CandidateConfig config = NativeConfig(1);
  const auto pool = MakePool(config, {});
  pool->Restock(kNative);
  REQUIRE(Comes(*pool, 1));
  pool->Clear();
  CHECK(pool->Waiting(kNative) == 0);
  auto taken = TakeCandidate(*pool, config, false, config.default_limits);
  REQUIRE(taken.ok());
  CHECK(pool->Waiting(kNative) == 0);
  pool->Restock(kNative);
  CHECK(Comes(*pool, 1));
}

TEST_CASE("One with a folder of another size, or that died while it waited, is not taken", "[pool]") {
  const CandidateConfig config = NativeConfig(1);
  const auto pool = MakePool(config, {});
  pool->Restock(kNative);
  REQUIRE(Comes(*pool, 1));
  v1::Limits limits = config.default_limits;
  limits.set_disk_bytes(limits.disk_bytes() / 2);
  auto other = TakeCandidate(*pool, config, false, limits);
  REQUIRE(other.ok());
  CHECK(pool->Waiting(kNative) == 1);
  auto waited = pool->Take(kNative);
  REQUIRE(waited.has_value());
  CHECK(waited->process->pid() != other->process->pid());

  ProcessPool dying({ProcessPool::Kind{[&]() -> absl::StatusOr<StartedProcess> {
                                         auto started = StartCandidate(config, false, config.default_limits, nullptr);
                                         if (started.ok()) {
                                           started->process->Kill();
                                           started->process->Wait();
                                         }
                                         return started;
                                       },
                                       1}});
  dying.Restock(kNative);
  REQUIRE(Comes(dying, 1));
  CHECK_FALSE(dying.Take(kNative).has_value());
}

TEST_CASE("A kind that is not installed is said when it is asked for, and is not tried for ever", "[pool]") {
  CandidateConfig config = NativeConfig(1);
  config.native_program = "";
  const auto pool = MakePool(config, {});
  pool->Restock(kNative);
  auto taken = TakeCandidate(*pool, config, false, config.default_limits);
  CHECK(taken.status().code() == absl::StatusCode::kFailedPrecondition);

  std::atomic<int> starts{0};
  ProcessPool failing({ProcessPool::Kind{[&]() -> absl::StatusOr<StartedProcess> {
                                           ++starts;
                                           return absl::InternalError("no");
                                         },
                                         2}});
  failing.Restock(kNative);
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (starts == 0 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
  // Waits for one that is being started.
  CHECK_FALSE(failing.Take(kNative).has_value());
  CHECK(starts == 1);
}

}  // namespace
}  // namespace grove::worker
