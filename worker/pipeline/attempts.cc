#include "worker/pipeline/attempts.h"

#include "absl/strings/str_cat.h"

namespace grove::worker {

bool WorthTimingAgain(const v1::EvaluationResult& result) {
  // (Who broke down for want of memory would do so again, and of who may have lied there is evidence.)
  if (result.verdict() != v1::VERDICT_UNMEASURABLE || result.has_fault() || result.stages().empty()) return false;
  const v1::StageTime& last = *result.stages().rbegin();
  return last.stage() == "time" && last.seconds() <= kMostOfFirstAttempt;
}

void MergeFirstAttempt(const v1::EvaluationResult& first, v1::EvaluationResult* second) {
  if (second->has_timing()) {
    v1::TimingReport& timing = *second->mutable_timing();
    timing.set_reruns(timing.reruns() + 1);
    timing.set_method(
        absl::StrCat(timing.method(), ", in a second attempt, in new processes (of the first: ", first.reason(), ")"));
  } else if (second->verdict() == v1::VERDICT_UNMEASURABLE) {
    second->set_reason(absl::StrCat("in two attempts: ", second->reason()));
  }
}

}  // namespace grove::worker
