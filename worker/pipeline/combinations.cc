#include "worker/pipeline/combinations.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/measure/comparison.h"

namespace grove::worker {
namespace {

constexpr int kMostTimedOut = 3;

}  // namespace

void SweepBudget::Tried(const v1::EvaluationResult& result) { timed_out_ += result.verdict() == v1::VERDICT_TIMED_OUT; }

std::string SweepBudget::WhyNoMore(absl::Duration spent) const {
  if (timed_out_ >= kMostTimedOut) return absl::StrCat(timed_out_, " combinations before it have timed out");
  if (spent < most_) return "";
  return absl::StrCat("those before it took ", absl::FormatDuration(absl::Trunc(spent, absl::Seconds(1))),
                      ", and all may take ", absl::FormatDuration(most_), ", ", kMostOfLimit,
                      " times the limit of one; declare fewer values");
}

v1::EvaluationResult NotTried(const std::string& why) {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_UNMEASURABLE);
  result.set_reason(absl::StrCat("not tried: ", why));
  return result;
}

Choice::Choice(std::vector<v1::EvaluationResult> results, int evaluated, bool always_again)
    : results_(std::move(results)),
      again_(results_.size(), false),
      missed_(results_.size(), false),
      evaluated_(evaluated),
      always_again_(always_again) {
  for (size_t i = 0; i < results_.size(); ++i) lead_.First(static_cast<int>(i), results_[i]);
}

std::optional<size_t> Choice::First(v1::Verdict verdict) const {
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].verdict() == verdict) return i;
  }
  return std::nullopt;
}

std::optional<size_t> Choice::Wanted() const {
  if (First(v1::VERDICT_CHEATED).has_value() || (evaluated_ < 2 && !always_again_)) return std::nullopt;
  if (const int timed = lead_.Wanted(); timed >= 0) return static_cast<size_t>(timed);
  if (lead_.Leader() >= 0) return std::nullopt;
  // Without times.
  const std::optional<size_t> correct = First(v1::VERDICT_CORRECT);
  return correct.has_value() && !again_[*correct] ? correct : std::nullopt;
}

void Choice::Again(size_t which, v1::EvaluationResult result) {
  // A moment's noise is no reason to leave the lead to a slower one for good.
  if (result.verdict() == v1::VERDICT_UNMEASURABLE && !missed_[which]) {
    missed_[which] = true;
    return;
  }
  again_[which] = true;
  v1::EvaluationResult& first = results_[which];
  const bool timed = measure::Ranking(first) != nullptr;
  const measure::Second second = timed ? lead_.Again(static_cast<int>(which), result) : measure::Weigh(first, result);
  if (second == measure::Second::kFailed || (timed && second == measure::Second::kLower)) {
    first = std::move(result);
  } else if (result.has_profile()) {
    *first.mutable_profile() = std::move(*result.mutable_profile());
  }
}

size_t Choice::Chosen() const {
  if (const auto cheated = First(v1::VERDICT_CHEATED)) return *cheated;
  if (const int leader = lead_.Leader(); leader >= 0) return static_cast<size_t>(leader);
  return First(v1::VERDICT_CORRECT).value_or(0);
}

v1::EvaluationResult Choice::Result(const std::vector<tuning::Declared>& declared,
                                    const std::vector<std::vector<std::string>>& values) const {
  const size_t chosen = Chosen();
  v1::EvaluationResult report = results_[chosen];
  report.clear_combinations();
  for (size_t i = 0; i < results_.size(); ++i) {
    v1::Combination& one = *report.add_combinations();
    for (size_t k = 0; k < declared.size(); ++k) {
      v1::Parameter& parameter = *one.add_parameters();
      parameter.set_name(declared[k].name);
      parameter.set_value(values[i][k]);
    }
    one.set_verdict(results_[i].verdict());
    one.set_reason(results_[i].reason());
    one.set_chosen(i == chosen && results_[i].verdict() == v1::VERDICT_CORRECT);
    if (const v1::BaselineTiming* timing = measure::Ranking(results_[i])) {
      one.set_seconds(timing->candidate_median_seconds());
      one.set_speedup(timing->speedup());
      one.set_speedup_low(timing->speedup_low());
      one.set_speedup_high(timing->speedup_high());
    }
  }
  const bool correct = report.verdict() == v1::VERDICT_CORRECT;
  if (correct && evaluated_ > 1 && lead_.Leader() >= 0 && !lead_.LeaderConfirmed()) {
    report.set_reason(absl::StrCat(report.reason(), "; chosen by one measurement: a second did not succeed"));
  } else if (!correct && results_.size() > 1) {
    report.set_reason(absl::StrCat("with ", CombinationText(declared, values[chosen]), ": ", report.reason()));
  }
  return report;
}

std::string CombinationText(const std::vector<tuning::Declared>& declared, const std::vector<std::string>& values) {
  std::string text;
  for (size_t i = 0; i < declared.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : " ", declared[i].name, "=", values[i]);
  }
  return text;
}

}  // namespace grove::worker
