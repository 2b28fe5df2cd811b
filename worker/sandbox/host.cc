#include "worker/sandbox/host.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "worker/sandbox/bounded_text.h"
#include "worker/sandbox/bubblewrap.h"
#include "worker/sandbox/fork_gate.h"
#include "worker/sandbox/handles.h"
#include "worker/sandbox/seccomp.h"
#include "worker/sandbox/spawn.h"

namespace grove::sandbox {
namespace {

// Runs `argv` to its end with a time limit; for probing. (exit code or 128 + signal, stderr)
std::pair<int, std::string> RunQuietly(const std::vector<std::string>& argv, absl::Duration limit) {
  Fd read_end, write_end;
  if (absl::Status status = MakePipe(&read_end, &write_end); !status.ok()) return {127, std::string(status.message())};
  SpawnRequest request;
  request.argv = argv;
  request.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  request.fds = {{write_end.get(), 2}};
  absl::StatusOr<pid_t> pid = Spawn(request);
  write_end.Close();
  if (!pid.ok()) return {127, std::string(pid.status().message())};
  Fd pidfd(PidfdOpen(*pid));
  fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  BoundedText text(8192);
  const absl::Time deadline = SteadyNow() + limit;
  pollfd fds[2] = {{pidfd.get(), POLLIN, 0}, {read_end.get(), POLLIN, 0}};
  for (;;) {
    const int64_t left = absl::ToInt64Milliseconds(deadline - SteadyNow());
    if (left <= 0) {
      kill(*pid, SIGKILL);
      break;
    }
    if (poll(fds, 2, static_cast<int>(std::min<int64_t>(left, 1000))) < 0 && errno != EINTR) break;
    if (fds[1].revents != 0 && !Drain(read_end.get(), &text)) fds[1].fd = -1;
    if (fds[0].revents != 0) break;
  }
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  Drain(read_end.get(), &text);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text.Text()};
}

// A program that gets its rights from its file would lose them by the filter of the fork gate.
bool HasSetUserId(const std::string& program) {
  struct stat info {};
  return stat(program.c_str(), &info) == 0 && (info.st_mode & S_ISUID) != 0;
}

std::string FindOnPath(const std::string& name) {
  const char* path = getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path == nullptr ? "/usr/bin:/bin" : path, ':', absl::SkipEmpty())) {
    std::string candidate = absl::StrCat(folder, "/", name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

// This process's limit of descriptors becomes kJudgeDescriptors where it is less. What it is then, at most that.
int RaiseDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kJudgeDescriptors;
  const rlim_t wanted = std::min<rlim_t>(kJudgeDescriptors, limit.rlim_max);
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return static_cast<int>(wanted);
}

}  // namespace

absl::StatusOr<std::shared_ptr<SandboxHost>> SandboxHost::Create(const Options& options) {
  std::shared_ptr<SandboxHost> host(new SandboxHost);
  host->cgroups_ = CgroupHost::Detect();
  // bubblewrap may end before it has reaped pid 1 of the sandbox: that orphan comes to us then, and not to an init
  // which, in a container, may be a program that reaps nobody.
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  host->most_descriptors_ = RaiseDescriptors();
  host->asks_at_forks_ = !host->cgroups_->pids() && ForkGate::Works();
  GROVE_ASSIGN_OR_RETURN(host->seccomp_fd_, CompileSeccompFilter());
  GROVE_ASSIGN_OR_RETURN(host->loopback_fd_, CompileSeccompFilter(/*loopback=*/true));
  std::vector<std::string> places;
  if (!options.bwrap.empty()) {
    places.push_back(options.bwrap);
  } else {
    if (!options.libexec_dir.empty()) places.push_back(absl::StrCat(options.libexec_dir, "/bwrap"));
    const std::string on_path = FindOnPath("bwrap");
    if (!on_path.empty()) places.push_back(on_path);
  }
  std::string problem = "bubblewrap (bwrap) was not found; install it (apt-get install bubblewrap)";
  for (const std::string& bwrap : places) {
    if (access(bwrap.c_str(), X_OK) != 0) continue;
    for (bool user : {true, false}) {
      if (!user && geteuid() != 0) continue;  // without a user namespace only root can make the others
      std::vector<std::string> argv = {bwrap};
      for (std::string& a : NamespaceArgs(user)) argv.push_back(std::move(a));
      AddSystem(&argv);
      for (const char* a : {"--", "/usr/bin/true"}) argv.push_back(a);
      const auto [code, err] = RunQuietly(argv, absl::Seconds(30));
      if (code == 0) {
        host->bwrap_ = bwrap;
        if (HasSetUserId(bwrap) && geteuid() != 0) host->asks_at_forks_ = false;
        host->user_namespace_ = user;
        host->namespace_evidence_ =
            absl::StrCat(bwrap, user ? ": user, pid, net, ipc, uts, mount namespaces"
                                     : ": pid, net, ipc, uts, mount namespaces (user namespaces are not allowed here)");
        return host;
      }
      std::string text = err;
      absl::StripAsciiWhitespace(&text);
      problem = absl::StrCat(bwrap, " cannot make a sandbox here: ", text.empty() ? absl::StrCat("exit ", code) : text,
                             ". Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
                             "kernel.apparmor_restrict_unprivileged_userns=0; in a container: "
                             "--security-opt seccomp=unconfined --security-opt systempaths=unconfined)");
    }
  }
  host->namespace_evidence_ = problem;
  if (!options.allow_weak) {
    return absl::FailedPreconditionError(
        absl::StrCat(problem, ". --allow-weak-sandbox runs without it, for trusted kernels only"));
  }
  return host;
}

int SandboxHost::Descriptors(int wanted) const {
  return static_cast<int>(int64_t{wanted} * most_descriptors_ / kJudgeDescriptors);
}

SandboxHost::~SandboxHost() {
  for (int fd : {seccomp_fd_, loopback_fd_}) {
    if (fd >= 0) close(fd);
  }
}

}  // namespace grove::sandbox
