// `grove audit` from end to end: the corpus is stopped, and a trick that is not is named.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/scene.h"

namespace grove::e2e {
namespace {

using nlohmann::json;

constexpr double kCases = 2400;  // seconds; a quarter of an hour on two slow processors that have nothing else to do

std::string Manifest(const std::string& id, const std::string& more) {
  return "id = \"" + id +
         "\"\ntitle = \"A title\"\nwhat = \"What\"\nsource = \"ours\"\nlayer = \"judge\"\nproblem = " + "\"relu\"\n" +
         more;
}

// What `grove audit` with these arguments says; `stopped`: whether it succeeded.
json AuditOf(const std::vector<std::string>& arguments, bool* stopped) {
  Scene scene;
  std::vector<std::string> all{"audit", "--device", "cpu", "--json"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Ended ended = scene.StartGrove(all)->Wait(kCases);
  const json document = json::parse(ended.out, nullptr, /*allow_exceptions=*/false);
  CAPTURE(ended.err.substr(ended.err.size() - std::min<size_t>(ended.err.size(), 500)));
  REQUIRE(document.is_object());
  INFO(document.value("error", json()).dump());
  REQUIRE(document.contains("cases"));  // otherwise it says why there are none
  *stopped = ended.code == 0;
  return document;
}

std::vector<std::string> CasesThatAre(bool timed) {
  Scene scene;
  std::vector<std::string> ids;
  const json list = scene.Document({"audit", "--list"}, 0);
  for (const json& one : list["cases"]) {
    if (one["timed"].get<bool>() == timed) ids.push_back(one["id"].get<std::string>());
  }
  REQUIRE(!ids.empty());  // without a case all of them would be tried
  return ids;
}

struct Missed {
  std::string id, what;  // what it came to stands first: reports are cut
  // There is no time, or what a trick with time gains is nothing beside the noise. Not of tricks with harness and host.
  bool may_be_machines;
};

// The cases that are not as they must be.
std::vector<Missed> MissedIn(const json& document) {
  std::vector<Missed> all;
  for (const json& one : document["cases"]) {
    if (one["state"] == "good" || one["state"] == "other_device" || one["state"] == "known_miss") continue;
    const bool timing = one["class"] == "timing", once = one["class"] == "harness" || one["class"] == "host";
    Missed missed{one["id"], one["id"].get<std::string>() + " " + one["state"].get<std::string>(), !once};
    for (const json& attempt : one["attempts"]) {
      if (attempt["good"] == true) continue;
      missed.what += "\n" + attempt.dump();
      if (!timing && attempt["verdict"] != "UNMEASURABLE") missed.may_be_machines = false;
    }
    all.push_back(missed);
  }
  return all;
}

// Every one of these cases is as it must be. Where a machine that has other things to do may be why it is not (a time
// cannot be told, or what a trick gains) it may be asked `again` so many times.
void Audit(std::vector<std::string> ids, int least, int again = 0) {
  std::vector<Missed> missed;
  bool stopped = false;
  for (int round = 0; round == 0 || (round <= again && !ids.empty()); ++round) {
    std::vector<std::string> arguments;
    for (const std::string& id : ids) arguments.insert(arguments.end(), {"--case", id});
    const json document = AuditOf(arguments, &stopped);
    if (round == 0) {
      CHECK(document["exploits"]["cases"].get<int>() + document["controls"]["cases"].get<int>() >= least);
    }
    ids.clear();
    missed = MissedIn(document);
    for (const Missed& one : missed) {
      if (one.may_be_machines && round < again) {
        ids.push_back(one.id);
      } else {
        CHECK(one.what == "");
      }
    }
  }
  CHECK(stopped);
}

// Two runs, of which the first does not time anything: most problems are loaded once in each.
TEST_CASE("Every known trick that needs no clock is stopped on the CPU, and no honest kernel rejected",
          "[audit][corpus]") {
  Audit(CasesThatAre(/*timed=*/false), 260);
}

TEST_CASE("Every known trick that is timed is stopped on the CPU, and no honest kernel that is timed rejected",
          "[audit][corpus]") {
  Audit(CasesThatAre(/*timed=*/true), 105, /*again=*/2);
}

TEST_CASE("A trick that works and an honest kernel that is rejected are named, and the audit fails", "[audit]") {
  Scene scene;
  const std::string honest = ReadText(TestCase("relu.cpp")), wrong = ReadText(TestCase("wrong.cpp"));
  scene.Write("corpus/problems/relu.py", ReadText(TestCase("relu.py")));
  scene.Write("corpus/replay/C01-works/manifest.toml", Manifest("C01", "expect = [\"WRONG\"]"));
  scene.Write("corpus/replay/C01-works/a.cpp", honest);
  scene.Write("corpus/replay/C02-stopped/manifest.toml", Manifest("C02", "expect = [\"WRONG\"]\nthen = \"H02\""));
  scene.Write("corpus/replay/C02-stopped/a.cpp", wrong);
  scene.Write("corpus/controls/H01-rejected/manifest.toml", Manifest("H01", ""));
  scene.Write("corpus/controls/H01-rejected/a.cpp", wrong);
  scene.Write("corpus/controls/H02-honest/manifest.toml", Manifest("H02", ""));
  scene.Write("corpus/controls/H02-honest/a.cpp", honest);
  const std::string corpus = scene.Path("corpus");
  const Ended ended = scene.Grove({"audit", "--device", "cpu", "--corpus", corpus});
  CHECK(ended.code == 1);
  CHECK(Contains(ended.out, "MISSED   C01 a.cpp"));
  CHECK(Contains(ended.out, "REJECTED H01 a.cpp"));
  CHECK(Contains(ended.out, "1 of 2 exploits stopped, 1 of 2 honest controls rejected"));
  const json document = scene.Document({"audit", "--device", "cpu", "--corpus", corpus, "--case", "C02"}, 0);
  CHECK(document["schema"] == "grove.v1/audit");
  CHECK(document["cases"].size() == 1);
  REQUIRE(document["cases"][0]["attempts"].size() == 2);
  CHECK(document["cases"][0]["attempts"][1]["after"] == true);
  CHECK(document["cases"][0]["attempts"][1]["verdict"] == "CORRECT");
}

TEST_CASE("An audit that is interrupted within a job keeps what was judged of it", "[audit]") {
  Scene scene;
  scene.Write("corpus/problems/relu.py", ReadText(TestCase("relu.py")));
  // One job, because its limits are the same.
  const std::string limits = "[limits]\ncall_wall_seconds = \"600s\"\n";
  scene.Write("corpus/controls/H01-honest/manifest.toml", Manifest("H01", limits));
  scene.Write("corpus/controls/H01-honest/a.cpp", ReadText(TestCase("relu.cpp")));
  scene.Write("corpus/controls/H02-endless/manifest.toml", Manifest("H02", limits));
  // A case is as it must be when all of its files are.
  scene.Write("corpus/controls/H02-endless/a.cpp", ReadText(TestCase("relu.cpp")));
  scene.Write("corpus/controls/H02-endless/b.cpp",
              "#include <grove/kernel.h>\n#include <unistd.h>\nGROVE_KERNEL(args) { for (;;) sleep(1); return 0; }\n");
  auto audit = scene.StartGrove({"audit", "--device", "cpu", "--corpus", scene.Path("corpus")});
  REQUIRE(Eventually([&] { return Contains(audit->Err(), "2/3 audit relu"); }));
  audit->Signal(SIGINT);
  const Ended ended = audit->Wait();
  CHECK(ended.code == 130);
  CHECK(Contains(ended.out, "NOT RUN  H02 b.cpp"));
  CHECK_FALSE(Contains(ended.out, "NOT RUN  H01"));
  CHECK(Contains(ended.out, "controls  1/2"));
}

TEST_CASE("An audit whose worker cannot start ends and says why", "[audit]") {
  Scene scene;
  std::filesystem::create_directories(scene.Path("bin"));
  for (const char* name : {"grove", "grove-coordinator"}) {
    std::filesystem::copy_file(Program(name), scene.Path("bin") + "/" + name);
  }
  scene.Write("bin/grove-worker", "#!/bin/sh\necho 'grove-judge is not there' >&2\nexit 1\n");
  std::filesystem::permissions(scene.Path("bin/grove-worker"), std::filesystem::perms::owner_all);
  scene.Write("corpus/problems/relu.py", ReadText(TestCase("relu.py")));
  scene.Write("corpus/controls/H01-honest/manifest.toml", Manifest("H01", ""));
  scene.Write("corpus/controls/H01-honest/a.cpp", ReadText(TestCase("relu.cpp")));
  const Ended ended = scene
                          .Start({scene.Path("bin/grove"), "--data", scene.data(), "audit", "--device", "cpu",
                                  "--corpus", scene.Path("corpus")})
                          ->Wait();
  CHECK(ended.code == 20);
  CHECK(Contains(ended.err, "gave up"));
  CHECK(Contains(ended.err, "grove-judge is not there"));
}

TEST_CASE("The corpus is listed without a coordinator, and what is not there is said", "[audit]") {
  Scene scene;
  const json list = scene.Document({"audit", "--list"}, 0);
  CHECK(list["cases"].size() > 100);
  CHECK(std::any_of(list["cases"].begin(), list["cases"].end(), [](const json& one) { return one["timed"] == true; }));
  CHECK(ReadText(scene.data() + "/journal.db").empty());
  const Ended none = scene.Grove({"audit", "--case", "Q99"});
  CHECK(none.code == 2);
  CHECK(Contains(none.err, "no case Q99"));
  CHECK(scene.Grove({"audit", "--corpus", scene.Path("nothing")}).code == 2);
}

}  // namespace
}  // namespace grove::e2e
