// The program itself: exit codes, documents, messages and interrupts, against a coordinator with canned answers.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/run_program.h"
#include "tests/cli/samples.h"

namespace grove::cli {
namespace {

using nlohmann::json;

// A home of its own, so that nobody's configuration or data takes part.
class Home {
 public:
  Home() {
    char name[] = "/tmp/grove-home-XXXXXX";
    path_ = mkdtemp(name);
    Write("problem.py", "class Model: pass\n");
    Write("a.cpp", "int a;\n");
    Write("b.cpp", "int b;\n");
  }
  ~Home() { std::filesystem::remove_all(path_); }

  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }
  std::map<std::string, std::string> Environment() const {
    std::map<std::string, std::string> environment = {
        {"HOME", path_}, {"PATH", "/usr/bin:/bin"}, {"LANG", "C.UTF-8"}, {"TERM", "xterm"}};
    for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH"}) {
      if (const char* value = getenv(name)) environment[name] = value;
    }
    return environment;
  }
  std::vector<std::string> Argv(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = {GROVE_PROGRAM};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return argv;
  }
  ProgramResult Run(const std::vector<std::string>& arguments) const {
    ProgramResult result = RunProgram(Argv(arguments), Environment());
    UNSCOPED_INFO("stdout: " << result.out << "\nstderr: " << result.err);
    return result;
  }

 private:
  std::string path_;
};

v1::Event Written(uint64_t seq, const std::string& id) {
  v1::Event event;
  event.set_seq(seq);
  event.mutable_kernel_written()->mutable_kernel()->set_id(id);
  return event;
}

v1::Event Finished(uint64_t seq, const std::string& id, const v1::EvaluationResult& result) {
  v1::Event event;
  event.set_seq(seq);
  event.mutable_evaluation_finished()->set_kernel(id);
  *event.mutable_evaluation_finished()->mutable_result() = result;
  return event;
}

v1::EvaluationResult ResultOf(v1::Verdict verdict) {
  if (verdict == v1::VERDICT_CORRECT) return CorrectResult(3.42, 3.31, 3.55);
  v1::EvaluationResult result;
  result.set_verdict(verdict);
  result.set_reason("canned");
  return result;
}

// An eval job with these verdicts, ended.
void SetEval(FakeCoordinator* server, const std::vector<v1::Verdict>& verdicts) {
  v1::Job job;
  job.set_id("j-evaleval");
  job.set_state(v1::JOB_STATE_DONE);
  job.mutable_spec()->set_name("problem");
  job.mutable_spec()->mutable_eval();
  std::vector<v1::Event> events;
  std::vector<v1::TreeNode> nodes;
  uint64_t seq = 0;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const std::string id = absl::StrCat("j-evaleval/k", i + 1);
    events.push_back(Written(++seq, id));
    events.push_back(Finished(++seq, id, ResultOf(verdicts[i])));
    nodes.push_back(Kernel(id, "", ResultOf(verdicts[i])));
    nodes.back().mutable_kernel()->mutable_candidate()->set_name(absl::StrCat("c", i + 1, ".cpp"));
    nodes.back().mutable_kernel()->mutable_candidate()->set_source("int x;\n");
  }
  server->SetJob(job, events, nodes);
}

void SetSearch(FakeCoordinator* server, bool correct) {
  v1::Job job;
  job.set_id("j-searches");
  job.set_state(v1::JOB_STATE_DONE);
  job.mutable_spec()->set_name("problem");
  job.mutable_spec()->mutable_search();
  job.mutable_counts()->set_ideas(1);
  job.mutable_counts()->set_kernels(1);
  const v1::EvaluationResult result = correct ? CorrectResult(3.42, 3.31, 3.55) : WrongResult();
  (*job.mutable_counts()->mutable_verdicts())[result.verdict()] = 1;
  if (correct) {
    job.set_best_node("j-searches/k1");
    job.set_best_speedup(3.42), job.set_best_speedup_low(3.31), job.set_best_speedup_high(3.55);
  }
  v1::Event ideas;
  ideas.set_seq(1);
  *ideas.mutable_ideas_proposed()->add_ideas() = Idea("j-searches/i1", "", "Fuse the passes").idea();
  v1::Event called;
  called.set_seq(2);
  called.mutable_model_called()->set_exchange_sha256("abc");
  v1::TreeNode kernel = Kernel("j-searches/k1", "j-searches/i1", result);
  kernel.mutable_kernel()->mutable_candidate()->set_source("int best;\n");
  kernel.mutable_kernel()->mutable_candidate()->set_format(v1::CANDIDATE_FORMAT_CPP);
  server->SetJob(job, {ideas, called, Written(3, "j-searches/k1"), Finished(4, "j-searches/k1", result)},
                 {Idea("j-searches/i1", "", "Fuse the passes"), kernel});
}

TEST_CASE("eval exits with the code of its verdict", "[command]") {
  const auto [verdict, code] = GENERATE(table<v1::Verdict, int>({{v1::VERDICT_CORRECT, 0},
                                                                 {v1::VERDICT_BUILD_FAILED, 10},
                                                                 {v1::VERDICT_WRONG, 11},
                                                                 {v1::VERDICT_TIMED_OUT, 12},
                                                                 {v1::VERDICT_CRASHED, 13},
                                                                 {v1::VERDICT_CHEATED, 14},
                                                                 {v1::VERDICT_LIMIT_EXCEEDED, 15},
                                                                 {v1::VERDICT_UNMEASURABLE, 16}}));
  Home home;
  FakeCoordinator server;
  SetEval(&server, {verdict});
  const ProgramResult result =
      home.Run({"--coordinator", server.address(), "eval", home.Path("problem.py"), home.Path("a.cpp")});
  CHECK(result.exit_code == code);
  CHECK(absl::StrContains(result.out, v1::Verdict_Name(verdict).substr(8)));
  REQUIRE(server.submitted().size() == 1);
  CHECK(server.submitted()[0].spec().eval().candidates(0).source() == "int a;\n");
  CHECK(server.submitted()[0].spec().eval().problem().format() == v1::PROBLEM_FORMAT_KERNELBENCH);
}

TEST_CASE("eval of several exits with the worst and prints one document", "[command]") {
  Home home;
  FakeCoordinator server;
  SetEval(&server, {v1::VERDICT_CORRECT, v1::VERDICT_CRASHED, v1::VERDICT_WRONG});
  const ProgramResult result = home.Run({"eval",
                                         home.Path("problem.py"),
                                         home.Path("a.cpp"),
                                         home.Path("b.cpp"),
                                         "--json",
                                         "--coordinator",
                                         server.address(),
                                         "--trials",
                                         "7",
                                         "--tolerance",
                                         "1e-2,1e-3",
                                         "--baseline",
                                         "all",
                                         "--limit",
                                         "memory_bytes=1GiB",
                                         "--keep-samples",
                                         "--work",
                                         "own_kernels",
                                         "--cache",
                                         "warm",
                                         "--profile",
                                         "--reuse"});
  CHECK(result.exit_code == 13);
  const json document = json::parse(result.out);
  CHECK(document["schema"] == "grove.v1/eval");
  CHECK(document["exit_code"] == 13);
  CHECK(document["results"].size() == 3);
  CHECK(document["results"][0]["speedup_high"] == 3.55);
  REQUIRE(server.submitted().size() == 1);
  const v1::EvaluationOptions options = server.submitted()[0].spec().eval().options();
  CHECK(options.trials() == 7);
  CHECK(options.tolerance().atol() == 1e-2);
  CHECK(options.tolerance().rtol() == 1e-3);
  CHECK(options.baselines_size() == 2);
  CHECK(options.limits().memory_bytes() == 1 << 30);
  CHECK(options.keep_samples());
  CHECK(options.work() == v1::WORK_POLICY_OWN_KERNELS);
  CHECK(options.cache() == v1::CACHE_POLICY_WARM);
  CHECK_FALSE(options.skip_timing());
  CHECK(options.reuse_result());
  CHECK(options.profile());
}

TEST_CASE("A pipe that nobody writes to is said to be empty, and not waited for", "[command]") {
  Home home;
  FakeCoordinator server;
  const std::string pipe = home.Path("pipe.cpp");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const ProgramResult silent = home.Run({"--coordinator", server.address(), "eval", home.Path("problem.py"), pipe});
  CHECK(silent.exit_code == 2);
  CHECK(absl::StrContains(silent.err, "is empty"));
  CHECK(server.submitted().empty());
}

TEST_CASE("eval without timing asks for no baseline, and takes none", "[command]") {
  Home home;
  FakeCoordinator server;
  SetEval(&server, {v1::VERDICT_CORRECT});
  const std::vector<std::string> words = {"--coordinator",         server.address(),   "eval",
                                          home.Path("problem.py"), home.Path("a.cpp"), "--no-timing"};
  CHECK(home.Run(words).exit_code == 0);
  REQUIRE(server.submitted().size() == 1);
  CHECK(server.submitted()[0].spec().eval().options().skip_timing());
  CHECK(server.submitted()[0].spec().eval().options().baselines_size() == 0);
  std::vector<std::string> both = words;
  both.insert(both.end(), {"--baseline", "compile"});
  const ProgramResult refused = home.Run(both);
  CHECK(refused.exit_code == 2);
  CHECK(absl::StrContains(refused.err, "contradict"));
}

TEST_CASE("Without its flags a job asks for no policy and for no earlier result", "[command]") {
  Home home;
  FakeCoordinator server;
  SetEval(&server, {v1::VERDICT_CORRECT});
  home.Run({"eval", home.Path("problem.py"), home.Path("a.cpp"), "--coordinator", server.address()});
  REQUIRE(server.submitted().size() == 1);
  CHECK(server.submitted()[0].spec().eval().options().work() == v1::WORK_POLICY_UNSPECIFIED);
  CHECK_FALSE(server.submitted()[0].spec().eval().options().reuse_result());
}

TEST_CASE("Comparisons are made in several pairs of processes, as many as are asked for", "[command]") {
  Home home;
  FakeCoordinator server;
  SetEval(&server, {v1::VERDICT_CORRECT});
  const auto compare = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"compare",          home.Path("problem.py"), home.Path("a.cpp"),
                                      home.Path("b.cpp"), "--coordinator",         server.address()};
    words.insert(words.end(), more.begin(), more.end());
    return home.Run(words);
  };
  compare({});
  compare({"--replicas", "4"});
  compare({"--replicas", "7"});
  REQUIRE(server.submitted().size() == 3);
  CHECK(server.submitted()[0].spec().eval().options().replicas() == 1);
  CHECK(server.submitted()[1].spec().eval().options().replicas() == 4);
  CHECK(server.submitted()[2].spec().eval().options().replicas() == 7);
  const ProgramResult many = compare({"--replicas", "17"});
  CHECK(many.exit_code == 2);
  CHECK(absl::StrContains(many.err, "'17' is not a whole number from 1 to 16"));
  home.Run({"eval", home.Path("problem.py"), home.Path("a.cpp"), "--coordinator", server.address()});
  REQUIRE(server.submitted().size() == 4);
  CHECK(server.submitted()[3].spec().eval().options().replicas() == 0);
}

TEST_CASE("A policy of work is told with every kind of job, and no other word is one", "[command]") {
  Home home;
  FakeCoordinator server;
  SetSearch(&server, true);
  home.Run({"search", home.Path("problem.py"), "--work", "libraries", "--coordinator", server.address()});
  REQUIRE(server.submitted().size() == 1);
  CHECK(server.submitted()[0].spec().search().options().work() == v1::WORK_POLICY_LIBRARIES);
  SetEval(&server, {v1::VERDICT_CORRECT});
  home.Run({"compare", home.Path("problem.py"), home.Path("a.cpp"), home.Path("b.cpp"), "--work", "own_kernels",
            "--coordinator", server.address()});
  REQUIRE(server.submitted().size() == 2);
  CHECK(server.submitted()[1].spec().eval().options().work() == v1::WORK_POLICY_OWN_KERNELS);
  const ProgramResult wrong = home.Run({"eval", home.Path("problem.py"), home.Path("a.cpp"), "--work", "mine"});
  CHECK(wrong.exit_code == 2);
  CHECK(absl::StrContains(wrong.err, "'mine' is not one of anything, libraries, own_kernels"));
}

TEST_CASE("search prints tree, best kernel and where things are, and records its model's answers", "[command]") {
  Home home;
  FakeCoordinator server;
  SetSearch(&server, true);
  const ProgramResult result =
      home.Run({"--coordinator", server.address(), "search", home.Path("problem.py"), "--rounds", "2", "--keep", "1",
                "--seed", "7", "--repairs", "0", "--explore", "0", "--no-bank", "--record", home.Path("run.jsonl")});
  CHECK(result.exit_code == 0);
  CHECK(absl::StrContains(result.out, "└─ i1 Fuse the passes"));
  CHECK(absl::StrContains(result.out, "best       3.42x [3.31, 3.55] (95 % interval) vs eager  j-searches/k1"));
  CHECK(absl::StrContains(result.out, "grove best j-searches -o best.cpp"));
  CHECK(absl::StrContains(result.out, "/srv/fake"));
  std::ifstream recorded(home.Path("run.jsonl"));
  std::stringstream text;
  text << recorded.rdbuf();
  CHECK(text.str() == "{\"exchange\":1}\n");
  REQUIRE(server.submitted().size() == 1);
  const v1::SearchSpec spec = server.submitted()[0].spec().search();
  CHECK(spec.no_bank());
  CHECK(spec.policy().rounds() == 2);
  CHECK(spec.policy().seed() == 7);
  CHECK(spec.policy().repairs() == -1);  // none, where 0 would be the default
  CHECK(spec.policy().explore_ratio() == -1);
}

TEST_CASE("search --json is one document, and without a correct kernel the exit code is the verdict's", "[command]") {
  Home home;
  FakeCoordinator server;
  SetSearch(&server, false);
  const ProgramResult result =
      home.Run({"search", home.Path("problem.py"), "--json", "--coordinator", server.address()});
  CHECK(result.exit_code == 11);
  const json document = json::parse(result.out);
  CHECK(document["schema"] == "grove.v1/search");
  CHECK(document["best"].is_null());
  CHECK(document["verdicts"]["WRONG"] == 1);
  CHECK(document["counts"]["verdicts"] == json{{"VERDICT_WRONG", 1}});
  CHECK(document["tree"].size() == 2);
  CHECK(document["tree"][0]["kind"] == "idea");
}

TEST_CASE("With --detach it prints the job's id and returns", "[command]") {
  Home home;
  FakeCoordinator server;
  SetSearch(&server, true);
  const ProgramResult result =
      home.Run({"search", home.Path("problem.py"), "--detach", "--coordinator", server.address()});
  CHECK(result.exit_code == 0);
  CHECK(result.out == "j-searches\n");
  CHECK(server.watched_from().empty());
}

TEST_CASE("Asked to --detach without a lasting coordinator says what to do and starts nothing", "[command]") {
  Home home;
  const ProgramResult result = home.Run({"search", home.Path("problem.py"), "--detach"});
  CHECK(result.exit_code == 2);
  CHECK(absl::StrContains(result.err, "grove up"));
  CHECK_FALSE(std::filesystem::exists(home.Path(".local/share/grove")));
}

TEST_CASE("A device that this machine lacks is refused before anything is started", "[command]") {
  Home home;
  const ProgramResult result = home.Run({"eval", home.Path("problem.py"), home.Path("a.cpp"), "--device", "cuda:63"});
  CHECK(result.exit_code == 2);
  CHECK(absl::StrContains(result.err, "there is no device cuda:63 on this machine"));
  CHECK(absl::StrContains(result.err, "--device"));
  CHECK(home.Run({"up", "--device", "cuda:63", "--listen", "127.0.0.1:0"}).exit_code == 2);
  CHECK_FALSE(std::filesystem::exists(home.Path(".local/share/grove/journal.db")));
}

TEST_CASE("Files that are asked for are written where they are, and what stands in the way is told", "[command]") {
  Home home;
  FakeCoordinator server;
  SetSearch(&server, true);
  const auto best = [&](const std::string& file) {
    return home.Run({"best", "j-searches", "-o", file, "--coordinator", server.address()});
  };
  const std::string real = home.Write("real.cpp", "old"), link = home.Path("link.cpp");
  std::filesystem::create_symlink(real, link);
  const ProgramResult linked = best(link);
  CHECK(linked.exit_code == 0);
  CHECK(absl::StrContains(linked.err, "3.42x [3.31, 3.55] vs eager"));
  CHECK(std::filesystem::is_symlink(link));
  std::ifstream file(real);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) != "old");
  // Also where it points to nothing yet.
  const std::string dangling = home.Path("dangling.cpp");
  std::filesystem::create_symlink("behind.cpp", dangling);
  CHECK(best(dangling).exit_code == 0);
  CHECK(std::filesystem::is_symlink(dangling));
  CHECK(std::filesystem::file_size(home.Path("behind.cpp")) > 0);
  // A pipe or a device is written to and not replaced.
  const std::string pipe = home.Path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  CHECK(best(pipe).exit_code == 0);
  char byte = 0;
  CHECK(read(reader, &byte, 1) == 1);
  close(reader);
  REQUIRE(std::filesystem::is_fifo(pipe));
  // Whoever reads may come later.
  ssize_t got = 0;
  std::thread later([&] {
    const int fd = open(pipe.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    pollfd one{fd, POLLIN, 0};
    if (poll(&one, 1, 30'000) == 1) got = read(fd, &byte, 1);
    close(fd);
  });
  const int written = best(pipe).exit_code;
  later.join();
  CHECK(written == 0);
  CHECK(got == 1);
  const ProgramResult full = best("/dev/full");
  CHECK(full.exit_code == 20);
  CHECK(absl::StrContains(full.err, "-o /dev/full: no space left on that disk; free some"));
  const ProgramResult nowhere = best(home.Path("no/such/folder.cpp"));
  CHECK(nowhere.exit_code == 2);
  CHECK(absl::StrContains(nowhere.err, "its folder does not exist; make it"));
  const ProgramResult folder = best(home.Path(""));
  CHECK(folder.exit_code == 2);
  CHECK(absl::StrContains(folder.err, "is a folder; name a file in it"));
}

TEST_CASE("watch --json is one document per event", "[command]") {
  Home home;
  FakeCoordinator server;
  SetEval(&server, {v1::VERDICT_WRONG});
  server.CutWatchAfter(1);
  const ProgramResult result = home.Run({"watch", "j-evaleval", "--json", "--coordinator", server.address()});
  CHECK(result.exit_code == 11);
  std::istringstream lines(result.out);
  std::string line;
  std::vector<std::string> seqs;
  while (std::getline(lines, line)) {
    const json document = json::parse(line);
    CHECK(document["schema"] == "grove.v1/event");
    seqs.push_back(document["event"]["seq"]);
  }
  CHECK(seqs == std::vector<std::string>{"1", "2"});
}

TEST_CASE("A coordinator that goes away mid-watch and comes back is attached to again", "[command]") {
  Home home;
  FakeCoordinator server;
  SetEval(&server, {v1::VERDICT_CORRECT});
  server.HoldWatchOpen(true);
  Program program(home.Argv({"watch", "j-evaleval", "--coordinator", server.address()}), home.Environment());
  REQUIRE(server.WaitForWatches(1));
  server.Stop();
  CHECK(program.WaitForErr("trying to attach again"));
  server.HoldWatchOpen(false);
  server.Restart();
  const ProgramResult result = program.Wait();
  UNSCOPED_INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  CHECK(absl::StrContains(result.out, "k1 CORRECT 3.42x"));
}

TEST_CASE("Ctrl-C detaches with the way back and exits with 130", "[command]") {
  Home home;
  FakeCoordinator server;
  SetSearch(&server, true);
  server.HoldWatchOpen(true);
  Program program(home.Argv({"search", home.Path("problem.py"), "--coordinator", server.address()}),
                  home.Environment());
  REQUIRE(server.WaitForWatches(1));
  const int signal = GENERATE(SIGINT, SIGTERM);
  program.Signal(signal);
  const ProgramResult result = program.Wait();
  UNSCOPED_INFO(result.out << result.err);
  CHECK(result.exit_code == 130);
  CHECK(absl::StrContains(result.err, "grove watch j-searches"));
  CHECK(result.out.empty());
}

TEST_CASE("Nobody at the address is exit code 3, as a document with --json", "[command]") {
  Home home;
  std::string address;
  { address = FakeCoordinator().address(); }
  const ProgramResult plain = home.Run({"--coordinator", address, "jobs"});
  CHECK(plain.exit_code == 3);
  CHECK(absl::StrContains(plain.err, address));
  CHECK(plain.out.empty());
  const ProgramResult document = home.Run({"--coordinator", address, "jobs", "--json"});
  CHECK(document.exit_code == 3);
  CHECK(json::parse(document.out)["schema"] == "grove.v1/error");
  CHECK(json::parse(document.out)["exit_code"] == 3);
}

TEST_CASE("The address comes from the flag, then the environment, then the configuration", "[command]") {
  Home home;
  FakeCoordinator server;
  SetSearch(&server, true);
  home.Write(".config/grove/config.toml", absl::StrCat("coordinator = \"", server.address(), "\"\n"));
  CHECK(home.Run({"job", "j-searches"}).exit_code == 0);
  auto environment = home.Environment();
  environment["GROVE_COORDINATOR"] = "127.0.0.1:1";
  CHECK(RunProgram(home.Argv({"job", "j-searches"}), environment).exit_code == 3);
  CHECK(RunProgram(home.Argv({"job", "j-searches", "--coordinator", server.address()}), environment).exit_code == 0);
  home.Write(".config/grove/config.toml", "coordinater = \"x\"\n");
  const ProgramResult wrong = home.Run({"jobs"});
  CHECK(wrong.exit_code == 2);
  CHECK(absl::StrContains(wrong.err, "config.toml:1: unknown key 'coordinater'"));
}

TEST_CASE("Bad input is exit code 2 with one message, and reaches no coordinator", "[command]") {
  Home home;
  FakeCoordinator server;
  SetEval(&server, {v1::VERDICT_CORRECT});
  const std::string problem = home.Path("problem.py");
  const std::string empty = home.Write("empty.cpp", "");
  const std::string nul = home.Write("nul.cpp", std::string("a\0b", 3));
  const std::string good = home.Path("a.cpp");
  struct Row {
    std::vector<std::string> arguments;
    const char* what;
  };
  const std::vector<Row> rows = {
      {{"eval", problem, home.Path("none.cu")}, "no such file"},
      {{"eval", home.Path(""), good}, "is a folder"},
      {{"eval", problem, empty}, "is empty"},
      {{"eval", problem, nul}, "NUL byte"},
      {{"eval", problem, good, "--device", "tpu"}, "'tpu' is not a device"},
      {{"eval", problem, good, "--tolerance", "x"}, "--tolerance"},
      {{"eval", problem, good, "--limit", "memory=1"}, "there is no limit 'memory'"},
      {{"eval", problem, good, "--trials", "0"}, "--trials"},
      {{"eval", problem}, "CANDIDATE is required"},
      {{"search", problem, "--generator", "oracle"}, "'oracle' is not one of"},
      {{"search", problem, "--generator", "replay:/none"}, "no such file"},
      {{"search", problem, "--model", "m"}, "--generator openai"},
      {{"search", problem, "--llm-plain-http"}, "--llm-plain-http is for a coordinator that this command starts"},
      {{"search", problem, "--rouns", "3"}, "did you mean '--rounds'?"},
      {{"serch", problem}, "did you mean 'search'?"},
      {{"eval", problem, good, "--build-flag="}, "'--build-flag=' has nothing behind its '='"},
      {{"eval", problem, "--name=", good}, "'--name=' has nothing behind its '='"},
      {{"--coordinator=", "eval", problem, good}, "'--coordinator=' has nothing behind its '='"},
      {{"eval", problem, "--trails"}, "did you mean '--trials'?"},
      {{"bank"}, "needs a command"},
      {{"bank", "ad", "x"}, "did you mean 'add'?"},
      {{"show", "j-evaleval"}, "is not a node"},
      {{"tree", "j-evaleval", "--format", "xml"}, "not one of text, json, dot"},
      {{"jobs", "--state", "happy"}, "not one of running"},
      {{}, "no command given"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> arguments = row.arguments;
    if (!arguments.empty()) arguments.insert(arguments.end(), {"--coordinator", server.address()});
    const ProgramResult result = home.Run(arguments);
    CAPTURE(row.what, result.err);
    CHECK(result.exit_code == 2);
    CHECK(absl::StrContains(result.err, row.what));
    CHECK(result.out.empty());
  }
  CHECK(server.submitted().empty());
  CHECK(home.Run({"job", "j-unknown", "--coordinator", server.address()}).exit_code == 2);
}

TEST_CASE("Reading commands print data on stdout and documents with --json", "[command]") {
  Home home;
  FakeCoordinator server;
  SetSearch(&server, true);
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--coordinator", server.address()});
    return home.Run(arguments);
  };
  CHECK(absl::StrContains(run({"jobs"}).out, "j-searches  search"));
  CHECK(json::parse(run({"jobs", "--json"}).out)["jobs"][0]["id"] == "j-searches");
  CHECK(absl::StrContains(run({"job", "j-searches"}).out, "j-searches/k1"));
  CHECK(absl::StrContains(run({"tree", "j-searches"}).out, "Fuse the passes"));
  CHECK(json::parse(run({"tree", "j-searches", "--format", "json"}).out)["schema"] == "grove.v1/tree");
  CHECK(absl::StrContains(run({"tree", "j-searches", "--format", "dot"}).out, "digraph"));
  CHECK(run({"best", "j-searches"}).out == "int best;\n");
  CHECK(run({"best", "j-searches", "-o", home.Path("best.cpp")}).out.empty());
  CHECK(std::filesystem::file_size(home.Path("best.cpp")) == 10);
  CHECK(run({"best", "j-searches", "-o", "/nonexistent/best.cpp"}).exit_code == 2);
  CHECK(absl::StrContains(run({"show", "j-searches/k1"}).out, "j-searches/i1  idea: Fuse the passes"));
  CHECK(absl::StrContains(run({"show", "j-searches/i1"}).out, "j-searches/k1  CORRECT"));
  CHECK(absl::StrContains(run({"bank", "list"}).out, "b-aaaaaaaa"));
  CHECK(run({"bank", "add", home.Path("a.cpp"), "--operation", "softmax", "--device", "cpu"}).out == "b-bbbbbbbb\n");
  CHECK(run({"bank", "add", home.Path("a.cpp")}).exit_code == 2);
  CHECK(run({"bank", "remove", "b-aaaaaaaa"}).exit_code == 0);
  CHECK(absl::StrContains(run({"workers"}).out, "w-1"));
  CHECK(json::parse(run({"cancel", "j-searches", "--json"}).out)["job"]["state"] == "JOB_STATE_CANCELLED");
  CHECK(json::parse(run({"version", "--json"}).out)["schema"] == "grove.v1/version");
  CHECK(run({"jobs", "-q"}).err.empty());
}

TEST_CASE("A full stdout is an error and not a success", "[command]") {
  Home home;
  FakeCoordinator server;
  SetSearch(&server, true);
  const ProgramResult result = RunProgram(
      {"/bin/sh", "-c", absl::StrCat(GROVE_PROGRAM, " jobs --coordinator ", server.address(), " > /dev/full")},
      home.Environment());
  CHECK(result.exit_code == 20);
  CHECK(absl::StrContains(result.err, "cannot write to stdout"));
}

TEST_CASE("On a terminal progress is redrawn in colour, and NO_COLOR and TERM=dumb are kept to", "[command]") {
  if (!std::filesystem::exists("/usr/bin/script")) return;  // util-linux; gives the program a terminal
  Home home;
  FakeCoordinator server;
  SetSearch(&server, true);
  const std::string command =
      absl::StrCat(GROVE_PROGRAM, " search ", home.Path("problem.py"), " --coordinator ", server.address());
  const auto run = [&](const std::string& name, const std::string& value) {
    auto environment = home.Environment();
    environment[name] = value;
    const ProgramResult result = RunProgram({"/usr/bin/script", "-qec", command, "/dev/null"}, environment);
    CHECK(result.exit_code == 0);
    CHECK(absl::StrContains(result.out, "Fuse the passes"));
    return result.out;
  };
  const std::string colour = run("X", "");
  CHECK(absl::StrContains(colour, "\x1b[J"));
  CHECK(absl::StrContains(colour, "\x1b[32mCORRECT\x1b[0m"));
  const std::string plain = run("NO_COLOR", "1");
  CHECK(absl::StrContains(plain, "\x1b[J"));
  CHECK_FALSE(absl::StrContains(plain, "\x1b[32m"));
  const std::string dumb = run("TERM", "dumb");
  CHECK_FALSE(absl::StrContains(dumb, "\x1b"));
  CHECK_FALSE(absl::StrContains(dumb, "└─"));
}

TEST_CASE("Every command has help that begins with what it does and examples", "[command]") {
  Home home;
  for (const char* name : {"up", "search", "eval", "jobs", "job", "watch", "cancel", "resume", "tree", "best", "show",
                           "bank", "workers", "doctor", "version", "certs", "completion"}) {
    CAPTURE(name);
    const ProgramResult help = home.Run({name, "--help"});
    CHECK(help.exit_code == 0);
    CHECK(help.err.empty());
    const size_t examples = help.out.find("\nExamples:\n  ");
    const size_t usage = help.out.find(absl::StrCat("\nUsage: grove ", name));
    REQUIRE(examples != std::string::npos);
    REQUIRE(usage != std::string::npos);
    CHECK(examples < usage);
  }
}

TEST_CASE("certs makes an authority and certificates, and does not overwrite them", "[command]") {
  Home home;
  CHECK(home.Run({"certs", "issue", "box", "--dir", home.Path("certs")}).exit_code == 2);
  CHECK(home.Run({"certs", "init", "--dir", home.Path("certs")}).exit_code == 0);
  CHECK(home.Run({"certs", "init", "--dir", home.Path("certs")}).exit_code == 2);
  const ProgramResult issued =
      home.Run({"certs", "issue", "box", "--dir", home.Path("certs"), "--host", "box.example", "--json"});
  CHECK(issued.exit_code == 0);
  CHECK(std::filesystem::exists(std::string(json::parse(issued.out)["tls_key"])));
}

}  // namespace
}  // namespace grove::cli
