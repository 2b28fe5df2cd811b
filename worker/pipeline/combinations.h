// A candidate that declares parameters (common/tuning/declared.h) is tried once for every combination of their values.
// Which of them its result is of, and what the result says of the others. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/tuning/declared.h"
#include "grove/v1/types.pb.h"

namespace grove::worker {

// The fastest of those that are CORRECT and were timed, by their first baseline; else the first that is CORRECT, else
// the first: as the source stands. `results`: one of each, not empty.
size_t BestCombination(const std::vector<v1::EvaluationResult>& results);

// Whether more than one has a time, so that the fastest may have been lucky and is measured once more (measure::Weigh).
bool MayBeLucky(const std::vector<v1::EvaluationResult>& results);

// `chosen` is marked so where it is CORRECT: otherwise the source stands as it was written.
void ReportCombinations(const std::vector<tuning::Declared>& declared,
                        const std::vector<std::vector<std::string>>& values,
                        const std::vector<v1::EvaluationResult>& results, size_t chosen, v1::EvaluationResult* report);

// "kTile=32 kThreads=256"
std::string CombinationText(const std::vector<tuning::Declared>& declared, const std::vector<std::string>& values);

}  // namespace grove::worker
