// A run in steps: each call gets its inputs when the one before it has given its outputs (docs/protocol.md). How the
// memory for that is laid out, and how either side waits for the other's word. Linux on little-endian machines.
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace grove::wire {

// Bytes from the start of that memory: how many calls have got their inputs, how many have given their outputs, and
// whether both sides sleep while they wait (64 bits each, in lines of their own); where the inputs of one call begin.
// Its outputs follow them. (On a GPU both are in the call's slot, and none here.)
inline constexpr std::size_t kStepsGiven = 0, kStepsDone = 64, kStepsSleeping = 128, kStepsInputs = 4096,
                             kStepsAlignment = 256;

inline constexpr std::size_t StepsOutputs(std::size_t input_bytes) {
  return kStepsInputs + (input_bytes + kStepsAlignment - 1) / kStepsAlignment * kStepsAlignment;
}

// How a word is waited for.
enum class Waiting {
  kLooking,  // again and again: within a microsecond, where there is a processor for it
  // By the kernel (a futex): some microseconds later, but beside threads that never rest and have all processors, too,
  // where one that looks waits for its turn.
  kSleeping,
};

inline std::uint64_t StepsAt(char* word) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(word)).load(std::memory_order_acquire);
}

inline void SetStep(char* word, std::uint64_t count, Waiting waiting = Waiting::kLooking) {
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(word)).store(count, std::memory_order_seq_cst);
  if (waiting == Waiting::kSleeping) ::syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Until `word` is `count` or more. False where `give_up`, which is asked now and then, says true.
template <typename GiveUp>
bool AwaitStep(char* word, std::uint64_t count, Waiting waiting, GiveUp&& give_up) {
  constexpr unsigned kLooks = 64;
  constexpr timespec kLongest{0, 1000000};  // asleep, until `give_up` is asked again
  for (unsigned look = 1;; ++look) {
    const std::uint64_t at = StepsAt(word);
    if (at >= count) return true;
    if (waiting == Waiting::kLooking && look % kLooks != 0) {
#ifdef __x86_64__
      __builtin_ia32_pause();  // the other side may be a thread of the same core
#endif
      continue;
    }
    if (give_up()) return StepsAt(word) >= count;
    if (waiting == Waiting::kLooking) {
      ::sched_yield();
    } else {
      ::syscall(SYS_futex, word, FUTEX_WAIT, static_cast<std::uint32_t>(at), &kLongest, nullptr, 0);
    }
  }
}

}  // namespace grove::wire
