// One timed run of either side: the device idle before it, nothing in its way, the judge's clock around it.
// docs/timing.md says why it cannot be cheated.
#pragma once

#include <cstddef>
#include <vector>

#include "worker/judge/common_processor.h"
#include "worker/judge/gpu_health.h"
#include "worker/judge/random.h"
#include "worker/judge/side.h"

namespace grove::judge {

using Sets = std::vector<std::size_t>;  // of values, by number (Values)

struct TimedRun {
  double seconds = 0;  // of the whole run, asking included
  double late = 0;     // work of a candidate's that was found outside of that (Side::Collect)
  double waited = 0;   // of a reference's run on a CPU: share of the time without a processor
};

class TimedRuns {
 public:
  // `slots`: sets of values there are; `has_rival`: another candidate is run, too. References outlive this.
  TimedRuns(DeviceOps& ops, CandidateSide& candidate, Random& random, std::size_t slots, bool has_rival)
      : ops_(ops), candidate_(candidate), random_(random), slots_(slots), has_rival_(has_rival) {}

  // How long an empty kernel takes while nothing else is at work. Before all runs.
  void LearnQuiet();
  // That many sets, in an order that nobody can know.
  Sets Pick(std::size_t count);
  // `rival`: it is a candidate, too. Throws UNMEASURABLE where the device has other work.
  TimedRun Other(Side& side, bool rival, const Sets& sets);
  TimedRun Candidate(const Sets& sets);
  TimedRun CandidateUncounted(const Sets& sets);
  // The reference runs there from now on; null = anywhere.
  void StandOn(const CommonProcessor* common) { common_ = common; }

  std::size_t slots() const { return slots_; }
  // When the last run of each was.
  const GpuHealth::Window& other_window() const { return other_window_; }
  const GpuHealth::Window& candidate_window() const { return candidate_window_; }
  int outputs_timed() const { return outputs_timed_; }  // of the candidate's runs that count

 private:
  void WaitForIdle();

  DeviceOps& ops_;
  CandidateSide& candidate_;
  Random& random_;
  const std::size_t slots_;
  const bool has_rival_;
  double quiet_ = 0;  // seconds
  GpuHealth::Window other_window_, candidate_window_;
  int outputs_timed_ = 0;
  const CommonProcessor* common_ = nullptr;
};

}  // namespace grove::judge
