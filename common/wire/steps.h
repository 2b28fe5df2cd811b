// A run in steps: each call gets its inputs when the one before it has given its outputs (docs/protocol.md). How the
// memory for that is laid out, and how either side waits for the other's word. Linux on x86-64 and AArch64.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace grove::wire {

// Bytes from the start of that memory: how many calls have got their inputs, how many have given their outputs (64 bits
// each, in lines of their own), and where the inputs of one call begin. Its outputs follow them.
inline constexpr std::size_t kStepsGiven = 0, kStepsDone = 64, kStepsInputs = 4096, kStepsAlignment = 256;

inline constexpr std::size_t StepsOutputs(std::size_t input_bytes) {
  return kStepsInputs + (input_bytes + kStepsAlignment - 1) / kStepsAlignment * kStepsAlignment;
}

inline void SetStep(char* word, std::uint64_t count) {
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(word)).store(count, std::memory_order_release);
}

// Until `word` is `count` or more. False where `give_up`, which is asked every few microseconds, says true. Spins, but
// lets others have the processor.
template <typename GiveUp>
bool AwaitStep(char* word, std::uint64_t count, GiveUp&& give_up) {
  constexpr unsigned kLooks = 64;
  const std::atomic_ref<std::uint64_t> at(*reinterpret_cast<std::uint64_t*>(word));
  for (unsigned look = 1; at.load(std::memory_order_acquire) < count; ++look) {
    if (look % kLooks != 0) continue;
    if (give_up()) return at.load(std::memory_order_acquire) >= count;
    ::sched_yield();
  }
  return true;
}

}  // namespace grove::wire
