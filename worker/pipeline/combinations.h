// A candidate that declares parameters (common/tuning/declared.h) is tried once for every combination of their values.
// Which of them its result is of, what the result says of the others, and when no more are tried. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/measure/lead.h"
#include "common/tuning/declared.h"
#include "grove/v1/types.pb.h"

namespace grove::worker {

// Of one combination's limit, building and running: what all of them may take together.
inline constexpr int kMostOfLimit = 10;
// After all were tried: how often what leads is tried once more, before it stands by one measurement.
inline constexpr int kMostRepeats = 8;

// When to stop: after `most` in all, or when three have run into their own limit of time.
class SweepBudget {
 public:
  explicit SweepBudget(absl::Duration most) : most_(most) {}
  void Tried(const v1::EvaluationResult& result);
  // Empty = go on. `spent` on those before.
  std::string WhyNoMore(absl::Duration spent) const;

 private:
  absl::Duration most_;
  int timed_out_ = 0;
};

// The result of one that is not tried.
v1::EvaluationResult NotTried(const std::string& why);

// Whichever leads among those that are CORRECT, as in a search (measure::Lead): the fastest may have been lucky, in its
// time or in passing at all, so it is tried once more (twice, where the first of these has no time), and the less
// favourable of the two results stands. One that is CHEATED decides for all: the source holds it. Where none is
// CORRECT, the result is that of the source as it stands.
class Choice {
 public:
  // `results`: one of each combination, the source as it stands first; not empty. `evaluated`: how many of them came of
  // a run, each of which had its chance. `always_again`: what leads is tried again even where there was nothing to
  // choose from (its profile is wanted).
  Choice(std::vector<v1::EvaluationResult> results, int evaluated, bool always_again);

  std::optional<size_t> Wanted() const;  // the one that is to be tried once more now
  void Again(size_t which, v1::EvaluationResult result);
  size_t Chosen() const;
  // Of the chosen one, with what became of all. The chosen one is marked so where it is CORRECT.
  v1::EvaluationResult Result(const std::vector<tuning::Declared>& declared,
                              const std::vector<std::vector<std::string>>& values) const;

 private:
  std::optional<size_t> First(v1::Verdict verdict) const;

  std::vector<v1::EvaluationResult> results_;
  std::vector<bool> again_;
  std::vector<bool> missed_;  // could not be measured again, once
  const int evaluated_;
  const bool always_again_;
  measure::Lead lead_;
};

// "kTile=32 kThreads=256"
std::string CombinationText(const std::vector<tuning::Declared>& declared, const std::vector<std::string>& values);

}  // namespace grove::worker
