// Where the two sides of a timed pair stand on the host. Processors of one machine differ by 10 to 40 % from moment to
// moment (a neighbour on the same core, another guest of the same host), and a scheduler leaves a thread where it is:
// programs whose pace the host sets, hundreds of small kernels a call, then look faster or slower than they are by that
// for a whole measurement. On one and the same processor, in turns, two processes of one program differ by 1 % there
// (docs/timing.md has the figures).
#pragma once

#include <sched.h>

#include <cstddef>
#include <vector>

#include "worker/judge/random.h"

namespace grove::judge {

// The processor that both sides have in common, drawn anew from time to time, so that none decides. The calling thread
// keeps off it, while it waits for the other side, but for There. Destroyed by the thread that made it, which then
// may stand where it might before.
class CommonProcessor {
 public:
  explicit CommonProcessor(Random& random);
  ~CommonProcessor();
  CommonProcessor(const CommonProcessor&) = delete;
  CommonProcessor& operator=(const CommonProcessor&) = delete;

  // Whether there are enough of them for one to be kept free.
  bool possible() const { return processors_.size() >= kLeast; }
  // Before a pair; true when it is another one now.
  bool Next();
  int now() const { return now_; }  // negative before the first Next
  // The calling thread stands on it for as long as this lives.
  class There {
   public:
    explicit There(const CommonProcessor& common);
    ~There();
    There(const There&) = delete;
    There& operator=(const There&) = delete;

   private:
    const CommonProcessor& common_;
  };

 private:
  static constexpr std::size_t kLeast = 4;
  static constexpr int kStay = 2;  // pairs: a block of the interval's (samples.h)

  Random& random_;
  cpu_set_t all_, others_;  // that the thread might use; those without now_
  std::vector<int> processors_;
  int now_ = -1, left_ = 0;
};

}  // namespace grove::judge
