#include "clients/cli/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/daemon/parent.h"

extern char** environ;

namespace grove::cli {
namespace {

// Attributes and actions of posix_spawn with their cleaning up.
struct SpawnSetup {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  explicit SpawnSetup(bool own_group) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR2}) sigaddset(&defaults, signal);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                             (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& argv, const SpawnSetup& setup, const Inherit& inherit) {
  // Who its parent is: a child that looks only after we are gone would take init for it (common/daemon/lifecycle.h).
  std::string parent = absl::StrCat(kParentPidVariable, "=", getpid());
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const absl::string_view text = *variable;
    const absl::string_view name = text.substr(0, text.find('='));
    if (name == kParentPidVariable || (!inherit.credentials && HoldsCredential(name)) ||
        std::find(inherit.without.begin(), inherit.without.end(), name) != inherit.without.end()) {
      continue;
    }
    environment.push_back(*variable);
  }
  environment.push_back(parent.data());
  environment.push_back(nullptr);
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, arguments[0], &setup.actions, &setup.attributes, arguments.data(), environment.data());
  if (error != 0) return ErrnoStatus(error, absl::StrCat("cannot start ", argv[0]));
  return pid;
}

}  // namespace

bool HoldsCredential(absl::string_view variable) {
  static const auto* const kWords = new std::set<std::string>{
      "KEY",  "APIKEY", "KEYS",       "TOKEN",       "TOKENS", "SECRET", "SECRETS", "PASSWORD",
      "PASS", "PASSWD", "CREDENTIAL", "CREDENTIALS", "AUTH",   "BEARER", "PAT",     "COOKIE"};
  for (absl::string_view word : absl::StrSplit(variable, absl::ByAnyChar("_-."))) {
    if (kWords->count(absl::AsciiStrToUpper(word)) > 0) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<Child>> Child::Start(const std::vector<std::string>& argv, const std::string& log_path,
                                                    const Inherit& inherit) {
  SpawnSetup setup(/*own_group=*/true);
  // Opened here and not by the child, so that a failure has its own message.
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", log_path));
  posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&setup.actions, log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&setup.actions, log, STDERR_FILENO);
  auto pid = Spawn(argv, setup, inherit);
  close(log);
  if (!pid.ok()) return pid.status();
  return std::unique_ptr<Child>(new Child(*pid));
}

Child::~Child() {
  if (!Running()) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
}

bool Child::Running() {
  if (reaped_) return false;
  const pid_t result = waitpid(pid_, &status_, WNOHANG);
  if (result == pid_ || (result < 0 && errno == ECHILD)) reaped_ = true;
  return !reaped_;
}

std::string Child::HowItEnded() const {
  if (!reaped_) return "";
  if (WIFSIGNALED(status_)) return absl::StrCat("signal ", WTERMSIG(status_), " (", strsignal(WTERMSIG(status_)), ")");
  return absl::StrCat("exit code ", WEXITSTATUS(status_));
}

int Child::ExitCode() const { return reaped_ && WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }

void Child::Signal(int signal) {
  if (!reaped_) kill(pid_, signal);
}

bool Child::WaitFor(absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  while (Running()) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

absl::StatusOr<Finished> RunAndCapture(const std::vector<std::string>& argv) {
  constexpr size_t kMaxOutput = 1 << 20;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  SpawnSetup setup(/*own_group=*/false);
  posix_spawn_file_actions_adddup2(&setup.actions, ends[1], STDOUT_FILENO);
  auto pid = Spawn(argv, setup, Inherit());
  close(ends[1]);
  if (!pid.ok()) {
    close(ends[0]);
    return pid.status();
  }
  Finished finished;
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(ends[0], buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    const size_t room = kMaxOutput - std::min(kMaxOutput, finished.output.size());
    finished.output.append(buffer, std::min(room, static_cast<size_t>(n)));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  finished.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return finished;
}

std::string TailOfFile(const std::string& path, int64_t from, size_t lines) {
  constexpr int64_t kMaxTail = 16 << 10;
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  const int64_t size = FileSize(path);
  const int64_t start = std::max(from, size - kMaxTail);
  if (start >= size) return "";
  file.seekg(start);
  std::string text(static_cast<size_t>(size - start), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  std::vector<std::string> all = absl::StrSplit(text, '\n');
  while (!all.empty() && all.back().empty()) all.pop_back();
  if (all.size() > lines) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(lines));
  return absl::StrJoin(all, "\n");
}

int64_t FileSize(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

std::string ExecutableDir() {
  char buffer[4096];
  const ssize_t n = readlink("/proc/self/exe", buffer, sizeof(buffer) - 1);
  if (n <= 0) return ".";
  std::string path(buffer, static_cast<size_t>(n));
  return path.substr(0, path.rfind('/'));
}

}  // namespace grove::cli
