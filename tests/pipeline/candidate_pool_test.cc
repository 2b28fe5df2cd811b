#include "worker/pipeline/candidate_pool.h"

#include <catch2/catch.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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

// Whether so many come to wait.
bool Comes(CandidatePool& pool, int count) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (pool.Waiting(false) != count && absl::Now() < deadline) std::this_thread::yield();
  return pool.Waiting(false) == count;
}

TEST_CASE("Candidates start ahead of their work, and none while something is timed", "[pool]") {
  const CandidateConfig config = NativeConfig(2);
  CandidatePool pool(config);
  CHECK(pool.Waiting(false) == 0);  // nobody has asked yet
  pool.Restock(false);
  REQUIRE(Comes(pool, 2));
  pool.Quiet(true);
  auto first = pool.Take(false, config.default_limits);
  auto second = pool.Take(false, config.default_limits);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  // One that is needed comes all the same; none was started ahead meanwhile.
  auto third = pool.Take(false, config.default_limits);
  REQUIRE(third.ok());
  CHECK(pool.Waiting(false) == 0);
  CHECK(first->process->pid() != second->process->pid());
  CHECK(second->process->pid() != third->process->pid());
  pool.Quiet(false);
  CHECK(Comes(pool, 2));
}

TEST_CASE("What started and was held for something timed goes on afterwards", "[pool]") {
  const CandidateConfig config = NativeConfig(4);
  CandidatePool pool(config);
  pool.Restock(false);
  for (int round = 0; round < 5; ++round) {
    pool.Quiet(true);
    auto taken = pool.Take(false, config.default_limits);  // ready or held half-way, it must say hello
    REQUIRE(taken.ok());
    pool.Quiet(false);
  }
  CHECK(Comes(pool, 4));
}

TEST_CASE("A pool that is cleared starts none until it is asked again", "[pool]") {
  const CandidateConfig config = NativeConfig(1);
  CandidatePool pool(config);
  pool.Restock(false);
  REQUIRE(Comes(pool, 1));
  pool.Clear();
  CHECK(pool.Waiting(false) == 0);
  auto taken = pool.Take(false, config.default_limits);
  REQUIRE(taken.ok());
  CHECK(pool.Waiting(false) == 0);
  pool.Restock(false);
  CHECK(Comes(pool, 1));
}

TEST_CASE("A kind that is not installed is said when it is asked for, and is not tried for ever", "[pool]") {
  CandidateConfig config = NativeConfig(1);
  config.native_program = "";
  CandidatePool pool(config);
  pool.Restock(false);
  auto taken = pool.Take(false, config.default_limits);
  CHECK(taken.status().code() == absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace grove::worker
