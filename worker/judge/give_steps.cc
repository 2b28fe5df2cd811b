#include "worker/judge/give_steps.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "common/wire/steps.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Of a new thread; the first one may be bound to a processor.
cpu_set_t Open() {
  cpu_set_t all;
  CPU_ZERO(&all);
  ::pthread_getaffinity_np(::pthread_self(), sizeof all, &all);
  return all;
}

void StandOff(int processor) {
  cpu_set_t set = Open();
  if (processor < 0 || processor >= CPU_SETSIZE || CPU_COUNT(&set) < 2) return;
  CPU_CLR(static_cast<std::size_t>(processor), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

void StandOn(int processor) {
  cpu_set_t set = Open();
  if (processor < 0 || processor >= CPU_SETSIZE || !CPU_ISSET(static_cast<std::size_t>(processor), &set)) return;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(processor), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

}  // namespace

bool ProcessorsForSteps() {
  bool enough = false;
  std::thread([&enough] {
    const cpu_set_t all = Open();
    enough = CPU_COUNT(&all) >= 2;
  }).join();
  return enough;
}

std::vector<double> GiveSteps(const StepWords& words, std::size_t count, int processor, double most,
                              const std::function<void(std::size_t)>& before,
                              const std::function<void(std::size_t)>& after, const std::function<bool()>& give_up) {
  std::vector<double> seconds;
  std::thread([&] {
    StandOff(processor);
    for (std::size_t i = 0; i < count; ++i) {
      before(i);
      const auto begin = Clock::now();
      wire::SetStep(words.given, i + 1);
      if (!wire::AwaitStep(words.done, i + 1, [&] { return Since(begin) > most || give_up(); })) return;
      seconds.push_back(Since(begin));
      after(i);
    }
  }).join();
  wire::SetStep(words.given, count);  // whoever still waits goes on
  return seconds;
}

double OwnStep(int processor) {
  constexpr std::size_t kTimes = 25;
  alignas(64) std::uint64_t given = 0;
  alignas(64) std::uint64_t done = 0;
  const StepWords words{reinterpret_cast<char*>(&given), reinterpret_cast<char*>(&done)};
  std::thread other([&] {
    StandOn(processor);
    for (std::size_t i = 1; i <= kTimes; ++i) {
      wire::AwaitStep(words.given, i, [] { return false; });
      wire::SetStep(words.done, i);
    }
  });
  const auto nothing = [](std::size_t) {};
  const std::vector<double> seconds = GiveSteps(words, kTimes, processor, 1, nothing, nothing, [] { return false; });
  other.join();
  return Median(seconds);
}

}  // namespace grove::judge
