#include "worker/pipeline/warm_judges.h"

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "worker/device/toolchain.h"

namespace grove::worker {
namespace {

JudgeConfig Config() {
  auto host = sandbox::SandboxHost::Create({});
  INFO(host.status());
  REQUIRE(host.ok());
  JudgeConfig config;
  config.host = *host;
  config.program = absl::StrCat(GROVE_LIBEXEC, "/grove-judge");
  config.read_only = {GROVE_LIBEXEC};
  config.device_argument = "cpu";
  config.memory_bytes = int64_t{4} << 30;
  if (const auto python = device::FindPython("", ""); python.ok()) {
    config.python = python->path;
    config.read_only.insert(config.read_only.end(), python->folders.begin(), python->folders.end());
  }
  return config;
}

// A pool whose judges are known by their pids, and may be killed as soon as they are started.
struct Bench {
  explicit Bench(bool dying = false) {
    for (const bool python : {false, true}) {
      kinds[static_cast<size_t>(JudgeKind(python))].start = [this, python, dying]() -> absl::StatusOr<StartedProcess> {
        auto started = JudgeProcess::Spawn(config, python);
        if (started.ok() && dying) started->process->Kill();
        std::lock_guard<std::mutex> lock(mutex);
        if (started.ok()) pids[python].push_back(started->process->pid());
        return started;
      };
    }
    pool = std::make_unique<ProcessPool>(kinds);
    WarmJudges::Options options;
    options.config = config;
    Make(options);
  }
  void Make(WarmJudges::Options options) { judges = std::make_unique<WarmJudges>(std::move(options), pool.get()); }
  std::vector<pid_t> Started(bool python) {
    std::lock_guard<std::mutex> lock(mutex);
    return pids[python];
  }
  bool Waits(bool python) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (pool->Waiting(JudgeKind(python)) == 0 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
    return pool->Waiting(JudgeKind(python)) == 1;
  }
  WarmJudge* Load(const v1::Problem& problem, bool check = false) {
    v1::WorkResult failure;
    WarmJudge* judge = judges->Load(problem, {}, check, nullptr, nullptr, &failure);
    INFO(failure.DebugString());
    REQUIRE(judge != nullptr);
    return judge;
  }
  const JudgeConfig config = Config();
  std::mutex mutex;
  std::map<bool, std::vector<pid_t>> pids;
  std::array<ProcessPool::Kind, kAheadKinds> kinds;
  std::unique_ptr<ProcessPool> pool;
  std::unique_ptr<WarmJudges> judges;
};

v1::Problem Native(int size) {
  v1::Problem problem;
  problem.set_name("relu");
  problem.set_format(v1::PROBLEM_FORMAT_NATIVE);
  problem.set_source(
      absl::StrCat("torchscript = \"\"\"\ndef forward(x):\n    return torch.relu(x)\n\"\"\"\n"
                   "[[inputs]]\nname = \"x\"\nshape = [",
                   size, "]\n"));
  return problem;
}

TEST_CASE("From the second problem on a judge is started ahead of the next", "[judges]") {
  Bench bench;
  bench.Load(Native(16));
  bench.Load(Native(16), /*check=*/true);
  CHECK(bench.Started(false).empty());  // who has one problem needs no other judge
  bench.Load(Native(32));
  REQUIRE(bench.Waits(false));
  const WarmJudge* third = bench.Load(Native(64));
  CHECK(third->judge->process().pid() == bench.Started(false).front());
  CHECK(third->description.inputs_size() == 1);
  CHECK(bench.Waits(false));
  CHECK(bench.Started(true).empty());
}

TEST_CASE("A problem in Python finds torch imported, and a native one no interpreter", "[judges]") {
  Bench bench;
  if (bench.config.python.empty()) {
    WARN("no Python with torch here");
    return;
  }
  bench.pool->Restock(Ahead::kPythonJudge);
  REQUIRE(bench.Waits(true));
  const WarmJudge* native = bench.Load(Native(16));
  CHECK(native->judge->process().pid() != bench.Started(true).front());
  v1::Problem python;
  python.set_name("relu");
  python.set_format(v1::PROBLEM_FORMAT_KERNELBENCH);
  python.set_source(
      "import torch\nclass Model(torch.nn.Module):\n  def forward(self, x): return torch.relu(x)\n"
      "def get_inputs(): return [torch.randn(4096)]\ndef get_init_inputs(): return []\n");
  const WarmJudge* judge = bench.Load(python);
  CHECK(judge->judge->process().pid() == bench.Started(true).front());
  CHECK(bench.judges->Find(python) == judge);
}

TEST_CASE("A judge that dies while it waits costs nothing but its start", "[judges]") {
  Bench bench(/*dying=*/true);
  bench.pool->Restock(Ahead::kNativeJudge);
  REQUIRE(bench.Waits(false));
  const WarmJudge* judge = bench.Load(Native(16));
  CHECK(judge->judge->process().pid() != bench.Started(false).front());
  CHECK(judge->judge->Alive());
}

TEST_CASE("Judges stay while their problems fit in the device's memory", "[judges]") {
  Bench bench;
  const int64_t one = bench.Load(Native(1 << 16))->description.memory_bytes();
  REQUIRE(one > 0);
  WarmJudges::Options options;
  options.config = bench.config;
  options.most = 4;
  options.most_memory_bytes = 2 * one;
  options.ahead = false;
  bench.Make(std::move(options));
  for (const int more : {0, 1, 2}) bench.Load(Native((1 << 16) - more));
  for (const int more : {0, 1, 2}) CHECK(bench.judges->Find(Native((1 << 16) - more)) != nullptr);
  // A fourth is loaded beside the two that fit; the one used longest ago is gone.
  bench.Load(Native((1 << 16) - 3));
  CHECK(bench.judges->Find(Native(1 << 16)) == nullptr);
  CHECK(bench.judges->Find(Native((1 << 16) - 1)) != nullptr);
}

TEST_CASE("Judges stay while what they hold of the host's memory fits its budget, and the one in use in any case",
          "[judges]") {
  Bench bench;
  std::map<int64_t, int64_t> holds;  // by the size of the problem
  const auto size = [](const WarmJudge& one) { return one.description.inputs(0).shape(0); };
  WarmJudges::Options options;
  options.config = bench.config;
  options.most = 4;
  options.most_host_bytes = 100;
  options.ahead = false;
  options.host_bytes = [&](const WarmJudge& one) { return holds[size(one)]; };
  bench.Make(std::move(options));
  const auto kept = [&](int problem) { return bench.judges->Find(Native(problem)) != nullptr; };
  holds = {{16, 40}, {32, 40}, {64, 40}, {128, 500}};
  bench.Load(Native(16));
  bench.Load(Native(32));
  CHECK(kept(16));  // and is now the one used last
  bench.Load(Native(64));
  CHECK_FALSE(kept(32));
  CHECK(kept(16));
  CHECK(kept(64));
  // One that grows while it works pushes the other out as soon as it is used again.
  holds[64] = 70;
  CHECK(kept(64));
  CHECK_FALSE(kept(16));
  // One that is beyond the budget by itself is used all the same, and none beside it.
  bench.Load(Native(128));
  CHECK(kept(128));
  CHECK_FALSE(kept(64));
  bench.Load(Native(16));
  CHECK_FALSE(kept(128));
  CHECK(kept(16));
}

TEST_CASE("What a judge holds of the host's memory is counted", "[judges]") {
  Bench bench;
  const WarmJudge* judge = bench.Load(Native(16));
  const int64_t bytes = judge->judge->process().MemoryBytes();
  CHECK(bytes > int64_t{1} << 20);
  CHECK(bytes < bench.config.memory_bytes);
}

TEST_CASE("Judges are found while they live, and the one used longest ago makes room", "[judges]") {
  Bench bench;
  bench.Load(Native(16));
  bench.Load(Native(32));
  REQUIRE(bench.judges->Find(Native(16)) != nullptr);
  bench.Load(Native(64));
  CHECK(bench.judges->Find(Native(32)) == nullptr);
  WarmJudge* kept = bench.judges->Find(Native(16));
  REQUIRE(kept != nullptr);
  kept->judge->process().Kill();
  kept->judge->process().Wait();
  CHECK(bench.judges->Find(Native(16)) == nullptr);
  // One whose code ends its judge is at fault, once that repeats; the name is the judge's own.
  v1::WorkResult result;
  for (int deaths = 1; deaths <= 3; ++deaths) {
    CHECK(result.problem_error() == "");
    bench.judges->Died(bench.Load(Native(16))->problem, "it was killed", &result);
    CHECK(bench.judges->Find(Native(16)) == nullptr);
  }
  CHECK_THAT(result.problem_error(), Catch::Contains("died 3 times in a row"));
  // One that judges the problem itself is nobody's.
  const std::string key = bench.Load(Native(128), /*check=*/true)->problem;
  CHECK(bench.judges->Find(Native(128)) == nullptr);
  bench.judges->Drop(key);
  CHECK(bench.judges->Find(Native(64)) != nullptr);
}

}  // namespace
}  // namespace grove::worker
