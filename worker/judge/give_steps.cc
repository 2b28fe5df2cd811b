#include "worker/judge/give_steps.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <thread>

#include "common/wire/channel.h"
#include "common/wire/steps.h"
#include "worker/judge/clock.h"
#include "worker/judge/sched_stat.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

// Processors that a new thread may stand on; the first one may be bound to one of them.
cpu_set_t Processors() {
  cpu_set_t all;
  CPU_ZERO(&all);
  ::pthread_getaffinity_np(::pthread_self(), sizeof all, &all);
  return all;
}

void StandOff(int processor) {
  cpu_set_t set = Processors();
  if (processor < 0 || processor >= CPU_SETSIZE || CPU_COUNT(&set) < 2) return;
  CPU_CLR(static_cast<std::size_t>(processor), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

void StandOn(int processor) {
  cpu_set_t set = Processors();
  if (processor < 0 || processor >= CPU_SETSIZE || !CPU_ISSET(static_cast<std::size_t>(processor), &set)) return;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(processor), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

// Whether the kernel keeps such figures: a process that asks has run for a while.
bool KeepsSchedStat() {
  static const bool keeps = [] {
    const auto stat = ReadSchedStat(wire::UniqueFd(::open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC)));
    return stat && stat->ran > 0;
  }();
  return keeps;
}

// How long the calling thread was ready and had no processor, in seconds.
class Starving {
 public:
  Starving() : schedstat_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  std::optional<double> Now() const {
    const std::optional<SchedStat> now = ReadSchedStat(schedstat_);
    if (!now || !KeepsSchedStat()) return std::nullopt;
    return 1e-9 * static_cast<double>(now->waited);
  }

 private:
  wire::UniqueFd schedstat_;
};

}  // namespace

bool ProcessorsForSteps() {
  bool enough = false;
  std::jthread([&enough] {
    const cpu_set_t all = Processors();
    enough = CPU_COUNT(&all) >= 2;
  }).join();
  return enough;
}

GivenSteps GiveSteps(const StepWords& words, std::size_t count, int processor, Waiting waiting, double most,
                     const StepWork& work, const std::function<bool()>& give_up) {
  // Whoever still waits goes on, whatever happens here.
  const std::unique_ptr<char, std::function<void(char*)>> release(
      words.given, [count](char* word) { wire::SetStep(word, count, Waiting::kSleeping); });
  GivenSteps given;
  std::exception_ptr failure;
  std::vector<double> starved;
  given.seconds.reserve(count);
  starved.reserve(count);
  const auto give = [&] {
    if (waiting == Waiting::kLooking) StandOff(processor);
    const Starving starving;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0 && give_up()) return;
      const std::optional<double> waited = starving.Now();
      const auto since = Clock::now();
      work.ahead(i);
      const auto begin = Clock::now();
      work.before(i);
      wire::SetStep(words.given, i + 1, waiting);
      if (!wire::AwaitStep(words.done, i + 1, waiting, [&] { return Since(begin) > most || give_up(); })) return;
      work.after(i);
      const double seconds = Since(begin);
      given.seconds.push_back(seconds + work.behind(i));
      const std::optional<double> by_now = starving.Now();
      if (waited && by_now) starved.push_back((*by_now - *waited) / Since(since));
    }
  };
  std::jthread([&] {
    try {
      give();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  if (!starved.empty()) given.starved = Median(starved);
  return given;
}

OwnSteps GiveOwnSteps(int processor, Waiting waiting) {
  constexpr std::size_t kTimes = 25;
  constexpr double kMost = 1;  // second
  alignas(64) std::uint64_t given = 0;
  alignas(64) std::uint64_t done = 0;
  const StepWords words{reinterpret_cast<char*>(&given), reinterpret_cast<char*>(&done)};
  const std::jthread other([&] {
    if (waiting == Waiting::kLooking) StandOn(processor);
    for (std::size_t i = 1; i <= kTimes; ++i) {
      wire::AwaitStep(words.given, i, waiting, [] { return false; });
      wire::SetStep(words.done, i, waiting);
    }
  });
  const GivenSteps steps = GiveSteps(words, kTimes, processor, waiting, kMost, {}, [] { return false; });
  return {steps.seconds.empty() ? kMost : Median(steps.seconds), steps.starved && steps.MayHaveStarved()};
}

}  // namespace grove::judge
