#include "worker/judge/awake.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace grove::judge {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

// On the index-th of the processors that this process may use. Where there are fewer the thread stays where it is.
void StandOn(int index) {
  const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
  for (int i = 0, found = 0; i < processors && i < CPU_SETSIZE; ++i) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(i, &set);
    if (::pthread_setaffinity_np(::pthread_self(), sizeof set, &set) == 0 && found++ == index) return;
  }
}

}  // namespace

Awake::Awake(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { Work(i); });
}

Awake::~Awake() {
  round_ = -1;
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Awake::Work(int index) {
  StandOn(index);
  for (int seen = 0;;) {
    round_.wait(seen);
    seen = round_;
    if (seen < 0) return;
    while (Now() < until_) __builtin_ia32_pause();
    if (--at_work_ == 0) at_work_.notify_all();
  }
}

void Awake::Rest(std::chrono::microseconds time) {
  until_ = Now() + std::chrono::nanoseconds(time).count();
  at_work_ = static_cast<int>(threads_.size());
  ++round_;
  round_.notify_all();
  std::this_thread::sleep_for(time);
  for (int left = at_work_; left != 0; left = at_work_) at_work_.wait(left);
}

}  // namespace grove::judge
