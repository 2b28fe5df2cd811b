#include "worker/judge/timing.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "worker/judge/claims.h"
#include "worker/judge/clock.h"
#include "worker/judge/run_size.h"
#include "worker/judge/single_calls.h"
#include "worker/judge/statistics.h"
#include "worker/judge/steps.h"
#include "worker/judge/turns.h"

namespace grove::judge {
namespace {

using nlohmann::json;

constexpr std::size_t kRecent = 31;
constexpr int kShortEvery = 3;      // pairs to one shorter run
constexpr int kBetween = 2;         // pairs to one moment between them, on average
constexpr double kElsewhere = 0.2;  // seconds for draws of other distributions at best, beyond the least
constexpr std::chrono::milliseconds kWatchPeriod{5};
constexpr double kLongest = 20;  // times max_time, for min_samples
constexpr double kLeft = 0.2;    // of run_wall, when sampling ends whatever it has
// Calls by themselves, and seconds for all of them: of what each takes besides, most is the work that covers it.
constexpr double kAloneLeast = 3, kAloneCalls = 48, kAloneMost = 50e-3, kAloneEach = 200e-6;
constexpr double kAloneDrawing = 0.1;  // seconds of drawing for them
constexpr std::chrono::milliseconds kCoolDown{500};
constexpr std::size_t kMostStates = 10000;  // of one series: a message has room for 16 MiB

void Keep(std::vector<double>* values, double value) {
  values->push_back(value);
  if (values->size() > kRecent) values->erase(values->begin());
}

}  // namespace

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
      span_(RunSpan(ops, settings)),
      has_rival_(!rivals.empty()),
      check_(check),
      random_(random),
      timed_(ops, candidate, random, slots, has_rival_),
      reckoning_(candidate, runs_, /*runs_tell=*/ops.cuda() && !has_rival_, settings.least_accused),
      sampled_(problem, check, values, candidate, random, ops.cuda()) {
  for (const std::string& name : settings_.baselines) {
    if (name == "BASELINE_RIVAL") continue;
    Series entry;
    entry.baseline = name;
    const Mode mode = name == "BASELINE_COMPILE" ? Mode::kCompile : Mode::kEager;
    if (mode == Mode::kCompile && !problem.reference->CanCompile()) {
      entry.unavailable = "torch.compile needs a Python problem and a torch from 2.0";
    }
    entry.reference = std::make_unique<ReferenceSide>(problem, ops, values, mode, settings_.Warm());
    if (candidate.reads()) entry.reference->ForgetWithin();
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

double Timing::LateShare() const {
  return runs_.runs.empty() ? 0
                            : Median(runs_.runs_late) / std::max(Median(runs_.runs) + Median(runs_.runs_late), 1e-9);
}

double Timing::RunUntimed() {
  const Sets sets = timed_.Pick(runs_.calls);
  values_.Refill(sets);
  candidate_.Prepare(sets);
  return candidate_.Run(sets);
}

// False where there is none left.
bool Timing::DrawElsewhere() {
  std::optional<OtherDraw> drawn = check_.DrawAgain(candidate_.arena().at(0));
  if (drawn) elsewhere_.push_back(*std::move(drawn));
  return drawn.has_value();
}

void Timing::RunElsewhere() {
  OtherDraw drawn = std::move(elsewhere_.back());
  elsewhere_.pop_back();
  been_elsewhere_ = true;
  const bool later = check_.ExpectsLater();
  std::size_t most = runs_.calls, least = runs_.calls;
  for (const Series& entry : series_) {
    if (entry.rival == nullptr && !later) continue;
    most = std::max(most, entry.calls);
    if (entry.rival != nullptr) least = std::min(least, entry.calls);
  }
  const Sets sets = timed_.Pick(most);
  const auto some = [&sets](std::size_t count) {
    return Sets(sets.begin(), sets.begin() + static_cast<std::ptrdiff_t>(count));
  };
  const std::size_t set = sets[random_.Below(least)];
  values_.Refill(sets);
  for (std::size_t i = 0; i < drawn.leaves.size(); ++i) {
    const Leaf& leaf = values_.leaves(set)[i];
    if (!leaf.scalar) leaf.tensor.copy_(drawn.leaves[i].tensor);
  }
  drawn.leaves = values_.leaves(set);
  if (later) {  // what the references returned last is in the way
    for (Series& entry : series_) {
      if (entry.reference != nullptr) entry.reference->Forget();
    }
  }
  candidate_.Keep({set});
  timed_.CandidateUncounted(some(runs_.calls));
  const bool of_use = check_.VerifyAgain(candidate_.conversation(), &candidate_.arena(), &candidate_.arena().at(set),
                                         candidate_.reply(), drawn);
  for (Series& entry : series_) {
    if (entry.rival == nullptr || !entry.unavailable.empty()) continue;
    entry.Guarded([&] {
      CandidateSide& rival = *entry.rival;
      rival.Keep({set});
      timed_.Other(rival, /*rival=*/true, some(entry.calls));
      entry.rival_check->VerifyAgain(rival.conversation(), &rival.arena(), &rival.arena().at(set), rival.reply(),
                                     drawn);
    });
  }
  if (!later) return;
  if (!of_use) ++elsewhere_later_;
  if (elsewhere_later_ > 0) elsewhere_later_ = DrawElsewhere() ? elsewhere_later_ - 1 : 0;
  // Torch has given back what it had cached: no timed run is to begin by asking for it.
  for (Series& entry : series_) {
    if (entry.reference == nullptr || !entry.unavailable.empty()) continue;
    entry.Guarded([&] { timed_.Other(entry.side(), /*rival=*/false, some(entry.calls)); });
  }
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
  for (int i = 0; i < count; ++i) Keep(&runs_.empty, candidate_.AskForNothing());
  for (Series& entry : series_) {
    if (!entry.unavailable.empty()) continue;
    entry.Guarded([&] {
      for (int i = 0; i < count; ++i) {
        std::optional<CommonProcessor::There> there;
        if (common_ && entry.rival == nullptr) there.emplace(*common_);
        Keep(&entry.other_empty, entry.rival != nullptr ? entry.rival->AskForNothing() : entry.reference->Run({}));
      }
    });
  }
}

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
    series->calls = std::clamp<std::size_t>(static_cast<std::size_t>(std::llround(span_ / call)), 1, slots_);
    if (series->reference != nullptr) LearnFirst(series);
  } catch (const ProblemError&) {
    throw;
  } catch (const std::exception& error) {
    if (series->reference == nullptr || series->reference->mode() == Mode::kEager) throw;
    series->unavailable = Bounded(std::string("torch.compile failed: ") + error.what(), 500);
  }
}

// Where the host sets the pace, which processor a side stands on decides: it is the same one for both. Scripts and the
// reference have such a pace; two native candidates have not.
void Timing::ShareProcessor() {
  const bool scripts = candidate_.python() || std::any_of(series_.begin(), series_.end(), [](const Series& series) {
                         return series.reference != nullptr || series.rival->python();
                       });
  if (!ops_.cuda() || !scripts || !candidate_.conversation().can_hold() ||
      HostShare(*problem_.reference, ops_, values_.leaves(0), problem_.reference_seconds) < kHostPaced) {
    return;
  }
  common_.emplace(random_);
  if (!common_->possible()) return common_.reset();
  timed_.StandOn(&*common_);
}

// All sides on the processor that was drawn; where one cannot be put there, none is from now on.
void Timing::PlaceSides() {
  bool placed = candidate_.conversation().StandOn(common_->now());
  for (Series& entry : series_) {
    if (entry.rival == nullptr || !entry.unavailable.empty()) continue;
    entry.Guarded([&] { placed = entry.rival->conversation().StandOn(common_->now()) && placed; });
  }
  if (!placed) Unplace();
}

void Timing::Unplace() {
  timed_.StandOn(nullptr);
  common_.reset();
  candidate_.conversation().StandOn(kAnyProcessor);
  for (Series& entry : series_) {
    if (entry.rival == nullptr || !entry.unavailable.empty()) continue;
    entry.Guarded([&] { entry.rival->conversation().StandOn(kAnyProcessor); });
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
    one.push_back(timed_.Other(series->side(), /*rival=*/false, once).seconds);
    two.push_back(timed_.Other(series->side(), /*rival=*/false, twice).seconds);
  }
  const double first = 2 * Median(one) - Median(two) - Median(empty);
  series->first_error = std::hypot(2 * MedianError(one), MedianError(two), MedianError(empty));
  if (first > 2 * series->first_error) series->first = first;
}

// Calls of a run that is long enough, by growing ones.
double Timing::ProbeCandidate() {
  MeasureAsking(5);
  for (std::size_t count = 1;;) {
    const Sets sets = timed_.Pick(count);
    values_.Refill(sets);
    timed_.Candidate(sets);
    values_.Refill(sets);  // what it has seen a moment ago says nothing of its speed
    const double run = timed_.Candidate(sets).seconds,
                 seconds = std::max(run - candidate_.asking().Costs(Median(runs_.empty), 0, run), 1e-7);
    if (count == slots_ || seconds >= span_ / 4) return seconds / static_cast<double>(count);
    count = std::min(count * 8, slots_);
  }
}

void Timing::Run() {
  begin_ = Clock::now();
  timed_.LearnQuiet();
  if (ops_.cuda()) watch_ = std::make_unique<GpuWatch>(ops_.Info().value("uuid", ""), kWatchPeriod);
  candidate_.conversation().HoldBetweenRuns(true);
  for (Series& entry : series_) {
    if (entry.rival != nullptr) entry.rival->conversation().HoldBetweenRuns(true);
  }
  Turns turns(kElsewhere);
  while (elsewhere_.size() + elsewhere_later_ < check_.LeastAgain() || turns.Take(check_.AgainSeconds())) {
    if (check_.ExpectsLater() && !elsewhere_.empty()) {
      ++elsewhere_later_;
    } else if (!DrawElsewhere()) {
      break;
    }
  }
  progress_("time", "what runs cost");  // from here on nothing else is to begin on this machine
  values_.Refill({0});
  // The first runs are of few calls: a run of nothing is to be asked for in as few words.
  candidate_.AskLike(1);
  for (Series& entry : series_) {
    if (entry.rival != nullptr) entry.rival->AskLike(1);
  }
  for (Series& entry : series_) {
    if (entry.unavailable.empty()) entry.Guarded([&] { WarmUp(&entry); });
  }
  ShareProcessor();
  const double call = ProbeCandidate();
  runs_.calls = std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(span_ / call)), 1, slots_);
  candidate_.AskLike(runs_.calls);
  runs_.empty.clear();
  for (Series& entry : series_) {
    if (entry.rival == nullptr) continue;
    entry.rival->AskLike(entry.calls);
    entry.other_empty.clear();
  }
  MeasureAsking(10);
  begin_ = Clock::now();
  drawn_ = values_.drawing();
  sampled_.BeginAnew();
  // Before there can be enough of them.
  first_elsewhere_ =
      1 + static_cast<int>(random_.Below(static_cast<std::uint64_t>(std::max(settings_.min_samples, 1))));
  const double longest = kLongest * settings_.max_time;
  while (pairs_ < settings_.max_samples) {
    const double spent = Since(begin_) - values_.drawing() + drawn_;
    // On a busy machine asking may take longer than a run: such a pair says nothing, and another one is made.
    const bool enough =
        static_cast<int>(series_[0].other.size()) >= settings_.min_samples &&
        static_cast<int>(reckoning_.Calls(series_[0], reckoning_.Asking()).other.size()) >= settings_.min_samples;
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
    // Not between the runs of two candidates, whose difference may be small: behind them all.
    if (!has_rival_ && !elsewhere_.empty() &&
        (been_elsewhere_ ? random_.Below(kBetween) == 0 : pairs_ >= first_elsewhere_)) {
      Between([this] { RunElsewhere(); });
    }
    if (Longer()) continue;
    if (reruns_.Due(health_)) {
      // Once more, when it may have cooled down.
      std::this_thread::sleep_for(kCoolDown);
      BeginAnew();
      begin_ = Clock::now();
      drawn_ = values_.drawing();
      sampled_.BeginAnew();
    }
  }
  while (!elsewhere_.empty()) Between([this] { RunElsewhere(); });
  while (runs_.shorts.size() < kShorts && runs_.calls > 1 && Since(begin_) - values_.drawing() + drawn_ < 1.5 * longest)
    ShortRun();
  const double asking = reckoning_.Asking();
  Lies lies(ops_, settings_, candidate_, check_, values_, timed_, sampled_, runs_, reckoning_);
  if (const auto lie = lies.InAsking(asking)) Cheated(*lie);  // first: by runs of nothing the others are excused
  if (const auto lie = lies.InClaims(asking)) Cheated(*lie);
  const auto in_steps = [this](CandidateSide& side, Check& check, std::size_t calls, double each, double left) {
    return BeyondInSteps({.candidate = side,
                          .check = check,
                          .values = values_,
                          .timed = timed_,
                          .sampled = sampled_,
                          .calls = calls,
                          .each = each,
                          .reference_seconds = problem_.reference_seconds,
                          .left_by_sampling = left,
                          .cuda = ops_.cuda(),
                          .cold = !settings_.Warm()});
  };
  bool no_time_for_steps = false;
  if (!runs_.runs.empty()) {
    const double each = (Median(runs_.runs) + Median(runs_.runs_late) - asking) / static_cast<double>(runs_.calls);
    const Beyond beyond = in_steps(candidate_, check_, runs_.calls, each, kLeft * settings_.run_wall);
    runs_.apart = std::max(lies.apart(), beyond.seconds);
    no_time_for_steps = beyond.no_time;
  }
  for (Series& entry : series_) {
    if (entry.rival == nullptr || !entry.unavailable.empty() || entry.other.empty()) continue;
    entry.Guarded([&] {
      const double each = (Median(entry.other) + Median(entry.other_late) - reckoning_.EmptyOf(entry)) /
                          static_cast<double>(entry.calls);
      // (Time passes for it while the candidate is asked, too.)
      const Beyond beyond = in_steps(*entry.rival, *entry.rival_check, entry.calls, each, /*left=*/0);
      const SingleCalls single{.side = *entry.rival,
                               .check = *entry.rival_check,
                               .values = values_,
                               .timed = timed_,
                               .sampled = sampled_,
                               .each = each,
                               .most = settings_.max_time};
      const double alone = ops_.cuda() ? BeyondAlone(single, entry.calls, reckoning_.EmptyOf(entry)) : 0;
      entry.apart = std::max(alone, beyond.seconds);
      no_time_for_steps = no_time_for_steps || beyond.no_time;
    });
  }
  json report = ReportTiming({.settings = settings_,
                              .series = series_,
                              .runs = runs_,
                              .reckoning = reckoning_,
                              .asking = asking,
                              .sampling = Since(begin_),
                              .discards = discards_,
                              .cuda = ops_.cuda(),
                              .held = candidate_.conversation().can_hold(),
                              .copies_late = candidate_.python() && !candidate_.reads(),
                              .repeated = values_.repeated(),
                              .known_draws = values_.known_draws(),
                              .no_time_for_steps = no_time_for_steps,
                              .host_paced = common_.has_value(),
                              .flush_bytes = ops_.flush_bytes(),
                              .slots = slots_,
                              .outputs_verified = sampled_.verified(),
                              .outputs_timed = timed_.outputs_timed(),
                              .reruns = reruns_.count()});
  if (watch_ != nullptr) report["device_state"] = health_.State(watch_->Unavailable());
  if (common_) Unplace();
  timing_ = std::move(report);
  if (const double alone = MeasureAlone(); alone > 0) timing_["alone_seconds"] = alone;
  for (Series& entry : series_) {
    if (entry.rival != nullptr) entry.rival->conversation().HoldBetweenRuns(false);
  }
}

// What a call takes by itself, as a profiler has it: a row of calls waits for memory besides. By the candidate's
// claims, so that it decides nothing. 0: not known.
double Timing::MeasureAlone() {
  if (!ops_.cuda() || candidate_.python()) return 0;
  double call = 0;  // of the first baseline that has figures
  for (const json& item : timing_["baselines"]) {
    if (call <= 0) call = item.value("candidate_median_seconds", 0.0) - runs_.apart;
  }
  // (Of longer ones it says nothing that a row does not.)
  if (!(call > 0) || call > kAloneMost) return 0;
  const double fit = std::clamp(kAloneMost / (call + kAloneEach), kAloneLeast, kAloneCalls);
  // As in other runs that are made besides: few draws, where these take long.
  const double drawn = std::max(kAloneLeast, kAloneDrawing / std::max(problem_.draw_seconds, 1e-9));
  const std::size_t calls = std::min(static_cast<std::size_t>(std::min(fit, drawn)), slots_);
  const Sets sets = timed_.Pick(calls);
  values_.Refill(sets);
  // Nobody is to run into a limit for it, and what is measured stands whatever the machine does now. Who crashes has
  // crashed.
  if (static_cast<double>(calls) * call > candidate_.conversation().Left() / 2) return 0;
  try {
    const std::vector<double> claims = candidate_.RunAlone(sets);
    return claims.size() == sets.size() ? Alone(claims, call) : 0;
  } catch (const Verdict& verdict) {
    if (verdict.verdict == "VERDICT_TIMED_OUT" || verdict.verdict == "VERDICT_UNMEASURABLE") return 0;
    throw;
  }
}

// A candidate that was slow while it was probed would get short runs, beside which asking is long. True when everything
// begins anew.
bool Timing::Longer() {
  if (runs_.runs.empty() || runs_.calls >= slots_) return false;
  const double run = Median(runs_.runs);
  if (run - candidate_.asking().Costs(Median(runs_.empty), 0, run) >= span_ / 2) return false;
  runs_.calls = std::min(2 * runs_.calls, slots_);
  candidate_.AskLike(runs_.calls);
  BeginAnew();
  return true;
}

void Timing::BeginAnew() {
  pairs_ = 0;
  runs_.BeginAnew();
  health_.BeginAnew();
  for (Series& entry : series_) entry.BeginAnew();
}

// Whether the GPU was itself during the last pair.
bool Timing::Healthy() {
  if (watch_ == nullptr) return true;
  const std::string refusal = health_.Refuse(watch_->Take(), timed_.other_window(), timed_.candidate_window());
  if (!refusal.empty()) ++discards_[refusal];
  return refusal.empty();
}

// Both sides on the same new values, one after the other, in random order.
void Timing::Pair(Series* series) {
  if (common_ && common_->Next()) PlaceSides();
  if (!series->unavailable.empty()) return;
  const Sets sets = timed_.Pick(std::max(runs_.calls, series->calls));
  values_.Refill(sets);
  ops_.Synchronize();
  const Sets mine(sets.begin(), sets.begin() + static_cast<std::ptrdiff_t>(runs_.calls));
  const Sets others(sets.begin(), sets.begin() + static_cast<std::ptrdiff_t>(series->calls));
  sampled_.Choose(series, mine, Since(begin_));
  TimedRun candidate, other;
  const auto time_other = [&] {
    return series->Guarded([&] { other = timed_.Other(series->side(), series->rival != nullptr, others); });
  };
  bool whole = true;
  if (random_.Below(2) == 0) {
    whole = time_other();
    candidate = timed_.Candidate(mine);
  } else {
    candidate = timed_.Candidate(mine);
    whole = time_other();
  }
  if (!Healthy()) return sampled_.Verify(series);
  runs_.runs.push_back(candidate.seconds);
  runs_.runs_late.push_back(candidate.late);
  const Reply& reply = candidate_.reply();
  runs_.claims.push_back(std::accumulate(reply.claims.begin(), reply.claims.end(), 0.0));
  sampled_.Verify(whole ? series : nullptr);
  if (!whole || !series->unavailable.empty()) return;
  series->other.push_back(other.seconds);
  series->candidate.push_back(candidate.seconds);
  series->other_late.push_back(other.late);
  series->late.push_back(candidate.late);
  series->waited.push_back(other.waited);
  if (watch_ != nullptr && settings_.keep_samples && series->states.size() < kMostStates) {
    series->states.push_back(health_.LastPair());
  }
}

// The candidate alone, half as many calls: with the runs proper this gives a slope, into which asking does not enter.
void Timing::ShortRun() {
  if (runs_.calls < 2) return;
  const Sets sets = timed_.Pick(runs_.calls / 2);
  values_.Refill(sets);
  ops_.Synchronize();
  sampled_.Choose(nullptr, sets, Since(begin_));
  const TimedRun run = timed_.Candidate(sets);
  runs_.shorts.push_back(run.seconds);
  runs_.shorts_late.push_back(run.late);
  sampled_.Verify(nullptr);
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

void Timing::Cheated(const Lie& lie) {
  timing_ = {{"claimed_median_seconds", lie.claimed}, {"slope_seconds", lie.seconds}, {"slope_k", runs_.calls}};
  throw Verdict{"VERDICT_CHEATED",
                "the time that the candidate claims contradicts the judge's clock",
                {{"stage", "time"}, {"evidence", lie.evidence}}};
}

}  // namespace grove::judge
