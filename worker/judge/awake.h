// Keeps a machine's processors from falling asleep while the judge rests before a timed run. How long a sleeping
// processor takes to wake depends on how long it slept (on a virtual machine 30 us after 2 ms, 230 us after 50 ms), and
// whoever is asked next would pay for it: the candidate, which has waited, more than the reference.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace grove::judge {

inline constexpr char kAwakeName[] = "awake";  // of the threads

class Awake {
 public:
  // One for each processor that the sides may use. Each stands on a processor of `processors`, where these are known.
  Awake(int threads, std::vector<int> processors);
  ~Awake();
  Awake(const Awake&) = delete;
  Awake& operator=(const Awake&) = delete;

  // From now on until End, which waits until nothing of this runs any more, and for no longer than kMost. `processor`:
  // where the threads stand meanwhile; negative = where they stood.
  void Begin(int processor = -1);
  void End();
  // The same without waiting: where a thread is kept from its processor, that is a moment that nobody measures.
  void Release() { until_ = 0; }
  static constexpr std::chrono::seconds kMost{1};
  // The caller sleeps for so long in between.
  void Rest(std::chrono::microseconds time, int processor = -1);

 private:
  void Work(int processor);            // negative = any
  static void StandOn(int processor);  // the calling thread

  std::atomic<int> round_{0};           // of rests begun; negative = over
  std::atomic<int> at_work_{0};         // threads that spin
  std::atomic<int> wanted_{-1};         // processor of this round
  std::atomic<std::int64_t> until_{0};  // steady clock, nanoseconds; 0 = over
  std::vector<std::thread> threads_;
};

}  // namespace grove::judge
