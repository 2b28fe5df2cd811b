// Every limit of an evaluation, asked for as a user asks for it, ends what exceeds it with its own name and figures,
// and a full disk under the worker loses nothing.
#include <sys/mount.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/e2e/scene.h"

namespace grove::e2e {
namespace {

using nlohmann::json;

constexpr double kMiB = 1 << 20;

// A limit's figures as JSON has them: a 64-bit integer would be text, but these are doubles.
double Figure(const json& fault, const char* name) { return fault.value(name, json(0.0)).get<double>(); }

TEST_CASE("Each limit ends what exceeds it, by its own name and with its figures", "[eval][limits]") {
  Scene scene;
  scene.Up();
  const std::string relu = TestCase("relu.py");
  struct Row {
    const char* candidate;
    std::vector<std::string> limits;  // the first is the one that is met
    const char* verdict;
    int code;
    double set, reached_at_most;  // 0 = not looked at
  };
  const std::vector<Row> rows = {
      {"template_bomb.cpp", {"build_wall_seconds=1"}, "TIMED_OUT", 12, 1, 0},
      {"template_bomb.cpp", {"build_cpu_seconds=1"}, "LIMIT_EXCEEDED", 15, 1, 0},
      {"template_bomb.cpp", {"build_memory_bytes=64MiB"}, "LIMIT_EXCEEDED", 15, 64 * kMiB, 0},
      {"output_bomb.cpp", {"build_output_bytes=4MiB"}, "LIMIT_EXCEEDED", 15, 4 * kMiB, 0},
      {"spin_at_load.cpp", {"run_wall_seconds=2"}, "TIMED_OUT", 12, 2, 0},
      {"cpu_hog.cpp", {"run_cpu_seconds=1"}, "LIMIT_EXCEEDED", 15, 1, 0},
      {"spin.cpp", {"call_wall_seconds=1"}, "TIMED_OUT", 12, 1, 0},
      {"memory_hog.cpp", {"memory_bytes=256MiB"}, "LIMIT_EXCEEDED", 15, 256 * kMiB, 0},
      {"thread_bomb.cpp", {"processes=40"}, "LIMIT_EXCEEDED", 15, 40, 0},
      {"disk_filler.cpp", {"disk_bytes=32MiB"}, "LIMIT_EXCEEDED", 15, 32 * kMiB, 40 * kMiB},
      {"inode_flood.cpp", {"disk_bytes=32MiB"}, "LIMIT_EXCEEDED", 15, 32 * kMiB, 0},
      {"log_flood.cpp", {"output_bytes=256KiB"}, "LIMIT_EXCEEDED", 15, 0.25 * kMiB, 0},
  };
  for (const Row& row : rows) {
    const std::string name = row.limits[0].substr(0, row.limits[0].find('='));
    CAPTURE(row.candidate, row.limits[0]);
    std::vector<std::string> words = {"eval", relu, TestCase(row.candidate)};
    for (const std::string& limit : row.limits) words.insert(words.end(), {"--limit", limit});
    const json document = scene.Document(Quick(words), row.code);
    const json& result = document["results"][0]["result"];
    INFO(result.dump(1));
    CHECK(document["results"][0]["verdict"] == row.verdict);
    REQUIRE(result.contains("fault"));
    CHECK(result["fault"]["limit"] == name);
    CHECK(Figure(result["fault"], "limit_set") == Approx(row.set));
    // The kernel's own counts are in pages. Of disk_bytes /tmp has one half and /dev/shm the other.
    CHECK(Figure(result["fault"], "limit_reached") >= row.set * (name == "disk_bytes" ? 0.49 : 0.9));
    if (row.reached_at_most > 0) CHECK(Figure(result["fault"], "limit_reached") <= row.reached_at_most);
    CHECK(Contains(document["results"][0]["reason"].get<std::string>(), name));
  }
  // And the honest kernel within limits of the same size is left alone.
  const json honest = scene.Document(
      Quick({"eval", relu, TestCase("relu.cpp"), "--limit", "output_bytes=256KiB", "--limit", "disk_bytes=32MiB",
             "--limit", "memory_bytes=256MiB", "--limit", "call_wall_seconds=20", "--limit", "processes=128"}),
      0);
  CHECK(honest["results"][0]["verdict"] == "CORRECT");
}

TEST_CASE("The operator's limits hold where a job sets none, and a job's own win", "[eval][limits]") {
  Scene scene;
  auto worker = [&](const std::string& address) {
    return scene.Start({Program("grove-worker"), "--coordinator", address, "--device", "cpu", "--state-dir",
                        scene.Path("state"), "--limit-call-wall-seconds", "1"});
  };
  auto coordinator = scene.Start({Program("grove-coordinator"), "--data", scene.data(), "--listen", "127.0.0.1:0"});
  const std::string record = scene.data() + "/coordinator.addr";
  REQUIRE(Eventually([&] { return !ReadText(record).empty(); }));
  const std::string text = ReadText(record);
  scene.ConnectTo(text.substr(0, text.find(' ')));
  auto running = worker(scene.address());
  const json document = scene.Document(Quick({"eval", TestCase("relu.py"), TestCase("spin.cpp")}), 12);
  CHECK(Figure(document["results"][0]["result"]["fault"], "limit_set") == 1);
  const json own = scene.Document(
      Quick({"eval", TestCase("relu.py"), TestCase("spin.cpp"), "--limit", "call_wall_seconds=1.5"}), 12);
  CHECK(Figure(own["results"][0]["result"]["fault"], "limit_set") == 1.5);
}

TEST_CASE("A worker without the layers that it needs does not start, unless weak sandboxes are allowed", "[limits]") {
  Scene scene;
  // The bubblewrap that is found first is none.
  std::filesystem::create_directories(scene.Path("bin"));
  scene.Write("bin/bwrap", "#!/bin/sh\necho 'no namespaces for you' >&2\nexit 1\n");
  std::filesystem::permissions(scene.Path("bin/bwrap"), std::filesystem::perms::all);
  scene.environment()["PATH"] = scene.Path("bin") + ":/usr/bin:/bin";
  const std::vector<std::string> words = {Program("grove-worker"), "--coordinator",    "127.0.0.1:1", "--device", "cpu",
                                          "--state-dir",           scene.Path("state")};
  const Ended refused = scene.Start(words)->Wait();
  CHECK(refused.code == 1);
  CHECK(Contains(refused.err, "namespaces"));
  CHECK(Contains(refused.err, "--allow-weak-sandbox"));
  const Ended doctor = scene.Start({Program("grove-worker"), "doctor", "--device", "cpu"})->Wait();
  CHECK(doctor.code == 1);
  CHECK(Contains(doctor.out, "!!  namespaces"));
  std::vector<std::string> weak = words;
  weak.push_back("--allow-weak-sandbox");
  auto started = scene.Start(weak);
  CHECK(Eventually([&] { return Contains(started->Err(), "WEAK SANDBOX") || !started->Running(); }));
  CHECK(Eventually([&] { return Contains(started->Err(), "no session with the coordinator") || !started->Running(); }));
  CHECK(started->Running());
}

TEST_CASE("Without control groups the doctor says what takes their place, and candidates are judged", "[limits]") {
  Scene scene;
  scene.environment()["GROVE_CGROUPS"] = "off";
  const Ended doctor = scene.Start({Program("grove-worker"), "doctor", "--device", "cpu"})->Wait();
  CHECK(doctor.code == 0);
  CHECK(Contains(doctor.out, "watched by the supervisor"));
  CHECK(Contains(doctor.out, "--  hold"));
  scene.Up();
  const json honest = scene.Document(Quick({"eval", TestCase("relu.py"), TestCase("relu.cpp")}), 0);
  CHECK_FALSE(Contains(honest["results"][0]["result"]["timing"]["method"].get<std::string>(), "held"));
  const json hog = scene.Document(
      Quick({"eval", TestCase("relu.py"), TestCase("memory_hog.cpp"), "--limit", "memory_bytes=256MiB"}), 15);
  CHECK(hog["results"][0]["result"]["fault"]["limit"] == "memory_bytes");
  // Whose work it is, too: by the processes inside, which no control group names here.
  const std::string corpus = std::string(GROVE_SOURCE_DIR) + "/tests/testcases/exploits";
  const json library =
      scene.Document({"eval", corpus + "/problems/matmul.py", corpus + "/fake/F01-library-behind-extension/blas.cpp",
                      "--work", "own_kernels", "--no-timing"},
                     14);
  CHECK(Contains(library["results"][0]["reason"].get<std::string>(), "it loaded lib"));
  const json workers = scene.Document({"workers"}, 0);
  CHECK(Contains(workers["workers"][0].dump(), "watched-memory"));
}

// A small file system of its own at `folder`, or why there can be none.
class SmallDisk {
 public:
  SmallDisk(const std::string& folder, const char* size) : folder_(folder) {
    std::filesystem::create_directories(folder);
    if (mount("tmpfs", folder.c_str(), "tmpfs", 0, size) != 0) error_ = strerror(errno);
  }
  ~SmallDisk() {
    if (error_.empty()) umount2(folder_.c_str(), MNT_DETACH);
  }
  const std::string& error() const { return error_; }
  void FillUp() const {
    std::ofstream file(folder_ + "/filler", std::ios::binary);
    const std::string chunk(64 << 10, 'x');
    while (file.write(chunk.data(), static_cast<std::streamsize>(chunk.size())) && file.flush()) {
    }
  }
  void MakeRoom() const { std::filesystem::remove(folder_ + "/filler"); }

 private:
  std::string folder_, error_;
};

TEST_CASE("A full disk under the worker's state loses no result, and is said", "[limits]") {
  Scene scene;
  SmallDisk disk(scene.Path("state"), "size=1m");
  if (!disk.error().empty()) {
    WARN("skipped: no file system can be mounted here: " << disk.error());
    return;
  }
  auto coordinator = scene.Start({Program("grove-coordinator"), "--data", scene.data(), "--listen", "127.0.0.1:0"});
  const std::string record = scene.data() + "/coordinator.addr";
  REQUIRE(Eventually([&] { return !ReadText(record).empty(); }));
  const std::string text = ReadText(record);
  scene.ConnectTo(text.substr(0, text.find(' ')));
  auto worker = scene.Start({Program("grove-worker"), "--coordinator", scene.address(), "--device", "cpu",
                             "--state-dir", scene.Path("state")});
  REQUIRE(Eventually([&] { return Contains(worker->Err(), "connected to the coordinator") || !worker->Running(); }));
  disk.FillUp();
  // Neither the build's cache nor the spool can be written.
  const json right = scene.Document(Quick({"eval", TestCase("relu.py"), TestCase("relu.cpp")}), 0);
  CHECK(right["results"][0]["verdict"] == "CORRECT");
  const json wrong = scene.Document(Quick({"eval", TestCase("relu.py"), TestCase("wrong.cpp")}), 11);
  CHECK(wrong["results"][0]["verdict"] == "WRONG");
  CHECK(worker->Running());
  CHECK(Contains(worker->Err(), "cannot keep the result of"));
  CHECK(Contains(worker->Err(), "No space left on device"));
  disk.MakeRoom();
  const json after = scene.Document(Quick({"eval", TestCase("relu.py"), TestCase("segfault.cpp")}), 13);
  CHECK(after["results"][0]["verdict"] == "CRASHED");
  CHECK(worker->Running());
}

TEST_CASE("A worker that cannot write its state folder says so and does not start", "[limits]") {
  Scene scene;
  SmallDisk disk(scene.Path("state"), "size=64k");
  if (!disk.error().empty()) {
    WARN("skipped: no file system can be mounted here: " << disk.error());
    return;
  }
  disk.FillUp();
  const Ended ended = scene
                          .Start({Program("grove-worker"), "--coordinator", "127.0.0.1:1", "--device", "cpu",
                                  "--state-dir", scene.Path("state")})
                          ->Wait();
  CHECK(ended.code == 1);
  CHECK(Contains(ended.err, scene.Path("state")));
  CHECK(Contains(ended.err, "No space left on device"));
}

}  // namespace
}  // namespace grove::e2e
