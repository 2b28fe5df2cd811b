// What asking a candidate's process costs: what a timed run has beyond its calls, and what the judge's way of asking
// takes around it. Learnt while no code but ours has run there; what has become dearer since counts within bounds. All
// times are seconds. docs/timing.md: "What asking costs, and who says so".
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include "worker/judge/device_ops.h"
#include "worker/judge/run_size.h"
#include "worker/judge/slots.h"
#include "worker/judge/values.h"

namespace grove::judge {

class CandidateSide;

class Asking {
 public:
  // References outlive it.
  Asking(CandidateSide& side, Arena& arena, Values& values, DeviceOps& ops)
      : side_(side), arena_(arena), values_(values), ops_(ops) {}

  // Practice, of which CandidateSide::LearnAsking says when and with what.
  void Learn(const RunLengths& lengths, int times, const std::function<void()>& between);

  // What is taken off runs of `run` seconds: what was learnt before the load, and by how much it has become dearer
  // since, of which the candidate's own process is the witness and which is bounded therefore. `empty`: what runs of
  // nothing take now; `implied`: what its runs of two lengths say that asking costs (0: they do not say it).
  // `most_implied`: the most that these runs leave possible.
  double Costs(double empty, double implied, double run,
               double most_implied = std::numeric_limits<double>::infinity()) const;
  // The standard error of that, the runs of nothing being these now.
  double Error(const std::vector<double>& empty) const;
  double empty_before() const { return empty_before_; }  // a run of nothing, before the program was loaded

  // By how much these seconds are more than the same may take a process without a program: that belongs to the run.
  // The device's, until so many sets had their inputs and the cache was flushed.
  double LateHanding(double seconds, std::size_t sets) const;
  double LateStopping(double seconds) const;                   // until it stood after a run
  double LateQuieting(double seconds) const;                   // CandidateSide::WaitUntilQuiet, when it stands
  double LateStoring(double seconds, std::size_t sets) const;  // a script's, for the outputs of so many sets

 private:
  // `most_calls`: RunLengths::most.
  void LearnStoring(std::size_t most_calls, const std::function<void()>& between);
  void LearnHanding(std::size_t most_calls);
  void RestAsTimed(std::size_t calls, const std::function<void()>& between);
  // On a GPU who wakes after 25 ms of other work is asked at a higher price than who has just practised, and a script
  // that has worked for some milliseconds takes longer to stand still. `each`: seconds of a call of practice.
  void LearnRested(const RunLengths& lengths, double each, const std::function<void()>& between);

  static constexpr std::size_t kFew = 4;  // calls of practice, and twice as many

  CandidateSide& side_;
  Arena& arena_;
  Values& values_;
  DeviceOps& ops_;
  double asking_ = 0;  // of a run of practice: all of it that does not grow with the calls
  double empty_before_ = 0;
  double asking_error_ = 0;   // of the two
  double dearer_rested_ = 0;  // by so much, when as much came before it as before a timed run
  double rested_error_ = 0;
  // While nothing of it is loaded:
  double quieting_ = 0;                     // WaitUntilQuiet, when it stands
  double stopping_ = 0;                     // until it stands after a run
  double storing_ = 0, storing_asked_ = 0;  // the outputs of one set, by a Python process that computes nothing; asking
  double handing_ = 0, flushing_ = 0;       // the inputs of one set; what does not grow with the sets
};

}  // namespace grove::judge
