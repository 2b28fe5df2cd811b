// `grove eval` with the real coordinator, worker, judge and candidates: the exit codes and documents that users script
// on.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/scene.h"

namespace grove::e2e {
namespace {

using nlohmann::json;

std::vector<std::string> Eval(const std::string& problem, std::vector<std::string> candidates,
                              std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"eval", problem};
  words.insert(words.end(), candidates.begin(), candidates.end());
  words.insert(words.end(), more.begin(), more.end());
  return Quick(words);
}

TEST_CASE("Each verdict has its exit code and its evidence in the document", "[eval]") {
  Scene scene;
  scene.Up();
  const std::string relu = TestCase("relu.py");
  struct Row {
    const char* candidate;
    int code;
    const char* verdict;
    std::vector<std::string> flags;
  };
  const std::vector<Row> rows = {
      {"relu.cpp", 0, "CORRECT", {}},      {"syntax_error.cpp", 10, "BUILD_FAILED", {}},
      {"wrong.cpp", 11, "WRONG", {}},      {"spin.cpp", 12, "TIMED_OUT", {"--limit", "call_wall_seconds=1"}},
      {"segfault.cpp", 13, "CRASHED", {}}, {"memory_hog.cpp", 15, "LIMIT_EXCEEDED", {"--limit", "memory_bytes=256MiB"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.candidate);
    const json document = scene.Document(Eval(relu, {TestCase(row.candidate)}, row.flags), row.code);
    CHECK(document["schema"] == "grove.v1/eval");
    CHECK(document["exit_code"] == row.code);
    CHECK(document["state"] == "DONE");
    REQUIRE(document["results"].size() == 1);
    const json& one = document["results"][0];
    CHECK(one["verdict"] == row.verdict);
    CHECK(one["candidate"] == row.candidate);
    CHECK(!one["reason"].get<std::string>().empty());
    CHECK(one["speedup"].is_null() == (row.code != 0));
    const json& result = one["result"];
    switch (row.code) {
      case 0:
        CHECK(one["speedup"].get<double>() > 0);
        CHECK(one["speedup_low"].get<double>() <= one["speedup_high"].get<double>());
        CHECK(one["samples"].get<int>() >= 10);
        CHECK(one["baseline"] == "eager");
        break;
      case 10:
        CHECK(Contains(result["build"]["log"], "no_such_field"));
        break;
      case 11:
        CHECK(result["correctness"]["outputs"][0]["worst"]["got"].get<double>() < 0);
        CHECK(result["correctness"]["first_failing_trial"] == 1);
        break;
      case 12:
        CHECK(result["fault"]["limit"] == "call_wall_seconds");
        CHECK(result["fault"]["limit_set"] == 1);
        break;
      case 13:
        CHECK(result["fault"]["signal_name"] == "SIGSEGV");
        break;
      default:
        CHECK(result["fault"]["limit"] == "memory_bytes");
    }
  }
}

TEST_CASE("Several candidates end with the worst exit code, and text goes to stdout", "[eval]") {
  Scene scene;
  const std::string relu = TestCase("relu.py");
  // An embedded coordinator: nothing is configured.
  const Ended ended = scene.Grove(Eval(
      relu, {TestCase("relu.cpp"), TestCase("wrong.cpp"), TestCase("segfault.cpp"), TestCase("syntax_error.cpp")}));
  CHECK(ended.code == 13);
  CHECK(Contains(ended.err, "no coordinator configured: started one"));
  CHECK(Contains(ended.err, "4 candidates: 1 correct, 1 build failed, 1 crashed, 1 wrong"));
  CHECK(Contains(ended.out, "relu.cpp  CORRECT"));
  CHECK(Contains(ended.out, "signal 11 SIGSEGV"));
  // It ended with the command, and its work is still there to be looked at.
  CHECK(ReadText(scene.data() + "/coordinator.addr").empty());
  const json jobs = scene.Document({"jobs"}, 0);
  REQUIRE(jobs["jobs"].size() == 1);
  const std::string id = jobs["jobs"][0]["id"];
  const json node = scene.Document({"show", id + "/k3"}, 0);
  CHECK(node["node"]["result"]["verdict"] == "VERDICT_CRASHED");
}

TEST_CASE("A native problem and a KernelBench candidate are judged", "[eval]") {
  Scene scene;
  scene.Up();
  const std::string right = scene.Write("silu.cpp", R"(#include <grove/kernel.h>
#include <cmath>
GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* bias = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const int64_t rows = args->inputs[0].shape[0], columns = args->inputs[0].shape[1];
#pragma omp parallel for num_threads(args->num_threads)
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const float v = x[r * columns + c] + bias[c];
      y[r * columns + c] = v / (1 + std::exp(-v));
    }
  return 0;
}
)");
  const json native = scene.Document(Eval(Example("problems/bias_silu.toml"), {right}), 0);
  CHECK(native["results"][0]["verdict"] == "CORRECT");
  const std::string plain = scene.Write("model_new.py", R"(import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(min=0)
)");
  const std::string bad = scene.Write("model_bad.py", R"(import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.abs()
)");
  const json python = scene.Document(Eval(TestCase("relu.py"), {plain, bad}), 11);
  CHECK(python["results"][0]["verdict"] == "CORRECT");
  CHECK(python["results"][1]["verdict"] == "WRONG");
}

TEST_CASE("Parameters that a candidate declares are tried, and the best of them are its result", "[eval]") {
  Scene scene;
  scene.Up();
  // One of the values makes it forty times slower, one makes it wrong, one does not build.
  const std::string text = R"(#include <grove/kernel.h>
constexpr int kTimes = 40;  // grove: try 40 1 0
#define ZERO 0              // grove: try 0 nothing
GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  int64_t n = 1;
  for (int d = 0; d < args->inputs[0].ndim; ++d) n *= args->inputs[0].shape[d];
  for (int k = 0; k < kTimes; ++k) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > ZERO ? x[i] : 0;
    asm volatile("" ::: "memory");
  }
  return 0;
}
)";
  const std::string candidate = scene.Write("declared.cpp", text);
  const std::vector<std::string> verdicts = {"CORRECT",      "BUILD_FAILED", "CORRECT",
                                             "BUILD_FAILED", "WRONG",        "BUILD_FAILED"};
  std::string node;
  json shown;
  // A machine that is busy with other things may leave one of them without a time: then all are asked for again.
  for (int tries = 0; tries < 3; ++tries) {
    const json document = scene.Document(Eval(TestCase("relu.py"), {candidate}), 0);
    CHECK(document["results"][0]["verdict"] == "CORRECT");
    node = document["results"][0]["node"];
    shown = scene.Document({"show", node}, 0)["node"];
    REQUIRE(shown["result"]["combinations"].size() == verdicts.size());
    if (shown["result"]["combinations"][2].value("chosen", false)) break;
  }
  const json& combinations = shown["result"]["combinations"];
  for (size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    CHECK(combinations[i]["verdict"] == "VERDICT_" + verdicts[i]);
    CHECK(combinations[i].value("chosen", false) == (i == 2));
  }
  CHECK(combinations[2]["parameters"][0]["name"] == "kTimes");
  CHECK(combinations[2]["parameters"][0]["value"] == "1");
  CHECK(combinations[2]["speedup"].get<double>() > combinations[0]["speedup"].get<double>());
  CHECK(Contains(combinations[1]["reason"], "nothing"));
  CHECK(Contains(shown["candidate"]["source"], "constexpr int kTimes = 1;  // grove: tried 40 1 0"));
  const Ended table = scene.Grove({"show", node});
  CHECK(Contains(table.out, "kTimes=1 ZERO=0, chosen of 6 combinations"));
  CHECK(Contains(table.out, "* kTimes=1 ZERO=0"));
  // By a Python candidate, too; and what cannot be followed is said.
  const std::string python = scene.Write("declared.py", R"(import torch
import torch.nn as nn

LOW = 1  # grove: try 1 0


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(min=LOW)
)");
  const std::string bad = scene.Write("undeclared.cpp", "int x = 2;  // grove: try 1 2\n" + text);
  const json more = scene.Document(Eval(TestCase("relu.py"), {python, bad}), 10);
  CHECK(more["results"][0]["verdict"] == "CORRECT");
  CHECK(more["results"][0]["result"]["combinations"][1]["chosen"] == true);
  // Against another kernel, of which it is said once how they compare.
  const json compared =
      json::parse(scene
                      .Grove({"compare", TestCase("relu.py"), TestCase("relu.cpp"), scene.Path("declared.cpp"),
                              "--max-time", "0.2", "--replicas", "2", "--json"})
                      .out);
  const std::string reason = compared["results"][0]["reason"];
  CHECK(Contains(reason, "against the rival"));
  CHECK(reason.find("against the rival") == reason.rfind("against the rival"));
  CHECK(compared["results"][0]["result"]["combinations"].size() == 6);
  CHECK(compared["results"][0]["replicas"] == 2);  // of each of them
  CHECK(more["results"][1]["verdict"] == "BUILD_FAILED");
  CHECK(Contains(more["results"][1]["reason"], "line 1: the first value to try, 1, stands 0 times"));
}

TEST_CASE("Bad problems and bad candidates say what is wrong, and the farm goes on", "[eval]") {
  Scene scene;
  Process& up = scene.Up();
  const std::string relu = TestCase("relu.cpp");
  struct Row {
    const char* name;
    const char* text;
    const char* what;
  };
  const std::vector<Row> rows = {
      {"not_python.py", "this is not Python (\n", "not_python"},
      {"no_model.py", "def get_inputs(): return []\ndef get_init_inputs(): return []\n", "Model"},
      {"raises.py",
       "import torch\nclass Model(torch.nn.Module):\n  def forward(self, x): raise ValueError('as it likes')\n"
       "def get_inputs(): return [torch.randn(4)]\ndef get_init_inputs(): return []\n",
       "as it likes"},
      {"missing_package.py", "import there_is_no_such_package\n", "there_is_no_such_package"},
      {"wrong_key.toml", "torchscrip = \"x\"\n", "torchscrip"},
      {"no_tensors.py",
       "import torch\nclass Model(torch.nn.Module):\n  def forward(self, x): return x\n"
       "def get_inputs(): return ['text']\ndef get_init_inputs(): return []\n",
       "makes no tensors"},
      {"too_large.py",
       "import torch\nclass Model(torch.nn.Module):\n  def forward(self, x): return x\n"
       "def get_inputs(): return [torch.empty(1 << 50)]\ndef get_init_inputs(): return []\n",
       "make its shapes smaller"},
      {"ends_the_process.py", "import os\nos.abort()\n", "run the file by itself"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const json document = scene.Document(Eval(scene.Write(row.name, row.text), {relu}), 2);
    CHECK(document["exit_code"] == 2);
    CHECK(Contains(document.dump(), row.what));
  }
  const Ended nothing = scene.Grove(Eval(scene.Path("none.py"), {relu}));
  CHECK(nothing.code == 2);
  CHECK(Contains(nothing.err, "no such file"));
  CHECK(up.Running());
  CHECK(scene.Document(Eval(TestCase("relu.py"), {relu}), 0)["results"][0]["verdict"] == "CORRECT");
}

TEST_CASE("The same idempotency key makes one job, however often the command is given", "[eval]") {
  Scene scene;
  scene.Up();
  const auto words = Eval(TestCase("relu.py"), {TestCase("relu.cpp"), TestCase("wrong.cpp")},
                          {"--idempotency-key", "one-and-the-same-key"});
  const json first = scene.Document(words, 11);
  const json second = scene.Document(words, 11);
  CHECK(first["job"] == second["job"]);
  CHECK(first["results"] == second["results"]);
  CHECK(scene.Document({"jobs"}, 0)["jobs"].size() == 1);
  const Ended bad = scene.Grove(Eval(TestCase("relu.py"), {TestCase("relu.cpp")}, {"--idempotency-key", "short"}));
  CHECK(bad.code == 2);
  CHECK(Contains(bad.err, "idempotency"));
  const Ended other =
      scene.Grove(Eval(TestCase("relu.py"), {TestCase("relu.cpp")}, {"--idempotency-key", "one-and-the-same-key"}));
  CHECK(other.code == 2);
  CHECK(Contains(other.err, first["job"].get<std::string>()));
  CHECK(Contains(other.err, "a new one needs a new key"));
}

TEST_CASE("A candidate that lies about its time is called a cheat, with its exit code and the evidence", "[eval]") {
  Scene scene;
  scene.Up();
  // Calls that take long beside what asking costs. On a machine that is busy with other things, too, it may be that
  // nobody can be accused: then it has gained nothing.
  std::string problem = ReadText(TestCase("transcendental.py"));
  const std::string shape = "torch.randn(256, 512)";
  REQUIRE(Contains(problem, shape));
  problem.replace(problem.find(shape), shape.size(), "torch.randn(512, 4096)");
  const std::string larger = scene.Write("larger.py", problem);
  json document;
  for (int run = 0; run < 8 && (run == 0 || document["results"][0]["verdict"] != "CHEATED"); ++run) {
    const Ended ended = scene.Grove(Eval(larger, {TestCase("false_clock.cpp")}, {"--json"}));
    document = json::parse(ended.out);
    const json& said = document["results"][0];
    if (said["verdict"] == "CORRECT") {
      CHECK(said["speedup"].get<double>() < 1);
    } else {
      CHECK((ended.code == 14 || ended.code == 16));
    }
  }
  CHECK(document["exit_code"] == 14);
  CHECK(document["results"][0]["verdict"] == "CHEATED");
  CHECK(Contains(document["results"][0]["result"]["fault"]["evidence"], "judge's clock"));
}

TEST_CASE("An evaluation whose workers are lost time and again is unmeasurable, and has its exit code", "[eval]") {
  Scene scene;
  const std::string port_file = scene.Path("port");
  const auto coordinator =
      scene.Start({Program("grove-coordinator"), "--data", scene.data(), "--listen", "127.0.0.1:0", "--port-file",
                   port_file, "--heartbeat-seconds", "0.2", "--lease-seconds", "10", "--max-attempts", "1"});
  REQUIRE(Eventually([&] { return !ReadText(port_file).empty() || !coordinator->Running(); }));
  REQUIRE(coordinator->Running());
  const std::string address = ReadText(port_file);
  scene.ConnectTo(address.substr(0, address.find('\n')));
  const auto worker = scene.Start({Program("grove-worker"), "--coordinator", scene.address(), "--device", "cpu",
                                   "--state", scene.Path("worker"), "--allow-weak-sandbox"});
  const auto eval = scene.StartGrove(Eval(TestCase("relu.py"), {TestCase("spin.cpp")},
                                          {"--limit", "call_wall_seconds=60", "--limit", "run_wall_seconds=120"}));
  REQUIRE(Eventually([&] { return scene.Document({"jobs"}, 0)["jobs"].size() == 1; }));
  REQUIRE(Eventually([&] {
    const json jobs = scene.Document({"jobs"}, 0)["jobs"];
    return jobs[0].dump().find("\"running\":1") != std::string::npos;
  }));
  worker->Kill();
  const Ended ended = eval->Wait();
  CHECK(ended.code == 16);
  CHECK(Contains(ended.out, "UNMEASURABLE"));
}

TEST_CASE("An argument of a class that the problem defines reaches the candidate as one of its own", "[eval]") {
  Scene scene;
  const std::string head =
      "import dataclasses\nimport torch\n@dataclasses.dataclass\nclass Config:\n    scale: float = 3.0\n";
  const std::string body =
      "(torch.nn.Module):\n    def __init__(self, config):\n        super().__init__()\n        self.scale = "
      "config.scale\n    def forward(self, x):\n        return x * self.scale\n";
  const std::string problem = scene.Write("scaled.py", head + "class Model" + body +
                                                           "def get_inputs(): return [torch.randn(64, 64)]\n"
                                                           "def get_init_inputs(): return [Config(2.5)]\n");
  const std::string candidate = scene.Write("scaled_new.py", head + "class ModelNew" + body);
  const json document = scene.Document({"eval", problem, candidate, "--device", "cpu", "--no-timing"}, 0);
  CHECK(document["results"][0]["verdict"] == "CORRECT");
  CHECK(document["results"][0]["result"].value("timing", json()).is_null());
}

TEST_CASE("An installation that is not whole is an infrastructure failure", "[eval]") {
  Scene scene;
  // Alone in a folder, as when only one of the programs was copied.
  std::filesystem::create_directories(scene.Path("bin"));
  std::filesystem::copy_file(Program("grove"), scene.Path("bin/grove"));
  const auto eval = scene.Start({scene.Path("bin/grove"), "--data", scene.data(), "eval", TestCase("relu.py"),
                                 TestCase("relu.cpp"), "--device", "cpu"});
  const Ended ended = eval->Wait();
  CHECK(ended.code == 20);
  CHECK(Contains(ended.err, "grove-coordinator: no such program"));
  CHECK(Contains(ended.err, "is the installation whole?"));
}

TEST_CASE("A data folder of a newer version is refused with what to do, and stays as it is", "[eval]") {
  Scene scene;
  REQUIRE(scene.Grove({"jobs"}).code == 3);  // nothing there yet
  REQUIRE(scene.Start({"/usr/bin/env", "mkdir", "-p", scene.data()})->Wait().code == 0);
  // The journal's own table is enough; a newer version may have anything beside it.
  REQUIRE(scene
              .Start({GROVE_PYTHON, "-c",
                      "import sqlite3, sys\n"
                      "db = sqlite3.connect(sys.argv[1] + '/journal.db')\n"
                      "db.execute('CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID')\n"
                      "db.execute(\"INSERT INTO meta VALUES('schema_version', '99')\")\n"
                      "db.commit()\n",
                      scene.data()})
              ->Wait()
              .code == 0);
  const std::string before = ReadText(scene.data() + "/journal.db");
  const auto coordinator =
      scene.Start({Program("grove-coordinator"), "--data", scene.data(), "--listen", "127.0.0.1:0"});
  const Ended ended = coordinator->Wait();
  CHECK(ended.code == 1);
  CHECK(Contains(ended.err, "newer grove (schema 99"));
  CHECK(Contains(ended.err, "--data"));
  const Ended embedded = scene.Grove(Eval(TestCase("relu.py"), {TestCase("relu.cpp")}));
  CHECK(embedded.code == 2);
  CHECK(Contains(embedded.err, "newer grove (schema 99"));
  CHECK(ReadText(scene.data() + "/journal.db") == before);
}

}  // namespace
}  // namespace grove::e2e
