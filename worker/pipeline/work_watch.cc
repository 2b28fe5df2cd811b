#include "worker/pipeline/work_watch.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/wire/channel.h"

namespace grove::worker {
namespace {

constexpr absl::Duration kStand = absl::Milliseconds(200);  // for all threads to come to a stop, on a busy machine
constexpr int kPauseLeast = 500, kPauseMost = 3500;         // microseconds between two looks
constexpr size_t kMaxThreads = 4096;
constexpr double kLongest = 30e-3;  // seconds that a thread ran between two looks: one place does not tell of more

std::vector<pid_t> Threads(pid_t pid) {
  std::vector<pid_t> threads;
  DIR* folder = opendir(absl::StrCat("/proc/", pid, "/task").c_str());
  if (folder == nullptr) return threads;
  while (dirent* entry = readdir(folder)) {
    int thread = 0;
    if (absl::SimpleAtoi(entry->d_name, &thread) && threads.size() < kMaxThreads) threads.push_back(thread);
  }
  closedir(folder);
  return threads;
}

std::string Of(pid_t pid, pid_t thread, const char* name) {
  auto text = ReadFile(absl::StrCat("/proc/", pid, "/task/", thread, "/", name), 4096);
  return text.ok() ? *text : "";
}

// CPU time of all threads that it has and has had.
std::optional<double> ProcessSeconds(pid_t pid) {
  clockid_t clock;
  timespec now{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &now) != 0) return std::nullopt;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Stopped, or gone.
bool Stands(pid_t pid, pid_t thread) {
  const std::string stat = Of(pid, thread, "stat");
  const size_t end = stat.rfind(')');  // the name before it may hold anything
  if (end == std::string::npos || end + 2 >= stat.size()) return true;
  return strchr("TtZX", stat[end + 2]) != nullptr;
}

// A process by a handle that no other process can come to stand for.
struct Held {
  pid_t pid = 0;
  wire::UniqueFd handle;
  bool Send(int signal) const { return syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0) == 0; }
};

}  // namespace

void WatchedWork::Add(const WatchedWork& more) {
  looks.insert(looks.end(), more.looks.begin(), more.looks.end());
  system_seconds += more.system_seconds;
  ended_seconds += more.ended_seconds;
  passed_seconds += more.passed_seconds;
  seen += more.seen;
  squares += more.squares;
  problem = seen > 0 ? "" : more.problem;
}

WorkWatch::WorkWatch(std::function<std::vector<pid_t>()> pids, std::function<bool()> held, bool changes,
                     std::function<double()> together)
    : pids_(std::move(pids)),
      held_(std::move(held)),
      changes_(changes),
      together_(std::move(together)),
      thread_([this] { Watch(); }) {}

WorkWatch::~WorkWatch() { Finish(); }

WatchedWork WorkWatch::Finish() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  // Time that one look did not have yet is in the next one.
  work_.ended_seconds = std::max(work_.ended_seconds, 0.0);
  return work_;
}

void WorkWatch::Watch() {
  std::minstd_rand random(std::random_device{}());
  std::uniform_int_distribution<int> pause(kPauseLeast, kPauseMost);
  for (bool first = true; !stopping_;) {
    if (!held_ || !held_()) {
      Look(first);
      first = false;
    }
    absl::SleepFor(absl::Microseconds(pause(random)));
  }
}

double WorkWatch::Together(const std::vector<pid_t>& pids) {
  if (const double all = together_ ? together_() : -1; all >= 0) return all - std::exchange(had_, all);
  std::map<pid_t, double> now;
  double since = 0;
  for (pid_t pid : pids) {
    const std::optional<double> all = ProcessSeconds(pid);
    if (!all) continue;
    const auto before = all_.find(pid);
    since += *all - (before != all_.end() ? before->second : 0);
    now[pid] = *all;
  }
  all_ = std::move(now);
  return since;
}

void WorkWatch::Look(bool first) {
  std::vector<Held> held;
  for (pid_t pid : pids_()) {
    Held one{pid, wire::UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)))};
    if (one.handle.valid()) held.push_back(std::move(one));
  }
  // A number that was another process's when it was opened is not in the list any more.
  const std::vector<pid_t> still = pids_();
  held.erase(
      std::remove_if(held.begin(), held.end(),
                     [&](const Held& one) { return std::find(still.begin(), still.end(), one.pid) == still.end(); }),
      held.end());
  for (const Held& one : held) one.Send(SIGSTOP);
  const absl::Time until = SteadyNow() + kStand;
  std::vector<Standing> standing;
  std::map<pid_t, double> now;
  double of_threads = 0, longest = 0;  // since the last look
  for (const Held& one : held) {
    std::vector<sandbox::CodeRange> ranges;
    for (pid_t thread : Threads(one.pid)) {
      while (!Stands(one.pid, thread) && SteadyNow() < until) absl::SleepFor(absl::Microseconds(100));
      uint64_t nanoseconds = 0;
      const std::string spent = Of(one.pid, thread, "schedstat"), where = Of(one.pid, thread, "syscall");
      if (!absl::SimpleAtoi(spent.substr(0, spent.find(' ')), &nanoseconds)) {
        // (Another thread than the first has ended.)
        if (thread == one.pid && work_.seen == 0 && work_.problem.empty()) {
          work_.problem = "the kernel does not say how long threads run";
        }
        continue;
      }
      const double all = 1e-9 * static_cast<double>(nanoseconds);
      const auto before = ran_.find(thread);
      // A thread that came later is looked at from its start.
      const double ran = before != ran_.end() ? all - before->second : first ? 0 : all;
      if (where.empty()) {
        if (thread == one.pid && work_.seen == 0) work_.problem = "the kernel does not say where its threads stand";
        continue;
      }
      now[thread] = all;
      of_threads += ran;
      longest = std::max(longest, ran);
      if (!(ran > 0) || ran > kLongest) continue;
      // "-1 SP PC" outside of system calls, "NR six arguments SP PC" in one, "running" where it did not come to a stop.
      const std::vector<std::string> fields = absl::StrSplit(where, absl::ByAnyChar(" \n"), absl::SkipEmpty());
      if (fields.size() < 2) continue;
      work_.problem.clear();
      ++work_.seen;
      work_.squares += ran * ran;
      if (fields[0] != "-1") {
        work_.system_seconds += ran;
        continue;
      }
      if (ranges.empty()) ranges = sandbox::CodeRanges(one.pid, changes_);
      const uint64_t at = strtoull(fields.back().c_str(), nullptr, 16);
      const auto range = std::find_if(ranges.begin(), ranges.end(), [at](const sandbox::CodeRange& each) {
        return at >= each.begin && at < each.end;
      });
      if (range == ranges.end()) {
        work_.system_seconds += ran;  // [vdso]
      } else {
        standing.push_back({thread, range->code, ran});
      }
    }
  }
  const double together = Together(still);
  if (!first) {
    work_.ended_seconds += together - of_threads;
    work_.passed_seconds += longest;
  }
  ran_ = std::move(now);
  for (const Held& one : held) one.Send(SIGCONT);
  if (!standing.empty()) work_.looks.push_back(std::move(standing));
}

}  // namespace grove::worker
