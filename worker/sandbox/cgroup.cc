#include "worker/sandbox/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"

namespace grove::sandbox {
namespace {

constexpr char kPrefix[] = "grove-sandbox-";  // grove-sandbox-<pid of the worker>-<n>
constexpr int64_t kMaxControlFile = 1 << 20;

absl::Status WriteControl(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  const ssize_t n = write(fd, text.data(), text.size());
  const int error = errno;
  close(fd);
  if (n != static_cast<ssize_t>(text.size()))
    return ErrnoStatus(error, absl::StrCat("cannot write ", text, " to ", path));
  return absl::OkStatus();
}

std::string ReadControl(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxControlFile);
  return text.ok() ? *std::move(text) : std::string();
}

int64_t ReadNumber(const std::string& path) {
  int64_t value = -1;
  std::string text = ReadControl(path);
  absl::StripAsciiWhitespace(&text);
  return absl::SimpleAtoi(text, &value) ? value : -1;
}

// The number after `key ` in a file of "key number" lines.
int64_t ReadKeyed(const std::string& path, absl::string_view key) {
  const std::string text = ReadControl(path);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    int64_t value = 0;
    if (parts.first == key && absl::SimpleAtoi(parts.second, &value)) return value;
  }
  return -1;
}

std::vector<pid_t> ReadPids(const std::string& dir) {
  std::vector<pid_t> pids;
  const std::string text = ReadControl(absl::StrCat(dir, "/cgroup.procs"));
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    int pid = 0;
    if (absl::SimpleAtoi(line, &pid) && pid > 0) pids.push_back(pid);
  }
  return pids;
}

bool HasWord(const std::string& text, absl::string_view word) {
  for (absl::string_view w : absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (w == word) return true;
  }
  return false;
}

// Makes and removes a folder with the controller's file in it: the only proof that a group can be made there.
bool CanMakeGroup(const std::string& base, const std::string& needed_file) {
  static std::atomic<int> counter{0};
  const std::string trial = absl::StrCat(base, "/", kPrefix, getpid(), "-trial", counter.fetch_add(1));
  if (mkdir(trial.c_str(), 0755) != 0) return false;
  const bool there = access(absl::StrCat(trial, "/", needed_file).c_str(), W_OK) == 0;
  rmdir(trial.c_str());
  return there;
}

void RemoveGroup(const std::string& dir) {
  // A group stays busy for a moment after its last process died.
  for (int attempt = 0; attempt < 200; ++attempt) {
    if (rmdir(dir.c_str()) == 0 || errno == ENOENT) return;
    if (errno != EBUSY) break;
    for (pid_t pid : ReadPids(dir)) kill(pid, SIGKILL);
    absl::SleepFor(absl::Milliseconds(attempt < 20 ? 1 : 10));
  }
  LogWarning("sandbox", "cannot remove the control group ", dir);
}

// Groups of workers that died without cleaning up.
void RemoveStale(const std::string& base) {
  DIR* folder = opendir(base.c_str());
  if (folder == nullptr) return;
  std::vector<std::string> stale;
  while (dirent* entry = readdir(folder)) {
    absl::string_view name = entry->d_name;
    if (!absl::StartsWith(name, kPrefix)) continue;
    name.remove_prefix(sizeof(kPrefix) - 1);
    std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(name, absl::MaxSplits('-', 1));
    int pid = 0;
    if (!absl::SimpleAtoi(parts.first, &pid) || pid <= 0) continue;
    if (kill(pid, 0) != 0 && errno == ESRCH) stale.push_back(absl::StrCat(base, "/", entry->d_name));
  }
  closedir(folder);
  for (const std::string& dir : stale) {
    // A frozen process dies only once it is thawed; v2 kills it as it is.
    if (access(absl::StrCat(dir, "/freezer.state").c_str(), F_OK) == 0) {
      (void)WriteControl(absl::StrCat(dir, "/freezer.state"), "THAWED");
    }
    for (pid_t pid : ReadPids(dir)) kill(pid, SIGKILL);
    RemoveGroup(dir);
  }
}

struct Mounts {
  std::string v2;                                       // mount point of the v2 hierarchy
  std::vector<std::pair<std::string, std::string>> v1;  // (controllers, mount point)
};

Mounts ReadMounts() {
  Mounts mounts;
  std::ifstream file("/proc/self/mounts");
  std::string line;
  while (std::getline(file, line)) {
    std::vector<std::string> parts = absl::StrSplit(line, ' ');
    if (parts.size() < 4) continue;
    if (parts[2] == "cgroup2" && mounts.v2.empty()) mounts.v2 = parts[1];
    if (parts[2] == "cgroup") mounts.v1.emplace_back(parts[3], parts[1]);
  }
  return mounts;
}

// Our path in a hierarchy: controller "" is v2.
std::string OwnPath(absl::string_view controller) {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (controller.empty() ? (parts[0] == "0" && parts[1].empty())
                           : absl::StrContains(absl::StrCat(",", parts[1], ","), absl::StrCat(",", controller, ","))) {
      return parts[2] == "/" ? "" : parts[2];
    }
  }
  return "";
}

// Tries to have memory and pids given to the children of `base`. May move this process to a leaf below it.
bool EnableV2(const std::string& base) {
  const std::string available = ReadControl(absl::StrCat(base, "/cgroup.controllers"));
  if (!HasWord(available, "memory") || !HasWord(available, "pids")) return false;
  auto enabled = [&] {
    const std::string given = ReadControl(absl::StrCat(base, "/cgroup.subtree_control"));
    return HasWord(given, "memory") && HasWord(given, "pids");
  };
  if (!enabled()) {
    const std::string control = absl::StrCat(base, "/cgroup.subtree_control");
    absl::Status status = WriteControl(control, "+memory +pids");
    if (!status.ok()) {
      // The rule of no inner processes: a group gives controllers to its children only when it holds no process itself.
      // Moving is ours to do when all that is in there is this process.
      const std::vector<pid_t> inside = ReadPids(base);
      if (inside.size() != 1 || inside[0] != getpid()) return false;
      const std::string leaf = absl::StrCat(base, "/grove-main-", getpid());
      if (mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) return false;
      if (!WriteControl(absl::StrCat(leaf, "/cgroup.procs"), absl::StrCat(getpid())).ok()) return false;
      if (!WriteControl(control, "+memory +pids").ok()) {
        (void)WriteControl(absl::StrCat(base, "/cgroup.procs"), absl::StrCat(getpid()));
        rmdir(leaf.c_str());
        return false;
      }
    }
    (void)WriteControl(control, "+cpu");
  }
  return enabled() && CanMakeGroup(base, "memory.max");
}

}  // namespace

std::unique_ptr<CgroupHost> CgroupHost::Detect() {
  auto host = std::make_unique<CgroupHost>();
  if (const char* wanted = getenv("GROVE_CGROUPS"); wanted != nullptr && absl::string_view(wanted) == "off") {
    host->evidence_ = "control groups are switched off by GROVE_CGROUPS";
    return host;
  }
  const Mounts mounts = ReadMounts();
  if (!mounts.v2.empty()) {
    std::vector<std::string> bases = {absl::StrCat(mounts.v2, OwnPath(""))};
    // In a leaf that an earlier Detect of this process made: its parent is the base.
    const std::string leaf = absl::StrCat("/grove-main-", getpid());
    if (absl::EndsWith(bases[0], leaf)) bases[0].resize(bases[0].size() - leaf.size());
    if (bases[0] != mounts.v2) bases.push_back(mounts.v2);
    for (const std::string& base : bases) {
      if (access(absl::StrCat(base, "/cgroup.subtree_control").c_str(), W_OK) != 0) continue;
      if (!EnableV2(base)) continue;
      RemoveStale(base);
      host->v2_ = true;
      host->memory_base_ = host->pids_base_ = host->cpu_base_ = base;
      if (CanMakeGroup(base, "cgroup.freeze")) host->freezer_base_ = base;  // Linux 5.2
      host->evidence_ = absl::StrCat("cgroup v2 at ", base);
      return host;
    }
  }
  std::vector<std::string> found;
  const auto find_v1 = [&](absl::string_view controller, const std::string& needed_file) -> std::string {
    for (const auto& [controllers, mount] : mounts.v1) {
      if (!absl::StrContains(absl::StrCat(",", controllers, ","), absl::StrCat(",", controller, ","))) continue;
      std::vector<std::string> bases = {absl::StrCat(mount, OwnPath(controller)), mount};
      for (const std::string& base : bases) {
        if (!CanMakeGroup(base, needed_file)) continue;
        RemoveStale(base);
        found.push_back(absl::StrCat(controller, " at ", base));
        return base;
      }
    }
    return "";
  };
  // The freezer first: what a dead worker left frozen is thawed first, or its other groups would stay busy.
  host->freezer_base_ = find_v1("freezer", "freezer.state");
  host->memory_base_ = find_v1("memory", "memory.limit_in_bytes");
  host->pids_base_ = find_v1("pids", "pids.max");
  host->cpu_base_ = find_v1("cpuacct", "cpuacct.usage");
  if (host->freezer()) host->guard_ = ThawGuard::Start(host->freezer_base_, absl::StrCat(kPrefix, getpid(), "-"));
  if (found.empty()) {
    host->evidence_ = mounts.v2.empty() && mounts.v1.empty()
                          ? "no cgroup hierarchy is mounted"
                          : "no cgroup hierarchy can be written here (give the worker a delegated group: "
                            "Delegate=yes in systemd, a writable /sys/fs/cgroup in a container)";
  } else {
    host->evidence_ = absl::StrCat("cgroup v1: ", absl::StrJoin(found, ", "));
  }
  return host;
}

absl::StatusOr<std::unique_ptr<Cgroup>> CgroupHost::Create(const std::string& label) {
  static std::atomic<uint64_t> counter{0};
  const std::string name = absl::StrCat(kPrefix, getpid(), "-", counter.fetch_add(1), label.empty() ? "" : "-", label);
  std::unique_ptr<Cgroup> group(new Cgroup);
  group->v2_ = v2_;
  const auto make = [&](const std::string& base, std::string* dir) -> absl::Status {
    if (base.empty()) return absl::OkStatus();
    const std::string path = absl::StrCat(base, "/", name);
    if (mkdir(path.c_str(), 0755) != 0) {
      if (errno != EEXIST) return ErrnoStatus(errno, absl::StrCat("cannot make the control group ", path));
    }
    *dir = path;
    return absl::OkStatus();
  };
  absl::Status status = make(memory_base_, &group->memory_dir_);
  if (status.ok()) status = make(pids_base_, &group->pids_dir_);
  if (status.ok()) status = make(cpu_base_, &group->cpu_dir_);
  if (status.ok()) status = make(freezer_base_, &group->freezer_dir_);
  if (!status.ok()) return status;
  if (v2_) {
    // All die together when memory runs out, so that no half-dead program is judged.
    (void)WriteControl(absl::StrCat(group->memory_dir_, "/memory.oom.group"), "1");
    (void)WriteControl(absl::StrCat(group->memory_dir_, "/memory.swap.max"), "0");
  }
  return group;
}

Cgroup::~Cgroup() {
  KillAll();
  for (const std::string& dir : Folders()) RemoveGroup(dir);
}

std::vector<std::string> Cgroup::Folders() const {
  std::set<std::string> folders = {memory_dir_, pids_dir_, cpu_dir_, freezer_dir_};
  folders.erase("");
  return {folders.begin(), folders.end()};
}

absl::Status Cgroup::Add(pid_t pid) {
  for (const std::string& dir : Folders()) {
    absl::Status status = WriteControl(absl::StrCat(dir, "/cgroup.procs"), absl::StrCat(pid));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Cgroup::SetLimits(int64_t memory_bytes, int processes) {
  if (!memory_dir_.empty() && memory_bytes > 0) {
    const std::string value = absl::StrCat(memory_bytes);
    if (v2_) {
      absl::Status status = WriteControl(absl::StrCat(memory_dir_, "/memory.max"), value);
      if (!status.ok()) return status;
    } else {
      // memory+swap must stay at or above memory at every moment: which to write first depends on the direction.
      const std::string memory = absl::StrCat(memory_dir_, "/memory.limit_in_bytes");
      const std::string both = absl::StrCat(memory_dir_, "/memory.memsw.limit_in_bytes");
      absl::Status status = WriteControl(memory, value);
      if (!status.ok()) {
        (void)WriteControl(both, value);
        status = WriteControl(memory, value);
      }
      if (!status.ok()) return status;
      (void)WriteControl(both, value);  // absent without swap accounting
    }
  }
  if (!pids_dir_.empty() && processes > 0) {
    return WriteControl(absl::StrCat(pids_dir_, "/pids.max"), absl::StrCat(processes));
  }
  return absl::OkStatus();
}

CgroupUsage Cgroup::Usage() const {
  CgroupUsage usage;
  if (!memory_dir_.empty()) {
    if (v2_) {
      usage.memory_bytes = ReadNumber(absl::StrCat(memory_dir_, "/memory.current"));
      usage.memory_peak_bytes = ReadNumber(absl::StrCat(memory_dir_, "/memory.peak"));
      usage.oom_kills = ReadKeyed(absl::StrCat(memory_dir_, "/memory.events"), "oom_kill");
    } else {
      usage.memory_bytes = ReadNumber(absl::StrCat(memory_dir_, "/memory.usage_in_bytes"));
      usage.memory_peak_bytes = ReadNumber(absl::StrCat(memory_dir_, "/memory.max_usage_in_bytes"));
      usage.oom_kills = ReadKeyed(absl::StrCat(memory_dir_, "/memory.oom_control"), "oom_kill");
    }
  }
  if (!pids_dir_.empty()) {
    usage.pids = ReadNumber(absl::StrCat(pids_dir_, "/pids.current"));
    usage.pids_refused = ReadKeyed(absl::StrCat(pids_dir_, "/pids.events"), "max");
  }
  if (!cpu_dir_.empty()) {
    if (v2_) {
      const int64_t usec = ReadKeyed(absl::StrCat(cpu_dir_, "/cpu.stat"), "usage_usec");
      if (usec >= 0) usage.cpu_seconds = static_cast<double>(usec) * 1e-6;
    } else {
      const int64_t nanos = ReadNumber(absl::StrCat(cpu_dir_, "/cpuacct.usage"));
      if (nanos >= 0) usage.cpu_seconds = static_cast<double>(nanos) * 1e-9;
    }
  }
  return usage;
}

absl::Status Cgroup::Freeze(bool frozen) {
  std::lock_guard<std::mutex> lock(freeze_mutex_);
  if (freezer_dir_.empty()) return absl::FailedPreconditionError("no control group here can freeze a program");
  if (killed_) return absl::OkStatus();
  const std::string control = absl::StrCat(freezer_dir_, v2_ ? "/cgroup.freeze" : "/freezer.state");
  const auto write = [&](bool on) {
    return WriteControl(control, v2_ ? (on ? "1" : "0") : (on ? "FROZEN" : "THAWED"));
  };
  absl::Status status = write(frozen);
  if (!status.ok() || !frozen) return status;
  // Processes stop on their way out of the kernel: tens of microseconds, more where one sits in a driver.
  const absl::Time deadline = SteadyNow() + absl::Seconds(1);
  for (;;) {
    const bool done = v2_ ? ReadKeyed(absl::StrCat(freezer_dir_, "/cgroup.events"), "frozen") == 1
                          : absl::StartsWith(ReadControl(control), "FROZEN");
    if (done) return absl::OkStatus();
    if (SteadyNow() > deadline) break;
    std::this_thread::yield();
  }
  (void)write(false);
  return absl::DeadlineExceededError("a program did not stop within a second");
}

void Cgroup::KillAll() {
  if (!freezer_dir_.empty()) {
    // v1 lets a frozen process die only once it is thawed.
    std::lock_guard<std::mutex> lock(freeze_mutex_);
    killed_ = true;
    (void)WriteControl(absl::StrCat(freezer_dir_, v2_ ? "/cgroup.freeze" : "/freezer.state"), v2_ ? "0" : "THAWED");
  }
  if (v2_ && !memory_dir_.empty() && WriteControl(absl::StrCat(memory_dir_, "/cgroup.kill"), "1").ok()) return;
  // Without cgroup.kill a forking program can outrun one pass; a group that may not grow ends after a few.
  if (!pids_dir_.empty()) (void)WriteControl(absl::StrCat(pids_dir_, "/pids.max"), "0");
  for (int pass = 0; pass < 50; ++pass) {
    const std::vector<pid_t> pids = Pids();
    if (pids.empty()) return;
    for (pid_t pid : pids) kill(pid, SIGKILL);
    absl::SleepFor(absl::Milliseconds(1));
  }
}

std::vector<pid_t> Cgroup::Pids() const {
  for (const std::string& dir : {pids_dir_, memory_dir_, cpu_dir_}) {
    if (!dir.empty()) return ReadPids(dir);
  }
  return {};
}

}  // namespace grove::sandbox
