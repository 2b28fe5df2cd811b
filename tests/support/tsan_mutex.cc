// Only in builds with the thread sanitizer: absl::Mutex and absl::CondVar by pthread's, which the sanitizer knows.
//
// The system's Abseil and gRPC are not built with it. Their locks are atomics and futexes in libraries that it cannot
// look into, so that whatever gRPC hands from one of its threads to another looks like a race. The members below take
// the place of those of libabsl_synchronization.so, also for libgrpc.so, because the dynamic linker takes the program's
// own first. The word that Abseil keeps its state in holds a pointer to ours. Readers exclude each other here.
//
// What a thread wrote before it starts a batch of operations is there for whoever is told of its end. gRPC passes that
// on by atomics, so the calls by which both happen are taken over too.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <pthread.h>
#include <sanitizer/tsan_interface.h>

#include <cstddef>
#include <cstdint>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace {

struct Lock {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;  // signalled at every release that someone waits for a condition
  int waiting = 0;
  ~Lock() {
    pthread_cond_destroy(&changed);
    pthread_mutex_destroy(&mutex);
  }
};
struct Signal {
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  ~Signal() { pthread_cond_destroy(&cond); }
};

template <typename T>
T& Ours(std::atomic<intptr_t>& word) {
  intptr_t have = word.load(std::memory_order_acquire);
  if (have == 0) {
    T* made = new T;
    if (word.compare_exchange_strong(have, reinterpret_cast<intptr_t>(made), std::memory_order_acq_rel)) {
      have = reinterpret_cast<intptr_t>(made);
    } else {
      delete made;
    }
  }
  return *reinterpret_cast<T*>(have);
}

// All that was written before any batch was started.
char batches_started;

// True when the deadline has passed.
bool WaitUntil(pthread_cond_t* cond, Lock& lock, absl::Time deadline) {
  const timespec at = absl::ToTimespec(deadline);
  return deadline == absl::InfiniteFuture() ? pthread_cond_wait(cond, &lock.mutex) != 0
                                            : pthread_cond_timedwait(cond, &lock.mutex, &at) != 0;
}

bool WaitFor(Lock& lock, const absl::Condition& condition, absl::Time deadline) {
  ++lock.waiting;
  bool late = false;
  while (!condition.Eval() && !late) late = WaitUntil(&lock.changed, lock, deadline);
  --lock.waiting;
  return condition.Eval();
}

}  // namespace

extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count, void* tag, void* reserved) {
  static const auto real =
      reinterpret_cast<decltype(&grpc_call_start_batch)>(dlsym(RTLD_NEXT, "grpc_call_start_batch"));
  __tsan_release(&batches_started);
  return real(call, ops, count, tag, reserved);
}

// Callbacks run in threads of libgrpc++ that wait here.
grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline, void* reserved) {
  static const auto real =
      reinterpret_cast<decltype(&grpc_completion_queue_next)>(dlsym(RTLD_NEXT, "grpc_completion_queue_next"));
  const grpc_event event = real(queue, deadline, reserved);
  __tsan_acquire(&batches_started);
  return event;
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag, gpr_timespec deadline, void* reserved) {
  static const auto real =
      reinterpret_cast<decltype(&grpc_completion_queue_pluck)>(dlsym(RTLD_NEXT, "grpc_completion_queue_pluck"));
  const grpc_event event = real(queue, tag, deadline, reserved);
  __tsan_acquire(&batches_started);
  return event;
}

}  // extern "C"

namespace absl {
ABSL_NAMESPACE_BEGIN

Mutex::~Mutex() {
  if (intptr_t have = mu_.exchange(0); have != 0) delete reinterpret_cast<::Lock*>(have);
}
void Mutex::Lock() { pthread_mutex_lock(&Ours<::Lock>(mu_).mutex); }
void Mutex::Unlock() {
  ::Lock& lock = Ours<::Lock>(mu_);
  if (lock.waiting > 0) pthread_cond_broadcast(&lock.changed);
  pthread_mutex_unlock(&lock.mutex);
}
bool Mutex::TryLock() { return pthread_mutex_trylock(&Ours<::Lock>(mu_).mutex) == 0; }
void Mutex::ReaderLock() { Lock(); }
void Mutex::ReaderUnlock() { Unlock(); }
bool Mutex::ReaderTryLock() { return TryLock(); }
void Mutex::AssertHeld() const {}
void Mutex::AssertReaderHeld() const {}
void Mutex::AssertNotHeld() const {}
void Mutex::ForgetDeadlockInfo() {}

void Mutex::Await(const Condition& cond) { WaitFor(Ours<::Lock>(mu_), cond, absl::InfiniteFuture()); }
bool Mutex::AwaitWithDeadline(const Condition& cond, absl::Time deadline) {
  return WaitFor(Ours<::Lock>(mu_), cond, deadline);
}
bool Mutex::AwaitWithTimeout(const Condition& cond, absl::Duration timeout) {
  return AwaitWithDeadline(cond, absl::Now() + timeout);
}
void Mutex::LockWhen(const Condition& cond) {
  Lock();
  Await(cond);
}
void Mutex::ReaderLockWhen(const Condition& cond) { LockWhen(cond); }
bool Mutex::LockWhenWithDeadline(const Condition& cond, absl::Time deadline) {
  Lock();
  return AwaitWithDeadline(cond, deadline);
}
bool Mutex::LockWhenWithTimeout(const Condition& cond, absl::Duration timeout) {
  return LockWhenWithDeadline(cond, absl::Now() + timeout);
}
bool Mutex::ReaderLockWhenWithDeadline(const Condition& cond, absl::Time deadline) {
  return LockWhenWithDeadline(cond, deadline);
}
bool Mutex::ReaderLockWhenWithTimeout(const Condition& cond, absl::Duration timeout) {
  return LockWhenWithTimeout(cond, timeout);
}

CondVar::~CondVar() {
  if (intptr_t have = cv_.exchange(0); have != 0) delete reinterpret_cast<::Signal*>(have);
}
void CondVar::Wait(Mutex* mu) { WaitWithDeadline(mu, absl::InfiniteFuture()); }
bool CondVar::WaitWithDeadline(Mutex* mu, absl::Time deadline) {
  static_assert(sizeof(Mutex) == sizeof(std::atomic<intptr_t>), "the mutex is its one word");
  ::Lock& lock = Ours<::Lock>(*reinterpret_cast<std::atomic<intptr_t>*>(mu));
  // This too releases it.
  if (lock.waiting > 0) pthread_cond_broadcast(&lock.changed);
  return WaitUntil(&Ours<::Signal>(cv_).cond, lock, deadline);
}
bool CondVar::WaitWithTimeout(Mutex* mu, absl::Duration timeout) { return WaitWithDeadline(mu, absl::Now() + timeout); }
void CondVar::Signal() { pthread_cond_signal(&Ours<::Signal>(cv_).cond); }
void CondVar::SignalAll() { pthread_cond_broadcast(&Ours<::Signal>(cv_).cond); }

ABSL_NAMESPACE_END
}  // namespace absl
