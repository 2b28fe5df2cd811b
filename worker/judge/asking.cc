#include "worker/judge/asking.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "worker/judge/clock.h"
#include "worker/judge/conversation.h"
#include "worker/judge/side.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

// Storing by a candidate may take this many times what it took a process that computes nothing: other caches, another
// state of the allocator.
constexpr double kMoreStoring = 1.25;
// So may the inputs, and a moment for what else the judge's host does.
constexpr double kMoreHanding = 1.05, kMoreHandingOnce = 50e-6;
// And to wait until all is quiet.
constexpr double kMoreQuieting = 1.25, kMoreQuietingOnce = 50e-6;
// And standing still: a busy machine takes its time.
constexpr double kMoreStopping = 2, kMoreStoppingOnce = 200e-6;
// Where what it makes of its results until then is taken for them: no more than that stopping is not always the same.
constexpr double kMoreOwnStopping = 1.25, kMoreOwnStoppingOnce = 50e-6;
// By which asking may have become dearer since then: of itself, seconds, and of a run.
constexpr double kMoreAsking = 0.25, kMoreWaking = 30e-6, kMoreOfRun = 0.05;
// About as long as it is between two timed runs on a GPU, and how often practice comes after as much; seconds of a run
// below which it does for native kernels, too.
constexpr std::chrono::milliseconds kRested{25};
constexpr int kRestedTimes = 5;
constexpr double kShortRun = 5e-3;
// Of longer practice: calls, whose results are kept, of so many bytes each.
constexpr std::size_t kMostPractised = 64, kPractisedBytes = std::size_t{32} << 20;

}  // namespace

// What the judge does between two timed runs of a candidate's, and as long as that takes.
void Asking::RestAsTimed(std::size_t calls, const std::function<void()>& between) {
  const auto end = Clock::now() + kRested;
  std::vector<std::size_t> sets(calls);
  std::iota(sets.begin(), sets.end(), 0);
  // (Where drawing takes longer, that it takes time is what it does to a process.)
  if (values_.RefillSeconds(calls) <= std::chrono::duration<double>(kRested).count()) values_.Refill(sets);
  side_.Prepare(sets);
  for (std::size_t i = 0; i < calls && Clock::now() < end; ++i) between();
  std::this_thread::sleep_until(end);
}

void Asking::LearnRested(const RunLengths& lengths, double each, const std::function<void()>& between) {
  const std::size_t fit = std::min(kMostPractised, ops_.free_bytes() / 16 / kPractisedBytes);
  const std::size_t calls = std::min(static_cast<std::size_t>(lengths.seconds / std::max(each, 1e-6)), fit);
  const bool longer = side_.reads() && calls > 2 * kFew;
  const auto practise = [&] {
    RestAsTimed(lengths.calls, between);
    side_.Practise(calls);
  };
  std::vector<double> empty, stopping;
  if (longer) practise();  // takes its memory
  for (int i = 0; i < kRestedTimes; ++i) {
    RestAsTimed(lengths.calls, between);
    empty.push_back(side_.AskForNothing());
    if (!longer) continue;
    practise();
    stopping.push_back(side_.conversation().stopping());
  }
  dearer_rested_ = std::max(Median(empty) - empty_before_, 0.0);
  rested_error_ = MedianError(empty);
  if (longer) stopping_ = std::max(stopping_, Median(stopping));
}

void Asking::Learn(const RunLengths& lengths, int times, const std::function<void()>& between) {
  // T(n) = asking + n calls: twice T(n) less T(2n).
  std::vector<double> empty, few, twice, stopping, quieting;
  const auto practise = [&](std::size_t count) {
    between();
    return side_.Practise(count);
  };
  practise(kFew);  // pages its code and memory in
  // Where it may be a large part of short runs, more often: what is not known of it widens the interval.
  constexpr double kMostError = 0.01;  // of a run
  constexpr int kMostRounds = 3;
  for (int round = 0; round < kMostRounds; ++round) {
    for (int i = 0; i < times; ++i) {
      between();
      empty.push_back(side_.AskForNothing());
      few.push_back(practise(kFew));
      twice.push_back(practise(2 * kFew));
      stopping.push_back(side_.conversation().stopping());
      if (ops_.cuda()) {
        const auto begin = Clock::now();
        side_.WaitUntilQuiet();
        quieting.push_back(Since(begin));
      }
    }
    asking_error_ = std::hypot(2 * MedianError(few), MedianError(twice), MedianError(empty));
    if (!ops_.cuda() || asking_error_ <= kMostError * lengths.seconds) break;
  }
  if (ops_.cuda()) quieting_ = Median(quieting);
  stopping_ = Median(stopping);
  empty_before_ = Median(empty);
  if (side_.python() && !side_.reads()) LearnStoring(lengths.most, between);
  if (ops_.cuda()) LearnHanding(lengths.most);
  // Beside longer runs of native kernels it does not count.
  if (ops_.cuda() && (side_.python() || lengths.seconds < kShortRun)) {
    LearnRested(lengths, (Median(twice) - Median(few)) / kFew, between);
  }
  // What a run has beyond an empty one: no less than nothing, and no more than all of a short one. Not only where it is
  // beyond its error: it is always there, and what is left out makes every candidate look slower.
  double beyond = 2 * Median(few) - Median(twice) - empty_before_;
  if (!ops_.cuda()) {
    // A machine that is busy keeps some of these runs waiting, and what it adds would be taken off every run that comes
    // when it is not: the quicker ones have less of it, and asking is never twice what it is for nothing.
    constexpr double kQuicker = 0.25;
    const double quicker = 2 * Quantile(few, kQuicker) - Quantile(twice, kQuicker) - Quantile(empty, kQuicker);
    beyond = std::min({beyond, quicker, Quantile(empty, 0)});
  }
  asking_ = empty_before_ + std::clamp(beyond, 0.0, std::max(Median(few) - empty_before_, 0.0));
}

// What it takes to give so many sets their inputs and to flush the cache, while nothing of this candidate can be
// queued.
void Asking::LearnHanding(std::size_t most_calls) {
  constexpr int kTimes = 3;
  constexpr std::size_t kLess = 4, kFew = 16;  // some of the sets say what each takes
  std::vector<std::size_t> sets(std::max(most_calls / kLess, std::min(most_calls, kFew)));
  std::iota(sets.begin(), sets.end(), 0);
  const auto time = [this](const std::vector<std::size_t>& some) {
    std::vector<double> seconds;
    for (int i = 0; i < kTimes; ++i) {
      side_.Prepare(some);
      side_.MakeReady(some);
      seconds.push_back(side_.ready_seconds());
    }
    return Median(seconds);
  };
  flushing_ = time({});
  handing_ = std::max(time(sets) - flushing_, 0.0) / static_cast<double>(std::max<std::size_t>(sets.size(), 1));
}

void Asking::LearnStoring(std::size_t most_calls, const std::function<void()>& between) {
  constexpr int kTimes = 7;
  constexpr std::size_t kMostPlaces = 512;
  // Bytes. Where memory is short, less: who cannot practise learns nothing, and an honest candidate would pay for it.
  const std::size_t most =
      std::min(std::size_t{ops_.cuda() ? 1024u : 32u} << 20, std::max(ops_.free_bytes() / 16, std::size_t{1} << 20));
  // Copies to the places of the first sets, of `most` bytes together.
  nlohmann::json all = nlohmann::json::array();
  std::size_t copied = 0, bytes = 0, sets = 0;
  for (; sets < most_calls && (sets == 0 || (copied < most && all.size() < kMostPlaces)); ++sets) {
    const Slot& slot = arena_.at(sets);
    for (const Place& place : slot.out.places) {
      bytes += place.bytes;
      const std::size_t part = std::min(place.bytes, most - copied);
      if (part > 0) all.push_back({slot.out_region, place.offset, part});
      copied += part;
    }
  }
  if (all.empty()) return;
  // A quarter as many sets, or of few a quarter of each: what asking costs is in both.
  constexpr std::size_t kLess = 4, kUnit = 16;
  nlohmann::json part = all;
  if (sets >= kLess) {
    part.erase(part.begin() + static_cast<std::ptrdiff_t>(all.size() / sets * (sets / kLess)), part.end());
  } else {
    for (auto& place : part) {
      place[2] = std::max<std::size_t>(place[2].get<std::size_t>() / kLess / kUnit * kUnit, 1);
    }
  }
  std::size_t less = 0;
  for (const auto& place : part) less += place[2].get<std::size_t>();
  const auto store = [&](const nlohmann::json& places) {
    between();
    side_.MakeReady({});
    side_.conversation().Practise(
        1, 0, [this] { return side_.WaitUntilQuiet(); }, places);
    return side_.conversation().PractiseStoring(sets);
  };
  store(all);  // pages its code and memory in
  std::vector<double> whole, quarter;
  for (int i = 0; i < kTimes; ++i) {
    whole.push_back(store(all));
    quarter.push_back(store(part));
  }
  const double grown = std::max(Median(whole) - Median(quarter), 0.0);
  // For a byte: by the difference, within what one of the two alone says.
  const double whole_each = Median(whole) / static_cast<double>(copied);
  const double least = std::max(Median(whole) - 2 * empty_before_, 0.0) / static_cast<double>(copied);
  const double each = std::clamp(copied > less ? grown / static_cast<double>(copied - less) : 0, least, whole_each);
  storing_asked_ = std::max(Median(whole) - each * static_cast<double>(copied), 0.0);
  storing_ = each * static_cast<double>(bytes) / static_cast<double>(sets);
}

double Asking::Costs(double empty, double implied, double run, double most_implied) const {
  const double most = std::min(kMoreAsking * asking_ + kMoreWaking, kMoreOfRun * run);
  const double by_empty =
      std::min(empty - empty_before_, std::max(most, std::min(dearer_rested_, most_implied - asking_)));
  return asking_ + (implied > 0 ? std::max(by_empty, std::min(implied - asking_, most)) : by_empty);
}

double Asking::Error(const std::vector<double>& empty) const {
  const bool bound = Median(empty) - empty_before_ > dearer_rested_;
  return std::hypot(asking_error_, MedianError(empty), bound ? rested_error_ : 0);
}

double Asking::LateHanding(double seconds, std::size_t sets) const {
  const double handed = handing_ * static_cast<double>(sets) + flushing_;
  return std::max(0.0, seconds - kMoreHanding * handed - kMoreHandingOnce);
}

double Asking::LateStopping(double seconds) const {
  const bool reads = side_.reads();
  return std::max(0.0, seconds - (reads ? kMoreOwnStopping : kMoreStopping) * stopping_ -
                           (reads ? kMoreOwnStoppingOnce : kMoreStoppingOnce));
}

double Asking::LateQuieting(double seconds) const {
  return std::max(0.0, seconds - kMoreQuieting * quieting_ - kMoreQuietingOnce);
}

double Asking::LateStoring(double seconds, std::size_t sets) const {
  return std::max(0.0, seconds - kMoreStoring * (storing_asked_ + storing_ * static_cast<double>(sets)));
}

}  // namespace grove::judge
