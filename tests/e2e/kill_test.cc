// kill -9 of coordinator, worker and command at seeded moments. Whatever was killed is started again on the same
// folder, and at the end everything is as if nothing had happened: the same verdicts, each counted once, nothing that a
// watcher was told taken back.
//
// GROVE_E2E_KILL_SEED and GROVE_E2E_KILL_ROUNDS: another first seed, and more jobs than the suite has time for.
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "tests/e2e/scene.h"

namespace grove::e2e {
namespace {

using nlohmann::json;

unsigned Setting(const char* name, unsigned otherwise) {
  const char* value = getenv(name);
  return value == nullptr ? otherwise : static_cast<unsigned>(strtoul(value, nullptr, 10));
}

// A coordinator and a worker that the test itself starts and kills.
class Farm {
 public:
  explicit Farm(Scene* scene) : scene_(scene) {
    StartCoordinator();
    StartWorker();
  }

  void StartCoordinator() {
    const std::string port_file = scene_->Path("port");
    unlink(port_file.c_str());
    coordinator_ =
        scene_->Start({Program("grove-coordinator"), "--data", scene_->data(), "--listen",
                       scene_->address().empty() ? "127.0.0.1:0" : scene_->address(), "--port-file", port_file,
                       "--heartbeat-seconds", "0.2", "--lease-seconds", "2", "--max-attempts", "100"});
    REQUIRE(Eventually([&] { return !ReadText(port_file).empty() || !coordinator_->Running(); }));
    INFO(coordinator_->Err());
    REQUIRE(coordinator_->Running());
    const std::string address = ReadText(port_file);
    scene_->ConnectTo(address.substr(0, address.find('\n')));
  }
  void StartWorker() {
    worker_ = scene_->Start({Program("grove-worker"), "--coordinator", scene_->address(), "--device", "cpu", "--state",
                             scene_->Path("worker")});
  }
  void KillCoordinator() {
    coordinator_->Kill();
    StartCoordinator();
  }
  void KillWorker() {
    worker_->Kill();
    StartWorker();
  }
  // Neither has ended by itself.
  void CheckAlive() {
    INFO(coordinator_->Err());
    CHECK(coordinator_->Running());
    INFO(worker_->Err());
    CHECK(worker_->Running());
  }

 private:
  Scene* scene_;
  std::unique_ptr<Process> coordinator_, worker_;
};

// The journal of a job as a watcher is told it, without the lines that have no number.
std::vector<json> Events(const std::string& out) {
  std::vector<json> events;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    json event = json::parse(line, nullptr, false);
    if (event.is_object() && event["event"].value("seq", "0") != "0") events.push_back(event["event"]);
  }
  return events;
}

uint64_t Seq(const json& event) { return std::stoull(event["seq"].get<std::string>()); }

// kernel -> its one verdict; everything that must hold of a journal is checked on the way.
std::map<std::string, std::string> Finished(const std::vector<json>& events) {
  std::map<std::string, std::string> verdicts;
  std::map<std::string, int> leased;
  std::map<std::string, int> measured_again;  // what would lead its search is, once
  uint64_t last = 0;
  for (const json& event : events) {
    CHECK(Seq(event) > last);
    last = Seq(event);
    if (event.contains("evaluation_leased")) {
      const json& lease = event["evaluation_leased"];
      const std::string kernel = lease["kernel"];
      CHECK(lease["attempt"].get<int>() > leased[kernel]);  // the fencing token grows
      leased[kernel] = lease["attempt"];
      CHECK(measured_again[kernel] == 0);
    }
    if (event.contains("evaluation_finished")) {
      const json& end = event["evaluation_finished"];
      const std::string kernel = end["kernel"];
      if (end.value("confirmation", false)) {
        CHECK(verdicts.count(kernel) == 1);
        CHECK(++measured_again[kernel] == 1);
        continue;
      }
      CHECK(verdicts.count(kernel) == 0);
      if (end.value("attempt", 0) > 0) CHECK(end["attempt"] == leased[kernel]);
      verdicts[kernel] = end["result"]["verdict"];
    }
  }
  return verdicts;
}

constexpr int kLeastKills = 2;  // or nothing was tried

// Kills until the command has come to its end, or so many have been killed; the last one started runs to its end.
Ended RunAndKill(Scene& scene, Farm& farm, const std::vector<std::string>& command, std::mt19937& random, int kills,
                 std::string* log) {
  std::unique_ptr<Process> cli = scene.StartGrove(command);
  for (int done = 0; done < kills && cli->Running();) {
    // The moment: anywhere within what one evaluation takes here. The wait is the point of the exercise and waits for
    // nothing.
    const double moment = std::uniform_real_distribution<double>(0.0, 0.9)(random);
    const auto victim = random() % 5;
    Eventually([&] { return !cli->Running(); }, moment);
    if (!cli->Running()) break;
    *log += (victim < 2   ? " coordinator"
             : victim < 4 ? " worker"
                          : " command") +
            std::string("@") + std::to_string(moment).substr(0, 4);
    if (victim < 2) {
      farm.KillCoordinator();
    } else if (victim < 4) {
      farm.KillWorker();
    } else {
      cli->Kill();
      cli = scene.StartGrove(command);
    }
    ++done;
  }
  Ended ended = cli->Wait();
  // A coordinator that was away for longer than a call is patient: what a user does is to give the command again.
  for (int i = 0; i < 3 && ended.code == 3; ++i) {
    *log += " again";
    ended = scene.Grove(command);
  }
  farm.CheckAlive();
  return ended;
}

// The watcher that looked on all the time was told the journal as it is at the end: every event once, none taken back.
void CheckWatched(Scene& scene, const std::string& job, Process* watcher) {
  const Ended watched = watcher->Wait();
  const Ended whole = scene.Grove({"watch", job, "--json"});
  CHECK(watched.code == whole.code);
  const std::vector<json> expected = Events(whole.out);
  CHECK(Events(watched.out) == expected);
}

// Twelve candidates of all kinds. Two have the same text but for white space.
std::vector<std::string> Candidates(Scene& scene) {
  std::vector<std::string> files;
  const std::string right = ReadText(TestCase("relu.cpp")), wrong = ReadText(TestCase("wrong.cpp"));
  for (int i = 0; i < 4; ++i) {
    files.push_back(scene.Write(
        "right" + std::to_string(i) + ".cpp",
        right + "static int number = " + std::to_string(i) + ";\nint grove_test_number() { return number; }\n"));
  }
  for (int i = 0; i < 3; ++i) {
    files.push_back(scene.Write("wrong" + std::to_string(i) + ".cpp",
                                wrong + "int grove_test_number() { return " + std::to_string(i) + "; }\n"));
  }
  files.push_back(scene.Write("same.cpp", wrong + "int grove_test_number()   { return 0; }\n"));
  for (const char* name : {"syntax_error.cpp", "segfault.cpp", "returns_nonzero.cpp", "spin.cpp"}) {
    files.push_back(TestCase(name));
  }
  return files;
}

std::vector<std::string> Eval(Scene& scene, const std::string& key) {
  std::vector<std::string> words = {"eval", TestCase("relu.py")};
  for (const std::string& file : Candidates(scene)) words.push_back(file);
  words.insert(words.end(), {"--limit", "call_wall_seconds=5", "--idempotency-key", key, "--json"});
  return Quick(words);
}

// A kernel that passed the check and then got too few valid samples, because the machine was busy, is as correct as it
// was without the kills: what it can be told from is the clock, which is not what is tried here.
std::string Judged(const std::string& verdict, const std::string& reason) {
  const bool busy = reason.find("valid pairs of samples") != std::string::npos;
  const size_t at = verdict.find("UNMEASURABLE");
  return busy && at != std::string::npos ? verdict.substr(0, at) + "CORRECT" : verdict;
}

std::map<std::string, std::string> ByCandidate(const json& document) {
  std::map<std::string, std::string> verdicts;
  for (const json& one : document["results"]) verdicts[one["candidate"]] = Judged(one["verdict"], one["reason"]);
  return verdicts;
}

TEST_CASE("Killed at any moment, an eval job ends with the verdicts of an undisturbed one", "[kill]") {
  const unsigned first = Setting("GROVE_E2E_KILL_SEED", 20260301), rounds = Setting("GROVE_E2E_KILL_ROUNDS", 1);
  Scene scene;
  Farm farm(&scene);
  const Ended quiet = scene.Grove(Eval(scene, "an-undisturbed-job"));
  CHECK(quiet.code == 13);
  const json undisturbed = json::parse(quiet.out, nullptr, false);
  REQUIRE(undisturbed.is_object());
  REQUIRE(undisturbed["results"].size() == 12);
  const auto expected = ByCandidate(undisturbed);
  CHECK(expected.at("right0.cpp") == "CORRECT");
  CHECK(expected.at("spin.cpp") == "TIMED_OUT");
  for (unsigned seed = first; seed < first + rounds; ++seed) {
    std::mt19937 random(seed);
    const std::string key = "a-killed-job-of-seed-" + std::to_string(seed);
    std::string log;
    const auto command = Eval(scene, key);
    const Ended ended = RunAndKill(scene, farm, command, random, 10, &log);
    INFO("seed " << seed << ", killed" << log);
    CHECK(std::count(log.begin(), log.end(), '@') >= kLeastKills);
    CHECK(ended.code == 13);
    const json document = json::parse(ended.out, nullptr, false);
    REQUIRE(document.is_object());
    for (const json& one : document["results"]) {
      INFO(one["reason"]);
      CHECK(std::string(one["candidate"]) + " " + Judged(one["verdict"], one["reason"]) ==
            std::string(one["candidate"]) + " " + expected.at(one["candidate"]));
    }
    CHECK(document["results"].size() == expected.size());
    // Given once more: the same job with the same results.
    const json again = json::parse(scene.Grove(command).out, nullptr, false);
    CHECK(again["job"] == document["job"]);
    CHECK(again["results"] == document["results"]);
    const Ended watched = scene.Grove({"watch", document["job"], "--json"});
    const auto finished = Finished(Events(watched.out));
    CHECK(finished.size() == 12);
    for (const json& one : document["results"]) {
      CHECK(finished.at(one["node"]) == "VERDICT_" + one["verdict"].get<std::string>());
    }
  }
  CHECK(scene.Document({"jobs"}, 0)["jobs"].size() == 1 + rounds);
}

TEST_CASE("Killed at any moment, a search goes on and a watcher is told everything once", "[kill]") {
  const unsigned seed = Setting("GROVE_E2E_KILL_SEED", 20260302);
  Scene scene;
  Farm farm(&scene);
  // One round: what it tries does not depend on times measured.
  const auto command = [&](const std::string& key) {
    return Quick({"search", TestCase("relu.py"), "--rounds", "1", "--ideas", "6", "--variants", "1", "--no-bank",
                  "--seed", "7", "--idempotency-key", key, "--json"});
  };
  const auto verdicts = [](const json& document) {
    std::multiset<std::string> all;  // source, verdict, why
    for (const json& node : document["tree"]) {
      if (node["kind"] != "kernel") continue;
      const json& result = node["result"];
      const std::string verdict = Judged(result.value("verdict", "none"), result.value("reason", ""));
      all.insert(result.value("candidate_sha256", "none").substr(0, 12) + " " + verdict +
                 (verdict == "VERDICT_CORRECT" ? "" : " " + result.value("reason", "")));
    }
    return all;
  };
  const Ended quiet = scene.Grove(command("an-undisturbed-search"));
  CHECK(quiet.code == 0);
  const json undisturbed = json::parse(quiet.out, nullptr, false);
  REQUIRE(undisturbed.is_object());
  REQUIRE(verdicts(undisturbed).size() >= 4);

  const std::string key = "a-killed-search-of-" + std::to_string(seed);
  INFO("seed " << seed);
  std::vector<std::string> detached = command(key);
  detached.push_back("--detach");
  const json submitted = json::parse(scene.Grove(detached).out, nullptr, false);
  REQUIRE(submitted.is_object());
  const std::string job = submitted["job"];
  const auto watcher = scene.StartGrove({"watch", job, "--json"});
  REQUIRE(Eventually([&] { return !watcher->Out().empty(); }));  // it is attached, and must stay so
  std::mt19937 random(seed);
  std::string log;
  const Ended ended = RunAndKill(scene, farm, command(key), random, 12, &log);
  INFO("killed" << log);
  CHECK(std::count(log.begin(), log.end(), '@') >= kLeastKills);
  CHECK(ended.code == 0);
  const json document = json::parse(ended.out, nullptr, false);
  REQUIRE(document.is_object());
  CHECK(document["job"] == job);
  CHECK(verdicts(document) == verdicts(undisturbed));
  CHECK(document["best"].is_object());
  CheckWatched(scene, job, watcher.get());
  const auto finished = Finished(Events(scene.Grove({"watch", job, "--json"}).out));
  CHECK(finished.size() == verdicts(undisturbed).size());
}

}  // namespace
}  // namespace grove::e2e
