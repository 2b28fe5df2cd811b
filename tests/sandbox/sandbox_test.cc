#include "worker/sandbox/sandbox.h"

#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "worker/sandbox/limits.h"
#include "worker/sandbox/self_test.h"
#include "worker/sandbox/spawn.h"

namespace grove::sandbox {
namespace {

constexpr int64_t kMiB = 1 << 20;

std::shared_ptr<SandboxHost> Host() {
  static std::shared_ptr<SandboxHost> host = [] {
    auto made = SandboxHost::Create({});
    if (!made.ok()) FAIL("no sandbox on this machine: " << made.status());
    return *made;
  }();
  return host;
}

SandboxSpec Spec(std::vector<std::string> arguments) {
  SandboxSpec spec;
  spec.label = "test";
  spec.argv = {GROVE_PROBE};
  for (std::string& a : arguments) spec.argv.push_back(std::move(a));
  spec.env = {"PATH=/usr/bin:/bin"};
  spec.read_only = {GROVE_PROBE};
  spec.bounds.wall = absl::Seconds(60);
  spec.bounds.memory_bytes = 256 * kMiB;
  spec.bounds.processes = 64;
  spec.bounds.disk_bytes = 32 * kMiB;
  spec.bounds.output_bytes = kMiB;
  spec.tick = absl::Milliseconds(10);
  return spec;
}

// Which of the socket families 1 to 45 can be had, as a list.
std::string Families(bool loopback) {
  SandboxSpec spec = Spec({});
  spec.argv = {"/usr/bin/python3", "-c",
               "import socket\n"
               "for f in range(0, 46):\n"
               "    for k in (socket.SOCK_STREAM, socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):\n"
               "        try:\n"
               "            socket.socket(f, k)\n"
               "        except PermissionError as e:\n"
               "            continue\n"
               "        except OSError:\n"
               "            pass\n"
               "        print(f, end=' ')\n"
               "        break\n"};
  spec.loopback = loopback;
  auto process = SandboxedProcess::Start(Host(), std::move(spec));
  REQUIRE(process.ok());
  return (*process)->Wait().out;
}

TEST_CASE("A sandbox with loopback has sockets of the IP families and no others", "[sandbox]") {
  CHECK(Families(false) == "1 ");
  CHECK(Families(true) == "1 2 10 ");
  // Of these TCP and UDP alone: another protocol may be a module that the kernel would load for it.
  SandboxSpec spec = Spec({});
  spec.argv = {
      "/usr/bin/python3", "-c",
      "import socket\n"
      "for f in (2, 10):\n"
      "    for k, p in ((1, 0), (1, 6), (2, 0), (2, 17), (1, 132), (1, 262), (2, 136), (5, 132), (3, 1), (2, 1)):\n"
      "        try:\n"
      "            socket.socket(f, k, p)\n"
      "            print('yes', end=' ')\n"
      "        except PermissionError:\n"
      "            print('no', end=' ')\n"};
  spec.loopback = true;
  auto process = SandboxedProcess::Start(Host(), std::move(spec));
  REQUIRE(process.ok());
  CHECK((*process)->Wait().out == "yes yes yes yes no no no no no no yes yes yes yes no no no no no no ");
}

SandboxSpec Shell(const std::string& script) {
  SandboxSpec spec = Spec({});
  spec.argv = {"/bin/sh", "-c", script};
  return spec;
}

Ending Run(SandboxSpec spec) {
  auto process = SandboxedProcess::Start(Host(), std::move(spec));
  INFO(process.status());
  REQUIRE(process.ok());
  return (*process)->Wait();
}

TEST_CASE("A program runs inside and its output comes back", "[sandbox]") {
  const Ending e = Run(Shell("echo out; echo err >&2; exit 7"));
  CHECK(e.kind == Ending::Kind::kExited);
  CHECK(e.exit_code == 7);
  CHECK(e.out == "out\n");
  CHECK(e.err == "err\n");
}

TEST_CASE("A program ended by a signal is told from one that exits", "[sandbox]") {
  const int signal = GENERATE(SIGSEGV, SIGABRT, SIGKILL, SIGFPE);
  CAPTURE(signal);
  const Ending e = Run(Spec({"signal", absl::StrCat(signal)}));
  CHECK(e.kind == Ending::Kind::kSignaled);
  CHECK(e.signal == signal);
  CHECK(SignalName(SIGSEGV) == "SIGSEGV");
}

TEST_CASE("Every layer denies what it must", "[sandbox]") {
  const SelfTestReport report = RunSelfTest(Host(), GROVE_PROBE);
  for (const LayerState& layer : report.layers) {
    INFO(layer.name << ": " << layer.evidence);
    // A machine may have no freezer.
    CHECK((layer.active || (layer.name == "hold" && !Host()->cgroups().freezer())));
  }
  INFO(report.Required());
  CHECK(report.Required().ok());
  CHECK(report.layers.size() == 9);
}

TEST_CASE("A self-test whose probe cannot run reports no layer as active", "[sandbox]") {
  const SelfTestReport report = RunSelfTest(Host(), "/usr/bin/does-not-exist");
  CHECK(report.ActiveNames().empty());
  CHECK_FALSE(report.Required().ok());
}

TEST_CASE("The wall limit ends a sleeping program", "[sandbox][limits]") {
  SandboxSpec spec = Spec({"sleep"});
  spec.bounds.wall = absl::Milliseconds(300);
  const Ending e = Run(std::move(spec));
  CHECK(e.kind == Ending::Kind::kLimit);
  CHECK(e.limit == "run_wall_seconds");
  CHECK(e.limit_set == Approx(0.3));
  CHECK(e.limit_reached >= 0.3);
  CHECK_FALSE(e.unreaped);
}

TEST_CASE("The CPU limit ends a spinning program", "[sandbox][limits]") {
  SandboxSpec spec = Spec({"spin"});
  spec.bounds.cpu_seconds = 0.3;
  const Ending e = Run(std::move(spec));
  CHECK(e.kind == Ending::Kind::kLimit);
  CHECK(e.limit == "run_cpu_seconds");
  CHECK(e.limit_reached >= 0.3);
}

TEST_CASE("The memory limit ends a program that takes too much", "[sandbox][limits]") {
  SandboxSpec spec = Spec({"memory", absl::StrCat(512 * kMiB)});
  spec.bounds.memory_bytes = 64 * kMiB;
  const Ending e = Run(std::move(spec));
  CHECK(e.kind == Ending::Kind::kLimit);
  CHECK(e.limit == "memory_bytes");
  CHECK(e.limit_set == 64 * kMiB);
  CHECK(e.memory_peak_bytes >= 60 * kMiB);
}

TEST_CASE("A program within its memory limit is left alone", "[sandbox][limits]") {
  const Ending e = Run(Spec({"memory", absl::StrCat(64 * kMiB)}));
  CHECK(e.kind == Ending::Kind::kExited);
  CHECK(e.exit_code == 0);
}

TEST_CASE("The process limit ends a program that forks too often", "[sandbox][limits]") {
  SandboxSpec spec = Spec({"fork", "200"});
  spec.bounds.processes = 20;
  const Ending e = Run(std::move(spec));
  CHECK(e.kind == Ending::Kind::kLimit);
  CHECK(e.limit == "processes");
}

TEST_CASE("A fork bomb is ended and leaves nothing behind", "[sandbox][limits]") {
  SandboxSpec spec = Shell("bomb() { bomb | bomb & }; bomb; sleep 60");
  spec.bounds.wall = absl::Seconds(20);
  auto process = SandboxedProcess::Start(Host(), std::move(spec));
  REQUIRE(process.ok());
  const pid_t inner = (*process)->pid();
  const Ending& e = (*process)->Wait();
  CHECK(e.kind == Ending::Kind::kLimit);
  CHECK(e.limit == "processes");
  CHECK_FALSE(e.unreaped);
  CHECK(kill(inner, 0) != 0);
}

TEST_CASE("The disk limit holds for /tmp and /dev/shm", "[sandbox][limits]") {
  const std::string path = GENERATE("/tmp/full", "/dev/shm/full");
  CAPTURE(path);
  const Ending e = Run(Spec({"fill", path, absl::StrCat(64 * kMiB)}));
  CHECK(e.kind == Ending::Kind::kLimit);
  CHECK(e.limit == "disk_bytes");
  CHECK(e.disk_peak_bytes >= 15 * kMiB);
}

TEST_CASE("The output limit ends a flood, and what is kept is bounded", "[sandbox][limits]") {
  SandboxSpec spec = Spec({"flood", absl::StrCat(int64_t{1} << 40)});
  const Ending e = Run(std::move(spec));
  CHECK(e.kind == Ending::Kind::kLimit);
  CHECK(e.limit == "output_bytes");
  CHECK(e.output_truncated);
  CHECK(e.out.size() < 80 << 10);
}

TEST_CASE("A single file larger than its limit ends the program", "[sandbox][limits]") {
  SandboxSpec spec = Spec({"fill", "/tmp/f", absl::StrCat(8 * kMiB)});
  spec.bounds.file_bytes = kMiB;
  const Ending e = Run(std::move(spec));
  CHECK(e.kind == Ending::Kind::kLimit);
  CHECK(e.limit == "disk_bytes");
}

TEST_CASE("Beginning and end of long output are kept", "[sandbox]") {
  SandboxSpec spec = Shell("echo first; head -c 300000 /dev/zero | tr '\\0' x; echo; echo last");
  const Ending e = Run(std::move(spec));
  CHECK(e.kind == Ending::Kind::kExited);
  CHECK(e.out.rfind("first\n", 0) == 0);
  CHECK(e.out.substr(e.out.size() - 5) == "last\n");
  CHECK(e.output_truncated);
}

TEST_CASE("Killing ends grandchildren that ignore signals, within a second", "[sandbox]") {
  SandboxSpec spec = Shell(absl::StrCat(GROVE_PROBE, " orphan; ", GROVE_PROBE, " sleep"));
  auto process = SandboxedProcess::Start(Host(), std::move(spec));
  REQUIRE(process.ok());
  const auto before = std::chrono::steady_clock::now();
  (*process)->Kill();
  const Ending& e = (*process)->Wait();
  const auto took = std::chrono::steady_clock::now() - before;
  CHECK(e.kind == Ending::Kind::kKilled);
  CHECK_FALSE(e.unreaped);
  CHECK(took < std::chrono::seconds(30));  // 1 s on a machine that is not overrun
}

TEST_CASE("When the program ends, what it left running ends too", "[sandbox]") {
  auto process = SandboxedProcess::Start(Host(), Spec({"orphan"}));
  REQUIRE(process.ok());
  const pid_t inner = (*process)->pid();
  const Ending& e = (*process)->Wait();
  CHECK(e.kind == Ending::Kind::kExited);
  CHECK_FALSE(e.unreaped);
  CHECK(kill(inner, 0) != 0);
}

TEST_CASE("The program gets the descriptors it is given and no others", "[sandbox]") {
  int pair[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);  // not close-on-exec: must still not leak
  const int leak = open("/etc/hostname", O_RDONLY);
  SandboxSpec spec = Spec({"fds"});
  spec.fds = {{pair[1], 3}};
  const Ending e = Run(std::move(spec));
  CHECK(e.out == "0 1 2 3 \n");
  close(pair[0]);
  close(pair[1]);
  close(leak);
}

TEST_CASE("Environment and files are those that were given", "[sandbox]") {
  setenv("GROVE_SECRET", "do not leak", 1);
  SandboxSpec spec = Shell("env | sort; cat /tmp/in/a.txt; echo made > /tmp/out.txt");
  spec.env.push_back("NAME=value");
  spec.files = {{"in/a.txt", "content\n"}};
  auto process = SandboxedProcess::Start(Host(), std::move(spec));
  REQUIRE(process.ok());
  const Ending& e = (*process)->Wait();
  CHECK(e.out.find("NAME=value") != std::string::npos);
  CHECK(e.out.find("content") != std::string::npos);
  CHECK(e.out.find("GROVE_SECRET") == std::string::npos);
  const auto made = (*process)->ReadTmpFile("out.txt", 100);  // after the end
  INFO(made.status());
  REQUIRE(made.ok());
  CHECK(*made == "made\n");
}

TEST_CASE("Reading back never follows a link and never takes more than asked", "[sandbox]") {
  auto process =
      SandboxedProcess::Start(Host(), Shell("ln -s /etc/hostname /tmp/link; ln -s /etc /tmp/dir; mkfifo /tmp/fifo; "
                                            "head -c 5000 /dev/zero > /tmp/big"));
  REQUIRE(process.ok());
  (*process)->Wait();
  CHECK_FALSE((*process)->ReadTmpFile("link", 1000).ok());
  CHECK_FALSE((*process)->ReadTmpFile("dir/hostname", 1000).ok());
  CHECK_FALSE((*process)->ReadTmpFile("../etc/hostname", 1000).ok());
  CHECK_FALSE((*process)->ReadTmpFile("fifo", 1000).ok());
  CHECK((*process)->ReadTmpFile("big", 1000).status().code() == absl::StatusCode::kResourceExhausted);
  CHECK((*process)->ReadTmpFile("none", 1000).status().code() == absl::StatusCode::kNotFound);
}

TEST_CASE("New bounds count from when they are set", "[sandbox]") {
  SandboxSpec spec = Spec({"sleep"});
  spec.bounds.wall = absl::ZeroDuration();
  auto process = SandboxedProcess::Start(Host(), spec);
  REQUIRE(process.ok());
  CHECK_FALSE((*process)->WaitFor(absl::Milliseconds(200)));
  Bounds bounds = spec.bounds;
  bounds.wall = absl::Milliseconds(200);
  (*process)->SetBounds(bounds);
  const Ending& e = (*process)->Wait();
  CHECK(e.kind == Ending::Kind::kLimit);
  CHECK(e.limit == "run_wall_seconds");
}

TEST_CASE("A program that is not there is no crash of ours", "[sandbox]") {
  SandboxSpec spec = Spec({});
  spec.argv = {"/usr/bin/does-not-exist"};
  auto process = SandboxedProcess::Start(Host(), std::move(spec));
  REQUIRE(process.ok());
  const Ending& e = (*process)->Wait();
  CHECK(e.kind == Ending::Kind::kExited);
  CHECK(e.exit_code != 0);
  CHECK(e.err.find("does-not-exist") != std::string::npos);
}

TEST_CASE("A missing bubblewrap is said with the remedy, unless a weak sandbox is allowed", "[sandbox]") {
  SandboxHost::Options options;
  options.bwrap = "/nonexistent/bwrap";
  const auto strict = SandboxHost::Create(options);
  REQUIRE_FALSE(strict.ok());
  CHECK(strict.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(strict.status().message()).find("install") != std::string::npos);
  options.allow_weak = true;
  const auto weak = SandboxHost::Create(options);
  REQUIRE(weak.ok());
  SECTION("which still runs programs, bounded, and says what it lacks") {
    const SelfTestReport report = RunSelfTest(*weak, GROVE_PROBE);
    std::set<std::string> active;
    for (const LayerState& layer : report.layers) {
      if (layer.active) active.insert(layer.name);
    }
    CHECK(active.count("run") == 1);
    CHECK(active.count("seccomp") == 1);
    CHECK(active.count("memory") == 1);
    CHECK(active.count("processes") == 1);
    CHECK(active.count("namespaces") == 0);
    CHECK(active.count("filesystem") == 0);
    CHECK_FALSE(report.Required().ok());
  }
}

TEST_CASE("Programs that are installed in a home are seen there, and nothing else of it", "[sandbox]") {
  const passwd* user = getpwuid(getuid());
  REQUIRE(user != nullptr);
  std::string folder = absl::StrCat(user->pw_dir, "/.grove-test-XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) {
    WARN("skipped: " << user->pw_dir << " cannot be written to");
    return;
  }
  const std::string probe = folder + "/grove-sandbox-probe";
  std::filesystem::copy_file(GROVE_PROBE, probe);
  const SelfTestReport report = RunSelfTest(Host(), probe);
  std::filesystem::remove_all(folder);
  for (const LayerState& layer : report.layers) {
    INFO(layer.name << ": " << layer.evidence);
    if (layer.name == "filesystem" || layer.name == "namespaces") CHECK(layer.active);
  }
}

// As on a machine where no control group can be written.
std::shared_ptr<SandboxHost> HostWithoutGroups() {
  setenv("GROVE_CGROUPS", "off", 1);
  auto made = SandboxHost::Create({});
  unsetenv("GROVE_CGROUPS");
  REQUIRE(made.ok());
  REQUIRE_FALSE((*made)->cgroups().memory());
  REQUIRE_FALSE((*made)->cgroups().freezer());
  return *made;
}

TEST_CASE("All processes inside are known, with control groups and without", "[sandbox]") {
  for (const auto& host : {Host(), HostWithoutGroups()}) {
    auto process = SandboxedProcess::Start(host, Shell("sleep 1000 & sleep 1000 & : > /tmp/started; wait"));
    REQUIRE(process.ok());
    while (!(*process)->ReadTmpFile("started", 1).ok()) REQUIRE_FALSE((*process)->WaitFor(absl::Milliseconds(10)));
    const auto sleeping = [&] {
      int count = 0;
      for (pid_t pid : (*process)->Pids()) {
        std::ifstream name(absl::StrCat("/proc/", pid, "/comm"));
        std::string text;
        if (name >> text && text == "sleep") ++count;
      }
      return count;
    };
    // A child has its parent's name until it has become another program.
    while (sleeping() < 2) REQUIRE_FALSE((*process)->WaitFor(absl::Milliseconds(10)));
    CHECK(sleeping() == 2);
    (*process)->Kill();
    (*process)->Wait();
    CHECK((*process)->Pids().empty());
  }
}

TEST_CASE("A limit that was reached before the program was killed names its end", "[sandbox][limits]") {
  // A shell gives up at the first fork that is refused; its parent tells of it.
  SandboxSpec spec = Shell(
      "(i=0; while [ $i -lt 40 ]; do sleep 100 & i=$((i+1)); done) 2>/dev/null; : > /tmp/refused; while :; do :; done");
  spec.bounds.processes = 20;
  spec.tick = absl::Hours(1);  // nobody looks in between
  auto process = SandboxedProcess::Start(Host(), std::move(spec));
  REQUIRE(process.ok());
  while (!(*process)->ReadTmpFile("refused", 1).ok()) REQUIRE_FALSE((*process)->WaitFor(absl::Milliseconds(10)));
  (*process)->Kill();
  const Ending& e = (*process)->Wait();
  CHECK(e.kind == Ending::Kind::kLimit);
  CHECK(e.limit == "processes");
}

TEST_CASE("A memory limit below what is in use already has been exceeded", "[sandbox][limits]") {
  if (!Host()->cgroups().memory()) {
    WARN("no control group for memory on this machine");
    return;
  }
  // Pages that a program has when it joins its group are counted where it came from.
  auto process = SandboxedProcess::Start(
      Host(), Shell("text=$(head -c 4000000 /dev/zero | tr '\\0' a); : > /tmp/filled; while :; do sleep 1; done"));
  REQUIRE(process.ok());
  while (!(*process)->ReadTmpFile("filled", 1).ok()) REQUIRE_FALSE((*process)->WaitFor(absl::Milliseconds(10)));
  Bounds bounds = Spec({}).bounds;
  bounds.memory_bytes = 1;
  (*process)->SetBounds(bounds);
  const Ending& e = (*process)->Wait();
  CHECK(e.kind == Ending::Kind::kLimit);
  CHECK(e.limit == "memory_bytes");
  CHECK(e.limit_reached > 1e6);
}

TEST_CASE("A held program stands where it is told, and anywhere again afterwards") {
  if (!Host()->cgroups().freezer()) {
    WARN("no control group that holds programs on this machine");
    return;
  }
  const auto allowed = [](const std::string& pid) {
    std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
    for (std::string line; std::getline(file, line);) {
      if (absl::StartsWith(line, "Cpus_allowed_list:")) {
        return std::string(absl::StripAsciiWhitespace(line.substr(line.find(':') + 1)));
      }
    }
    return std::string("no such line");
  };
  auto process = SandboxedProcess::Start(Host(), Spec({"sleep"}));
  REQUIRE(process.ok());
  REQUIRE((*process)->Hold(true).ok());
  const std::vector<pid_t> pids = (*process)->Pids();
  REQUIRE_FALSE(pids.empty());
  const int here = sched_getcpu();
  REQUIRE(here >= 0);
  CHECK((*process)->StandOn(here));
  for (pid_t pid : pids) CHECK(allowed(absl::StrCat(pid)) == absl::StrCat(here));
  CHECK((*process)->StandOn(-1));
  for (pid_t pid : pids) CHECK(allowed(absl::StrCat(pid)) == allowed("self"));
  CHECK_FALSE((*process)->StandOn(CPU_SETSIZE - 1));  // no machine has so many
  (*process)->Kill();
}

TEST_CASE("A program's memory can be read from outside while it stands, and is nobody's when it has ended") {
  if (!Host()->cgroups().freezer()) {
    WARN("no control group that holds programs on this machine");
    return;
  }
  auto process = SandboxedProcess::Start(Host(), Spec({"sleep"}));
  REQUIRE(process.ok());
  // Where the program's own file is, once it runs.
  const auto image = [&]() -> off_t {
    for (pid_t pid : (*process)->Pids()) {
      std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
      for (std::string line; std::getline(maps, line);) {
        if (absl::EndsWith(line, GROVE_PROBE)) return static_cast<off_t>(std::stoull(line, nullptr, 16));
      }
    }
    return 0;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (image() == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  REQUIRE(image() != 0);
  REQUIRE((*process)->Hold(true).ok());
  const auto opened = (*process)->OpenMemory();
  REQUIRE(opened.ok());
  const auto [memory, maps] = *opened;
  char magic[4] = {};
  REQUIRE(pread(memory, magic, sizeof magic, image()) == sizeof magic);
  CHECK(std::string(magic, sizeof magic) == "\177ELF");
  CHECK(pread(memory, magic, sizeof magic, 16) <= 0);  // where nothing is mapped
  char line[64] = {};
  REQUIRE(pread(maps, line, sizeof line, 0) == sizeof line);
  CHECK(std::stoull(line, nullptr, 16) > 0);
  const off_t at = image();
  (*process)->Kill();
  (*process)->Wait();
  CHECK(pread(memory, magic, sizeof magic, at) <= 0);
  CHECK(pread(maps, line, sizeof line, 0) <= 0);
  close(memory);
  close(maps);
  CHECK_FALSE((*process)->OpenMemory().ok());
}

// The worker of the next test, in a process of its own.
TEST_CASE("A worker that is killed while it holds a program", "[.killed_worker]") {
  auto process = SandboxedProcess::Start(Host(), Spec({"sleep"}));
  REQUIRE(process.ok());
  REQUIRE((*process)->Hold(true).ok());
  for (pid_t pid : (*process)->Pids()) printf("held %d\n", pid);
  fflush(stdout);
  kill(getpid(), SIGKILL);
}

// The worker of the test after next: killed when the first process inside has its files and waits to be let go.
TEST_CASE("A worker that is killed while it starts a program", "[.starting_worker]") {
  const auto children = [](pid_t pid) {
    std::vector<pid_t> found;
    std::error_code ignored;
    for (const auto& task : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"), ignored)) {
      std::ifstream file(task.path() / "children");
      for (pid_t child = 0; file >> child;) found.push_back(child);
    }
    return found;
  };
  (void)Host();
  const std::vector<pid_t> before = children(getpid());
  std::thread([&] {
    for (;;) {
      for (pid_t outer : children(getpid())) {
        if (std::find(before.begin(), before.end(), outer) != before.end()) continue;
        for (pid_t inner : children(outer)) {
          // (What was let go has a child.)
          if (access(absl::StrCat("/proc/", inner, "/root/tmp/large").c_str(), F_OK) != 0) continue;
          if (!children(inner).empty()) continue;
          printf("held %d\n", inner);
          fflush(stdout);
          kill(getpid(), SIGKILL);
        }
      }
    }
  }).detach();
  SandboxSpec spec = Spec({"spin"});
  spec.files = {{"large", std::string(24 * kMiB, 'x')}};  // written before it is let go
  spec.bounds.disk_bytes = 64 * kMiB;                     // half of it is /tmp
  for (int tries = 0; tries < 100; ++tries) {
    const auto started = SandboxedProcess::Start(Host(), spec);
    INFO(started.status());
    REQUIRE(started.ok());
  }
  _exit(1);  // no pid was told
}

void CheckDiesWithKilledWorker(const std::string& which) {
  FILE* worker = popen(absl::StrCat("exec /proc/$PPID/exe '[", which, "]'").c_str(), "r");
  REQUIRE(worker != nullptr);
  std::vector<pid_t> held;
  char line[256];
  while (fgets(line, sizeof(line), worker) != nullptr) {
    int pid = 0;
    if (sscanf(line, "held %d", &pid) == 1) held.push_back(pid);
  }
  const int status = pclose(worker);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  REQUIRE_FALSE(held.empty());
  const auto running = [&] {
    for (pid_t pid : held) {
      std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
      std::string line;
      // We are the subreaper: a zombie is dead.
      if (std::getline(file, line) && line.find(") Z ") == std::string::npos) return true;
    }
    return false;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (running() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const bool left = running();
  CHECK_FALSE(left);
  if (left) {
    for (pid_t pid : held) kill(pid, SIGKILL);
  }
}

TEST_CASE("What is frozen dies with a worker that is killed", "[sandbox]") {
  if (!Host()->cgroups().freezer()) {
    WARN("no freezer on this machine");
    return;
  }
  CheckDiesWithKilledWorker(".killed_worker");
}

TEST_CASE("What was not let go yet dies with a worker that is killed", "[sandbox]") {
  CheckDiesWithKilledWorker(".starting_worker");
}

TEST_CASE("Without control groups the supervisor keeps memory, processes and processor time", "[sandbox][limits]") {
  const std::shared_ptr<SandboxHost> host = HostWithoutGroups();
  const auto run = [&](SandboxSpec spec) {
    auto process = SandboxedProcess::Start(host, std::move(spec));
    INFO(process.status());
    REQUIRE(process.ok());
    return (*process)->Wait();
  };
  SECTION("memory") {
    SandboxSpec spec = Spec({"memory", absl::StrCat(2048 * kMiB)});
    spec.bounds.memory_bytes = 64 * kMiB;
    const Ending e = run(std::move(spec));
    CHECK(e.kind == Ending::Kind::kLimit);
    CHECK(e.limit == "memory_bytes");
    CHECK(e.limit_reached > 64 * kMiB);
  }
  SECTION("processes") {
    SandboxSpec spec = Spec({"fork", "500"});
    spec.bounds.processes = 20;
    const Ending e = run(std::move(spec));
    CHECK(e.kind == Ending::Kind::kLimit);
    CHECK(e.limit == "processes");
  }
  SECTION("processes that are gone before anyone looks") {
    if (!host->asks_at_forks()) {
      WARN("this kernel does not ask at forks, or a listener above us has the place");
      return;
    }
    SandboxSpec spec = Spec({"fork", "200"});
    spec.bounds.processes = 20;
    spec.tick = absl::Minutes(10);
    const Ending e = run(std::move(spec));
    CHECK(e.kind == Ending::Kind::kLimit);
    CHECK(e.limit == "processes");
    CHECK(e.limit_set == 20);
  }
  SECTION("as many processes as are allowed, and any number one after another") {
    // Pid 1 of the sandbox and the shell are two of them.
    SandboxSpec spec = Shell(
        "for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; i=0; while [ $i -lt 100 ]; do (exit 3); i=$((i+$?-2)); done; "
        "echo $i; kill $(jobs -p)");
    spec.bounds.processes = 11;
    const Ending e = run(std::move(spec));
    INFO(e.err << " limit " << e.limit);
    CHECK(e.kind == Ending::Kind::kExited);
    CHECK(e.out == "100\n");
  }
  SECTION("a limit that is lowered later") {
    if (!host->asks_at_forks()) return;
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    SandboxSpec spec = Shell("read line <&3; for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; kill $(jobs -p)");
    spec.fds = {{ends[0], 3}};
    spec.tick = absl::Minutes(10);
    auto process = SandboxedProcess::Start(host, spec);
    close(ends[0]);
    REQUIRE(process.ok());
    Bounds bounds = spec.bounds;
    bounds.processes = 6;
    (*process)->SetBounds(bounds);
    REQUIRE(write(ends[1], "go\n", 3) == 3);
    close(ends[1]);
    const Ending& e = (*process)->Wait();
    CHECK(e.kind == Ending::Kind::kLimit);
    CHECK(e.limit == "processes");
    CHECK(e.limit_set == 6);
  }
  SECTION("processor time") {
    SandboxSpec spec = Spec({"spin"});
    spec.bounds.cpu_seconds = 0.3;
    const Ending e = run(std::move(spec));
    CHECK(e.kind == Ending::Kind::kLimit);
    CHECK(e.limit == "run_cpu_seconds");
  }
  SECTION("and what it leaves running is ended") {
    auto process = SandboxedProcess::Start(host, Spec({"orphan"}));
    REQUIRE(process.ok());
    const pid_t inner = (*process)->pid();
    CHECK_FALSE((*process)->Wait().unreaped);
    CHECK(kill(inner, 0) != 0);
  }
  SECTION("and the self-test says which layers are what") {
    const SelfTestReport report = RunSelfTest(host, GROVE_PROBE);
    INFO(report.Required());
    CHECK(report.Required().ok());
    const std::vector<std::string> names = report.ActiveNames();
    const std::set<std::string> active(names.begin(), names.end());
    CHECK(active.count("watched-memory") == 1);
    CHECK(active.count("watched-pids") == 1);
    CHECK(active.count("namespaces") == 1);
    CHECK(active.count("hold") == 0);
    for (const LayerState& layer : report.layers) {
      if (layer.name != "hold") continue;
      CHECK_FALSE(layer.required);
      CHECK_THAT(layer.evidence, Catch::Contains("no freezer"));
    }
  }
}

TEST_CASE("A process that cannot be killed costs a bounded time and is told of", "[sandbox]") {
  // Its parent cannot end before a tracer of ours has let go of it: nothing that SIGKILL could do.
  auto process = SandboxedProcess::Start(Host(), Shell("sleep 1000 & echo started; wait"));
  REQUIRE(process.ok());
  pid_t child = -1;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (child < 0 && std::chrono::steady_clock::now() < deadline) {
    for (pid_t pid : (*process)->Pids()) {
      std::ifstream name(absl::StrCat("/proc/", pid, "/comm"));
      std::string text;
      if (name >> text && text == "sleep") child = pid;
    }
    std::this_thread::yield();
  }
  REQUIRE(child >= 0);
  if (ptrace(PTRACE_SEIZE, child, nullptr, nullptr) != 0) {
    WARN("skipped: processes may not be traced here");
    return;
  }
  const auto before = std::chrono::steady_clock::now();
  (*process)->Kill();
  const Ending e = (*process)->Wait();
  CHECK(e.kind == Ending::Kind::kKilled);
  CHECK(e.unreaped);
  REQUIRE(e.leftover != nullptr);
  CHECK_FALSE(e.leftover->Gone());
  process->reset();
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(30));  // 4 s on an idle machine
  CHECK_FALSE(e.leftover->Gone());
  int status = 0;
  CHECK(waitpid(child, &status, __WALL) == child);  // the tracer lets go
  bool gone = false;
  while (!gone && std::chrono::steady_clock::now() < deadline) {
    gone = e.leftover->Gone();
    std::this_thread::yield();
  }
  CHECK(gone);
}

TEST_CASE("Inodes and open files are bounded as well as bytes", "[sandbox][limits]") {
  SECTION("empty files") {
    SandboxSpec spec = Shell("i=0; while : ; do i=$((i+1)); : > /tmp/f$i || exit 9; done");
    spec.bounds.disk_bytes = 4 * kMiB;
    spec.bounds.wall = absl::Seconds(60);
    const Ending e = Run(std::move(spec));
    CHECK(e.kind == Ending::Kind::kLimit);
    CHECK(e.limit == "disk_bytes");
  }
  SECTION("descriptors") {
    const Ending e = Run(Spec({"descriptors"}));
    CHECK(e.kind == Ending::Kind::kExited);
    CHECK(e.exit_code == 24);  // EMFILE
  }
  SECTION("descriptors under way, of which the judge may send more than candidates can leave") {
    // Counted per user of the machine, whoever sent them.
    auto flood = SandboxedProcess::Start(Host(), Spec({"flight", "1000000", "/tmp/full"}));
    REQUIRE(flood.ok());
    while (!(*flood)->ReadTmpFile("full", 1).ok()) REQUIRE_FALSE((*flood)->WaitFor(absl::Milliseconds(10)));
    CHECK(Run(Spec({"flight", "1"})).exit_code == 109);  // ETOOMANYREFS
    SandboxSpec judge = Spec({"flight", "16"});
    judge.descriptors = kJudgeDescriptors;
    CHECK(Run(std::move(judge)).exit_code == 0);
    CHECK_FALSE((*flood)->Ended());
  }
  SECTION("timers, which run on while the program stands still") {
    const Ending e = Run(Spec({"timers"}));
    CHECK(e.kind == Ending::Kind::kExited);
    CHECK(e.exit_code == 11);  // EAGAIN
  }
}

// The worker of the next test, in a process of its own.
TEST_CASE("A worker tells of its limit of descriptors and of those it gives", "[.descriptors]") {
  const auto host = Host();
  rlimit own{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &own) == 0);
  printf("limits %d", static_cast<int>(own.rlim_cur));
  for (int wanted : {kDescriptors, kJudgeDescriptors}) {
    SandboxSpec spec = Shell("ulimit -n; ulimit -Hn");
    spec.descriptors = wanted;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(Run(std::move(spec)).out, '\n'))) {
      printf(" %s", line.c_str());
    }
  }
  printf("end\n");
}

TEST_CASE("A worker has as many descriptors as its judges, candidates a fourth", "[sandbox][limits]") {
  const auto limits = [](const std::string& own) {
    FILE* worker =
        popen(("ulimit -Sn 512; ulimit -Hn " + own + "; exec /proc/$PPID/exe '[.descriptors]'").c_str(), "r");
    REQUIRE(worker != nullptr);
    std::string text;
    char line[256];
    while (fgets(line, sizeof(line), worker) != nullptr) {
      if (std::string(line).rfind("limits ", 0) == 0) text = line;
    }
    pclose(worker);
    return text;
  };
  const int judge = kJudgeDescriptors, candidate = kDescriptors;
  rlimit own{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &own) == 0);
  if (own.rlim_max >= static_cast<rlim_t>(judge)) {
    CHECK(limits(absl::StrCat(judge)) ==
          absl::StrCat("limits ", judge, " ", candidate, " ", candidate, "  ", judge, " ", judge, " end\n"));
  }
  CHECK(limits("2048") == "limits 2048 512 512  2048 2048 end\n");
}

TEST_CASE("Many sandboxes at once from many threads all end as they should", "[sandbox]") {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&good, i] {
      for (int k = 0; k < 3; ++k) {
        auto process = SandboxedProcess::Start(Host(), Spec({"exit", absl::StrCat(i)}));
        if (process.ok() && (*process)->Wait().exit_code == i) ++good;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(good == 24);
}

TEST_CASE("Spawning says why a program cannot be started", "[sandbox]") {
  SpawnRequest request;
  request.argv = {"/nonexistent/program"};
  const auto pid = Spawn(request);
  REQUIRE_FALSE(pid.ok());
  CHECK(std::string(pid.status().message()).find("/nonexistent/program") != std::string::npos);
}

}  // namespace
}  // namespace grove::sandbox
