#include "clients/cli/audit_host.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/files.h"

namespace grove::cli {
namespace {

// The wall clock is disciplined by milliseconds a minute; a clock that was set is off by more.
constexpr double kClockSlack = 2;
constexpr const char* kSettings[] = {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
                                     "/proc/sys/kernel/modprobe", "/proc/sys/kernel/randomize_va_space",
                                     "/proc/sys/vm/overcommit_memory"};

std::string Text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

double ClockOffset() {
  timespec wall, steady;
  clock_gettime(CLOCK_REALTIME, &wall);
  clock_gettime(CLOCK_MONOTONIC, &steady);
  return static_cast<double>(wall.tv_sec - steady.tv_sec) + 1e-9 * static_cast<double>(wall.tv_nsec - steady.tv_nsec);
}

std::vector<std::string> Settings() {
  std::vector<std::string> values;
  for (const char* path : kSettings) values.push_back(Text(path));
  return values;
}

template <typename Function>
void ForEachEntry(const std::string& folder, Function&& use) {
  DIR* list = opendir(folder.c_str());
  if (list == nullptr) return;
  while (dirent* entry = readdir(list)) use(std::string(entry->d_name));
  closedir(list);
}

std::vector<std::string> Processes() {
  std::vector<std::string> found;
  ForEachEntry("/proc", [&](const std::string& name) {
    if (name.find_first_not_of("0123456789") != std::string::npos) return;
    if (Text(absl::StrCat("/proc/", name, "/comm")) == absl::StrCat(kExploitProcess, "\n")) {
      found.push_back(absl::StrCat("process ", name, " (", kExploitProcess, ") is still there"));
    }
  });
  return found;
}

}  // namespace

absl::StatusOr<AuditHost> AuditHost::Begin(const std::string& secret_file) {
  AuditHost host;
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != sizeof random) return absl::InternalError("getrandom failed");
  host.secret_ = absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(random), sizeof random));
  // A new file of ours, and never somebody's link.
  unlink(secret_file.c_str());
  const int fd = open(secret_file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  const std::string line = absl::StrCat(host.secret_, "\n");
  const bool written = fd >= 0 && write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!written) return ErrnoStatus(error, absl::StrCat("cannot write ", secret_file));
  host.secret_file_ = secret_file;
  host.clock_offset_ = ClockOffset();
  host.settings_ = Settings();
  return host;
}

AuditHost::AuditHost(AuditHost&& other) noexcept
    : secret_file_(std::exchange(other.secret_file_, "")),
      secret_(std::move(other.secret_)),
      clock_offset_(other.clock_offset_),
      settings_(std::move(other.settings_)) {}

AuditHost::~AuditHost() {
  if (!secret_file_.empty()) unlink(secret_file_.c_str());
}

std::vector<std::string> AuditHost::Traces(absl::Duration patience) const {
  const absl::Time deadline = SteadyNow() + patience;
  std::vector<std::string> found = Processes();
  while (!found.empty() && SteadyNow() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
    found = Processes();
  }
  std::vector<std::string> folders = {"/",    "/tmp",       "/dev/shm", "/var/tmp",
                                      "/run", "/usr/local", "/dev",     "/sys/fs/cgroup"};
  if (const char* home = getenv("HOME"); home != nullptr) {
    for (const char* below : {"", "/.cache", "/.cache/torch_extensions", "/.ccache", "/.triton/cache"}) {
      folders.push_back(absl::StrCat(home, below));
    }
  }
  for (const std::string& folder : folders) {
    ForEachEntry(folder, [&](const std::string& name) {
      if (absl::StrContains(name, kExploitMark)) found.push_back(absl::StrCat(folder, "/", name, " was left"));
    });
  }
  for (const char* path : {"/proc/net/unix", "/proc/mounts"}) {
    if (absl::StrContains(Text(path), kExploitMark)) {
      found.push_back(absl::StrCat(path, " has an entry of its making"));
    }
  }
  const std::vector<std::string> now = Settings();
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i] != settings_[i]) found.push_back(absl::StrCat(kSettings[i], " was changed"));
  }
  return found;
}

std::string AuditHost::ClockSet() {
  const double now = ClockOffset(), moved = now - std::exchange(clock_offset_, now);
  return std::fabs(moved) > kClockSlack ? absl::StrCat("the clock was set by ", moved, " s") : "";
}

std::vector<std::string> AuditHost::Told(absl::string_view result) const {
  std::vector<std::string> found;
  if (absl::StrContains(result, secret_)) found.push_back(absl::StrCat("what is in ", secret_file_, " came back"));
  for (const char* line : {"root:x:0:0:root:/root", "root:*:", "root:!", "root:$"}) {
    if (absl::StrContains(result, line)) found.push_back("a line of a password file came back");
  }
  return found;
}

}  // namespace grove::cli
