// The candidate's speed against the reference's: pairs of timed runs in alternation. docs/timing.md derives every
// constant.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/judge/check.h"
#include "worker/judge/conversation.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/settings.h"
#include "worker/judge/slots.h"

namespace grove::judge {

// How many slots the timed runs need: enough sets that their data exceed twice the last-level cache, at least 2;
// bounded by a quarter of the free memory (a set is held twice: shared and pristine) and by 16, beyond which tiny
// problems only cost set-up time. On a CPU every call of a timed run has a set of its own, so short calls get more.
std::size_t TimedSlots(const DeviceOps& ops, const LoadedProblem& problem, std::size_t slot_bytes);

class Timing {
 public:
  // The first `slots` slots of the arena are timed. All references outlive this.
  Timing(LoadedProblem& problem, DeviceOps& ops, const EvaluationSettings& settings, const Progress& progress,
         Conversation& conversation, Arena& arena, Check& check, Random& random, std::size_t slots);

  void Run();                                               // throws Verdict: WRONG, CHEATED, UNMEASURABLE
  const nlohmann::json& report() const { return timing_; }  // TimingReport; null before
  std::string Reason() const;                               // one line, of a report

 private:
  struct SpanTimes {
    double wall, claimed;
  };
  struct SlopeResult {
    double seconds = 0, smallest = 0;  // of one call on the judge's clock: median and least over the rounds
    double hidden = 0;                 // of one call: what the claims of these very runs leave out, median
    std::size_t k = 0;
  };
  struct Series {
    std::string baseline;
    Mode mode;
    std::vector<double> reference, candidate;
    std::string unavailable;
  };

  std::vector<Leaf> FreshLeaves();
  void Discard(const std::string& reason);
  SpanTimes Span(std::size_t k);
  SlopeResult Slope(double call, int rounds, double span);
  void Refill(std::size_t first, std::size_t count);
  double CopyAllowance() const;
  std::size_t CpuBatch();
  void MeasureTrip(int count);
  bool Settled(const std::vector<Series>& series) const;
  void Pair(Series* entry, std::size_t first, std::size_t count, std::vector<double>* claims);
  [[noreturn]] void Cheated(const std::string& evidence, double claimed, double seconds, std::size_t k);
  void CheckCpuClaims(const std::vector<double>& claims);
  void CheckClaims(const std::vector<double>& claims, SlopeResult* slope);
  void Report(const std::vector<Series>& series, const std::vector<double>& claims);

  LoadedProblem& problem_;
  Reference& reference_;
  DeviceOps& ops_;
  const EvaluationSettings& settings_;
  const Progress& progress_;
  Conversation& conversation_;
  Arena& arena_;
  Check& check_;
  Random& random_;
  const std::size_t timed_slots_;

  std::chrono::steady_clock::time_point time_begin_;
  double draw_spent_ = 0, verify_spent_ = 0;
  std::vector<std::vector<Leaf>> pool_;
  std::map<std::string, int> discards_;
  std::vector<double> trips_;           // empty requests, the latest
  std::vector<double> spans_, hidden_;  // CPU: of one call, by the judge's clock; and that less the claim
  double trip_ = 0;
  std::size_t block_pairs_ = 1, next_slot_ = 0, batch_ = 1;
  int outputs_verified_ = 0;
  nlohmann::json timing_;
};

}  // namespace grove::judge
