#include "worker/pipeline/process_pool.h"

#include <poll.h>

#include <chrono>
#include <utility>

namespace grove::worker {

ProcessPool::ProcessPool(std::array<Kind, kAheadKinds> kinds) {
  for (size_t i = 0; i < kAheadKinds; ++i) shelves_[i].kind = std::move(kinds[i]);
  thread_ = std::thread([this] { Stock(); });
}

ProcessPool::~ProcessPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

ProcessPool::Shelf* ProcessPool::Short() {
  for (Shelf& shelf : shelves_) {
    if (static_cast<int>(shelf.waiting.size()) >= shelf.kind.most) shelf.wanted = false;
    if (shelf.wanted) return &shelf;
  }
  return nullptr;
}

void ProcessPool::Stock() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    Shelf* shelf = nullptr;
    changed_.wait(lock, [&] { return stopping_ || (!quiet_ && (shelf = Short()) != nullptr); });
    if (stopping_) return;
    const int cleared = shelf->cleared;
    starting_ = true;
    lock.unlock();
    auto next = shelf->kind.start();
    lock.lock();
    if (!next.ok()) {
      shelf->wanted = false;
    } else if (cleared == shelf->cleared && !stopping_) {
      Waiting_ one{*std::move(next), false};
      if (quiet_) one.held = one.started.process->Hold(true).ok();
      shelf->waiting.push_back(std::move(one));
    } else {
      lock.unlock();  // ending it takes a while
      next = absl::CancelledError();
      lock.lock();
    }
    starting_ = false;
    changed_.notify_all();
  }
}

void ProcessPool::Restock(Ahead kind) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Of(kind).wanted = true;
  }
  changed_.notify_all();
}

void ProcessPool::Quiet(bool quiet) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (quiet_ == quiet) return;
  quiet_ = quiet;
  for (Shelf& shelf : shelves_) {
    for (Waiting_& one : shelf.waiting) {
      if (quiet && !one.held) {
        // A ready one sleeps on its socket by itself, and must be able to die.
        pollfd ready{one.started.channel.fd(), POLLIN, 0};
        if (poll(&ready, 1, 0) == 0) one.held = one.started.process->Hold(true).ok();
      } else if (!quiet && one.held) {
        (void)one.started.process->Hold(false);
        one.held = false;
      }
    }
  }
  // One is started within tens of milliseconds. On a machine that is overrun what is timed does not wait for it.
  if (quiet) changed_.wait_for(lock, std::chrono::seconds(1), [&] { return !starting_ || !quiet_ || stopping_; });
  changed_.notify_all();
}

void ProcessPool::Settle(absl::Duration most) {
  constexpr std::chrono::milliseconds kLook{5};  // an ended one is ready, too: its socket is at its end
  const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(most);
  std::unique_lock<std::mutex> lock(mutex_);
  const auto settled = [&] {
    if (stopping_ || quiet_) return true;
    if (starting_ || Short() != nullptr) return false;
    for (const Shelf& shelf : shelves_) {
      for (const Waiting_& one : shelf.waiting) {
        pollfd ready{one.started.channel.fd(), POLLIN, 0};
        if (poll(&ready, 1, 0) == 0) return false;
      }
    }
    return true;
  };
  while (!settled() && std::chrono::steady_clock::now() < until) changed_.wait_for(lock, kLook);
}

int ProcessPool::Waiting(Ahead kind) {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(Of(kind).waiting.size());
}

std::optional<StartedProcess> ProcessPool::Take(Ahead kind) {
  std::optional<StartedProcess> taken;
  std::list<Waiting_> useless;  // ended without the lock: that takes a while
  {
    std::unique_lock<std::mutex> lock(mutex_);
    std::list<Waiting_>& all = Of(kind).waiting;
    // One that is just being started comes sooner than another that would be started now.
    changed_.wait(lock, [&] { return !starting_ || !all.empty() || stopping_; });
    while (!all.empty() && !taken.has_value()) {
      const bool going = !all.front().held || all.front().started.process->Hold(false).ok();
      if (going && !all.front().started.process->Ended()) {
        taken = std::move(all.front().started);
        all.pop_front();
      } else {
        useless.splice(useless.end(), all, all.begin());
      }
    }
  }
  changed_.notify_all();
  return taken;
}

void ProcessPool::Clear() {
  std::array<std::list<Waiting_>, kAheadKinds> gone;
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < kAheadKinds; ++i) {
    gone[i].swap(shelves_[i].waiting);
    shelves_[i].wanted = false;
    ++shelves_[i].cleared;
  }
}

void ProcessPool::Clear(Ahead kind) {
  std::list<Waiting_> gone;
  std::lock_guard<std::mutex> lock(mutex_);
  Shelf& shelf = Of(kind);
  gone.swap(shelf.waiting);
  shelf.wanted = false;
  ++shelf.cleared;
}

}  // namespace grove::worker
