// Ctrl-C, and a coordinator that goes away: what the commands do, say and exit with.
#include <signal.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/e2e/scene.h"

namespace grove::e2e {
namespace {

using nlohmann::json;

// A kernel that runs until it is killed: an evaluation that is under way for as long as a test wants.
std::vector<std::string> Endless(std::vector<std::string> more) {
  std::vector<std::string> words = {
      "eval",    TestCase("relu.py"),   TestCase("spin.cpp"), "--limit", "call_wall_seconds=600",
      "--limit", "run_wall_seconds=600"};
  words.insert(words.end(), more.begin(), more.end());
  return Quick(words);
}

// Pids on the machine whose command line names the scene's folder: whatever a command left running.
std::string LeftOver(Scene& scene) {
  return scene
      .Start({"/bin/sh", "-c",
              "for p in /proc/[0-9]*; do case $(tr '\\0' ' ' < $p/cmdline 2>/dev/null) in "
              "*grove-*\"$1\"*) [ ${p#/proc/} != $$ ] && cat $p/cmdline | tr '\\0' ' ';; esac; done",
              "sh", scene.Path("data")})
      ->Wait()
      .out;
}

bool Running(Scene& scene) {
  const json workers = scene.Document({"workers"}, 0);
  for (const json& worker : workers["workers"]) {
    if (worker.value("slot_state", "") == "checking") return true;
  }
  return false;
}

TEST_CASE("Ctrl-C on `grove up` lets what runs come to its end", "[interrupt]") {
  Scene scene;
  Process& up = scene.Up();
  const Ended detached = scene.Grove(
      Quick({"eval", TestCase("relu.py"), TestCase("spin.cpp"), "--limit", "call_wall_seconds=4", "--detach"}));
  REQUIRE(detached.code == 0);
  const std::string job = detached.out.substr(0, detached.out.find('\n'));
  REQUIRE(Eventually([&] { return Running(scene); }));
  up.Signal(SIGINT);
  const Ended ended = up.Wait();
  CHECK(ended.code == 0);
  CHECK(Contains(ended.err, "draining"));
  CHECK(Contains(ended.err, "everything is kept in " + scene.data()));
  CHECK(LeftOver(scene).empty());
  // It was let finish, and its result is in the store.
  scene.ConnectTo("");
  CHECK(scene.Document({"job", job}, 0)["job"]["state"] == "JOB_STATE_DONE");
  CHECK(scene.Document({"show", job + "/k1"}, 0)["node"]["result"]["verdict"] == "VERDICT_TIMED_OUT");
}

TEST_CASE("The second Ctrl-C on `grove up` ends everything at once", "[interrupt]") {
  Scene scene;
  Process& up = scene.Up();
  const Ended detached = scene.Grove(Endless({"--detach"}));
  REQUIRE(detached.code == 0);
  const std::string job = detached.out.substr(0, detached.out.find('\n'));
  REQUIRE(Eventually([&] { return Running(scene); }));
  up.Signal(SIGINT);
  REQUIRE(Eventually([&] { return Contains(up.Err(), "draining"); }));
  CHECK(up.Running());
  up.Signal(SIGINT);
  CHECK(up.Wait(20).code == 130);  // far below the 35 s that draining takes with an endless kernel
  CHECK(Eventually([&] { return LeftOver(scene).empty(); }));
  scene.ConnectTo("");
  // Whoever looks at it does not go on with it.
  CHECK(scene.Document({"job", job}, 0)["job"]["state"] == "JOB_STATE_PAUSED");
}

TEST_CASE("Ctrl-C in an embedded search says how to go on, and `grove resume` finishes it", "[interrupt]") {
  Scene scene;
  const auto search = scene.StartGrove(Quick({"search", TestCase("relu.py"), "--rounds", "1", "--ideas", "4",
                                              "--variants", "1", "--no-bank", "--seed", "7", "--json"}));
  // In the middle: one kernel judged, others to come.
  REQUIRE(Eventually([&] { return Contains(search->Err(), " k1 "); }));
  search->Signal(SIGINT);
  const Ended ended = search->Wait();
  CHECK(ended.code == 130);
  CHECK(Contains(ended.err, "nothing is lost"));
  const json document = json::parse(ended.out);
  CHECK(document["schema"] == "grove.v1/error");
  CHECK(document["code"] == "CANCELLED");
  CHECK(document["exit_code"] == 130);
  CHECK(LeftOver(scene).empty());
  const size_t at = ended.err.find("`grove resume j-");
  REQUIRE(at != std::string::npos);
  const std::string job = ended.err.substr(at + 14, ended.err.find('`', at + 14) - at - 14);
  // It does not go on inside another command, which says that it waits.
  const Ended other = scene.Grove(Quick({"eval", TestCase("relu.py"), TestCase("relu.cpp")}));
  INFO(other.err);
  CHECK(other.code == 0);
  CHECK(Contains(other.err, "1 interrupted job waits: `grove resume " + job + "`"));
  CHECK(Contains(scene.Grove({"jobs", "--state", "paused"}).out, job));
  const json found = scene.Document({"resume", job}, 0);
  CHECK(found["job"] == job);
  CHECK(found["state"] == "DONE");
  CHECK(found["best"].is_object());
  CHECK(LeftOver(scene).empty());
}

TEST_CASE("A killed command takes its embedded coordinator and worker with it, and the job is there", "[interrupt]") {
  Scene scene;
  const auto search = scene.StartGrove(Endless({}));
  REQUIRE(Eventually([&] { return Contains(ReadText(scene.data() + "/logs/worker-0.log"), "state in"); }));
  search->Kill();
  CHECK(Eventually([&] { return LeftOver(scene).empty(); }));
  const json jobs = scene.Document({"jobs"}, 0);
  CHECK(jobs["jobs"].size() == 1);
}

TEST_CASE("A daemon whose parent is gone before it could look ends at once", "[interrupt]") {
  Scene scene;
  // As if by the time it looks init had taken it over: its parent is another process than the one that started it.
  scene.environment()["GROVE_PARENT_PID"] = "999999999";
  for (const char* program : {"grove-worker", "grove-coordinator"}) {
    const bool worker = std::string(program) == "grove-worker";
    const Ended ended = scene
                            .Start({Program(program), "--exit-with-parent", worker ? "--state" : "--data",
                                    scene.Path(program), worker ? "--coordinator" : "--listen", "127.0.0.1:0"})
                            ->Wait();
    CHECK(ended.code == 1);
    CHECK(Contains(ended.err, "gone already"));
  }
}

TEST_CASE("A coordinator that is away during a quiet watch is found again", "[interrupt]") {
  Scene scene;
  scene.Up();
  const std::string job = scene.Document(Endless({"--detach"}), 0)["job"];
  REQUIRE(Eventually([&] { return Running(scene); }));
  const auto watcher = scene.StartGrove({"watch", job, "--reattach", "30"});
  const auto hasty = scene.StartGrove({"watch", job, "--reattach", "1"});
  // For longer than the hasty one is patient, nothing happens: an endless kernel has no events. It is attached all the
  // while, so that its patience begins when the coordinator goes.
  CHECK_FALSE(Eventually([&] { return !hasty->Running(); }, 2.5));
  const std::string record = ReadText(scene.data() + "/coordinator.addr");
  const pid_t coordinator = static_cast<pid_t>(std::stol(record.substr(record.find(' ') + 1)));
  // `up` starts a killed coordinator again at its address.
  kill(coordinator, SIGKILL);
  CHECK(Eventually([&] { return Contains(watcher->Err(), "attached again"); }));
  CHECK(Eventually([&] { return Contains(hasty->Err(), "trying to attach again"); }));
  CHECK(watcher->Running());
  CHECK(scene.Grove({"cancel", job}).code == 0);
  const Ended ended = watcher->Wait();
  CHECK(ended.code == 130);
  CHECK(Contains(ended.err, "cancelled"));
}

TEST_CASE("An audit of a device that no worker has says what it waits for, until it is ended", "[interrupt]") {
  Scene scene;
  scene.Up();
  const auto audit = scene.StartGrove({"audit", "--device", "cuda", "--case", "N21", "--corpus", TestCase("exploits")});
  CHECK(Eventually([&] { return Contains(audit->Err(), "is paused: no worker with a cuda device"); }));
  audit->Signal(SIGINT);
  CHECK(audit->Wait().code == 130);
}

TEST_CASE("A coordinator that goes away for good ends a watch with exit code 3", "[interrupt]") {
  Scene scene;
  Process& up = scene.Up();
  const std::string job = scene.Document(Endless({"--detach"}), 0)["job"];
  const auto watcher = scene.StartGrove({"watch", job, "--reattach", "2"});
  const auto eval = scene.StartGrove(Endless({"--reattach", "2", "--json"}));
  const std::string address = scene.address();
  REQUIRE(Eventually([&] { return scene.Document({"jobs"}, 0)["jobs"].size() == 2; }));
  REQUIRE(Eventually([&] { return Running(scene); }));
  up.Kill();
  const Ended watched = watcher->Wait();
  CHECK(watched.code == 3);
  CHECK(Contains(watched.err, address));
  const Ended judged = eval->Wait();
  CHECK(judged.code == 3);
  CHECK(json::parse(judged.out, nullptr, false)["schema"] == "grove.v1/error");
  CHECK(Contains(judged.err, "attaches again"));
  CHECK(scene.Grove({"jobs"}).code == 3);
}

}  // namespace
}  // namespace grove::e2e
