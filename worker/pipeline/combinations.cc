#include "worker/pipeline/combinations.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/measure/comparison.h"

namespace grove::worker {

size_t BestCombination(const std::vector<v1::EvaluationResult>& results) {
  const auto speedup = [](const v1::EvaluationResult& result) {
    if (const v1::BaselineTiming* timing = measure::Ranking(result)) return timing->speedup();
    return result.verdict() == v1::VERDICT_CORRECT ? 0.0 : -1.0;
  };
  size_t best = 0;
  for (size_t i = 1; i < results.size(); ++i) {
    if (speedup(results[i]) > speedup(results[best])) best = i;
  }
  return best;
}

bool MayBeLucky(const std::vector<v1::EvaluationResult>& results) {
  return std::count_if(results.begin(), results.end(),
                       [](const v1::EvaluationResult& result) { return measure::Ranking(result) != nullptr; }) > 1;
}

void ReportCombinations(const std::vector<tuning::Declared>& declared,
                        const std::vector<std::vector<std::string>>& values,
                        const std::vector<v1::EvaluationResult>& results, size_t chosen, v1::EvaluationResult* report) {
  report->clear_combinations();
  for (size_t i = 0; i < results.size(); ++i) {
    v1::Combination& one = *report->add_combinations();
    for (size_t k = 0; k < declared.size(); ++k) {
      v1::Parameter& parameter = *one.add_parameters();
      parameter.set_name(declared[k].name);
      parameter.set_value(values[i][k]);
    }
    one.set_verdict(results[i].verdict());
    one.set_reason(results[i].reason());
    one.set_chosen(i == chosen && results[i].verdict() == v1::VERDICT_CORRECT);
    if (const v1::BaselineTiming* timing = measure::Ranking(results[i])) {
      one.set_seconds(timing->candidate_median_seconds());
      one.set_speedup(timing->speedup());
      one.set_speedup_low(timing->speedup_low());
      one.set_speedup_high(timing->speedup_high());
    }
  }
}

std::string CombinationText(const std::vector<tuning::Declared>& declared, const std::vector<std::string>& values) {
  std::string text;
  for (size_t i = 0; i < declared.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : " ", declared[i].name, "=", values[i]);
  }
  return text;
}

}  // namespace grove::worker
