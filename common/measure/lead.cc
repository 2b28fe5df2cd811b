#include "common/measure/lead.h"

#include <algorithm>

#include "common/measure/comparison.h"

namespace grove::measure {
namespace {

std::optional<Figures> FiguresOf(const v1::EvaluationResult& result) {
  const v1::BaselineTiming* timing = Ranking(result);
  if (timing == nullptr) return std::nullopt;
  return Figures{timing->speedup(), timing->speedup_low(), timing->speedup_high(), timing->resolution()};
}

}  // namespace

Second Weigh(const Figures& first, const v1::EvaluationResult& second) {
  if (const std::optional<Figures> again = FiguresOf(second)) {
    return again->speedup > first.speedup ? Second::kHigher : Second::kLower;
  }
  switch (second.verdict()) {
    case v1::VERDICT_UNSPECIFIED:
    case v1::VERDICT_UNMEASURABLE:
    case v1::VERDICT_CORRECT:
      return Second::kNone;
    default:
      return Second::kFailed;
  }
}

Second Weigh(const v1::EvaluationResult& first, const v1::EvaluationResult& second) {
  return Weigh(FiguresOf(first).value_or(Figures()), second);
}

bool Lead::Beats(const Figures& challenger, const Figures& leader) {
  return challenger.speedup > leader.speedup * (1 + std::max({challenger.resolution, leader.resolution, 0.0}));
}

void Lead::First(int kernel, const v1::EvaluationResult& result) {
  const std::optional<Figures> figures = FiguresOf(result);
  if (!figures.has_value() || !once_.emplace(kernel, *figures).second) return;
  by_speed_.emplace(-figures->speedup, kernel);
}

void Lead::Drop(int kernel) {
  by_speed_.erase({-once_.at(kernel).speedup, kernel});
  once_.erase(kernel);
  barred_.erase(kernel);
}

Second Lead::Again(int kernel, const v1::EvaluationResult& result) {
  auto it = once_.find(kernel);
  if (it == once_.end()) return Second::kNone;
  const Figures first = it->second;
  const Second second = Weigh(first, result);
  if (second == Second::kNone) {
    barred_.insert(kernel);
    return second;
  }
  Drop(kernel);
  if (second == Second::kFailed) return second;
  const Figures decided = second == Second::kLower ? *FiguresOf(result) : first;
  if (leader_ < 0 || Beats(decided, leading_)) {
    leader_ = kernel;
    leading_ = decided;
  }
  return second;
}

int Lead::Wanted() const {
  for (const auto& [speed, kernel] : by_speed_) {
    if (barred_.count(kernel) > 0) continue;
    return leader_ < 0 || Beats(once_.at(kernel), leading_) ? kernel : -1;
  }
  return -1;
}

int Lead::Leader() const {
  if (leader_ >= 0) return leader_;
  return by_speed_.empty() ? -1 : by_speed_.begin()->second;
}

Figures Lead::LeaderFigures() const {
  if (leader_ >= 0) return leading_;
  return by_speed_.empty() ? Figures() : once_.at(by_speed_.begin()->second);
}

}  // namespace grove::measure
