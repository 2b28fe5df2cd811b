#include "worker/pipeline/profile.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "tests/support/temp_folder.h"
#include "worker/device/toolchain.h"
#include "worker/sandbox/limits.h"

// What stands in for Nsight Compute is a script of our own: it runs its command as that does and writes a table. The
// candidate, its sandbox and the judge that drives it are real.
namespace grove::worker {
namespace {

// Its command runs; then the table is written. `after`: what it does besides.
std::string Script(const std::string& after, const std::string& before = "") {
  return absl::StrCat(R"sh(#!/bin/sh
if [ "$1" = --version ]; then echo "Version 2025.3.1.0 (build 1) (public-release)"; exit 0; fi
while true; do
  case "$1" in
    --log-file) log=$2; shift 2;;
    --csv) shift;;
    -*) shift 2;;
    *) break;;
  esac
done
)sh",
                      before, "\n\"$@\"\ncode=$?\n", after, "\nexit $code\n");
}

constexpr char kTable[] = R"sh(cat > "$log" <<'END'
==PROF== Connected to process 7 (/x)
"ID","Process ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum","sm__warps_active.avg.pct_of_peak_sustained_active"
"","","","","","ns","%"
"0","7","Scale(float *, long)","(256, 1, 1)","(1024, 1, 1)","59,360","73.10"
END
)sh";

struct Bench {
  Bench() {
    auto made = sandbox::SandboxHost::Create({});
    INFO(made.status());
    REQUIRE(made.ok());
    config.host = *made;
    config.native_program = absl::StrCat(GROVE_LIBEXEC, "/grove-candidate");
    config.device_argument = "cpu";
    config.default_limits = limits;
  }
  std::string Write(const std::string& script) {
    const std::string path = absl::StrCat(folder.path(), "/ncu");
    std::ofstream(path) << script;
    REQUIRE(chmod(path.c_str(), 0755) == 0);
    return path;
  }
  KernelProfiler::Outcome Run(
      const std::string& script, const KernelProfiler::Drive& drive,
      const std::function<bool()>& cancelled = [] { return false; }) {
    KernelProfiler profiler(config, Write(script), "sm_90");
    return profiler.Run(
        false, limits, [](StartedProcess*) { return absl::OkStatus(); }, drive, cancelled);
  }
  testing::TempFolder folder;
  v1::Limits limits = sandbox::DefaultLimits(v1::DEVICE_KIND_CPU);
  CandidateConfig config;
};

// Takes the candidate's hello and tells it to end, as a judge does.
absl::Status Converse(JudgeProcess::Contestant contestant, double) {
  auto hello = contestant.channel.Receive(std::chrono::seconds(30));
  if (!hello.ok()) return absl::InternalError(hello.error);
  if (hello.message.body.value("type", "") != "hello") return absl::InternalError("no hello");
  contestant.channel.Send({{"type", "close"}});
  return absl::OkStatus();
}

TEST_CASE("A candidate runs under the profiler in its sandbox, and the table is read", "[profile]") {
  Bench bench;
  const auto outcome = bench.Run(Script(kTable), Converse);
  INFO(outcome.unavailable);
  REQUIRE(outcome.kernels.size() == 1);
  CHECK(outcome.unavailable.empty());
  CHECK(outcome.kernels[0].name() == "Scale(float *, long)");
  CHECK(outcome.kernels[0].seconds() == Approx(59.36e-6));
  CHECK(outcome.kernels[0].occupancy() == Approx(0.731));
  CHECK(outcome.kernels[0].share() == 1);
  REQUIRE(outcome.ending.has_value());
  CHECK(outcome.ending->kind == sandbox::Ending::Kind::kExited);
}

TEST_CASE("The profiler may talk to itself over loopback, and to nothing else", "[profile]") {
  Bench bench;
  // A server and a client within the sandbox, a connection to the outside, and a family that stays closed.
  const auto outcome = bench.Run(Script(R"sh(
python3 - <<'END' && printf '"ID","Kernel Name","gpu__time_duration.sum"\n"","","ns"\n"0","alone","5"\n' > "$log"
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname(), timeout=5)
server.accept()[0].sendall(b"x")
assert client.recv(1) == b"x"
for family, kind in ((socket.AF_NETLINK, socket.SOCK_RAW), (40, socket.SOCK_STREAM), (38, socket.SOCK_SEQPACKET)):
    try:
        socket.socket(family, kind)
        raise SystemExit("family %d is open" % family)
    except PermissionError:
        pass
try:
    socket.create_connection(("192.0.2.1", 80), timeout=5)
    raise SystemExit("there is a network")
except OSError as error:
    assert error.errno == 101, error
END
)sh"),
                                 Converse);
  INFO(outcome.unavailable << outcome.ending->err);
  REQUIRE(outcome.kernels.size() == 1);
  CHECK(outcome.kernels[0].name() == "alone");
}

TEST_CASE("Why there is no profile is said, with what to do", "[profile]") {
  Bench bench;
  SECTION("no profiler") {
    KernelProfiler profiler(bench.config, "/nowhere/ncu", "sm_90");
    const auto outcome = profiler.Run(
        false, bench.limits, [](StartedProcess*) { return absl::OkStatus(); }, Converse, [] { return false; });
    CHECK_THAT(outcome.unavailable, Catch::Contains("/nowhere/ncu") && Catch::Contains("--ncu"));
    CHECK(!outcome.ending.has_value());
  }
  SECTION("no permission") {
    const auto outcome = bench.Run(
        Script(R"(echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission" > "$log")"), Converse);
    CHECK_THAT(outcome.unavailable, Catch::Contains("NVreg_RestrictProfilingToAdminUsers=0"));
  }
  SECTION("it saw nothing") { CHECK_THAT(bench.Run(Script(":"), Converse).unavailable, Catch::Contains("no kernel")); }
  SECTION("it ends before its command starts") {
    const auto outcome = bench.Run(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo Version 1.2 && exit 0\n"
        "echo 'something is missing here' >&2; exit 3\n",
        Converse);
    CHECK_THAT(outcome.unavailable, Catch::Contains("did not come to its end") && Catch::Contains("is missing here"));
  }
  SECTION("the candidate fails") {
    // What the profiler makes of that comes after what it was.
    const auto outcome = bench.Run(
        Script("echo '==ERROR== The application returned an error code (1).' > \"$log\""),
        [](JudgeProcess::Contestant, double) { return absl::AbortedError("the candidate failed: out of luck"); });
    CHECK_THAT(outcome.unavailable, Catch::Contains("out of luck (The application returned"));
  }
}

TEST_CASE("Where a metric has another name the same is asked for by sections", "[profile]") {
  Bench bench;
  std::string script = Script(absl::StrCat("if [ \"$sections\" = yes ]; then\n", kTable,
                                           "else echo '==ERROR== Failed to find metric x' > \"$log\"; fi"));
  // Its arguments are gone by then.
  const size_t at = script.find("while true");
  script.insert(at, "case \"$*\" in *\" --section \"*) sections=yes;; esac\n");
  const auto again = bench.Run(script, Converse);
  INFO(again.unavailable);
  CHECK(again.kernels.size() == 1);
}

TEST_CASE("Whose a kernel is, and what it spilled, comes from the build", "[profile]") {
  v1::BuildReport build;
  v1::KernelResources* built = build.add_kernels();
  built->set_name("void (anonymous namespace)::Norm<4>(float*)");
  built->set_registers(40);
  built->set_shared_bytes(512);
  built->set_spill_store_bytes(16);
  built->set_spill_load_bytes(24);
  std::vector<v1::KernelProfile> kernels(4);
  kernels[0].set_name("void <unnamed>::Norm<(int)4>(float *)");
  kernels[1].set_name("<unnamed>::Apply(const float4 *, <unnamed>::Moments *)");
  kernels[2].set_name("void at::native::vectorized_elementwise_kernel<(int)4>(int)");
  kernels[3].set_name("triton_relu");
  kernels[3].set_registers(8);
  AddBuildFacts(build, {"(anonymous namespace)::Apply(float4 const*, (anonymous namespace)::Moments*)"}, &kernels);
  CHECK(kernels[0].own());
  CHECK(kernels[0].registers() == 40);
  CHECK(kernels[0].shared_bytes() == 512);
  CHECK(kernels[0].local_bytes() == 24);
  CHECK(kernels[1].own());  // an extension's: its build has no log of ptxas
  CHECK(kernels[1].local_bytes() == 0);
  CHECK_FALSE(kernels[2].own());
  CHECK(kernels[3].own());
  CHECK(kernels[3].registers() == 8);
}

TEST_CASE("Who cancels a profile does not wait for it", "[profile]") {
  Bench bench;
  const absl::Time begin = SteadyNow();
  const auto outcome = bench.Run(Script("sleep 1000"), Converse, [] { return true; });
  CHECK(SteadyNow() - begin < kProfileTime / 2);
  CHECK(outcome.kernels.empty());
  REQUIRE(outcome.ending.has_value());
  CHECK(outcome.ending->kind == sandbox::Ending::Kind::kKilled);
}

// The same with the judge and a program, as the worker does it. What the candidate says on stderr.
std::string Profiled(Bench& bench, JudgeProcess& judge, bool python, const std::string& source,
                     KernelProfiler::Outcome* outcome) {
  nlohmann::json program = {{"type", "program"}, {"kind", "native"}, {"entry", "grove_kernel"}};
  std::vector<int> fds;
  wire::UniqueFd object;
  if (python) {
    program = {{"type", "program"}, {"kind", "python"}, {"source", source}, {"extensions", nlohmann::json::array()}};
  } else {
    const std::string file = absl::StrCat(bench.folder.path(), "/kernel");
    std::ofstream(file + ".cpp") << source;
    auto built = device::RunTool({"/usr/bin/g++", "-std=c++20", "-shared", "-fPIC", absl::StrCat("-I", GROVE_INCLUDE),
                                  "-o", file + ".so", file + ".cpp"},
                                 {"PATH=/usr/bin:/bin"}, absl::Seconds(60));
    REQUIRE(built.ok());
    INFO(built->err);
    REQUIRE(built->exit_code == 0);
    object = wire::UniqueFd(open((file + ".so").c_str(), O_RDONLY | O_CLOEXEC));
    fds.push_back(object.get());
  }
  KernelProfiler profiler(bench.config, bench.Write(Script(kTable)), "sm_90");
  *outcome = profiler.Run(
      python, bench.limits,
      [&](StartedProcess* prepared) -> absl::Status {
        const auto error = prepared->channel.Send(program, fds);
        return error ? absl::InternalError(*error) : absl::OkStatus();
      },
      [&](JudgeProcess::Contestant contestant, double seconds) -> absl::Status {
        const JudgeAnswer answer =
            judge.Profile(std::move(contestant), seconds, SteadyNow() + absl::Seconds(90), nullptr);
        if (answer.kind != JudgeAnswer::Kind::kDone) return absl::InternalError(answer.message);
        const std::string failure = answer.body.value("failure", "none was said");
        return failure.empty() ? absl::OkStatus() : absl::AbortedError(failure);
      },
      [] { return false; });
  INFO(outcome->unavailable);
  REQUIRE(outcome->ending.has_value());
  return outcome->ending->err;
}

constexpr char kRelu[] = R"(#include <grove/kernel.h>
#include <cstdio>
extern "C" int grove_kernel(const grove_args* args) {
  static int calls = 0;
  std::fprintf(stderr, "call %d\n", ++calls);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (long i = 0; i < args->inputs[0].shape[0]; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return 0;
}
)";

TEST_CASE("The judge has a profiled candidate do one call to warm up and one that is marked", "[profile]") {
  Bench bench;
  JudgeConfig config;
  config.host = bench.config.host;
  config.program = absl::StrCat(GROVE_LIBEXEC, "/grove-judge");
  config.read_only = {GROVE_LIBEXEC};
  config.device_argument = "cpu";
  config.memory_bytes = int64_t{4} << 30;
  const auto python = device::FindPython("", "");
  if (python.ok()) {
    config.python = bench.config.python = python->path;
    bench.config.python_folders = python->folders;
    bench.config.python_script = absl::StrCat(GROVE_LIBEXEC, "/grove-candidate-python");
    config.read_only.insert(config.read_only.end(), python->folders.begin(), python->folders.end());
  }
  auto judge = JudgeProcess::Start(config);
  INFO(judge.status());
  REQUIRE(judge.ok());
  v1::Problem problem;
  problem.set_name("relu");
  problem.set_format(python.ok() ? v1::PROBLEM_FORMAT_KERNELBENCH : v1::PROBLEM_FORMAT_NATIVE);
  problem.set_source(python.ok() ? "import torch\n"
                                   "class Model(torch.nn.Module):\n"
                                   "    def forward(self, x):\n"
                                   "        return torch.relu(x)\n"
                                   "def get_inputs():\n"
                                   "    return [torch.randn(4096)]\n"
                                   "def get_init_inputs():\n"
                                   "    return []\n"
                                 : "torchscript = \"\"\"\ndef forward(x):\n    return torch.relu(x)\n\"\"\"\n"
                                   "[[inputs]]\nname = \"x\"\nshape = [4096]\n");
  const JudgeAnswer loaded = (*judge)->Load(problem, {}, false, nullptr, nullptr);
  INFO(loaded.message);
  REQUIRE(loaded.kind == JudgeAnswer::Kind::kDone);

  KernelProfiler::Outcome outcome;
  CHECK(Profiled(bench, **judge, false, kRelu, &outcome) == "call 1\ncall 2\n");
  CHECK(outcome.unavailable == "");
  CHECK(outcome.kernels.size() == 1);
  // One that breaks is a sentence, and the judge goes on.
  Profiled(bench, **judge, false, "extern \"C\" int grove_kernel(const void*) { return 7; }", &outcome);
  CHECK(outcome.kernels.size() == 1);
  CHECK_THAT(outcome.unavailable, Catch::StartsWith("incomplete") && Catch::Contains("returned 7"));
  Profiled(bench, **judge, false, "extern \"C\" int grove_kernel(const void*) { *(volatile int*)8 = 1; return 0; }",
           &outcome);
  CHECK((*judge)->Alive());
  if (python.ok()) {
    const std::string said = Profiled(bench, **judge, true,
                                      "import sys, torch\n"
                                      "class ModelNew(torch.nn.Module):\n"
                                      "    def forward(self, x):\n"
                                      "        print('called', file=sys.stderr, flush=True)\n"
                                      "        return torch.relu(x)\n",
                                      &outcome);
    CHECK_THAT(said, Catch::EndsWith("called\ncalled\n"));
    CHECK(outcome.unavailable == "");
  }
  CHECK(Profiled(bench, **judge, false, kRelu, &outcome) == "call 1\ncall 2\n");
}

}  // namespace
}  // namespace grove::worker
