#include "worker/judge/timed_runs.h"

#include <cstdio>
#include <numeric>
#include <optional>
#include <utility>

#include "worker/judge/clock.h"
#include "worker/judge/processor_wait.h"
#include "worker/judge/statistics.h"
#include "worker/judge/verdict.h"

namespace grove::judge {

void TimedRuns::LearnQuiet() {
  std::vector<double> quiet;
  for (int i = 0; i < 9; ++i) {
    const auto begin = Clock::now();
    ops_.EmptyRun();
    quiet.push_back(Since(begin));
  }
  quiet_ = Median(quiet);
}

Sets TimedRuns::Pick(std::size_t count) {
  Sets all(slots_);
  std::iota(all.begin(), all.end(), 0);
  for (std::size_t i = 0; i < count; ++i) std::swap(all[i], all[i + random_.Below(slots_ - i)]);
  all.resize(count);
  return all;
}

// Nothing that a candidate left running may be in the reference's way: with another program at work on the device, even
// a kernel that does nothing waits for its turn.
void TimedRuns::WaitForIdle() {
  if (!ops_.cuda()) return;
  const double allowed = AllowedForNothing(quiet_);
  double seconds = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const auto begin = Clock::now();
    ops_.EmptyRun();
    seconds = Since(begin);
    if (seconds <= allowed) return;
  }
  char text[300];
  std::snprintf(
      text, sizeof text,
      "the GPU has other work while the candidate is held: an empty kernel takes %.3g s, and took %.3g s "
      "when timing began; either the candidate leaves work running, or another process uses this GPU, or it is "
      "shared in turns",
      seconds, quiet_);
  throw Verdict{"VERDICT_UNMEASURABLE", text, {}};
}

TimedRun TimedRuns::Other(Side& side, bool rival, const Sets& sets) {
  side.Prepare(sets);
  std::optional<ProcessorWait> wait;
  if (!ops_.cuda() && !rival) wait.emplace();
  // Nothing may stand between a rival's inputs and its run, and what the candidate left may not make them late.
  if (rival) WaitForIdle();
  side.MakeReady(sets);
  std::optional<CommonProcessor::There> there;
  if (common_ != nullptr && !rival) there.emplace(*common_);
  if (!rival) WaitForIdle();
  if (wait) wait->Begin();
  other_window_.begin = Clock::now();
  const double seconds = side.Run(sets);
  other_window_.end = Clock::now();
  const double waited = wait ? wait->Longest() / seconds : 0;
  return {seconds, side.Collect(sets), waited};
}

TimedRun TimedRuns::Candidate(const Sets& sets) {
  const TimedRun run = CandidateUncounted(sets);
  outputs_timed_ += static_cast<int>(sets.size());
  return run;
}

TimedRun TimedRuns::CandidateUncounted(const Sets& sets) {
  candidate_.Prepare(sets);
  if (has_rival_) WaitForIdle();
  candidate_.MakeReady(sets);
  candidate_window_.begin = Clock::now();
  const double seconds = candidate_.Run(sets);
  candidate_window_.end = Clock::now();
  return {seconds, candidate_.Collect(sets)};
}

}  // namespace grove::judge
