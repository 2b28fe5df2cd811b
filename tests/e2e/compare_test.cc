// `grove compare` and `grove calibrate` with the real programs on the CPU.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/e2e/scene.h"

namespace grove::e2e {
namespace {

using nlohmann::json;

// x * 2 after WORK rounds of arithmetic that change nothing.
constexpr char kWork[] = R"(#include <grove/kernel.h>
GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  float* y = (float*)args->outputs[0].data;
  const int64_t n = args->inputs[0].shape[0];
  volatile float known_later = 1.0f;  // or the compiler leaves the work out
  const float one = known_later;
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i];
    for (int s = 0; s < WORK; ++s) v = v * one;
    y[i] = v * 2.0f;
  }
  return 0;
}
)";
constexpr char kProblem[] = R"(name = "twice"
torchscript = '''
def forward(x: Tensor) -> Tensor:
    return x * 2.0
'''
[[inputs]]
name = "x"
shape = [4096]
)";

// In three pairs of processes: two say so little of how they differ that a busy machine would make all unclear.
std::vector<std::string> Compare(const Scene& scene, const std::string& old_kernel, const std::string& new_kernel,
                                 std::vector<std::string> more) {
  std::vector<std::string> words = {
      "compare", scene.Path("twice.toml"), old_kernel, new_kernel, "--device", "cpu", "--trials", "2", "--replicas",
      "3"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The one result of a comparison, whatever its exit code.
json Result(Scene& scene, const std::vector<std::string>& words) {
  std::vector<std::string> with = words;
  with.push_back("--json");
  const Ended ended = scene.Grove(with);
  CAPTURE(ended.out, ended.err);
  const json document = json::parse(ended.out, nullptr, false);
  REQUIRE(document.is_object());
  REQUIRE(document["schema"] == "grove.v1/compare");
  CHECK(document["exit_code"] == ended.code);
  REQUIRE(document["results"].size() == 1);
  json one = document["results"][0];
  one["exit"] = ended.code;
  return one;
}

TEST_CASE("A kernel against itself leans to neither side, and against one that works twice as long it is told",
          "[compare]") {
  Scene scene;
  scene.Up();
  scene.Write("twice.toml", kProblem);
  const std::string kernel = scene.Write("work.cpp", kWork);
  // An interval misses at times, more often where the machine is busy with other things; a judge that leans does
  // always.
  int runs = 3, faster_than_itself = 0, slower_than_itself = 0;
  for (int run = 0; run < runs; ++run) {
    const json itself = Result(scene, Compare(scene, kernel, kernel, {"--build-flag=-DWORK=100"}));
    CAPTURE(itself.dump());
    const std::string comparison = itself["comparison"];
    faster_than_itself += comparison == "FASTER";
    slower_than_itself += comparison == "SLOWER";
    if (comparison == "FASTER" || comparison == "SLOWER") runs = 7;
    CHECK(itself["exit"] == (comparison == "SLOWER" ? 17 : comparison == "UNCLEAR" ? 18 : 0));
    CHECK(itself["resolution"] == 0.1);  // never calibrated
    CHECK(itself["calibrated"] == false);
    CHECK(itself["replicas"] == 3);
    const json& rival = itself["result"]["timing"]["baselines"][1];
    CHECK(rival["each_replica"].size() == 3);
    int samples = 0;
    for (const json& each : rival["each_replica"]) samples += each["samples"].get<int>();
    CHECK(itself["samples"] == samples);
  }
  CHECK(faster_than_itself <= 2);
  CHECK(slower_than_itself <= 2);
  // On a machine that is busy with other things the interval may be too wide to tell, and never wrong.
  const auto told = [&](const char* old_work, const char* new_work) {
    json result;
    for (int run = 0; run < 4 && (run == 0 || result["comparison"] == "UNCLEAR"); ++run) {
      result = Result(scene, Compare(scene, kernel, kernel, {old_work, new_work}));
    }
    return result;
  };
  const json slower = told("--old-flag=-DWORK=100", "--new-flag=-DWORK=200");
  CAPTURE(slower.dump());
  CHECK(slower["comparison"] == "SLOWER");
  CHECK(slower["exit"] == 17);
  CHECK(slower["ratio_high"].get<double>() < 0.9);
  CHECK(slower["rival_seconds"].get<double>() < slower["candidate_seconds"].get<double>());
  const json faster = told("--old-flag=-DWORK=200", "--new-flag=-DWORK=100");
  CAPTURE(faster.dump());
  CHECK(faster["comparison"] == "FASTER");
  CHECK(faster["exit"] == 0);
  // And both against the reference.
  const json& baselines = faster["result"]["timing"]["baselines"];
  REQUIRE(baselines.size() == 2);
  CHECK(baselines[0]["baseline"] == "BASELINE_EAGER");
  CHECK(baselines[1]["baseline"] == "BASELINE_RIVAL");
  CHECK(baselines[0].contains("comparison"));
}

TEST_CASE("A rival that is not correct leaves the candidate its verdict and gives no figure", "[compare]") {
  Scene scene;
  scene.Up();
  scene.Write("twice.toml", kProblem);
  const std::string kernel = scene.Write("work.cpp", kWork);
  struct Row {
    const char* name;
    std::string source, verdict;
    int code;
  };
  const std::string head = "#include <grove/kernel.h>\n#include <stdlib.h>\nGROVE_KERNEL(args) {\n";
  for (const Row& row : {Row{"wrong.cpp", head + "  return 0;\n}\n", "WRONG", 11},
                         Row{"crash.cpp", head + "  abort();\n}\n", "CRASHED", 13},
                         Row{"broken.cpp", head + "  return\n", "BUILD_FAILED", 10}}) {
    CAPTURE(row.name);
    const std::string rival = scene.Write(row.name, row.source);
    const json one = Result(scene, Compare(scene, rival, kernel, {"--build-flag=-DWORK=10", "--max-time", "0.3"}));
    CAPTURE(one.dump());
    CHECK(one["verdict"] == "CORRECT");
    CHECK(one["rival_verdict"] == row.verdict);
    CHECK(one["comparison"].is_null());
    CHECK(one["exit"] == row.code);
    CHECK(one["reason"].get<std::string>().find("no figure against the rival") != std::string::npos);
    CHECK(one["result"]["timing"]["baselines"][0]["speedup"].get<double>() > 0);
  }
  // A wrong candidate is wrong, whatever it is compared with.
  const json wrong = Result(scene, Compare(scene, kernel, scene.Path("wrong.cpp"), {"--build-flag=-DWORK=10"}));
  CHECK(wrong["verdict"] == "WRONG");
  CHECK(wrong["exit"] == 11);
}

TEST_CASE("A calibration is kept by the worker, told with every result, and outlives it", "[compare]") {
  Scene scene;
  scene.Up();
  const json document = scene.Document({"calibrate", "--device", "cpu", "--runs", "6", "--max-seconds", "40"}, 0);
  CAPTURE(document.dump());
  CHECK(document["schema"] == "grove.v1/calibrate");
  const json& calibration = document["calibration"];
  const double resolution = calibration["resolution"];
  CHECK(resolution >= 0.001);
  CHECK(calibration["runs"].get<int>() >= 1);
  CHECK(calibration["bandwidth_bytes_per_second"].get<double>() > 1e8);
  CHECK(calibration["rates"].size() >= 2);
  CHECK(calibration["kernels"].size() >= 1);
  const json workers = scene.Document({"workers"}, 0);
  CHECK(workers["workers"][0]["device"]["calibration"]["resolution"] == resolution);
  const json judged = scene.Document(Quick({"eval", TestCase("relu.py"), TestCase("relu.cpp")}), 0);
  const json& result = judged["results"][0]["result"];
  CHECK(result["device"]["calibration"]["resolution"] == resolution);
  const json& eager = result["timing"]["baselines"][0];
  const double used = eager["resolution"], speedup = eager["speedup"];
  CHECK(used > 0);
  CHECK(used <= resolution);
  // No interval is narrower than what equal programs differ by here; the reason says the same.
  CHECK(eager["speedup_low"].get<double>() <= speedup / (1 + used) * (1 + 1e-9));
  CHECK(eager["speedup_high"].get<double>() >= speedup * (1 + used) * (1 - 1e-9));
  char said[64];
  std::snprintf(said, sizeof said, "%.3gx [%.3g, %.3g] against eager", speedup, eager["speedup_low"].get<double>(),
                eager["speedup_high"].get<double>());
  CHECK(result["reason"].get<std::string>().find(said) == 0);
  // Of each kernel what it tells apart, and no more.
  const json& kept = result["device"]["calibration"]["kernels"];
  REQUIRE(kept.size() == calibration["kernels"].size());
  for (size_t i = 0; i < kept.size(); ++i) {
    CHECK(kept[i]["resolution"] == calibration["kernels"][i]["resolution"]);
    CHECK(kept[i]["resolution"].get<double>() <= resolution);
    CHECK(!kept[i].contains("runs"));
  }
}

}  // namespace
}  // namespace grove::e2e
