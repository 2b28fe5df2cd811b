#include "worker/sandbox/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/sandbox/bounded_text.h"
#include "worker/sandbox/bubblewrap.h"
#include "worker/sandbox/fork_gate.h"
#include "worker/sandbox/handles.h"
#include "worker/sandbox/limits.h"
#include "worker/sandbox/private_files.h"
#include "worker/sandbox/proc_usage.h"
#include "worker/sandbox/spawn.h"

namespace grove::sandbox {
namespace {

// Time for bubblewrap to build the sandbox: 10 ms idle, seconds on a machine that is overrun. Past it the machine is
// sick.
constexpr absl::Duration kSetUpTimeout = absl::Seconds(30);
// After SIGKILL a process is gone within milliseconds unless the kernel holds it (docs/sandbox.md).
constexpr absl::Duration kReapGrace = absl::Seconds(1);
// While a private file system is filled beyond this share, the supervisor looks so often: a program writes some 2 GB/s,
// so that it cannot fill and empty the rest of a few hundred MiB between two looks.
constexpr double kFilling = 0.2;
constexpr absl::Duration kFillingTick = absl::Milliseconds(4);

// Each POSIX timer takes one. Interval timers whose signal is ignored go on in the processor's interrupts while their
// process stands still: 100,000 of them, armed on one core, slowed a reference to a third. 32 at most a jiffy apart
// cost a core less than 1 %. Counted per user: where the sandbox has no users of its own, with all of the host's root.
constexpr rlim_t kPendingSignals = 32;
constexpr rlim_t kPendingSignalsShared = 1024;

}  // namespace

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", signal);
}

absl::StatusOr<std::unique_ptr<SandboxedProcess>> SandboxedProcess::Start(std::shared_ptr<SandboxHost> host,
                                                                          SandboxSpec spec) {
  if (spec.argv.empty() || spec.argv[0].empty() || spec.argv[0][0] != '/') {
    return absl::InvalidArgumentError("a sandboxed program needs an absolute path");
  }
  std::unique_ptr<SandboxedProcess> process(new SandboxedProcess);
  SandboxedProcess& p = *process;
  p.host_ = std::move(host);
  p.spec_ = std::move(spec);
  p.bounds_ = p.spec_.bounds;
  const bool wrapped = !p.host_->bwrap().empty();
  if (p.spec_.loopback && !wrapped) {
    return absl::FailedPreconditionError(
        "a program that needs sockets gets them only in a network namespace of its own, which needs bubblewrap");
  }
  GROVE_ASSIGN_OR_RETURN(p.cgroup_, p.host_->cgroups().Create(p.spec_.label));
  GROVE_RETURN_IF_ERROR(p.cgroup_->SetLimits(p.bounds_.memory_bytes, p.bounds_.processes));

  Fd out_write, err_write, out_read, err_read;
  GROVE_RETURN_IF_ERROR(MakePipe(&out_read, &out_write));
  GROVE_RETURN_IF_ERROR(MakePipe(&err_read, &err_write));
  fcntl(out_read.get(), F_SETFL, O_NONBLOCK);
  fcntl(err_read.get(), F_SETFL, O_NONBLOCK);
  p.wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (p.wake_fd_ < 0) return ErrnoStatus(errno, "cannot make an eventfd");

  SpawnRequest request;
  request.env = p.spec_.env;
  request.fds = p.spec_.fds;
  request.fds.emplace_back(out_write.get(), 1);
  request.fds.emplace_back(err_write.get(), 2);
  request.rlimits = {{RLIMIT_CORE, 0}, {RLIMIT_MEMLOCK, RLIM_INFINITY}};
  request.rlimits.emplace_back(RLIMIT_NOFILE, static_cast<rlim_t>(p.host_->Descriptors(p.spec_.descriptors)));
  request.rlimits.emplace_back(RLIMIT_SIGPENDING, p.host_->user_namespace() ? kPendingSignals : kPendingSignalsShared);
  if (p.bounds_.file_bytes > 0) {
    request.rlimits.emplace_back(RLIMIT_FSIZE, static_cast<rlim_t>(p.bounds_.file_bytes));
  }
  if (p.bounds_.processes > 0 && !p.host_->cgroups().pids() && geteuid() != 0) {
    // Counted per user over the machine on old kernels: room for what else this user runs. The supervisor counts
    // exactly.
    request.rlimits.emplace_back(RLIMIT_NPROC, static_cast<rlim_t>(p.bounds_.processes) + 1024);
  }

  Fd info_read, info_write, filter_read, filter_write, passwd;
  int64_t part = p.bounds_.disk_bytes > 0 ? p.bounds_.disk_bytes / 2 : kDiskBytes / 2;
  part = (part + 4095) / 4096 * 4096;  // tmpfs counts in pages
  if (wrapped) {
    GROVE_RETURN_IF_ERROR(MakePipe(&info_read, &info_write));
    GROVE_RETURN_IF_ERROR(MakePipe(&filter_read, &filter_write));
    int next = 3;
    for (const auto& [ours, theirs] : request.fds) next = std::max(next, theirs + 1);
    const int info_at = next++, filter_at = next++, passwd_at = next++;
    request.fds.emplace_back(info_write.get(), info_at);
    request.fds.emplace_back(filter_read.get(), filter_at);

    std::vector<std::string>& args = request.argv;
    args = {p.host_->bwrap()};
    const auto add = [&](std::initializer_list<std::string> more) { args.insert(args.end(), more); };
    for (std::string& a : NamespaceArgs(p.host_->user_namespace())) args.push_back(std::move(a));
    add({"--info-fd", absl::StrCat(info_at), "--seccomp", absl::StrCat(filter_at)});
    AddSystem(&args);
    const std::string size = absl::StrCat(part);
    // Before the binds: a folder that is bound may itself lie below /tmp.
    add({"--size", size, "--perms", "1777", "--tmpfs", "/tmp", "--symlink", "/tmp", "/var/tmp"});
    if (p.spec_.identity) {
      absl::StatusOr<int> text = MemfdWith("grove:x:1000:1000:grove:/tmp:/bin/sh\nroot:x:0:0:root:/:/bin/sh\n");
      if (!text.ok()) return text.status();
      passwd.Set(*text);
      request.fds.emplace_back(passwd.get(), passwd_at);
      add({"--ro-bind-data", absl::StrCat(passwd_at), "/etc/passwd"});
    }
    for (const std::string& path : p.spec_.read_only) add({"--ro-bind-try", path, path});
    for (const std::string& node : p.spec_.devices) add({"--dev-bind-try", node, node});
    add({"--size", size, "--perms", "1777", "--tmpfs", "/dev/shm"});
    add({"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--"});
    args.insert(args.end(), p.spec_.argv.begin(), p.spec_.argv.end());
  } else {
    request.argv = p.spec_.argv;
    request.seccomp_filter_fd = p.host_->seccomp_fd(false);
    char folder[] = "/tmp/grove-weak-XXXXXX";
    if (mkdtemp(folder) == nullptr) return ErrnoStatus(errno, "cannot make a folder below /tmp");
    p.weak_tmp_ = folder;
    p.tmp_fd_ = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (const auto& [path, content] : p.spec_.files) GROVE_RETURN_IF_ERROR(WriteBelow(p.tmp_fd_, path, content));
    // The program's /tmp/... arguments and variables point into that folder.
    const auto relocate = [&](std::string* text) {
      for (const std::string& bound : p.spec_.read_only) {
        if (absl::StartsWith(*text, bound)) return;
      }
      if (absl::StartsWith(*text, "/tmp/")) *text = absl::StrCat(folder, text->substr(4));
    };
    for (std::string& a : request.argv) relocate(&a);
    // Stopped until it is in its control groups.
    const std::vector<std::string> stopped = {"/bin/sh", "-c", "kill -STOP $$; exec \"$@\"", "sh"};
    request.argv.insert(request.argv.begin(), stopped.begin(), stopped.end());
    for (std::string& e : request.env) {
      const size_t equals = e.find('=');
      std::string value = e.substr(equals + 1);
      if (value == "/tmp") value = folder;
      relocate(&value);
      e = absl::StrCat(e.substr(0, equals + 1), value);
    }
  }

  Fd gate_ours, gate_theirs;
  if (p.host_->asks_at_forks()) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
      return ErrnoStatus(errno, "cannot make a socket pair");
    }
    gate_ours.Set(sockets[0]);
    gate_theirs.Set(sockets[1]);
    request.fork_gate = gate_theirs.get();
  }
  absl::StatusOr<pid_t> pid = Spawn(request);
  if (!pid.ok()) return pid.status();
  p.monitor_pid_ = *pid;
  // bubblewrap itself forks, so there must be someone to answer from here on.
  if (gate_ours.get() >= 0) p.fork_gate_ = ForkGate::FromChild(gate_ours.get(), [&p] { p.Wake(); });
  p.monitor_pidfd_ = PidfdOpen(*pid);
  p.started_ = SteadyNow();
  out_write.Close();
  err_write.Close();
  info_write.Close();
  filter_read.Close();
  p.out_fd_ = out_read.release();
  p.err_fd_ = err_read.release();
  // From here on the destructor kills and reaps.
  const auto count_forks = [&p, wrapped] {
    if (p.fork_gate_ == nullptr) return;
    p.fork_gate_->Begin(p.bounds_.processes,
                        [inner = p.inner_pid_, wrapped] { return SumProcesses(inner, wrapped).pids; });
  };

  if (wrapped) {
    const absl::Time deadline = SteadyNow() + kSetUpTimeout;
    const auto failed = [&](absl::string_view what) -> absl::Status {
      BoundedText text(4096);
      absl::SleepFor(absl::Milliseconds(20));  // its last words may still be on their way
      Drain(p.err_fd_, &text);
      std::string said = text.Text();
      absl::StripAsciiWhitespace(&said);
      return absl::InternalError(absl::StrCat("the sandbox could not be made: ", what, said.empty() ? "" : ": ", said));
    };
    std::string info;
    while (info.find('}') == std::string::npos) {
      pollfd one{info_read.get(), POLLIN, 0};
      const int64_t left = absl::ToInt64Milliseconds(deadline - SteadyNow());
      if (left <= 0) return failed("bubblewrap did not answer in time");
      if (poll(&one, 1, static_cast<int>(left)) <= 0) continue;
      char chunk[512];
      const ssize_t n = read(info_read.get(), chunk, sizeof(chunk));
      if (n == 0 || (n < 0 && errno != EINTR)) return failed("bubblewrap ended");
      if (n > 0) info.append(chunk, static_cast<size_t>(n));
      if (info.size() > 4096) return failed("bubblewrap spoke nonsense");
    }
    const size_t key = info.find("\"child-pid\"");
    const size_t colon = key == std::string::npos ? key : info.find(':', key);
    if (colon == std::string::npos) return failed("bubblewrap did not name its child");
    p.inner_pid_ = static_cast<pid_t>(strtol(info.c_str() + colon + 1, nullptr, 10));
    if (p.inner_pid_ <= 1) return failed("bubblewrap did not name its child");
    p.inner_pidfd_ = PidfdOpen(p.inner_pid_);
    if (p.inner_pidfd_ < 0) return failed("its first process is gone");
    GROVE_RETURN_IF_ERROR(p.cgroup_->Add(p.inner_pid_));
    // The mounts are made after the pid was told; wait for ours to appear. /dev/shm is the last of them.
    const std::string root = absl::StrCat("/proc/", p.inner_pid_, "/root");
    while (p.shm_fd_ < 0) {
      p.shm_fd_ = OpenSandboxTmpfs(absl::StrCat(root, "/dev/shm"), part);
      if (p.shm_fd_ >= 0) break;
      pollfd one{p.monitor_pidfd_, POLLIN, 0};
      if (poll(&one, 1, 1) > 0) return failed("bubblewrap ended");
      if (SteadyNow() > deadline) return failed("its mounts did not appear in time");
    }
    p.tmp_fd_ = OpenSandboxTmpfs(absl::StrCat(root, "/tmp"), part);
    if (p.tmp_fd_ < 0) return failed("its /tmp cannot be opened");
    for (const auto& [path, content] : p.spec_.files) GROVE_RETURN_IF_ERROR(WriteBelow(p.tmp_fd_, path, content));
    p.started_ = SteadyNow();
    count_forks();
    const absl::StatusOr<std::string> filter = TextOf(p.host_->seccomp_fd(p.spec_.loopback));
    if (!filter.ok()) return absl::InternalError(absl::StrCat("the system call filter: ", filter.status().message()));
    const int size = static_cast<int>(filter->size());
    if (fcntl(filter_write.get(), F_GETPIPE_SZ) < size && fcntl(filter_write.get(), F_SETPIPE_SZ, size) < size) {
      return failed("pipes of this user are too small for the system call filter (/proc/sys/fs/pipe-user-pages-soft)");
    }
    if (write(filter_write.get(), filter->data(), filter->size()) != static_cast<ssize_t>(filter->size())) {
      return failed("it was gone before it was let go");
    }
    filter_write.Close();
  } else {
    p.inner_pid_ = p.monitor_pid_;
    p.inner_pidfd_ = dup(p.monitor_pidfd_);
    int status = 0;
    while (waitpid(p.monitor_pid_, &status, WUNTRACED) < 0 && errno == EINTR) {
    }
    if (!WIFSTOPPED(status)) {
      p.monitor_pid_ = -1;
      return absl::InternalError("the program ended before it was let go");
    }
    GROVE_RETURN_IF_ERROR(p.cgroup_->Add(p.inner_pid_));
    count_forks();
    kill(p.inner_pid_, SIGCONT);
  }
  p.bounds_from_ = p.started_;
  p.supervisor_ = std::thread([&p] { p.Supervise(); });
  return process;
}

Leftover::~Leftover() {
  (void)Gone();
  for (int fd : {monitor_pidfd_, inner_pidfd_}) {
    if (fd >= 0) close(fd);
  }
}

bool Leftover::Gone() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (child_ > 0 && sandbox::Gone(monitor_pidfd_)) {
    int status = 0;
    (void)waitpid(child_, &status, WNOHANG);
    child_ = -1;
  }
  return sandbox::Gone(monitor_pidfd_) && sandbox::Gone(inner_pidfd_);
}

SandboxedProcess::~SandboxedProcess() {
  if (supervisor_.joinable()) {
    Kill();
    supervisor_.join();
  } else if (monitor_pid_ > 0) {
    // Start failed half-way.
    HardKill();
    PidfdKill(monitor_pidfd_, SIGKILL);
    int status = 0;
    while (waitpid(monitor_pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  fork_gate_.reset();  // before the descriptor by which it wakes
  cgroup_.reset();
  for (int fd : {monitor_pidfd_, inner_pidfd_, out_fd_, err_fd_, wake_fd_, tmp_fd_, shm_fd_}) {
    if (fd >= 0) close(fd);
  }
  if (!weak_tmp_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(weak_tmp_, ignored);
  }
}

void SandboxedProcess::Kill() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    kill_requested_ = true;
  }
  Wake();
}

void SandboxedProcess::Wake() {
  const uint64_t one = 1;
  (void)!write(wake_fd_, &one, sizeof(one));
}

bool SandboxedProcess::WaitFor(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  return ended_cv_.wait_for(lock, absl::ToChronoNanoseconds(std::min(timeout, absl::Hours(24))),
                            [this] { return ended_; });
}

const Ending& SandboxedProcess::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  ended_cv_.wait(lock, [this] { return ended_; });
  return ending_;
}

std::vector<pid_t> SandboxedProcess::Pids() const {
  std::vector<pid_t> pids = cgroup_->Pids();
  if (!pids.empty() || inner_pid_ <= 0 || Gone(inner_pidfd_)) return pids;
  SumProcesses(inner_pid_, !host_->bwrap().empty(), &pids);
  // Its number may have become another process's meanwhile, and the namespace our own.
  if (Gone(inner_pidfd_)) pids.clear();
  return pids;
}

absl::StatusOr<std::pair<int, int>> SandboxedProcess::OpenMemory() const {
  std::vector<pid_t> pids = Pids();
  // bubblewrap's own, which is the namespace's first, waits for the program.
  if (pids.size() > 1) pids.erase(std::remove(pids.begin(), pids.end(), inner_pid_), pids.end());
  if (pids.size() != 1) return absl::UnavailableError(absl::StrCat("it has ", pids.size(), " processes"));
  const std::string folder = absl::StrCat("/proc/", pids[0]);
  Fd memory(open((folder + "/mem").c_str(), O_RDWR | O_CLOEXEC)), maps;
  if (memory.get() >= 0) maps.Set(open((folder + "/maps").c_str(), O_RDONLY | O_CLOEXEC));
  if (maps.get() < 0) return absl::UnavailableError(absl::StrCat("cannot open its memory: ", strerror(errno)));
  return std::pair(memory.release(), maps.release());
}

int64_t SandboxedProcess::MemoryBytes() const {
  if (const int64_t counted = cgroup_->Usage().memory_bytes; counted >= 0) return counted;
  if (inner_pid_ <= 0 || Gone(inner_pidfd_)) return 0;
  return SumProcesses(inner_pid_, !host_->bwrap().empty()).memory_bytes;
}

bool SandboxedProcess::StandOn(int processor) const {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (processor >= 0 && processor < CPU_SETSIZE) {
    CPU_SET(processor, &set);
  } else if (sched_getaffinity(0, sizeof set, &set) != 0) {
    return false;
  }
  bool all = true;
  for (const pid_t pid : Pids()) {
    all = sched_setaffinity(pid, sizeof set, &set) == 0 && all;
    if (processor >= 0) continue;
    std::error_code ignored;
    for (const auto& task : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"), ignored)) {
      pid_t thread = 0;
      if (absl::SimpleAtoi(task.path().filename().string(), &thread)) (void)sched_setaffinity(thread, sizeof set, &set);
    }
  }
  return all;
}

bool SandboxedProcess::CanHold() const { return host_->cgroups().freezer(); }

void SandboxedProcess::SetBounds(const Bounds& bounds) {
  const CgroupUsage usage = cgroup_->Usage();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    bounds_ = bounds;
    bounds_from_ = SteadyNow();
    cpu_from_ = std::max(0.0, usage.cpu_seconds);
  }
  // v1 refuses a limit below what cannot be given back; v2 takes it and ends the group.
  const bool taken = cgroup_->SetLimits(bounds.memory_bytes, bounds.processes).ok();
  if (!taken && bounds.memory_bytes > 0 && cgroup_->Usage().memory_bytes > bounds.memory_bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    over_memory_ = true;
  }
  if (fork_gate_ != nullptr) fork_gate_->SetLimit(bounds.processes);
  Wake();
}

absl::StatusOr<std::string> SandboxedProcess::ReadTmpFile(const std::string& path, int64_t max_bytes) {
  return ReadBelow(tmp_fd_, path, max_bytes);
}

void SandboxedProcess::HardKill() {
  PidfdKill(inner_pidfd_, SIGKILL);
  if (host_->bwrap().empty() && monitor_pid_ > 0) kill(-monitor_pid_, SIGKILL);
  if (cgroup_ != nullptr) cgroup_->KillAll();
}

void SandboxedProcess::Supervise() {
  const bool wrapped = !host_->bwrap().empty();
  CgroupHost& groups = host_->cgroups();
  const bool walk = !groups.memory() || !groups.pids() || !groups.cpu();
  BoundedText out(spec_.kept_output_bytes), err(spec_.kept_output_bytes);
  bool out_open = true, err_open = true;
  Ending ending;
  std::optional<Ending::Kind> cause;
  absl::Time last_check = absl::InfinitePast();
  absl::Time killed_at = absl::InfiniteFuture();
  bool gone = false;
  int monitor_status = 0;
  double cpu_from = 0;
  bool over_memory = false;
  absl::Duration tick = spec_.tick;

  const auto hit = [&](const std::string& name, double set, double reached) {
    if (cause.has_value()) return;
    cause = Ending::Kind::kLimit;
    ending.limit = name;
    ending.limit_set = set;
    ending.limit_reached = reached;
  };
  const auto measure = [&](const Bounds& bounds, absl::Time from, bool final) {
    const absl::Time now = SteadyNow();
    CgroupUsage usage = cgroup_->Usage();
    if (walk && !final) {
      const ProcUsage sum = SumProcesses(inner_pid_, wrapped);
      if (usage.memory_bytes < 0) {
        usage.memory_bytes = sum.memory_bytes + TmpfsUsed(shm_fd_) + (wrapped ? TmpfsUsed(tmp_fd_) : 0);
        usage.memory_peak_bytes = std::max(ending.memory_peak_bytes, usage.memory_bytes);
        if (bounds.memory_bytes > 0 && usage.memory_bytes > bounds.memory_bytes) usage.oom_kills = 1;
      }
      if (usage.pids < 0) {
        usage.pids = sum.pids;
        if (bounds.processes > 0 && sum.pids > bounds.processes) usage.pids_refused = 1;
      }
      if (usage.cpu_seconds < 0) usage.cpu_seconds = sum.cpu_seconds;
    }
    if (fork_gate_ != nullptr && fork_gate_->refused()) usage.pids_refused = 1;
    ending.memory_peak_bytes = std::max(ending.memory_peak_bytes, usage.memory_peak_bytes);
    ending.pids_peak = std::max<int>(ending.pids_peak, static_cast<int>(usage.pids));
    ending.cpu_seconds = std::max(ending.cpu_seconds, usage.cpu_seconds);
    const int64_t disk = wrapped ? TmpfsUsed(tmp_fd_) + TmpfsUsed(shm_fd_) : 0;
    ending.disk_peak_bytes = std::max(ending.disk_peak_bytes, disk);
    const double share = wrapped ? std::max(TmpfsShare(tmp_fd_), TmpfsShare(shm_fd_)) : 0.0;
    ending.disk_fullest = std::max(ending.disk_fullest, share);
    tick = share > kFilling ? std::min(spec_.tick, kFillingTick) : spec_.tick;
    // The first of these that holds names the limit: memory before the rest, because an OOM kill looks like a crash.
    if (usage.oom_kills > 0 || over_memory) {
      // What the kernel refused was beyond the limit, and is in none of its counts.
      hit(spec_.names.memory, static_cast<double>(bounds.memory_bytes),
          static_cast<double>(std::max({ending.memory_peak_bytes, usage.memory_bytes, bounds.memory_bytes})));
    }
    if (usage.pids_refused > 0 && bounds.processes > 0) {
      hit(spec_.names.processes, bounds.processes, bounds.processes + 1.0);
    }
    if (wrapped && (TmpfsFull(tmp_fd_) || TmpfsFull(shm_fd_))) {
      hit(spec_.names.disk, static_cast<double>(bounds.disk_bytes > 0 ? bounds.disk_bytes : kDiskBytes),
          static_cast<double>(disk));
    }
    if (bounds.output_bytes > 0 && out.total() + err.total() > bounds.output_bytes) {
      hit(spec_.names.output, static_cast<double>(bounds.output_bytes), static_cast<double>(out.total() + err.total()));
    }
    if (bounds.cpu_seconds > 0 && ending.cpu_seconds - cpu_from > bounds.cpu_seconds) {
      hit(spec_.names.cpu, bounds.cpu_seconds, ending.cpu_seconds - cpu_from);
    }
    if (!final && bounds.wall > absl::ZeroDuration() && now - from > bounds.wall) {
      hit(spec_.names.wall, absl::ToDoubleSeconds(bounds.wall), absl::ToDoubleSeconds(now - from));
    }
  };

  Bounds bounds;
  absl::Time from;
  while (!gone) {
    bool kill_now = false;
    const bool was_over_memory = over_memory;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      bounds = bounds_;
      from = bounds_from_;
      cpu_from = cpu_from_;
      kill_now = kill_requested_;
      over_memory = over_memory_;
    }
    if (kill_now && !cause.has_value()) {
      // A limit that was reached first is what became of the program, though nobody looked since.
      measure(bounds, from, true);
      if (!cause.has_value()) cause = Ending::Kind::kKilled;
    }
    const bool refused = fork_gate_ != nullptr && fork_gate_->refused();
    if (!cause.has_value() && (refused || over_memory != was_over_memory || SteadyNow() - last_check >= tick)) {
      last_check = SteadyNow();
      measure(bounds, from, false);
    }
    if (cause.has_value() && killed_at == absl::InfiniteFuture()) {
      killed_at = SteadyNow();
      HardKill();
    }
    if (SteadyNow() - killed_at > kReapGrace / 2) PidfdKill(monitor_pidfd_, SIGKILL);
    if (SteadyNow() - killed_at > kReapGrace) {
      // The kernel holds it (a driver call that does not return). Nobody waits for it any longer; see `unreaped`.
      ending.unreaped = true;
      break;
    }
    absl::Duration wait = tick;
    if (bounds.wall > absl::ZeroDuration()) wait = std::min(wait, from + bounds.wall - SteadyNow());
    if (cause.has_value()) wait = absl::Milliseconds(10);
    wait = std::clamp(wait, absl::Milliseconds(1), tick);
    pollfd fds[4] = {{monitor_pidfd_, POLLIN, 0},
                     {out_open ? out_fd_ : -1, POLLIN, 0},
                     {err_open ? err_fd_ : -1, POLLIN, 0},
                     {wake_fd_, POLLIN, 0}};
    if (poll(fds, 4, static_cast<int>(std::ceil(absl::ToDoubleMilliseconds(wait)))) < 0 && errno != EINTR) break;
    if (fds[3].revents != 0) {
      uint64_t count = 0;
      (void)!read(wake_fd_, &count, sizeof(count));
    }
    if (fds[1].revents != 0) out_open = Drain(out_fd_, &out);
    if (fds[2].revents != 0) err_open = Drain(err_fd_, &err);
    if (fds[0].revents != 0) {
      int waited = 0;
      do {
        waited = waitpid(monitor_pid_, &monitor_status, 0);
      } while (waited < 0 && errno == EINTR);
      gone = true;
    }
  }

  // What the counters say after the end still tells a crash from a limit.
  measure(bounds, from, true);
  HardKill();  // without bubblewrap, children may have outlived the program
  // bubblewrap ends with its child; see that pid 1 of the sandbox, and with it all the rest, is truly gone.
  if (wrapped && inner_pidfd_ >= 0) {
    pollfd one{inner_pidfd_, POLLIN, 0};
    if (poll(&one, 1, static_cast<int>(absl::ToInt64Milliseconds(kReapGrace))) == 0) ending.unreaped = true;
    int ignored = 0;
    if (!ending.unreaped) (void)waitpid(inner_pid_, &ignored, WNOHANG);  // ours only if bubblewrap left it to us
  }
  // Nothing can write any more: the rest of the pipes is bounded by their size.
  for (int i = 0; out_open && i < 4; ++i) out_open = Drain(out_fd_, &out) && i < 1;
  for (int i = 0; err_open && i < 4; ++i) err_open = Drain(err_fd_, &err) && i < 1;
  measure(bounds, from, true);
  if (ending.unreaped) {
    ending.leftover =
        std::make_shared<Leftover>(dup(monitor_pidfd_), dup(inner_pidfd_), gone ? -1 : monitor_pid_, inner_pid_);
    LogError("sandbox", spec_.label, ": process ", inner_pid_, " or what runs below it did not die after SIGKILL");
  }

  // bubblewrap reports a signal of the program as 128 + signal.
  if (WIFEXITED(monitor_status)) {
    ending.exit_code = WEXITSTATUS(monitor_status);
    if (wrapped && ending.exit_code > 128 && ending.exit_code < 128 + 65) ending.signal = ending.exit_code - 128;
  } else if (WIFSIGNALED(monitor_status)) {
    ending.signal = WTERMSIG(monitor_status);
  }
  ending.kind = cause.value_or(ending.signal != 0 ? Ending::Kind::kSignaled : Ending::Kind::kExited);
  if (ending.kind == Ending::Kind::kSignaled && ending.signal == SIGXFSZ) {
    ending.kind = Ending::Kind::kLimit;
    ending.limit = spec_.names.disk;
    ending.limit_set = ending.limit_reached = static_cast<double>(bounds.file_bytes);
  }
  ending.out = out.Text();
  ending.err = err.Text();
  ending.output_truncated = out.truncated() || err.truncated();
  ending.output_bytes = out.total() + err.total();
  ending.wall_seconds = absl::ToDoubleSeconds(SteadyNow() - started_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = std::move(ending);
    ended_ = true;
  }
  ended_cv_.notify_all();
}

}  // namespace grove::sandbox
