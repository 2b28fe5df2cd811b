#include "worker/pipeline/work_watch.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <new>
#include <string>
#include <thread>

namespace grove::worker {
namespace {

// A process whose main thread waits for another one that computes, or for one after the other that does for 50 us.
class Worker {
 public:
  explicit Worker(bool one_after_the_other = false) {
    void* shared = mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    count_ = new (shared) Count(0);
    pid_ = fork();
    if (pid_ == 0) {
      while (one_after_the_other) {
        std::thread([this] {
          const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
          while (std::chrono::steady_clock::now() < until) ++*count_;
        }).join();
      }
      std::thread([this] {
        for (;;) ++*count_;
      }).join();
    }
  }
  ~Worker() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(count_, sizeof(Count));
  }
  pid_t pid() const { return pid_; }
  double CpuSeconds() const {
    clockid_t clock;
    timespec now{};
    if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &now) != 0) return 0;
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  // False when it does not, for half a minute.
  bool GoesOn() const {
    const uint64_t from = *count_;
    for (int i = 0; i < 30'000; ++i) {
      if (*count_ != from) return true;
      usleep(1000);
    }
    return false;
  }

 private:
  using Count = std::atomic<uint64_t>;
  Count* count_;
  pid_t pid_;
};

std::string Self() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, static_cast<size_t>(std::max<ssize_t>(n, 0)));
}

double All(const WatchedWork& work) {
  double all = work.system_seconds;
  for (const std::vector<Standing>& look : work.looks) {
    for (const Standing& thread : look) all += thread.ran;
  }
  return all;
}

TEST_CASE("A thread that another one waits for is seen where it computes, and all goes on afterwards", "[work]") {
  Worker worker;
  REQUIRE(worker.pid() > 0);
  WatchedWork seen;
  {
    // As often as it takes on a machine whose watcher has to wait for a processor.
    for (int times = 0; times < 60 && !(seen.seen > 3 && All(seen) * All(seen) > 2 * seen.squares); ++times) {
      WorkWatch watch([&] { return std::vector<pid_t>{worker.pid()}; });
      const double from = worker.CpuSeconds();
      for (int i = 0; i < 60'000 && worker.CpuSeconds() < from + 0.3; ++i) usleep(1000);
      seen.Add(watch.Finish());
    }
  }
  CHECK(worker.GoesOn());
  INFO(seen.problem);
  double own = 0;
  const double all = All(seen);
  for (const std::vector<Standing>& look : seen.looks) {
    for (const Standing& thread : look) {
      if (thread.code.path == Self()) own += thread.ran;
      CHECK(thread.code.file.inode != 0);
    }
  }
  CHECK(seen.problem.empty());
  CHECK(seen.seen > 3);
  CHECK(own > 0.9 * all);
  CHECK(all * all / seen.squares > 2);
  CHECK(seen.ended_seconds < 0.1 * seen.passed_seconds);
}

TEST_CASE("What threads ran that end before they are looked at is known", "[work]") {
  Worker worker(true);
  REQUIRE(worker.pid() > 0);
  WorkWatch watch([&] { return std::vector<pid_t>{worker.pid()}; });
  const double from = worker.CpuSeconds();
  for (int i = 0; i < 60'000 && worker.CpuSeconds() < from + 0.3; ++i) usleep(1000);
  const WatchedWork seen = watch.Finish();
  CAPTURE(All(seen), seen.ended_seconds, seen.passed_seconds, seen.seen);
  CHECK(seen.ended_seconds > 0.3 * (seen.passed_seconds + seen.ended_seconds));
}

TEST_CASE("Nothing is watched where nothing is, and that is said by its figures", "[work]") {
  WorkWatch watch([] { return std::vector<pid_t>(); });
  const WatchedWork seen = watch.Finish();
  CHECK(seen.seen == 0);
  CHECK(seen.looks.empty());
}

}  // namespace
}  // namespace grove::worker
