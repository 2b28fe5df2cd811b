// What did the work of one call, in a Python candidate's own words: operators and kernels with their times, as its
// profiler saw them. Evidence for the work policy (worker/pipeline/work_policy.h), never for a speed.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace grove::judge {

inline constexpr std::size_t kMaxObserved = 64;  // kernels and operators told, the longest first

// The member "work" of an observed run: [[name, microseconds, kind]...] with kind "kernel" (on the device), "operator"
// (torch's, on the CPU) or "call" (the whole call, on the CPU). Gives a WorkReport without policy and libraries, or
// nothing and in `error` what is wrong with it: it comes from a candidate.
std::optional<nlohmann::json> ParseObservation(const nlohmann::json& work, std::string* error);

}  // namespace grove::judge
