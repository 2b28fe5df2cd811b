// The other kernel of a comparison: a candidate in a process and an arena of its own, opened and checked as the
// candidate is, and timed in the reference's place. What is wrong with it is said of it and not of the candidate.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/wire/channel.h"
#include "worker/judge/check.h"
#include "worker/judge/conversation.h"
#include "worker/judge/device_ops.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/settings.h"
#include "worker/judge/side.h"
#include "worker/judge/slots.h"
#include "worker/judge/values.h"
#include "worker/judge/verdict.h"

namespace grove::judge {

class Opponent {
 public:
  // `settings`: of the evaluation, with the rival's fields set. References outlive this.
  Opponent(LoadedProblem& problem, DeviceOps& ops, wire::Channel channel, const EvaluationSettings& settings,
           Random& random, const Progress& progress);

  // Its slots, as the candidate's arena has them.
  Arena& arena() { return arena_; }

  // Opens and checks it, while the candidate stands still. False when it may not be timed.
  bool Prepare(Values& values, std::size_t timed_slots, bool high_fits);
  CandidateSide& side() { return *side_; }
  Check& check() { return *check_; }

  // Bytes of device memory that it has taken by the end of Prepare, in which nobody else takes any.
  double held() const { return held_; }

  // It failed, here or while it was timed.
  void Failed(const Verdict& verdict);
  bool failed() const { return failed_; }

  nlohmann::json Report() const;  // RivalReport: verdict, reason, fault
  bool gone() const { return gone_; }
  bool quiet() const { return conversation_.quiet(); }
  void Close() {
    if (!failed_) conversation_.Close();
  }

 private:
  LoadedProblem& problem_;
  DeviceOps& ops_;
  const EvaluationSettings settings_;
  Random& random_;
  const Progress& progress_;
  Conversation conversation_;
  Arena arena_;
  std::unique_ptr<Check> check_;
  std::unique_ptr<CandidateSide> side_;
  bool failed_ = false, gone_ = false;
  double held_ = 0;
  Verdict verdict_;
};

}  // namespace grove::judge
