#include "worker/judge/lies.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "worker/judge/claims.h"
#include "worker/judge/single_calls.h"
#include "worker/judge/statistics.h"
#include "worker/judge/verdict.h"

namespace grove::judge {
namespace {

constexpr int kAttemptsUnsure = 6;   // at single calls, where the machine is in the way
constexpr double kMostEcho = 50e-3;  // seconds that the judge's own thread works for

// (With the evidence: who may be a liar gets no second attempt by itself.)
[[noreturn]] void Unsure(const std::string& evidence, const std::vector<double>& waits, double dearer = 0) {
  throw Verdict{
      "VERDICT_UNMEASURABLE", evidence + "; " + Busy(waits, dearer), {{"stage", "time"}, {"evidence", evidence}}};
}

}  // namespace

TimedRun Lies::TimeWithWait(const Sets& sets, std::vector<double>* waits) {
  if (echo_ == nullptr) echo_ = std::make_unique<Echo>();
  values_.Refill(sets);
  const TimedRun run = timed_.Candidate(sets);
  const Reply& reply = candidate_.reply();
  const double claimed = std::accumulate(reply.claims.begin(), reply.claims.end(), 0.0);
  const int processor = candidate_.processor();
  if (waits->empty()) echo_->Wait(0, processor);  // goes there
  ops_.Rest(processor, [] {});
  waits->push_back(echo_->Wait(std::min({claimed, reply.wall, kMostEcho}), processor));
  return run;
}

bool Lies::Crowded(double call) {
  constexpr std::size_t kSteps = 9;
  constexpr double kLongest = 10e-3;  // of a call: beside longer ones such waiting is little
  CandidateSteps* const steps = candidate_.steps();
  if (ops_.cuda() || steps == nullptr || call > kLongest) return false;
  const Sets sets = timed_.Pick(std::min({kSteps, timed_.slots(), candidate_.MostKept()}));
  values_.Refill(sets);
  const GivenSteps given = steps->Run(sets, Waiting::kLooking);
  // Who does not do as it is asked has no excuse by it.
  return given.seconds.size() == sets.size() && given.starved.value_or(0) > GivenSteps::kStarved;
}

std::optional<Lie> Lies::InClaims(double asking) {
  // Too few to measure by are too few to accuse by: one preempted run would decide.
  if (runs_.runs.size() < static_cast<std::size_t>(settings_.least_accused)) return std::nullopt;
  const double calls = static_cast<double>(runs_.calls);
  std::vector<double> spans, hidden;
  for (std::size_t i = 0; i < runs_.runs.size(); ++i) {
    spans.push_back((runs_.runs[i] - asking) / calls);
    hidden.push_back((runs_.runs[i] - asking - runs_.claims[i]) / calls);
  }
  // A busy machine may keep a candidate waiting in most of the runs, so that the quietest say whether it lies.
  const double claimed = Median(runs_.claims) / calls, span = Quantile(spans, 0.1), missing = Quantile(hidden, 0.1);
  const double slack = 2 * asking + 200e-6;
  const double each = (Median(runs_.runs) + Median(runs_.runs_late) - asking) / calls;
  const double most_alone = MostAlone(runs_.calls, each, asking);
  const double dearer = runs_.empty.empty() ? 0 : Median(runs_.empty) - asking;
  char text[300];
  if (span > 0 && missing > 0.25 * span + slack / calls) {
    std::snprintf(text, sizeof text,
                  "in runs of %zu calls the judge's clock grew by %.4g s a call, the claims by %.4g s", runs_.calls,
                  span, claimed);
    std::vector<double> least, waits;
    for (int i = 0; i < 9 && (i < 5 || i * span * calls < settings_.max_time); ++i) {
      TimeWithWait(timed_.Pick(runs_.calls), &waits);
      const Reply& reply = candidate_.reply();
      least.push_back(reply.wall - asking - std::accumulate(reply.claims.begin(), reply.claims.end(), 0.0));
    }
    // Where it has gone by now, it was the machine's.
    if (Judge(Quantile(least, 0.1), 0.25 * span * calls + slack, waits, dearer) != Contradiction::kPlain) {
      Unsure(text, waits, dearer);
    }
    if (Crowded(span)) return std::nullopt;
    return Lie{text, claimed, span};
  }
  const SingleCalls alone{.side = candidate_,
                          .check = check_,
                          .values = values_,
                          .timed = timed_,
                          .sampled = sampled_,
                          .each = span,
                          .most = settings_.max_time};
  bool honest = false, unsure = false;
  std::vector<double> waits;
  for (int attempt = 0; attempt < (unsure ? kAttemptsUnsure : kSingleAttempts); ++attempt) {
    std::vector<double> singles;
    waits.clear();
    double wall = std::numeric_limits<double>::infinity();
    const std::vector<TimedRun> runs = AskAlone(alone, [&](const Sets& set) {
      const TimedRun run = TimeWithWait(set, &waits);
      wall = std::min(wall, run.seconds - asking);
      singles.push_back(candidate_.reply().claims[0]);
      return run;
    });
    const double single = Quantile(singles, 0.1);
    // What such a run costs once, or does once for all of its calls, is in each call of whoever makes one.
    const bool apart = ops_.cuda() && QuickestAlone(runs, asking) > most_alone;
    const double beyond = CountsAlone(runs, asking) - each;
    apart_ = !apart ? 0 : attempt == 0 ? beyond : std::min(apart_, beyond);
    const Contradiction contradiction = Judge(wall - single, 0.25 * wall + slack, waits, dearer);
    const bool clear = contradiction == Contradiction::kNone;
    honest = honest || clear;
    unsure = unsure || contradiction == Contradiction::kUnsure;
    if (clear && !apart) return std::nullopt;
    if (clear) continue;
    std::snprintf(
        text, sizeof text,
        "single calls claim %.4g s and take %.4g s on the judge's clock beyond the %.4g s of an empty request", single,
        wall, asking);
  }
  if (honest) return std::nullopt;
  if (unsure) Unsure(text, waits, dearer);
  if (Crowded(span)) return std::nullopt;
  return Lie{text, claimed, span};
}

std::optional<Lie> Lies::InAsking(double asking) {
  const auto [implied, error] = reckoning_.ImpliedAsking();
  if (!std::isfinite(error)) return std::nullopt;
  const double longer = static_cast<double>(runs_.calls);
  const double run = Median(runs_.runs), least = std::max(0.05 * run, 200e-6);
  // What an empty run has too much. Not above zero: nothing.
  const auto beyond = [&](const std::vector<double>& runs) {
    const double empty = Quantile(runs, 0.25);
    return std::min(
        {empty - 2 * candidate_.asking().empty_before(), empty - asking - least, empty - implied - least - 4 * error});
  };
  if (beyond(runs_.empty) <= 0) return std::nullopt;
  const double empty = Quantile(runs_.empty, 0.25);
  char text[400];
  std::snprintf(
      text, sizeof text,
      "asked to run nothing it took %.4g s, and %.4g s before its program was loaded; its runs of %zu and %zu "
      "calls (%.4g s and %.4g s) say that asking costs %.4g s",
      empty, candidate_.asking().empty_before(), runs_.calls, runs_.calls / 2, run, Median(runs_.shorts), implied);
  // Once more, beside a thread of the judge's own.
  std::vector<double> again, waits;
  for (int i = 0; i < 9; ++i) {
    TimeWithWait({}, &waits);
    again.push_back(candidate_.reply().wall);
  }
  if (Judge(beyond(again), 0, waits) != Contradiction::kPlain) Unsure(text, waits);
  return Lie{text, Median(runs_.claims) / longer, (run - asking) / longer};
}

}  // namespace grove::judge
