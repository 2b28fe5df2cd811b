#include "worker/judge/awake.h"

#include <pthread.h>
#include <sched.h>

#include <utility>

namespace grove::judge {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

}  // namespace

Awake::Awake(int threads, std::vector<int> processors) {
  for (int i = 0; i < threads; ++i) {
    const int processor =
        static_cast<std::size_t>(i) < processors.size() ? processors[static_cast<std::size_t>(i)] : -1;
    threads_.emplace_back([this, processor] { Work(processor); });
  }
}

Awake::~Awake() {
  until_ = 0;
  round_ = -1;
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Awake::Work(int processor) {
  ::pthread_setname_np(::pthread_self(), kAwakeName);
  if (processor >= 0) StandOn(processor);
  for (int seen = 0;;) {
    round_.wait(seen);
    seen = round_;
    if (seen < 0) return;
    if (const int wanted = wanted_; wanted >= 0 && wanted != processor) {
      StandOn(wanted);
      processor = wanted;
    }
    while (Now() < until_) __builtin_ia32_pause();
    if (--at_work_ == 0) at_work_.notify_all();
  }
}

// One that is not there, or not ours to use, changes nothing.
void Awake::StandOn(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

void Awake::Begin(int processor) {
  End();
  wanted_ = processor;
  until_ = Now() + std::chrono::nanoseconds(kMost).count();
  at_work_ = static_cast<int>(threads_.size());
  ++round_;
  round_.notify_all();
}

void Awake::End() {
  until_ = 0;
  for (int left = at_work_; left != 0; left = at_work_) at_work_.wait(left);
}

void Awake::Rest(std::chrono::microseconds time, int processor) {
  Begin(processor);
  std::this_thread::sleep_for(time);
  End();
}

}  // namespace grove::judge
