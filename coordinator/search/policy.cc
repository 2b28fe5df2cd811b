#include "coordinator/search/policy.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace grove::search {
namespace {

// A search larger than this is a mistake in a flag: a round would ask for a million model calls.
constexpr int kMaxRounds = 10'000;
constexpr int kMaxWidth = 1'000;
constexpr int kMaxEvaluations = 10'000'000;
constexpr int kMaxRepairs = 20;

}  // namespace

v1::SearchPolicy WithDefaults(const v1::SearchPolicy& spec) {
  v1::SearchPolicy result = spec;
  if (result.rounds() == 0) result.set_rounds(3);
  if (result.ideas() == 0) result.set_ideas(4);
  if (result.variants() == 0) result.set_variants(2);
  if (result.keep() == 0) result.set_keep(3);
  if (result.max_evaluations() == 0) result.set_max_evaluations(1000);
  if (result.explore_ratio() == 0) result.set_explore_ratio(0.2);
  if (result.repairs() == 0) result.set_repairs(1);
  return result;
}

std::optional<std::string> Validate(const v1::SearchPolicy& spec) {
  auto range = [](const char* name, int64_t value, int64_t low, int64_t high) -> std::optional<std::string> {
    if (value >= low && value <= high) return std::nullopt;
    return absl::StrCat("policy: ", name, " = ", value, "; give a number from ", low, " to ", high);
  };
  // Zero is "the default" everywhere, so it is in range.
  if (auto error = range("rounds", spec.rounds(), 0, kMaxRounds)) return error;
  if (auto error = range("ideas", spec.ideas(), 0, kMaxWidth)) return error;
  if (auto error = range("variants", spec.variants(), 0, kMaxWidth)) return error;
  if (auto error = range("keep", spec.keep(), 0, kMaxWidth)) return error;
  if (auto error = range("max_evaluations", spec.max_evaluations(), 0, kMaxEvaluations)) return error;
  if (auto error = range("repairs", spec.repairs(), -1, kMaxRepairs)) return error;
  if (!std::isfinite(spec.explore_ratio()) || spec.explore_ratio() > 1) {
    return absl::StrCat("policy: explore_ratio = ", spec.explore_ratio(),
                        "; give a share from 0 to 1, negative for none");
  }
  if (!std::isfinite(spec.max_seconds()) || spec.max_seconds() < 0) {
    return absl::StrCat("policy: max_seconds = ", spec.max_seconds(), "; give seconds, 0 for no limit");
  }
  return std::nullopt;
}

}  // namespace grove::search
