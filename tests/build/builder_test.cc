#include "worker/build/builder.h"

#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "worker/build/elf_symbols.h"
#include "worker/device/device.h"
#include "worker/sandbox/limits.h"

namespace grove::build {
namespace {

class Bench {
 public:
  explicit Bench(bool cuda = false) {
    char name[] = "/tmp/grove-builder-test-XXXXXX";
    folder_ = mkdtemp(name);
    auto host = sandbox::SandboxHost::Create({});
    INFO(host.status());
    REQUIRE(host.ok());
    options_.host = *host;
    options_.device = device::DescribeCpu();
    options_.include_dir = GROVE_INCLUDE;
    options_.libexec_dir = GROVE_LIBEXEC;
    options_.cache_dir = folder_;
    auto cxx = device::FindCxx("g++");
    REQUIRE(cxx.ok());
    options_.cxx = *cxx;
    if (cuda) {
      options_.device.set_kind(v1::DEVICE_KIND_CUDA);
      options_.device.set_arch("sm_90");
      if (auto nvcc = device::FindNvcc(""); nvcc.ok()) options_.nvcc = *nvcc;
    }
    limits_ = sandbox::DefaultLimits(options_.device.kind());
  }
  ~Bench() { std::filesystem::remove_all(folder_); }

  BuildOutcome Build(const std::string& source, v1::CandidateFormat format = v1::CANDIDATE_FORMAT_CPP,
                     std::vector<std::string> flags = {}) {
    v1::Candidate candidate;
    candidate.set_format(format);
    candidate.set_source(source);
    for (const std::string& f : flags) candidate.add_build_flags(f);
    auto outcome = builder().Build(candidate, limits_, nullptr);
    INFO(outcome.status());
    REQUIRE(outcome.ok());
    return *std::move(outcome);
  }
  BuildOutcome BuildFile(const std::string& name) {
    auto text = ReadFile(absl::StrCat(GROVE_TESTCASES, "/", name), 1 << 20);
    REQUIRE(text.ok());
    return Build(*text);
  }
  Builder& builder() {
    if (builder_ == nullptr) {
      auto made = Builder::Create(options_);
      REQUIRE(made.ok());
      builder_ = *std::move(made);
    }
    return *builder_;
  }
  v1::Limits& limits() { return limits_; }
  BuilderOptions& options() { return options_; }

 private:
  std::string folder_;
  BuilderOptions options_;
  std::unique_ptr<Builder> builder_;
  v1::Limits limits_;
};

TEST_CASE("A candidate builds once and comes from the cache after that", "[build]") {
  Bench bench;
  const BuildOutcome first = bench.BuildFile("relu.cpp");
  INFO(first.report.DebugString());
  REQUIRE(first.report.ok());
  CHECK_FALSE(first.report.cached());
  CHECK(first.report.key().size() == 64);
  CHECK(first.report.command().find("-march=native") != std::string::npos);
  CHECK(first.report.command().find("/tmp") == std::string::npos);
  REQUIRE(first.objects.size() == 1);
  CHECK(ExportedFunctions(first.objects[0].content).ok());
  const BuildOutcome second = bench.BuildFile("relu.cpp");
  CHECK(second.report.cached());
  CHECK(second.objects[0].content == first.objects[0].content);
  CHECK(second.report.seconds() == first.report.seconds());
}

TEST_CASE("A build under another salt is made anew", "[build]") {
  Bench bench;
  const BuildOutcome first = bench.BuildFile("relu.cpp");
  REQUIRE(first.report.ok());
  BuilderOptions salted = bench.options();
  salted.cache_salt = "the compiler was patched in place";
  const auto builder = Builder::Create(salted);
  REQUIRE(builder.ok());
  v1::Candidate candidate;
  candidate.set_format(v1::CANDIDATE_FORMAT_CPP);
  candidate.set_source(*ReadFile(absl::StrCat(GROVE_TESTCASES, "/relu.cpp"), 1 << 20));
  for (const bool cached : {false, true}) {
    const auto outcome = (*builder)->Build(candidate, bench.limits(), nullptr);
    REQUIRE(outcome.ok());
    CHECK(outcome->report.cached() == cached);
    CHECK(outcome->report.key() != first.report.key());
  }
}

TEST_CASE("Other flags are another object", "[build]") {
  Bench bench;
  const std::string source = "#include <grove/kernel.h>\nGROVE_KERNEL(args) { (void)args; return VALUE; }\n";
  const BuildOutcome one = bench.Build(source, v1::CANDIDATE_FORMAT_CPP, {"-DVALUE=1"});
  const BuildOutcome two = bench.Build(source, v1::CANDIDATE_FORMAT_CPP, {"-DVALUE=2"});
  CHECK(one.report.ok());
  CHECK(two.report.ok());
  CHECK(one.report.key() != two.report.key());
  const BuildOutcome refused = bench.Build(source, v1::CANDIDATE_FORMAT_CPP, {"-fplugin=/tmp/x.so"});
  CHECK(refused.verdict == v1::VERDICT_BUILD_FAILED);
  CHECK_THAT(refused.reason, Catch::Contains("-fplugin=/tmp/x.so"));
}

TEST_CASE("A compiler error comes back as the compiler's text, without the machine's paths, and is cached", "[build]") {
  Bench bench;
  const BuildOutcome outcome = bench.BuildFile("syntax_error.cpp");
  CHECK(outcome.verdict == v1::VERDICT_BUILD_FAILED);
  CHECK_THAT(outcome.report.log(), Catch::Contains("kernel.cpp:3") && Catch::Contains("no_such_field"));
  CHECK(outcome.report.log().find("/tmp") == std::string::npos);
  CHECK_THAT(outcome.reason, Catch::Contains("error"));
  const BuildOutcome again = bench.BuildFile("syntax_error.cpp");
  CHECK(again.report.cached());
  CHECK(again.verdict == v1::VERDICT_BUILD_FAILED);
  CHECK(again.reason == outcome.reason);
}

TEST_CASE("A missing entry point is said with the remedy", "[build]") {
  Bench bench;
  CHECK_THAT(bench.BuildFile("missing_entry.cpp").reason, Catch::Contains("GROVE_KERNEL"));
  CHECK_THAT(bench.BuildFile("mangled_entry.cpp").reason, Catch::Contains("extern \"C\""));
}

TEST_CASE("Source that is no source is refused before a compiler sees it", "[build]") {
  Bench bench;
  CHECK_THAT(bench.Build("").reason, Catch::Contains("empty"));
  CHECK_THAT(bench.Build(std::string("int a;\0", 7)).reason, Catch::Contains("NUL"));
  CHECK_THAT(bench.Build("// \xFF\xFE").reason, Catch::Contains("UTF-8"));
  CHECK_THAT(bench.Build(std::string((1 << 20) + 1, ' ')).reason, Catch::Contains("1048576"));
  CHECK_THAT(bench.Build("x", v1::CANDIDATE_FORMAT_UNSPECIFIED).reason, Catch::Contains("format"));
  CHECK_THAT(bench.Build("x", v1::CANDIDATE_FORMAT_CUDA).reason, Catch::Contains("CUDA device"));
}

TEST_CASE("Files of the machine cannot be read at compile time", "[build]") {
  Bench bench;
  const std::string file = GENERATE("reads_passwd.cpp", "incbin.cpp");
  CAPTURE(file);
  const BuildOutcome outcome = bench.BuildFile(file);
  CHECK(outcome.verdict == v1::VERDICT_BUILD_FAILED);
  CHECK(outcome.report.log().find("root:") == std::string::npos);
  CHECK_THAT(outcome.report.log(),
             Catch::Contains("No such file") || Catch::Contains("file not found") || Catch::Contains("can't open"));
}

TEST_CASE("What earlier builds left behind is not there for the next", "[build]") {
  Bench bench;
  const std::string first = "#include <grove/kernel.h>\nGROVE_KERNEL(args) { (void)args; return 0; }\n// first\n";
  CHECK(bench.Build(first).report.ok());
  CHECK(bench.Build("#include \"/tmp/kernel.so\"\n").verdict == v1::VERDICT_BUILD_FAILED);
}

TEST_CASE("A compile bomb is ended by the limit that it meets first, and is not cached", "[build][limits]") {
  Bench bench;
  SECTION("wall time") {
    bench.limits().set_build_wall_seconds(1);
    const BuildOutcome outcome = bench.BuildFile("template_bomb.cpp");
    CHECK(outcome.verdict == v1::VERDICT_TIMED_OUT);
    CHECK(outcome.fault.limit() == "build_wall_seconds");
    bench.limits().set_build_wall_seconds(2);
    CHECK_FALSE(bench.BuildFile("template_bomb.cpp").report.cached());
  }
  SECTION("CPU time") {
    bench.limits().set_build_cpu_seconds(0.5);
    const BuildOutcome outcome = bench.BuildFile("template_bomb.cpp");
    CHECK(outcome.verdict == v1::VERDICT_LIMIT_EXCEEDED);
    CHECK(outcome.fault.limit() == "build_cpu_seconds");
  }
  SECTION("memory") {
    bench.limits().set_build_memory_bytes(int64_t{48} << 20);
    const BuildOutcome outcome = bench.BuildFile("template_bomb.cpp");
    CHECK(outcome.verdict == v1::VERDICT_LIMIT_EXCEEDED);
    CHECK(outcome.fault.limit() == "build_memory_bytes");
  }
  SECTION("output") {
    const BuildOutcome outcome = bench.BuildFile("output_bomb.cpp");
    INFO(outcome.report.log());
    CHECK(outcome.verdict == v1::VERDICT_LIMIT_EXCEEDED);
    CHECK(outcome.fault.limit() == "build_output_bytes");
    CHECK(outcome.fault.limit_set() == sandbox::kBuildOutputBytes);
  }
}

TEST_CASE("A compiler cannot be made to wait for input", "[build]") {
  Bench bench;
  bench.limits().set_build_wall_seconds(10);
  bench.limits().set_build_memory_bytes(int64_t{256} << 20);
  CHECK(bench.BuildFile("reads_stdin.cpp").verdict != v1::VERDICT_UNSPECIFIED);
}

TEST_CASE("Cancelling ends a build", "[build]") {
  Bench bench;
  v1::Candidate candidate;
  candidate.set_format(v1::CANDIDATE_FORMAT_CPP);
  candidate.set_source(*ReadFile(absl::StrCat(GROVE_TESTCASES, "/template_bomb.cpp"), 1 << 20));
  std::atomic<int> asked{0};
  const auto outcome = bench.builder().Build(candidate, bench.limits(), [&] { return ++asked > 3; });
  CHECK(absl::IsCancelled(outcome.status()));
}

TEST_CASE("The same candidate asked for twice at once is built once", "[build]") {
  Bench bench;
  Builder& builder = bench.builder();
  v1::Candidate candidate;
  candidate.set_format(v1::CANDIDATE_FORMAT_CPP);
  candidate.set_source(*ReadFile(absl::StrCat(GROVE_TESTCASES, "/relu.cpp"), 1 << 20));
  std::atomic<int> built{0}, cached{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto outcome = builder.Build(candidate, bench.limits(), nullptr);
      if (outcome.ok() && outcome->report.ok()) ++(outcome->report.cached() ? cached : built);
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(built == 1);
  CHECK(cached == 3);
}

TEST_CASE("A .cu candidate builds with nvcc and its resources are read", "[build]") {
  Bench bench(/*cuda=*/true);
  if (!bench.options().nvcc.has_value()) {
    WARN("no nvcc on this machine");
    return;
  }
  const BuildOutcome outcome = bench.Build(
      "#include <grove/kernel.h>\n__global__ void scale(float* y, const float* x, int n) {\n  __shared__ float "
      "s[256];\n"
      "  int i = blockIdx.x * 256 + threadIdx.x;\n  s[threadIdx.x] = i < n ? x[i] : 0;\n  __syncthreads();\n"
      "  if (i < n) y[i] = s[255 - threadIdx.x];\n}\n"
      "GROVE_KERNEL(args) {\n  scale<<<1, 256, 0, (cudaStream_t)args->stream>>>((float*)args->outputs[0].data, "
      "(const float*)args->inputs[0].data, 256);\n  return 0;\n}\n",
      v1::CANDIDATE_FORMAT_CUDA);
  INFO(outcome.report.DebugString());
  REQUIRE(outcome.report.ok());
  CHECK_THAT(outcome.report.command(), Catch::Contains("compute_90a"));
  REQUIRE(outcome.report.kernels_size() == 1);
  CHECK(outcome.report.kernels(0).registers() > 0);
  CHECK(outcome.report.kernels(0).shared_bytes() == 1024);
  const BuildOutcome error = bench.Build("#include <grove/kernel.h>\nGROVE_KERNEL(args) { return args->nothing; }\n",
                                         v1::CANDIDATE_FORMAT_CUDA);
  CHECK(error.verdict == v1::VERDICT_BUILD_FAILED);
  CHECK_THAT(error.report.log(), Catch::Contains("kernel.cu") && Catch::Contains("nothing"));
}

TEST_CASE("load_inline of a KernelBench candidate is built ahead and comes from the cache", "[build]") {
  Bench bench;
  auto python = device::FindPython("", "");
  if (!python.ok()) {
    WARN("no Python with torch on this machine");
    return;
  }
  bench.options().python = *python;
  const BuildOutcome plain = bench.Build("class ModelNew: pass\n", v1::CANDIDATE_FORMAT_KERNELBENCH);
  CHECK(plain.report.ok());
  CHECK(plain.objects.empty());
  // No torch header: the shape of a real extension at a fraction of its build time.
  const std::string good =
      "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
      "source = '''#include <Python.h>\n"
      "static PyModuleDef def = {PyModuleDef_HEAD_INIT, \"fast\", 0, -1, 0};\n"
      "extern \"C\" __attribute__((visibility(\"default\"))) PyObject* PyInit_fast() { return PyModule_Create(&def); "
      "}'''\n"
      "import torch.utils.cpp_extension as c\nimport tempfile, os\n"
      "path = os.path.join(tempfile.mkdtemp(), 'fast.cpp')\nopen(path, 'w').write(source)\n"
      "fast = c.load(name='fast', sources=[path])\nforward = fast.forward\n";
  const BuildOutcome first = bench.Build(good, v1::CANDIDATE_FORMAT_KERNELBENCH);
  INFO(first.report.DebugString() << first.reason);
  REQUIRE(first.report.ok());
  REQUIRE(first.objects.size() == 1);
  CHECK(first.objects[0].name == "fast");
  CHECK(first.objects[0].key.size() == 64);
  CHECK(first.objects[0].content.substr(1, 3) == "ELF");
  CHECK(bench.Build(good, v1::CANDIDATE_FORMAT_KERNELBENCH).report.cached());
  const BuildOutcome bad = bench.Build(
      "import os, tempfile\nimport torch.utils.cpp_extension as c\n"
      "path = os.path.join(tempfile.mkdtemp(), 'bad.cpp')\nopen(path, 'w').write('int x = no_such_name;')\n"
      "c.load(name='bad', sources=[path])\n",
      v1::CANDIDATE_FORMAT_KERNELBENCH);
  CHECK(bad.verdict == v1::VERDICT_BUILD_FAILED);
  CHECK_THAT(bad.report.log(), Catch::Contains("no_such_name"));
  // Calls that the import does not reach are found in the text.
  const std::string head = good.substr(0, good.find("fast = c.load"));
  const BuildOutcome later = bench.Build(
      head +
          "class ModelNew:\n  def __init__(self, features):\n    self.width = features * 2\n    files = [path]\n"
          "    if features:\n      self.fast = load(name='fast', sources=files)\n"
          "def once(name='fast'):\n  from torch.utils.cpp_extension import load as build\n"
          "  return build(name, [path], extra_cflags=['-O1'])\n"
          "def unknown(name):\n  return c.load(name, [path])\n"
          "from torch.utils.cpp_extension import load\n",
      v1::CANDIDATE_FORMAT_KERNELBENCH);
  INFO(later.report.DebugString() << later.reason);
  REQUIRE(later.report.ok());
  CHECK(later.objects.size() == 2);
  CHECK_THAT(later.report.log(), Catch::Contains("unknown()") && Catch::Contains("call it at module level"));
  const BuildOutcome left =
      bench.Build("import os, torch.utils.cpp_extension\nos._exit(0)\n", v1::CANDIDATE_FORMAT_KERNELBENCH);
  CHECK(left.verdict == v1::VERDICT_BUILD_FAILED);
  // The log says nothing of it, so that the cache must know the reason by itself.
  const BuildOutcome left_again =
      bench.Build("import os, torch.utils.cpp_extension\nos._exit(0)\n", v1::CANDIDATE_FORMAT_KERNELBENCH);
  CHECK(left_again.report.cached());
  CHECK(left_again.reason == left.reason);
}

TEST_CASE("An extension built with the small headers does to the letter what one built with PyTorch's own does",
          "[build][torch_lite]") {
  auto python = device::FindPython("", "");
  if (!python.ok()) {
    WARN("no Python with torch on this machine");
    return;
  }
  Bench bench;
  TorchGlueOptions options{GROVE_LIBEXEC, *python, *bench.options().cxx, ""};
  const std::string folder = absl::StrCat(bench.options().cache_dir, "/torch-glue");
  // The builder takes that way by itself, and says so, also what took long the first time and not again.
  bench.options().python = *python;
  bench.options().glue_folders = {folder};
  const std::string head = "from torch.utils.cpp_extension import load_inline\n";
  for (const char* times : {"", " + a"}) {
    const BuildOutcome small =
        bench.Build(absl::StrCat(head, "x = load_inline('x', 'torch::Tensor f(torch::Tensor a) { return a + 1", times,
                                 "; }', functions=['f'])\n"),
                    v1::CANDIDATE_FORMAT_KERNELBENCH);
    INFO(small.report.DebugString() << small.reason);
    REQUIRE(small.report.ok());
    CHECK_THAT(small.report.command(), Catch::Contains("x: small headers"));
    CHECK(absl::StrContains(small.report.command(), "once per machine") == (*times == '\0'));
  }
  // Made once.
  int makings = 0;
  const auto glue = FindOrMakeTorchGlue(options, {absl::StrCat(folder, "-none"), folder}, [&] { ++makings; });
  INFO(glue.status());
  REQUIRE(glue.ok());
  CHECK(makings == 0);
  CHECK_FALSE(std::filesystem::exists(absl::StrCat(folder, "-none")));
  options.cxx.version += " (another)";
  CHECK(TorchGlueKey(options).value() != std::filesystem::path(*glue).stem().string());

  auto checked = device::RunTool({python->path, GROVE_LITE_CHECK, GROVE_LIBEXEC, *glue},
                                 {"PATH=/usr/bin:/bin", "HOME=/tmp", absl::StrCat("CXX=", bench.options().cxx->path)},
                                 absl::Seconds(300));
  REQUIRE(checked.ok());
  INFO(checked->out << checked->err);
  CHECK(checked->exit_code == 0);
  CHECK_THAT(checked->out, Catch::StartsWith("same"));

  // What does not fit goes the other way and says why.
  const BuildOutcome wrong =
      bench.Build(head + "x = load_inline('x', 'torch::Tensor f(torch::Tensor a) { return no_such; }')\n",
                  v1::CANDIDATE_FORMAT_KERNELBENCH);
  CHECK(wrong.verdict == v1::VERDICT_BUILD_FAILED);
  CHECK_THAT(wrong.report.log(), Catch::Contains("no_such") && !Catch::Contains("grove_torch_lite"));
}

}  // namespace
}  // namespace grove::build
