#include "worker/judge/timing.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "worker/judge/claims.h"
#include "worker/judge/processor_wait.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Of a timed run, on the faster side, as far as slots go: asking is known to some ten microseconds, and a wake-up on a
// CPU to some more.
constexpr double kSpanCuda = 10e-3, kSpanCpu = 3e-3;
// Where intervals are to be finer than usual, runs on a GPU are longer by as much, up to this: what is not known of
// asking is a smaller part of them. On a CPU they are limited by what caches hold.
constexpr double kLongerRuns = 4, kUsualWidth = 0.02;
constexpr int kPracticeCuda = 20, kPracticeCpu = 12;  // on a GPU two contexts take turns, and runs differ more
constexpr double kMorePractice = 2.5;                 // where runs are longer
// Of each of several pairs of processes: all of them together practise as often as one alone, or more. What is not
// known of asking differs from pair to pair, and is in what they differ by.
constexpr int kLeastPractice = 16;
constexpr double kShare = 0.25, kLongerShare = 0.4;  // of the free memory, for what a run of a candidate holds
constexpr std::size_t kMaxCalls = 1024;
constexpr std::size_t kMaxBytesCuda = std::size_t{16} << 30, kMaxBytesCpu = std::size_t{64} << 20;
// Nothing is faster: bytes per second, seconds per call, and times the reference's speed.
constexpr double kMaxBandwidthCuda = 8e12, kMaxBandwidthCpu = 100e9, kLeastCuda = 1.5e-6, kLeastCpu = 0.2e-6;
constexpr double kMaxSpeedup = 50;
constexpr std::size_t kRecent = 31;
constexpr int kBlock = 2;            // pairs that share the machine's mood
constexpr int kShortEvery = 3;       // pairs to one shorter run
constexpr int kBetween = 2;          // pairs to one moment between them, on average
constexpr double kElsewhere = 0.05;  // seconds for draws of other distributions, beyond the least
constexpr std::size_t kShorts = 5;   // at least, for a slope
constexpr std::uint64_t kBootstrapSeed = 20250528;
constexpr double kQuiet = 0.05;  // share of a run on a CPU that may be spent waiting for a processor
constexpr std::chrono::milliseconds kWatchPeriod{5};
// A call by itself may take twice what a call in a run of so many and more does, for there what the host does for one
// is done while the device works on another, and of what asking costs a share, and a moment: processes and clocks that
// have rested, code and weights in no cache.
constexpr double kMoreAlone = 2, kDearerAlone = 0.25, kDearerAloneOnce = 100e-6;
constexpr std::size_t kFewCalls = 3;
constexpr int kAttempts = 3, kAttemptsUnsure = 6;  // at single calls; more where the machine is in the way
constexpr double kMostEcho = 50e-3;                // seconds that the judge's own thread works for
constexpr double kNormal95 = 1.96;     // standard errors to either side of an estimate hold the truth in 95 %
constexpr double kVerifyShare = 0.25;  // of the sampling time, for outputs beyond the first of each run
constexpr double kLongest = 20;        // times max_time, for min_samples
constexpr double kLeft = 0.2;          // of run_wall, when sampling ends whatever it has
constexpr int kMaxReruns = 1;
constexpr std::chrono::milliseconds kCoolDown{500};

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double LongerBy(const DeviceOps& ops, const EvaluationSettings& settings) {
  return ops.cuda() ? std::clamp(kUsualWidth / settings.settle_width, 1.0, kLongerRuns) : 1;
}

// What is left of a run of `whole` seconds without what asking costs. That may have been dear when it was learnt, on a
// machine that was busy, or dearer for the program that practised than for one that takes its requests itself: it is
// never most of a run. Where nothing is left, nothing is.
double LeftOfRun(double left, double whole) {
  constexpr double kLeastLeft = 0.5;
  return left > 0 ? std::max(left, kLeastLeft * whole) : left;
}

void Keep(std::vector<double>* values, double value) {
  values->push_back(value);
  if (values->size() > kRecent) values->erase(values->begin());
}

}  // namespace

std::size_t TimedSlots(const DeviceOps& ops, const LoadedProblem& problem, const EvaluationSettings& settings,
                       std::size_t in_bytes, std::size_t out_bytes) {
  const bool cuda = ops.cuda();
  // Of each set: inputs here and there, outputs there and the reference's.
  const double bytes = static_cast<double>(in_bytes + out_bytes), held = std::max(2 * bytes, 1.0);
  const double fastest = std::max({bytes / (cuda ? kMaxBandwidthCuda : kMaxBandwidthCpu), cuda ? kLeastCuda : kLeastCpu,
                                   problem.reference_seconds / kMaxSpeedup});
  const double longer = LongerBy(ops, settings);
  double wanted = std::ceil(longer * std::min((cuda ? kSpanCuda : kSpanCpu) / fastest, static_cast<double>(kMaxCalls)));
  const double free = static_cast<double>(ops.free_bytes()) * (longer > 1 ? kLongerShare : kShare);
  wanted = std::min(wanted, std::min(free, longer * static_cast<double>(cuda ? kMaxBytesCuda : kMaxBytesCpu)) / held);
  if (settings.Warm()) {
    // All inputs and outputs of a run are to stay in the cache.
    wanted = std::min(wanted, static_cast<double>(ops.cache_bytes()) / 2 / std::max(bytes, 1.0));
  }
  // A second one, so that runs of one call and of two can be told apart, where it fits.
  return static_cast<std::size_t>(std::max(wanted, free >= 2 * held ? 2.0 : 1.0));
}

int PracticeRuns(const DeviceOps& ops, const EvaluationSettings& settings) {
  if (!ops.cuda()) return kPracticeCpu;
  if (LongerBy(ops, settings) <= 1) return kPracticeCuda;
  return std::max(static_cast<int>(kMorePractice * kPracticeCuda) / settings.replicas, kLeastPractice);
}

Timing::Timing(LoadedProblem& problem, DeviceOps& ops, const EvaluationSettings& settings, const Progress& progress,
               CandidateSide& candidate, Values& values, std::size_t slots, Check& check, Random& random,
               std::vector<Rival> rivals)
    : problem_(problem),
      ops_(ops),
      settings_(settings),
      progress_(progress),
      candidate_(candidate),
      values_(values),
      slots_(slots),
      span_((ops.cuda() ? kSpanCuda : kSpanCpu) * LongerBy(ops, settings)),
      check_(check),
      random_(random),
      outputs_(problem, check, values, ops.cuda()) {
  for (const std::string& name : settings_.baselines) {
    if (name == "BASELINE_RIVAL") continue;
    Series entry;
    entry.baseline = name;
    const Mode mode = name == "BASELINE_COMPILE" ? Mode::kCompile : Mode::kEager;
    if (mode == Mode::kCompile && !problem.reference->CanCompile()) {
      entry.unavailable = "torch.compile needs a Python problem and a torch from 2.0";
    }
    entry.reference = std::make_unique<ReferenceSide>(problem, ops, values, mode, settings_.Warm());
    series_.push_back(std::move(entry));
  }
  for (Rival& rival : rivals) {
    Series entry;
    entry.baseline = rival.baseline;
    entry.rival = rival.side;
    entry.rival_check = rival.check;
    entry.on_failure = std::move(rival.on_failure);
    series_.push_back(std::move(entry));
  }
}

std::string Timing::Reason() const {
  char text[200];
  const json& first = timing_["baselines"][0];
  if (first.contains("unavailable")) return "correct on " + std::to_string(check_.trials()) + " draws";
  const std::string against = first["baseline"] == "BASELINE_COMPILE" ? "torch.compile"
                              : first["baseline"] == "BASELINE_RIVAL" ? "the other candidate"
                                                                      : "eager";
  std::snprintf(text, sizeof text, "%.3gx [%.3g, %.3g] against %s, %d samples", first["speedup"].get<double>(),
                first["speedup_low"].get<double>(), first["speedup_high"].get<double>(), against.c_str(),
                first["samples"].get<int>());
  return text;
}

// ------------------------------------------------------------------------------------------------------- one timed run
// That many sets, in an order that nobody can know.
Timing::Sets Timing::Pick(std::size_t count) {
  Sets all(slots_);
  std::iota(all.begin(), all.end(), 0);
  for (std::size_t i = 0; i < count; ++i) std::swap(all[i], all[i + random_.Below(slots_ - i)]);
  all.resize(count);
  return all;
}

// Nothing that a candidate left running may be in the reference's way: with another program at work on the device, even
// a kernel that does nothing waits for its turn.
void Timing::WaitForIdle() {
  if (!ops_.cuda()) return;
  const double allowed = AllowedForNothing(quiet_);
  double seconds = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const auto begin = Clock::now();
    ops_.EmptyRun();
    seconds = Since(begin);
    if (seconds <= allowed) return;
  }
  char text[300];
  std::snprintf(
      text, sizeof text,
      "the GPU has other work while the candidate is held: an empty kernel takes %.3g s, and took %.3g s "
      "when timing began; either the candidate leaves work running, or another process uses this GPU, or it is "
      "shared in turns",
      seconds, quiet_);
  throw Verdict{"VERDICT_UNMEASURABLE", text, {}};
}

double Timing::TimeOther(Series* series, const Sets& sets) {
  Side& side = series->side();
  side.Prepare(sets);
  std::optional<ProcessorWait> wait;
  if (!ops_.cuda() && series->reference != nullptr) wait.emplace();
  // Nothing may stand between a rival's inputs and its run, and what the candidate left may not make them late.
  if (series->rival != nullptr) WaitForIdle();
  side.MakeReady(sets);
  if (series->rival == nullptr) WaitForIdle();
  if (wait) wait->Begin();
  other_window_.begin = Clock::now();
  const double seconds = side.Run(sets);
  other_window_.end = Clock::now();
  waited_ = wait ? wait->Longest() / seconds : 0;
  other_late_ = side.Collect(sets);
  return seconds;
}

double Timing::TimeCandidate(const Sets& sets) {
  const double seconds = RunCandidate(sets);
  outputs_timed_ += static_cast<int>(sets.size());
  return seconds;
}

double Timing::RunCandidate(const Sets& sets) {
  candidate_.Prepare(sets);
  if (HasRival()) WaitForIdle();
  candidate_.MakeReady(sets);
  candidate_window_.begin = Clock::now();
  const double seconds = candidate_.Run(sets);
  candidate_window_.end = Clock::now();
  late_ = candidate_.Collect(sets);
  return seconds;
}

double Timing::RunUntimed() {
  const Sets sets = Pick(calls_);
  values_.Refill(sets);
  candidate_.Prepare(sets);
  return candidate_.Run(sets);
}

void Timing::RunElsewhere() {
  const OtherDraw drawn = std::move(elsewhere_.back());
  elsewhere_.pop_back();
  been_elsewhere_ = true;
  const Sets sets = Pick(calls_);
  const std::size_t set = sets[random_.Below(sets.size())];
  values_.Refill(sets);
  for (std::size_t i = 0; i < drawn.leaves.size(); ++i) {
    const Leaf& leaf = values_.leaves(set)[i];
    if (!leaf.scalar) leaf.tensor.copy_(drawn.leaves[i].tensor);
  }
  RunCandidate(sets);
  check_.VerifyAgain(candidate_.conversation(), &candidate_.arena(), &candidate_.arena().at(set), candidate_.reply(),
                     drawn);
}

// What is no timed run, at a moment that nobody can know.
void Timing::Between(const std::function<void()>& work) {
  const auto began = Clock::now();
  const double drawing = values_.drawing();
  work();
  // What was drawn there is taken off already.
  begin_ += std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::max(0.0, Since(began) - (values_.drawing() - drawing))));
}

void Timing::MeasureAsking(int count) {
  for (int i = 0; i < count; ++i) Keep(&empty_, candidate_.AskForNothing());
  for (Series& entry : series_) {
    if (!entry.unavailable.empty()) continue;
    Guarded(&entry, [&] {
      for (int i = 0; i < count; ++i) {
        Keep(&entry.other_empty, entry.rival != nullptr ? entry.rival->AskForNothing() : entry.reference->Run({}));
      }
    });
  }
}

// -------------------------------------------------------------------------------------------------------- the measure
void Timing::WarmUp(Series* series) {
  // Code and data paged in, threads started, clocks up. The compiled reference compiles here.
  try {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
      series->side().Prepare({0});
      const double empty = series->side().Run({});
      least = std::min(least, series->side().Run({0}) - empty);
      series->side().Collect({0});
    }
    const double call = std::max(least, 1e-7);
    series->calls = std::clamp<std::size_t>(static_cast<std::size_t>(std::llround(span_ / call)), 1, Most());
    if (series->reference != nullptr) LearnFirst(series);
  } catch (const ProblemError&) {
    throw;
  } catch (const std::exception& error) {
    if (series->reference == nullptr || series->reference->mode() == Mode::kEager) throw;
    series->unavailable = Bounded(std::string("torch.compile failed: ") + error.what(), 500);
  }
}

// What a run of the reference costs beyond its calls: nobody cheats here, so its own runs of two lengths say it.
void Timing::LearnFirst(Series* series) {
  constexpr int kTimes = 9;
  const std::size_t few = series->calls / 8;
  if (few == 0) return;  // beside so long a call it does not count
  Sets twice(2 * few);
  std::iota(twice.begin(), twice.end(), 0);
  const Sets once(twice.begin(), twice.begin() + static_cast<std::ptrdiff_t>(few));
  values_.Refill(twice);
  std::vector<double> empty, one, two;
  for (int i = 0; i < kTimes; ++i) {
    empty.push_back(series->side().Run({}));
    one.push_back(TimeOther(series, once));
    two.push_back(TimeOther(series, twice));
  }
  const double first = 2 * Median(one) - Median(two) - Median(empty);
  series->first_error = std::hypot(2 * MedianError(one), MedianError(two), MedianError(empty));
  if (first > 2 * series->first_error) series->first = first;
}

// Calls of a run that is long enough, by growing ones.
double Timing::ProbeCandidate() {
  MeasureAsking(5);
  for (std::size_t count = 1;;) {
    const Sets sets = Pick(count);
    values_.Refill(sets);
    TimeCandidate(sets);
    values_.Refill(sets);  // what it has seen a moment ago says nothing of its speed
    const double run = TimeCandidate(sets), seconds = std::max(run - candidate_.Asking(Median(empty_), 0, run), 1e-7);
    if (count == Most() || seconds >= span_ / 4) return seconds / static_cast<double>(count);
    count = std::min(count * 8, Most());
  }
}

void Timing::Run() {
  begin_ = Clock::now();
  {
    std::vector<double> quiet;
    for (int i = 0; i < 9; ++i) {
      const auto begin = Clock::now();
      ops_.EmptyRun();
      quiet.push_back(Since(begin));
    }
    quiet_ = Median(quiet);
  }
  if (ops_.cuda()) watch_ = std::make_unique<GpuWatch>(ops_.Info().value("uuid", ""), kWatchPeriod);
  candidate_.conversation().HoldBetweenRuns(true);
  for (Series& entry : series_) {
    if (entry.rival != nullptr) entry.rival->conversation().HoldBetweenRuns(true);
  }
  // Not between the runs of two candidates, whose difference may be small.
  for (const auto begin = Clock::now();
       !HasRival() && (elsewhere_.size() < check_.LeastAgain() || Since(begin) < kElsewhere);) {
    std::optional<OtherDraw> drawn = check_.DrawAgain(&candidate_.arena().at(0));
    if (!drawn) break;
    elsewhere_.push_back(*std::move(drawn));
  }
  values_.Refill({0});
  // The first runs are of few calls: a run of nothing is to be asked for in as few words.
  candidate_.AskLike(1);
  for (Series& entry : series_) {
    if (entry.rival != nullptr) entry.rival->AskLike(1);
  }
  for (Series& entry : series_) {
    if (entry.unavailable.empty()) Guarded(&entry, [&] { WarmUp(&entry); });
  }
  const double call = ProbeCandidate();
  calls_ = std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(span_ / call)), 1, Most());
  for (Series& entry : series_) entry.calls = std::min(entry.calls, Most());  // drawing was not known to be long
  candidate_.AskLike(calls_);
  empty_.clear();
  for (Series& entry : series_) {
    if (entry.rival == nullptr) continue;
    entry.rival->AskLike(entry.calls);
    entry.other_empty.clear();
  }
  MeasureAsking(10);
  begin_ = Clock::now();
  drawn_ = values_.drawing();
  verify_spent_ = 0;
  // Before there can be enough of them.
  first_elsewhere_ =
      1 + static_cast<int>(random_.Below(static_cast<std::uint64_t>(std::max(settings_.min_samples, 1))));
  const double longest = kLongest * settings_.max_time;
  while (pairs_ < settings_.max_samples) {
    const double spent = Since(begin_) - values_.drawing() + drawn_;
    // On a busy machine asking may take longer than a run: such a pair says nothing, and another one is made.
    const bool enough = static_cast<int>(series_[0].other.size()) >= settings_.min_samples &&
                        static_cast<int>(CallTimes(series_[0], Asking()).other.size()) >= settings_.min_samples;
    // What is left of run_wall_seconds is for what comes after; the judge's own work has taken of it, too.
    if (candidate_.conversation().Left() < kLeft * settings_.run_wall) break;
    if (spent >= longest || (enough && spent >= settings_.max_time)) break;
    if (enough && spent >= settings_.min_time && Settled()) break;
    progress_("time", std::to_string(pairs_) + " pairs");
    for (Series& entry : series_) {
      if (entry.unavailable.empty()) Pair(&entry);
    }
    ++pairs_;
    if (pairs_ % kShortEvery == 0) ShortRun();
    MeasureAsking(1);
    if (between_ && random_.Below(kBetween) == 0) Between(between_);
    if (!elsewhere_.empty() && (been_elsewhere_ ? random_.Below(kBetween) == 0 : pairs_ >= first_elsewhere_)) {
      Between([this] { RunElsewhere(); });
    }
    if (Longer()) continue;
    if (reruns_ < kMaxReruns && health_.MostRefused()) {
      // Once more, when it may have cooled down.
      ++reruns_;
      std::this_thread::sleep_for(kCoolDown);
      BeginAnew();
      begin_ = Clock::now();
      drawn_ = values_.drawing();
      verify_spent_ = 0;
    }
  }
  while (!elsewhere_.empty()) Between([this] { RunElsewhere(); });
  while (shorts_.size() < kShorts && calls_ > 1 && Since(begin_) - values_.drawing() + drawn_ < 1.5 * longest)
    ShortRun();
  const double asking = Asking();
  CheckClaims(asking);
  CheckAsking(asking);
  Report(asking);
  for (Series& entry : series_) {
    if (entry.rival != nullptr) entry.rival->conversation().HoldBetweenRuns(false);
  }
}

// A candidate that was slow while it was probed would get short runs, beside which asking is long. True when everything
// begins anew.
bool Timing::Longer() {
  if (runs_.empty() || calls_ >= Most()) return false;
  if (Median(runs_) - candidate_.Asking(Median(empty_), 0, Median(runs_)) >= span_ / 2) return false;
  calls_ = std::min(2 * calls_, Most());
  candidate_.AskLike(calls_);
  BeginAnew();
  return true;
}

void Timing::BeginAnew() {
  pairs_ = 0;
  runs_.clear();
  runs_late_.clear();
  claims_.clear();
  shorts_.clear();
  shorts_late_.clear();
  health_.BeginAnew();
  for (Series& entry : series_) {
    entry.other.clear();
    entry.candidate.clear();
    entry.other_late.clear();
    entry.late.clear();
    entry.waited.clear();
  }
}

// Whether the GPU was itself during the last pair.
bool Timing::Healthy() {
  if (watch_ == nullptr) return true;
  const std::string refusal = health_.Refuse(watch_->Take(), other_window_, candidate_window_);
  if (!refusal.empty()) ++discards_[refusal];
  return refusal.empty();
}

// Both sides on the same new values, one after the other, in random order.
void Timing::Pair(Series* series) {
  const Sets sets = Pick(std::max(calls_, series->calls));
  values_.Refill(sets);
  ops_.Synchronize();
  const Sets mine(sets.begin(), sets.begin() + static_cast<std::ptrdiff_t>(calls_));
  const Sets others(sets.begin(), sets.begin() + static_cast<std::ptrdiff_t>(series->calls));
  double candidate = 0, other = 0;
  const auto time_other = [&] { return Guarded(series, [&] { other = TimeOther(series, others); }); };
  bool whole = true;
  if (random_.Below(2) == 0) {
    whole = time_other();
    candidate = TimeCandidate(mine);
  } else {
    candidate = TimeCandidate(mine);
    whole = time_other();
  }
  if (!Healthy()) return VerifyRun(series, mine);
  runs_.push_back(candidate);
  runs_late_.push_back(late_);
  const Reply& reply = candidate_.reply();
  claims_.push_back(std::accumulate(reply.claims.begin(), reply.claims.end(), 0.0));
  VerifyRun(whole ? series : nullptr, mine);
  if (!whole || !series->unavailable.empty()) return;
  series->other.push_back(other);
  series->candidate.push_back(candidate);
  series->other_late.push_back(other_late_);
  series->late.push_back(late_);
  series->waited.push_back(waited_);
}

// The candidate alone, half as many calls: with the runs proper this gives a slope, into which asking does not enter.
void Timing::ShortRun() {
  if (calls_ < 2) return;
  const Sets sets = Pick(calls_ / 2);
  values_.Refill(sets);
  ops_.Synchronize();
  shorts_.push_back(TimeCandidate(sets));
  shorts_late_.push_back(late_);
  VerifyRun(nullptr, sets);
}

// All outputs of a run while that costs no more than kVerifyShare, else those that the reference has computed anyway,
// else one; which ones, nobody can know. `series`: whose reference ran on these values, too.
void Timing::VerifyRun(Series* series, const Sets& timed) {
  const auto begin = Clock::now();
  ReferenceSide* reference = series != nullptr ? series->reference.get() : nullptr;
  if (reference != nullptr && reference->mode() != Mode::kEager) reference = nullptr;
  // Each side's own, which may choose otherwise among equal keys.
  const auto expected_by = [&](Check& check) {
    return [reference, &check, this](std::size_t set) {
      if (reference != nullptr && !check.chooses_otherwise()) {
        std::vector<at::Tensor> outputs = reference->Outputs(set);
        if (!outputs.empty()) return outputs;
      }
      return check.Compute(values_.leaves(set), false).plain;
    };
  };
  const double room = kVerifyShare * Since(begin_) - verify_spent_;
  Sets order = timed;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) std::swap(order[i], order[i + random_.Below(order.size() - i)]);
  Sets chosen;
  double cost = 0;
  for (std::size_t set : order) {
    const bool known = reference != nullptr && series->calls >= timed.size() && !check_.chooses_otherwise();
    cost += verify_each_ + (known ? 0 : problem_.reference_seconds);
    if (!chosen.empty() && (room < 0 || cost > std::max(room, 0.0))) break;
    chosen.push_back(set);
  }
  if (room < 0 && chosen.size() > 1) chosen.erase(chosen.begin() + 1, chosen.end());
  outputs_.Verify(&candidate_, chosen, expected_by(check_));
  outputs_verified_ += static_cast<int>(chosen.size());
  // A rival's outputs of these values are looked at in the same way.
  if (series != nullptr && series->rival != nullptr) {
    const std::set<std::size_t> its(timed.begin(),
                                    timed.begin() + static_cast<std::ptrdiff_t>(std::min(series->calls, timed.size())));
    Sets both;
    for (std::size_t set : chosen) {
      if (its.count(set) != 0) both.push_back(set);
    }
    Guarded(series, [&] {
      Outputs(problem_, *series->rival_check, values_, ops_.cuda())
          .Verify(series->rival, both, expected_by(*series->rival_check));
    });
  }
  const double spent = Since(begin);
  verify_spent_ += spent;
  verify_each_ = std::max(spent - outputs_.whole_seconds(), 0.0) / static_cast<double>(chosen.size());
}

// Stops early only when every interval is tight. By their width alone: who stops as soon as a difference shows finds
// differences where there are none.
bool Timing::Settled() const {
  for (const Series& series : series_) {
    if (!series.unavailable.empty()) continue;
    if (2 * series.other.size() < 3 * static_cast<std::size_t>(settings_.min_samples)) return false;
    const RatioEstimate ratio = EstimateRatio(series.other, series.candidate, kBlock, 1);
    if (ratio.high - ratio.low > settings_.settle_width * ratio.speedup) return false;
  }
  return true;
}

// False when a rival's side failed: its verdict is its own.
template <typename Work>
bool Timing::Guarded(Series* series, const Work& work) {
  if (series->rival == nullptr) {
    work();
    return true;
  }
  try {
    work();
    return true;
  } catch (const Verdict& verdict) {
    series->unavailable = Bounded("the rival failed: " + verdict.reason, 500);
    if (series->on_failure) series->on_failure(verdict);
    return false;
  }
}

// ----------------------------------------------------------------------------------------------------------- who lies?
void Timing::Cheated(const std::string& evidence, double claimed, double seconds) {
  timing_ = {{"claimed_median_seconds", claimed}, {"slope_seconds", seconds}, {"slope_k", calls_}};
  throw Verdict{"VERDICT_CHEATED",
                "the time that the candidate claims contradicts the judge's clock",
                {{"stage", "time"}, {"evidence", evidence}}};
}

void Timing::Unsure(const std::string& evidence, const std::vector<double>& waits) {
  throw Verdict{"VERDICT_UNMEASURABLE", evidence + "; " + Busy(waits), {}};
}

// One more run of the candidate, and what the judge's own thread waits when it is asked in the same way, which takes as
// long to answer.
void Timing::TimeWithWait(const Sets& sets, std::vector<double>* waits) {
  if (echo_ == nullptr) echo_ = std::make_unique<Echo>();
  values_.Refill(sets);
  TimeCandidate(sets);
  const Reply& reply = candidate_.reply();
  const double claimed = std::accumulate(reply.claims.begin(), reply.claims.end(), 0.0);
  const int processor = candidate_.processor();
  if (waits->empty()) echo_->Wait(0, processor);  // goes there
  ops_.Rest(processor);
  waits->push_back(echo_->Wait(std::min({claimed, reply.wall, kMostEcho}), processor));
}

// No figure rests on a claim, so a lie gains nothing; it is named all the same: in the timed runs, or in single calls,
// which a liar may treat differently. These say, too, what a call takes by itself: all inputs of a run lie before the
// candidate at once, and on a GPU that one call does not fill the first could do the work of many.
// A machine that has more work than processors keeps honest candidates waiting where no claim shows it: nobody is
// accused but by runs beside which the judge has asked a thread of its own in the same way.
void Timing::CheckClaims(double asking) {
  // Too few to measure by are too few to accuse by: one preempted run would decide.
  if (runs_.size() < static_cast<std::size_t>(settings_.least_accused)) return;
  const double calls = static_cast<double>(calls_);
  std::vector<double> spans, hidden;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    spans.push_back((runs_[i] - asking) / calls);
    hidden.push_back((runs_[i] - asking - claims_[i]) / calls);
  }
  // A busy machine may keep a candidate waiting in most of the runs, so that the quietest say whether it lies.
  const double claimed = Median(claims_) / calls, span = Quantile(spans, 0.1), missing = Quantile(hidden, 0.1);
  const double slack = 2 * asking + 200e-6;
  const double each = (Median(runs_) + Median(runs_late_) - asking) / calls;
  const double most_alone = kMoreAlone * each + kDearerAlone * asking + kDearerAloneOnce;
  char text[300];
  if (span > 0 && missing > 0.25 * span + slack / calls) {
    std::snprintf(text, sizeof text,
                  "in runs of %zu calls the judge's clock grew by %.4g s a call, the claims by %.4g s", calls_, span,
                  claimed);
    std::vector<double> least, waits;
    for (int i = 0; i < 9 && (i < 5 || i * span * calls < settings_.max_time); ++i) {
      TimeWithWait(Pick(calls_), &waits);
      const Reply& reply = candidate_.reply();
      least.push_back(reply.wall - asking - std::accumulate(reply.claims.begin(), reply.claims.end(), 0.0));
    }
    // Where it has gone by now, it was the machine's.
    if (Judge(Quantile(least, 0.1), 0.25 * span * calls + slack, waits) != Contradiction::kPlain) Unsure(text, waits);
    Cheated(text, claimed, span);
  }
  bool honest = false, unsure = false;
  std::vector<double> waits;
  for (int attempt = 0; attempt < (unsure ? kAttemptsUnsure : kAttempts); ++attempt) {
    std::vector<double> singles, walls;
    waits.clear();
    for (int i = 0; i < 9 && (i < 3 || (i * span < settings_.max_time && values_.drawing() == 0)); ++i) {
      TimeWithWait(Pick(1), &waits);
      walls.push_back(candidate_.reply().wall - asking);
      singles.push_back(candidate_.reply().claims[0]);
    }
    const double wall = *std::min_element(walls.begin(), walls.end()), single = Quantile(singles, 0.1);
    // What such a run costs once, or does once for all of its calls, is in each call of whoever makes one.
    const bool apart = ops_.cuda() && calls_ >= kFewCalls && wall > most_alone;
    apart_ = apart && (attempt == 0 || apart_ > 0) ? Median(walls) - each : 0;
    const Contradiction contradiction = Judge(wall - single, 0.25 * wall + slack, waits);
    const bool clear = contradiction == Contradiction::kNone;
    honest = honest || clear;
    unsure = unsure || contradiction == Contradiction::kUnsure;
    if (clear && !apart) return;
    if (clear) continue;
    std::snprintf(
        text, sizeof text,
        "single calls claim %.4g s and take %.4g s on the judge's clock beyond the %.4g s of an empty request", single,
        wall, asking);
  }
  if (honest) return;
  if (unsure) Unsure(text, waits);
  Cheated(text, claimed, span);
}

// Who answers late when it is asked to run nothing wants more to be taken off its runs. That is bounded already; where
// it is plain, it is named: by what the same cost before its code was loaded, and by its own runs of two lengths.
void Timing::CheckAsking(double asking) {
  const auto [implied, error] = ImpliedAsking();
  if (!std::isfinite(error)) return;
  const double longer = static_cast<double>(calls_);
  const double run = Median(runs_), least = std::max(0.05 * run, 200e-6);
  // What an empty run has too much. Not above zero: nothing.
  const auto beyond = [&](const std::vector<double>& runs) {
    const double empty = Quantile(runs, 0.25);
    return std::min(
        {empty - 2 * candidate_.empty_before(), empty - asking - least, empty - implied - least - 4 * error});
  };
  if (beyond(empty_) <= 0) return;
  const double empty = Quantile(empty_, 0.25);
  char text[400];
  std::snprintf(
      text, sizeof text,
      "asked to run nothing it took %.4g s, and %.4g s before its program was loaded; its runs of %zu and %zu "
      "calls (%.4g s and %.4g s) say that asking costs %.4g s",
      empty, candidate_.empty_before(), calls_, calls_ / 2, run, Median(shorts_), implied);
  // Once more, beside a thread of the judge's own.
  std::vector<double> again, waits;
  for (int i = 0; i < 9; ++i) {
    TimeWithWait({}, &waits);
    again.push_back(candidate_.reply().wall);
  }
  if (Judge(beyond(again), 0, waits) != Contradiction::kPlain) Unsure(text, waits);
  Cheated(text, Median(claims_) / longer, (run - asking) / longer);
}

Timing::Implied Timing::ImpliedAsking() const {
  if (shorts_.size() < kShorts || runs_.size() < static_cast<std::size_t>(settings_.least_accused)) return {};
  const double longer = static_cast<double>(calls_), shorter = static_cast<double>(calls_ / 2);
  const double share = longer / (longer - shorter);
  // With what came too late: who makes only the longer ones late would seem dearer to ask.
  return {share * (Median(shorts_) + Median(shorts_late_)) - (share - 1) * (Median(runs_) + Median(runs_late_)),
          std::hypot(share * MedianError(shorts_), (share - 1) * MedianError(runs_))};
}

// A process that wakes between long runs finds its caches colder than in practice: on a GPU some 80 us of each run,
// which its own runs of two lengths show. Only against the reference: a rival has no runs of two lengths, and where
// both sides are candidates it is the same on both.
std::optional<Timing::Implied> Timing::DearerThan(double plain) const {
  if (!ops_.cuda() || HasRival()) return std::nullopt;
  const Implied implied = ImpliedAsking();
  const double beyond = 2 * std::hypot(implied.error, candidate_.AskingError(empty_));
  return implied.seconds > plain + beyond ? std::optional(implied) : std::nullopt;
}

bool Timing::HasRival() const {
  return std::any_of(series_.begin(), series_.end(), [](const Series& entry) { return entry.rival != nullptr; });
}

double Timing::Asking() const {
  const double run = runs_.empty() ? 0 : Median(runs_), empty = Median(empty_);
  const double plain = candidate_.Asking(empty, 0, run);
  const auto implied = DearerThan(plain);
  return implied ? candidate_.Asking(empty, implied->seconds, run) : plain;
}

Timing::Times Timing::CallTimes(const Series& series, double asking) const {
  const double empty = EmptyOf(series);
  // By the middle of all runs: who is late in more than half of them has it in every one, and a wait for the
  // processor in a few is nobody's.
  const double late = series.late.empty() ? 0 : Median(series.late);
  const double other_late = series.other_late.empty() ? 0 : Median(series.other_late);
  Times times;
  for (std::size_t i = 0; i < series.other.size(); ++i) {
    const double rival_at_least = series.rival != nullptr ? series.other[i] + other_late : 0;
    const double theirs =
        LeftOfRun(series.other[i] + other_late - empty, rival_at_least) / static_cast<double>(series.calls);
    const double whole = series.candidate[i] + late;
    const double mine = LeftOfRun(whole - asking, whole) / static_cast<double>(calls_) + apart_;
    if (!(theirs > 0) || !(mine > 0)) {
      ++times.unresolved;
      continue;
    }
    times.other.push_back(theirs);
    times.candidate.push_back(mine);
  }
  return times;
}

// What is taken off the runs of the other side.
double Timing::EmptyOf(const Series& series) const {
  const double its = Median(series.other_empty);
  if (series.rival == nullptr) return its + series.first;
  return series.rival->Asking(its, 0, series.other.empty() ? 0 : Median(series.other));
}

// The standard error of what was taken off for asking, as a share of what is left of the runs, of both sides: all pairs
// lean the same way by it, so that they do not show it.
double Timing::AskingShare(const Series& series, double asking, double empty) const {
  const auto share = [](double error, const std::vector<double>& runs, double off) {
    const double left = runs.empty() ? 0 : Median(runs) - off;
    return left > 0 ? std::min(error / left, 1.0) : 0.0;
  };
  const double other = series.rival != nullptr ? series.rival->AskingError(series.other_empty)
                                               : std::hypot(MedianError(series.other_empty), series.first_error);
  const auto implied = DearerThan(candidate_.Asking(Median(empty_), 0, runs_.empty() ? 0 : Median(runs_)));
  const double mine = std::max(candidate_.AskingError(empty_), implied ? implied->error : 0.0);
  return std::hypot(share(mine, series.candidate, asking), share(other, series.other, empty));
}

void Timing::Report(double asking) {
  const double sampling = Since(begin_), calls = static_cast<double>(calls_);
  json baselines = json::array();
  double busy = 0;
  for (Series& entry : series_) {
    json item{{"baseline", entry.baseline}};
    if (!entry.unavailable.empty()) {
      item["unavailable"] = entry.unavailable;
      baselines.push_back(item);
      continue;
    }
    const Times times = CallTimes(entry, asking);
    const std::vector<double>&other = times.other, &candidate = times.candidate;
    if (times.unresolved > 0) discards_["shorter than the judge's clock resolves"] += times.unresolved;
    if (static_cast<int>(other.size()) < std::min(settings_.min_samples, settings_.max_samples) &&
        (&entry == &series_[0] || other.empty())) {
      int discarded = 0;
      for (const auto& [reason, count] : discards_) discarded += count;
      throw Verdict{"VERDICT_UNMEASURABLE",
                    "only " + std::to_string(other.size()) + " valid pairs of samples, and " +
                        std::to_string(settings_.min_samples) + " are needed (" + std::to_string(discarded) +
                        " discarded" + (discards_.empty() ? "" : ": " + discards_.begin()->first) +
                        "); allow more time or fewer samples",
                    {}};
    }
    const RatioEstimate ratio = EstimateRatio(other, candidate, kBlock, kBootstrapSeed);
    item["reference_median_seconds"] = Median(other);
    item["candidate_median_seconds"] = Median(candidate);
    item["speedup"] = ratio.speedup;
    // What other programs took from one side, or from both, the pairs cannot show: they lean all in one way.
    const double waited = entry.waited.empty() ? 0 : Median(entry.waited);
    const double unsure =
        (waited > kQuiet ? 1 + waited : 1) * std::exp(kNormal95 * AskingShare(entry, asking, EmptyOf(entry)));
    if (waited > kQuiet) busy = std::max(busy, waited);
    item["speedup_low"] = ratio.low / unsure;
    item["speedup_high"] = ratio.high * unsure;
    item["samples"] = other.size();
    if (settings_.keep_samples) {
      item["reference_seconds"] = other;
      item["candidate_seconds"] = candidate;
    }
    baselines.push_back(item);
  }
  int discarded = 0;
  json discards = json::array();
  for (const auto& [reason, count] : discards_) {
    discarded += count;
    discards.push_back({{"reason", reason}, {"count", count}});
  }
  const bool warm = settings_.Warm();
  std::string method = "duet, runs of " + std::to_string(calls_) + (calls_ == 1 ? " call" : " calls") +
                       " on the judge's clock, " + (warm ? "warm" : "cold") + (ops_.cuda() ? " L2" : " cache") +
                       (candidate_.conversation().can_hold() ? ", the candidate held between them" : "") +
                       (values_.repeated() ? ", on values some of which came more than once" : "");
  if (apart_ > 0) {
    char text[160];
    std::snprintf(text, sizeof text, ", a call by itself taking %.3g s more than one of them, which counts for each",
                  apart_);
    method += text;
  }
  if (busy > 0) {
    char text[120];
    std::snprintf(text, sizeof text, ", the machine busy: the reference was without a processor %.0f %% of its time",
                  100 * busy);
    method += text;
  }
  double slope = (Median(runs_) + Median(runs_late_) - asking) / calls;
  if (calls_ > 1 && !shorts_.empty()) {
    slope = (Median(runs_) + Median(runs_late_) - Median(shorts_) - Median(shorts_late_)) /
            static_cast<double>(calls_ - calls_ / 2);
  }
  timing_ = {{"baselines", baselines},
             {"discarded", discarded},
             {"discards", discards},
             {"method", method},
             {"slope_seconds", slope},
             {"slope_k", calls_},
             {"claimed_median_seconds", claims_.empty() ? 0.0 : Median(claims_) / calls},
             {"flush_bytes", ops_.flush_bytes()},
             {"buffer_sets", slots_},
             {"sampling_seconds", sampling},
             {"outputs_verified", outputs_verified_},
             {"outputs_timed", outputs_timed_},
             {"calls_per_sample", calls_},
             {"reruns", reruns_},
             {"cache", warm ? "CACHE_POLICY_WARM" : "CACHE_POLICY_COLD"}};
  if (watch_ != nullptr) timing_["device_state"] = health_.State(watch_->Unavailable());
}

}  // namespace grove::judge
