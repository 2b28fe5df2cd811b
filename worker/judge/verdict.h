// How an evaluation ends before its end: any stage throws a verdict, and evaluation.cc makes the result of it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace grove::judge {

inline constexpr std::size_t kMaxText = 8192;  // of a text that a candidate wrote

struct Verdict {
  std::string verdict;     // "VERDICT_WRONG"
  std::string reason;      // one line
  nlohmann::json fault;    // FaultReport, or null
  bool gone = false;       // the candidate's process has ended
  bool memory = false;     // it said that it had none left
  bool undecided = false;  // rounding decides on these values, so that they say nothing of the candidate
};

std::string Bounded(std::string text, std::size_t limit = kMaxText);

// JSON has no NaN: protocol and proto3 write it as text.
nlohmann::json Number(double value);

}  // namespace grove::judge
