// The supervisor of coordinator and workers, with small shell programs in their places that die on demand.
#include "clients/cli/farm.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace grove::cli {
namespace {

class Bin {
 public:
  Bin() {
    char name[] = "/tmp/grove-farm-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Bin() { std::filesystem::remove_all(path_); }
  void Program(const std::string& name, const std::string& script) const {
    const std::string path = absl::StrCat(path_, "/", name);
    std::ofstream(path) << "#!/bin/bash\n" << script;
    chmod(path.c_str(), 0755);
  }
  std::string Path(const std::string& name) const { return absl::StrCat(path_, "/", name); }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  FarmOptions Options() const {
    FarmOptions options;
    options.data_dir = Path("data");
    options.bin_dir = path_;
    options.devices = {"cpu"};
    return options;
  }

 private:
  std::string path_;
};

// Says where it listens, by the flags that the real one has, and notes its pid; "$@" is kept.
constexpr char kCoordinator[] = R"(
here=$(dirname "$0")
echo $$ >> "$here/coordinator.pids"
echo "$@" >> "$here/coordinator.args"
env > "$here/coordinator.env"
while [ $# -gt 0 ]; do [ "$1" = --port-file ] && port=$2; shift; done
echo 127.0.0.1:4711 > "$port.new" && mv "$port.new" "$port"
exec sleep 600
)";
constexpr char kWorker[] = R"(
here=$(dirname "$0")
echo $GROVE_PARENT_PID >> "$here/worker.parents"
echo "$@" >> "$here/worker.args"
env > "$here/worker.env"
echo $$ >> "$here/worker.pids"
exec sleep 600
)";

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

int Lines(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

TEST_CASE("A farm starts both, tells the worker where the coordinator is, and leaves nothing behind", "[farm]") {
  Bin bin;
  bin.Program("grove-coordinator", kCoordinator);
  bin.Program("grove-worker", kWorker);
  auto farm = Farm::Start(bin.Options());
  REQUIRE(farm.ok());
  CHECK((*farm)->address() == "127.0.0.1:4711");
  REQUIRE(Eventually([&] { return Lines(bin.Read("worker.pids")) == 1; }));
  CHECK(absl::StrContains(bin.Read("worker.args"), "--coordinator 127.0.0.1:4711 --device cpu --state"));
  CHECK(bin.Read("worker.parents") == absl::StrCat(getpid(), "\n"));
  CHECK(absl::StrContains(bin.Read("coordinator.args"), "--exit-with-parent"));
  const pid_t coordinator = atoi(bin.Read("coordinator.pids").c_str()), worker = atoi(bin.Read("worker.pids").c_str());
  (*farm)->Stop(absl::Seconds(10));
  CHECK(kill(coordinator, 0) != 0);
  CHECK(kill(worker, 0) != 0);
}

TEST_CASE("Workers get the environment without its credentials, the coordinator the whole of it", "[farm]") {
  struct Variable {
    Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    ~Variable() { unsetenv(name_); }
    const char* name_;
  };
  const Variable key("OPENAI_API_KEY", "sk-secret-one"), named("MY_MODEL", "sk-secret-two"),
      token("HF_TOKEN", "sk-secret-three"), harmless("GROVE_TEST_KEYBOARD", "qwerty");
  Bin bin;
  bin.Program("grove-coordinator", kCoordinator);
  bin.Program("grove-worker", kWorker);
  FarmOptions options = bin.Options();
  options.secret_variables = {"MY_MODEL"};
  auto farm = Farm::Start(options);
  REQUIRE(farm.ok());
  REQUIRE(Eventually([&] { return Lines(bin.Read("worker.pids")) == 1; }));
  const std::string coordinator = bin.Read("coordinator.env"), worker = bin.Read("worker.env");
  CHECK(absl::StrContains(coordinator, "OPENAI_API_KEY=sk-secret-one"));
  CHECK(absl::StrContains(coordinator, "MY_MODEL=sk-secret-two"));
  CHECK_FALSE(absl::StrContains(worker, "sk-secret"));
  CHECK(absl::StrContains(worker, "GROVE_TEST_KEYBOARD=qwerty"));
  CHECK(absl::StrContains(worker, "PATH="));
}

TEST_CASE("A child that is killed is started again, the coordinator where it was before", "[farm]") {
  Bin bin;
  bin.Program("grove-coordinator", kCoordinator);
  bin.Program("grove-worker", kWorker);
  auto farm = Farm::Start(bin.Options());
  REQUIRE(farm.ok());
  REQUIRE(Eventually([&] { return Lines(bin.Read("worker.pids")) == 1; }));
  kill(atoi(bin.Read("worker.pids").c_str()), SIGKILL);
  CHECK(Eventually([&] { return Lines(bin.Read("worker.pids")) == 2; }));
  kill(atoi(bin.Read("coordinator.pids").c_str()), SIGKILL);
  CHECK(Eventually([&] { return Lines(bin.Read("coordinator.args")) == 2; }));
  CHECK(absl::StrContains(bin.Read("coordinator.args"), "--listen 127.0.0.1:4711"));
  CHECK((*farm)->Health().ok());
}

TEST_CASE("A worker that refuses to start is given up with what it said", "[farm]") {
  Bin bin;
  bin.Program("grove-coordinator", kCoordinator);
  bin.Program("grove-worker", "echo 'no user namespaces here' >&2; exit 1\n");
  auto farm = Farm::Start(bin.Options());
  REQUIRE(farm.ok());
  REQUIRE(Eventually([&] { return !(*farm)->Health().ok(); }));
  CHECK(absl::StrContains((*farm)->Health().message(), "no user namespaces here"));
  CHECK(absl::StrContains((*farm)->Health().message(), "worker-0.log"));
}

TEST_CASE("Who waits for a farm is told when it is given up, and no more once it does not wait", "[farm]") {
  Bin bin;
  bin.Program("grove-coordinator", kCoordinator);
  bin.Program("grove-worker", "exit 1\n");
  auto farm = Farm::Start(bin.Options());
  REQUIRE(farm.ok());
  std::atomic<int> first{0}, second{0}, late{0};
  (*farm)->OnGivenUp([&first] { ++first; });
  (*farm)->OnGivenUp([&second] { ++second; });
  CHECK(Eventually([&] { return second == 1; }));
  CHECK_FALSE((*farm)->Health().ok());
  (*farm)->OnGivenUp([&late] { ++late; });
  CHECK(late == 1);
  (*farm)->OnGivenUp(nullptr);
  CHECK(first == 0);
  CHECK(second == 1);
}

TEST_CASE("A coordinator that dies at start is told with the end of its log", "[farm]") {
  Bin bin;
  bin.Program("grove-coordinator", "echo 'written by a newer grove' >&2; exit 1\n");
  const auto farm = Farm::Start(bin.Options());
  REQUIRE_FALSE(farm.ok());
  CHECK(absl::StrContains(farm.status().message(), "written by a newer grove"));
  CHECK(absl::StrContains(farm.status().message(), "exit code 1"));
}

TEST_CASE("A coordinator that dies for want of room is told as a full disk, though its end made room again", "[farm]") {
  Bin bin;
  bin.Program("grove-coordinator", "echo 'cannot write coordinator.addr: No space left on device' >&2; exit 1\n");
  const auto farm = Farm::Start(bin.Options());
  REQUIRE_FALSE(farm.ok());
  CHECK(absl::IsInternal(farm.status()));  // exit code 20
  CHECK(absl::StrContains(farm.status().message(), "is full; free some space"));
}

TEST_CASE("A missing program and an unwritable folder are told as such", "[farm]") {
  Bin bin;
  const auto missing = Farm::Start(bin.Options());
  REQUIRE_FALSE(missing.ok());
  CHECK(absl::StrContains(missing.status().message(), "no such program"));
  FarmOptions options = bin.Options();
  options.data_dir = "/dev/null/data";
  const auto unusable = Farm::Start(options);
  REQUIRE_FALSE(unusable.ok());
  CHECK(absl::IsFailedPrecondition(unusable.status()));
  CHECK(absl::StrContains(unusable.status().message(), "the data folder /dev/null/data cannot be used: "));
  CHECK(absl::StrContains(unusable.status().message(), "--data"));
}

TEST_CASE("A start that hangs ends when it is cancelled", "[farm]") {
  Bin bin;
  bin.Program("grove-coordinator", "echo $$ > \"$(dirname \"$0\")/pid\"; exec sleep 600\n");
  client::Cancellation cancellation;
  FarmOptions options = bin.Options();
  options.cancellation = &cancellation;
  std::thread canceller([&] {
    Eventually([&] { return !bin.Read("pid").empty(); });
    cancellation.Cancel();
  });
  CHECK(absl::IsCancelled(Farm::Start(options).status()));
  canceller.join();
  CHECK(kill(atoi(bin.Read("pid").c_str()), 0) != 0);
}

TEST_CASE("Devices are counted by their files", "[farm]") {
  Bin bin;
  CHECK(LocalDevices(bin.Path("")) == std::vector<std::string>{"cpu"});
  for (const char* name : {"nvidia0", "nvidia3", "nvidiactl", "nvidia-uvm"}) std::ofstream(bin.Path(name)) << "";
  CHECK(LocalDevices(bin.Path("")) == std::vector<std::string>{"cuda:0", "cuda:1"});
  CHECK(RecordedAddress(bin.Path("")).empty());
  std::ofstream(bin.Path("coordinator.addr")) << "127.0.0.1:99 1234\n";
  CHECK(RecordedAddress(bin.Path("")) == "127.0.0.1:99");
}

}  // namespace
}  // namespace grove::cli
