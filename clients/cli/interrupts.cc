#include "clients/cli/interrupts.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

namespace grove::cli {
namespace {

constexpr int kStopSignal = SIGUSR2;  // from our own destructor only
constexpr int kInterruptedExit = 130;

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, kStopSignal);
  return set;
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // A shell starts background jobs with SIGINT ignored, and an ignored signal is never taken, blocked or not: that
  // wish, and nohup's for SIGHUP, is kept.
  thread_ = std::thread([this] { Take(); });
}

Interrupts::~Interrupts() {
  pthread_kill(thread_.native_handle(), kStopSignal);
  thread_.join();
}

void Interrupts::OnFirst(std::function<void()> callback) {
  absl::MutexLock lock(&mutex_);
  on_first_ = std::move(callback);
}

void Interrupts::OnForce(std::function<void()> callback) {
  absl::MutexLock lock(&mutex_);
  on_force_ = std::move(callback);
}

void Interrupts::Take() {
  const sigset_t set = Signals();
  for (;;) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    if (signal == kStopSignal) return;
    if (!cancellation_.cancelled()) {
      {
        absl::MutexLock lock(&mutex_);
        if (on_first_) on_first_();
      }
      cancellation_.Cancel();
      continue;
    }
    absl::MutexLock lock(&mutex_);
    if (on_force_) on_force_();
    _exit(kInterruptedExit);
  }
}

}  // namespace grove::cli
