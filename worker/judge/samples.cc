#include "worker/judge/samples.h"

#include <algorithm>
#include <cmath>

#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

// What is left of a run of `whole` seconds without what asking costs. That may have been dear when it was learnt, on a
// machine that was busy, or dearer for the program that practised than for one that takes its requests itself: it is
// never most of a run. Where nothing is left, nothing is.
double LeftOfRun(double left, double whole) {
  constexpr double kLeastLeft = 0.5;
  return left > 0 ? std::max(left, kLeastLeft * whole) : left;
}

// Before there are any runs: 0.
double MedianOrZero(const std::vector<double>& runs) { return runs.empty() ? 0 : Median(runs); }

}  // namespace

void CandidateRuns::BeginAnew() {
  runs.clear();
  runs_late.clear();
  claims.clear();
  shorts.clear();
  shorts_late.clear();
}

void Series::BeginAnew() {
  other.clear();
  candidate.clear();
  other_late.clear();
  late.clear();
  waited.clear();
  states.clear();
}

Reckoning::Implied Reckoning::ImpliedAsking() const {
  if (runs_.shorts.size() < kShorts || runs_.runs.size() < least_accused_) return {};
  const double longer = static_cast<double>(runs_.calls), shorter = static_cast<double>(runs_.calls / 2);
  const double share = longer / (longer - shorter);
  // With what came too late: who makes only the longer ones late would seem dearer to ask.
  return {share * (Median(runs_.shorts) + Median(runs_.shorts_late)) -
              (share - 1) * (Median(runs_.runs) + Median(runs_.runs_late)),
          std::hypot(share * MedianError(runs_.shorts), (share - 1) * MedianError(runs_.runs))};
}

// A process that wakes between long runs finds its caches colder than in practice: on a GPU some 80 us of each run,
// which its own runs of two lengths show. Only against the reference: a rival has no runs of two lengths, and where
// both sides are candidates it is the same on both.
std::optional<Reckoning::Implied> Reckoning::DearerThan(double plain) const {
  if (!runs_tell_) return std::nullopt;
  const Implied implied = ImpliedAsking();
  const double beyond = 2 * std::hypot(implied.error, candidate_.asking().Error(runs_.empty));
  return implied.seconds > plain + beyond ? std::optional(implied) : std::nullopt;
}

double Reckoning::PlainAsking() const {
  const Implied implied = runs_tell_ ? ImpliedAsking() : Implied();
  return candidate_.asking().Costs(Median(runs_.empty), 0, MedianOrZero(runs_.runs),
                                   implied.seconds + 2 * implied.error);
}

double Reckoning::Asking() const {
  const double plain = PlainAsking();
  const auto implied = DearerThan(plain);
  if (!implied) return plain;
  return candidate_.asking().Costs(Median(runs_.empty), implied->seconds, MedianOrZero(runs_.runs));
}

CallTimes Reckoning::Calls(const Series& series, double asking) const {
  const double empty = EmptyOf(series);
  // By the middle of all runs: who is late in more than half of them has it in every one, and a wait for the
  // processor in a few is nobody's.
  const double late = MedianOrZero(series.late);
  const double other_late = MedianOrZero(series.other_late);
  CallTimes times;
  for (std::size_t i = 0; i < series.other.size(); ++i) {
    const double rival_at_least = series.rival != nullptr ? series.other[i] + other_late : 0;
    const double theirs =
        LeftOfRun(series.other[i] + other_late - empty, rival_at_least) / static_cast<double>(series.calls) +
        series.apart;
    const double whole = series.candidate[i] + late;
    const double mine = LeftOfRun(whole - asking, whole) / static_cast<double>(runs_.calls) + runs_.apart;
    if (!(theirs > 0) || !(mine > 0)) {
      ++times.unresolved;
      continue;
    }
    times.other.push_back(theirs);
    times.candidate.push_back(mine);
    times.pairs.push_back(i);
  }
  return times;
}

double Reckoning::EmptyOf(const Series& series) const {
  const double its = Median(series.other_empty);
  if (series.rival == nullptr) return its + series.first;
  return series.rival->asking().Costs(its, 0, MedianOrZero(series.other));
}

double Reckoning::AskingShare(const Series& series, double asking) const {
  const auto share = [](double error, const std::vector<double>& runs, double off) {
    const double left = runs.empty() ? 0 : Median(runs) - off;
    return left > 0 ? std::min(error / left, 1.0) : 0.0;
  };
  const double other = series.rival != nullptr ? series.rival->asking().Error(series.other_empty)
                                               : std::hypot(MedianError(series.other_empty), series.first_error);
  const auto implied = DearerThan(PlainAsking());
  const double mine = std::max(candidate_.asking().Error(runs_.empty), implied ? implied->error : 0.0);
  return std::hypot(share(mine, series.candidate, asking), share(other, series.other, EmptyOf(series)));
}

}  // namespace grove::judge
