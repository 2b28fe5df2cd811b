#include "worker/judge/timing.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxSlots = 64;               // CPU; for calls far below a run's length
constexpr std::size_t kSmallSlotBytes = 512 << 10;  // so that many slots stay below 32 MiB
constexpr double kCpuSpan = 2e-3;                   // of a timed run: a request costs about 1 % of it, known to a tenth
constexpr std::chrono::milliseconds kRest{2};
constexpr double kBatchBelow = 20e-6;    // CUDA
constexpr std::size_t kMaxBatch = 2000;  // claims of so many calls fit in a candidate's frame
constexpr std::uint64_t kBootstrapSeed = 20250528;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

std::size_t TimedSlots(const DeviceOps& ops, const LoadedProblem& problem, std::size_t bytes) {
  const bool small = !ops.cuda() && bytes <= kSmallSlotBytes && problem.reference_seconds * kMaxSlots < 0.02;
  const std::size_t wanted = bytes == 0 ? kMaxSlots : (2 * ops.cache_bytes() + bytes - 1) / bytes;
  const std::size_t room = std::max<std::size_t>(ops.free_bytes() / 4 / std::max<std::size_t>(2 * bytes, 1), 1);
  return std::min(std::clamp<std::size_t>(wanted, 2, small ? kMaxSlots : 16), room);
}

Timing::Timing(LoadedProblem& problem, DeviceOps& ops, const EvaluationSettings& settings, const Progress& progress,
               Conversation& conversation, Arena& arena, Check& check, Random& random, std::size_t slots)
    : problem_(problem),
      reference_(*problem.reference),
      ops_(ops),
      settings_(settings),
      progress_(progress),
      conversation_(conversation),
      arena_(arena),
      check_(check),
      random_(random),
      timed_slots_(slots) {}

std::string Timing::Reason() const {
  char text[200];
  const json& first = timing_["baselines"][0];
  std::snprintf(text, sizeof text, "%.3gx [%.3g, %.3g] against %s, %d samples", first["speedup"].get<double>(),
                first["speedup_low"].get<double>(), first["speedup_high"].get<double>(),
                first["baseline"] == "BASELINE_COMPILE" ? "torch.compile" : "eager", first["samples"].get<int>());
  return text;
}

std::vector<Leaf> Timing::FreshLeaves() {
  // Where drawing is cheap nothing is kept, and where memory is short nothing can be.
  const bool cheap = problem_.draw_seconds <= std::max(2 * problem_.reference_seconds, 0.002);
  if (cheap || ops_.free_bytes() / 16 < problem_.bytes) return reference_.Draw(SecretSeed());
  const double budget = std::max(0.5 * Since(time_begin_), 0.05) - draw_spent_;
  if (pool_.size() < 2 || (budget > problem_.draw_seconds && random_.Below(2) == 0)) {
    const auto begin = Clock::now();
    std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
    draw_spent_ += Since(begin);
    if (pool_.size() < 4) {
      pool_.push_back(leaves);
    } else {
      pool_[random_.Below(pool_.size())] = leaves;
    }
    return leaves;
  }
  std::vector<Leaf> leaves = pool_[random_.Below(pool_.size())];
  for (Leaf& leaf : leaves) {
    if (leaf.scalar || !(leaf.tensor.is_floating_point() || leaf.tensor.is_complex())) continue;
    leaf.tensor = leaf.tensor.mul(1.0 - random_.Uniform() / 32);
  }
  return leaves;
}

void Timing::Discard(const std::string& reason) { ++discards_[reason]; }

Timing::SpanTimes Timing::Span(std::size_t k) {
  std::vector<std::size_t> order(k);
  for (std::size_t& slot : order) slot = next_slot_++ % timed_slots_;
  const Reply reply = conversation_.Run(order, "none");
  double claimed = 0;
  for (double claim : reply.claims) claimed += claim;
  return {reply.wall, claimed};
}

Timing::SlopeResult Timing::Slope(double call, int rounds, double span) {
  SlopeResult slope;
  slope.k = std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(span / std::max(call, 1e-7))), 1, kMaxBatch / 2);
  std::vector<double> slopes, hidden;
  for (int round = 0; round < rounds; ++round) {
    const SpanTimes one = Span(slope.k), two = Span(2 * slope.k);
    const double k = static_cast<double>(slope.k);
    slopes.push_back((two.wall - one.wall) / k);
    hidden.push_back(((two.wall - two.claimed) - (one.wall - one.claimed)) / k);
    if (slopes.size() >= 3 && 3 * call * k * round > settings_.max_time) break;
  }
  slope.seconds = Median(slopes);
  slope.smallest = *std::min_element(slopes.begin(), slopes.end());
  slope.hidden = Median(hidden);
  return slope;
}

void Timing::Run() {
  time_begin_ = Clock::now();
  std::vector<Series> series;
  for (const std::string& name : settings_.baselines) {
    Series entry{name, name == "BASELINE_COMPILE" ? Mode::kCompile : Mode::kEager, {}, {}, ""};
    if (entry.mode == Mode::kCompile && !reference_.CanCompile()) {
      entry.unavailable = "torch.compile needs a Python problem and a torch from 2.0";
    }
    series.push_back(std::move(entry));
  }
  // Warm-up, both sides: code and data paged in, threads started, clocks up. The compiled reference compiles here.
  for (Series& entry : series) {
    if (!entry.unavailable.empty()) continue;
    try {
      auto call = reference_.Prepare(arena_.at(0).leaves.empty() ? FreshLeaves() : arena_.at(0).leaves, entry.mode);
      for (int i = 0; i < 3; ++i) ops_.Time([&] { call->Run(); });
    } catch (const ProblemError&) {
      throw;
    } catch (const std::exception& error) {
      if (entry.mode == Mode::kEager) throw;
      entry.unavailable = Bounded(std::string("torch.compile failed: ") + error.what(), 500);
    }
  }
  for (std::size_t i = 0; i < timed_slots_; ++i) {
    arena_.at(i).leaves.clear();
    arena_.Fill(&arena_.at(i), FreshLeaves());
    arena_.Poison(&arena_.at(i));
  }
  ops_.Synchronize();
  if (ops_.cuda()) {
    std::vector<double> warm = check_.claims();
    for (int i = 0; i < 3; ++i) warm.push_back(conversation_.Run({next_slot_++ % timed_slots_}, "none").claims[0]);
    const double call = *std::min_element(warm.begin(), warm.end());
    // The judge's own clock says how long a call is before any claim is used.
    const SlopeResult first = Slope(call, 5, 0.002);
    const double longer = std::max({call, first.seconds, 1e-7});
    batch_ = longer < kBatchBelow ? std::clamp<std::size_t>(static_cast<std::size_t>(0.005 / longer), 2, kMaxBatch) : 1;
  } else {
    batch_ = CpuBatch();
  }
  const bool repeats = ops_.cuda() && batch_ > 1;
  const std::size_t step = ops_.cuda() ? 1 : batch_;
  block_pairs_ = ops_.cuda() ? timed_slots_ : std::clamp<std::size_t>(timed_slots_ / batch_, 2, 8);
  std::vector<double> claims;
  time_begin_ = Clock::now();
  draw_spent_ = 0;
  conversation_.HoldBetweenRuns(true);
  MeasureTrip(15);
  const double longest = 4 * settings_.max_time;  // min_samples may stretch the time, within reason
  int pairs = 0;
  for (;;) {
    const double spent = Since(time_begin_);
    const bool enough = pairs >= settings_.min_samples;
    if (pairs >= settings_.max_samples || (enough && spent >= settings_.max_time) || spent >= longest) break;
    if (enough && spent >= settings_.min_time && Settled(series)) break;
    progress_("time", std::to_string(pairs) + " pairs");
    MeasureTrip(3);
    // One block: every slot is used once by both sides.
    if (repeats) Refill(0, timed_slots_);
    for (std::size_t i = 0; i + step <= timed_slots_; i += step) {
      if (Since(time_begin_) >= longest || pairs >= settings_.max_samples) break;
      if (pairs >= settings_.min_samples && Since(time_begin_) >= settings_.max_time) break;
      for (Series& entry : series) {
        if (!entry.unavailable.empty()) continue;
        if (!repeats) Refill(i, step);
        Pair(&entry, i, step, &claims);
      }
      ++pairs;
    }
  }
  conversation_.HoldBetweenRuns(false);
  Report(series, claims);
}

void Timing::Refill(std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) {
    arena_.at(i).leaves.clear();
    arena_.Fill(&arena_.at(i), FreshLeaves());
    arena_.Poison(&arena_.at(i));
  }
  ops_.Synchronize();
}

double Timing::CopyAllowance() const {
  if (!settings_.python_candidate || check_.copies().empty()) return 0;
  return 4 * Median(check_.copies()) + 15e-6 * static_cast<double>(arena_.at(0).out.places.size());
}

std::size_t Timing::CpuBatch() {
  MeasureTrip(9);
  auto seconds = [&](const std::vector<std::size_t>& order) {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) least = std::min(least, conversation_.Run(order, "none").wall - trip_);
    return std::max(least, 1e-7) / static_cast<double>(order.size());
  };
  double call = seconds({0});
  if (call < kCpuSpan) {
    std::vector<std::size_t> all(timed_slots_);
    std::iota(all.begin(), all.end(), 0);
    call = seconds(all);
  }
  if (problem_.reference_seconds > 0) call = std::min(call, problem_.reference_seconds);
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(kCpuSpan / call)), 1, timed_slots_);
}

void Timing::MeasureTrip(int count) {
  for (int i = 0; i < count; ++i) {
    trips_.push_back(conversation_.Run({}, "none").wall);
    if (trips_.size() > 15) trips_.erase(trips_.begin());
  }
  trip_ = Median(trips_);
}

bool Timing::Settled(const std::vector<Series>& series) const {
  const Series& first = series[0];
  if (first.reference.size() < 2 * static_cast<std::size_t>(settings_.min_samples)) return false;
  const RatioEstimate ratio = EstimateRatio(first.reference, first.candidate, static_cast<int>(block_pairs_), 1);
  return (ratio.high - ratio.low) <= 0.02 * ratio.speedup;
}

void Timing::Pair(Series* entry, std::size_t first, std::size_t count, std::vector<double>* claims) {
  double reference = 0, candidate = 0;
  Reply reply;
  std::vector<std::unique_ptr<Call>> calls;
  for (std::size_t i = 0; i < count; ++i) calls.push_back(reference_.Prepare(arena_.at(first + i).leaves, entry->mode));
  const bool repeats = ops_.cuda() && batch_ > 1;
  auto run_reference = [&] {
    ops_.Flush();
    // On a busy machine the scheduler favours who has rested, as the candidate has; let it be a duet of equals.
    if (!ops_.cuda()) std::this_thread::sleep_for(kRest);
    if (repeats) {
      const auto begin = Clock::now();
      for (std::size_t i = 0; i < batch_; ++i) calls[0]->Run();
      ops_.Synchronize();
      reference = Since(begin) / static_cast<double>(batch_);
    } else {
      reference = ops_.Time([&] {
        for (auto& call : calls) call->Run();
      });
      reference /= static_cast<double>(count);
    }
  };
  auto run_candidate = [&] {
    ops_.Flush();
    std::vector<std::size_t> order(repeats ? batch_ : count);
    if (repeats) {
      for (std::size_t& item : order) item = next_slot_++ % timed_slots_;
      order.back() = first;
    } else {
      std::iota(order.begin(), order.end(), first);
    }
    reply = conversation_.Run(order, repeats ? "last" : "all");
    const double claimed = std::accumulate(reply.claims.begin(), reply.claims.end(), 0.0);
    const double calls_made = static_cast<double>(order.size());
    claims->push_back(claimed / calls_made);
    double spent = reply.wall - trip_;
    if (!ops_.cuda()) {
      // The judge's clock alone. A Python candidate copies its outputs after its calls: its claim is taken, as long
      // as it leaves out no more than such a copy takes, nor three fifths of the time.
      candidate = spent / calls_made;
      if (settings_.python_candidate) {
        const double copy = CopyAllowance();
        candidate = std::max({claimed / calls_made, candidate - copy, 0.4 * candidate});
        spent -= calls_made * copy;
      }
      spans_.push_back(spent / calls_made);
      hidden_.push_back((spent - claimed) / calls_made);
    } else {
      candidate = (repeats ? spent : claimed) / calls_made;
    }
  };
  if (random_.Below(2) == 0) {
    run_reference();
    run_candidate();
  } else {
    run_candidate();
    run_reference();
  }
  // Every output is checked as long as that costs no more than the timing itself, then an unpredictable part of them.
  for (std::size_t i = 0; i < count; ++i) {
    if (verify_spent_ > 0.5 * Since(time_begin_) && random_.Below(8) != 0) continue;
    const auto begin = Clock::now();
    Expected expected;
    if (entry->mode == Mode::kEager) {
      expected.plain = calls[i]->Outputs();
    } else {
      auto eager = reference_.Prepare(arena_.at(first + i).leaves, Mode::kEager);
      eager->Run();
      expected.plain = eager->Outputs();
    }
    check_.Verify(conversation_, &arena_, &arena_.at(first + i), reply, expected, check_.trials() + 1);
    ++outputs_verified_;
    verify_spent_ += Since(begin);
  }
  if (!(candidate > 0) || !(reference > 0)) {
    Discard(ops_.cuda() && batch_ == 1 ? "no time passed by the claim" : "shorter than the judge's clock resolves");
    return;
  }
  entry->reference.push_back(reference);
  entry->candidate.push_back(candidate);
}

void Timing::Cheated(const std::string& evidence, double claimed, double seconds, std::size_t k) {
  timing_ = {{"claimed_median_seconds", claimed}, {"slope_seconds", seconds}, {"slope_k", k}};
  throw Verdict{"VERDICT_CHEATED",
                "the time that the candidate claims contradicts the judge's clock",
                {{"stage", "time"}, {"evidence", evidence}}};
}

void Timing::CheckCpuClaims(const std::vector<double>& claims) {
  // Too few to measure by are too few to accuse by: one preempted run would decide.
  if (hidden_.size() < static_cast<std::size_t>(settings_.min_samples)) return;
  // A busy machine may keep a candidate waiting in most of the runs, so that the quietest say whether it lies.
  const double claimed = Median(claims), span = Quantile(spans_, 0.1), hidden = Quantile(hidden_, 0.1);
  const double slack = 2 * trip_ + 200e-6;
  char text[300];
  const double share = settings_.python_candidate ? 0.5 : 0.25;
  if (span > 0 && hidden > share * span + slack / static_cast<double>(batch_)) {
    std::snprintf(text, sizeof text,
                  "in runs of %zu calls the judge's clock grew by %.4g s a call, the claims by %.4g s", batch_, span,
                  claimed);
    Cheated(text, claimed, span, batch_);
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    MeasureTrip(15);
    std::vector<double> singles, walls;
    for (int i = 0; i < 9 && (i < 3 || i * span < settings_.max_time); ++i) {
      const Reply reply = conversation_.Run({next_slot_++ % timed_slots_}, "none");
      singles.push_back(reply.claims[0]);
      walls.push_back(reply.wall - trip_);
    }
    const double wall = *std::min_element(walls.begin(), walls.end()), single = Quantile(singles, 0.1);
    if (wall - single <= 0.25 * wall + 2 * trip_ + 200e-6) return;
    std::snprintf(
        text, sizeof text,
        "single calls claim %.4g s and take %.4g s on the judge's clock beyond the %.4g s of an empty request", single,
        wall, trip_);
  }
  Cheated(text, claimed, span, batch_);
}

void Timing::CheckClaims(const std::vector<double>& claims, SlopeResult* slope) {
  const double claimed = Median(claims), quick = Quantile(claims, 0.25);
  const double grain = 10e-6;  // of one call: recording events, reading clocks
  std::string evidence;
  for (int attempt = 0; attempt < 3; ++attempt) {
    *slope = Slope(std::max(claimed, slope->seconds), 5 + 2 * attempt, 0.01 * (1 << attempt));
    char text[400];
    evidence.clear();
    if (slope->hidden > 0.25 * slope->seconds + grain) {
      std::snprintf(text, sizeof text,
                    "in runs of %zu and %zu calls the judge's clock grew by %.4g s a call, the claims by %.4g s less",
                    slope->k, 2 * slope->k, slope->seconds, slope->hidden);
      evidence = text;
    } else if (claimed < 0.8 * slope->smallest - grain && quick < 0.8 * slope->smallest - grain) {
      std::snprintf(
          text, sizeof text,
          "the candidate claims %.4g s for single calls; on the judge's clock a call in a row of %zu takes at "
          "least %.4g s",
          claimed, slope->k, slope->smallest);
      evidence = text;
    }
    if (evidence.empty()) return;
  }
  Cheated(evidence, claimed, slope->seconds, slope->k);
}

void Timing::Report(const std::vector<Series>& series, const std::vector<double>& claims) {
  const double claimed = Median(claims);
  const double sampling = Since(time_begin_);
  SlopeResult slope;
  if (!ops_.cuda()) {
    CheckCpuClaims(claims);
    slope.seconds = spans_.empty() ? 0 : Median(spans_);
    slope.k = batch_;
  } else if (batch_ == 1 && !claims.empty()) {
    CheckClaims(claims, &slope);
  }
  int discarded = 0;
  json discards = json::array();
  for (const auto& [reason, count] : discards_) {
    discarded += count;
    discards.push_back({{"reason", reason}, {"count", count}});
  }
  json baselines = json::array();
  for (const Series& entry : series) {
    json item{{"baseline", entry.baseline}};
    if (!entry.unavailable.empty()) {
      item["unavailable"] = entry.unavailable;
      baselines.push_back(item);
      continue;
    }
    if (static_cast<int>(entry.reference.size()) < std::min(settings_.min_samples, settings_.max_samples)) {
      if (&entry == &series[0] || entry.reference.empty()) {
        throw Verdict{"VERDICT_UNMEASURABLE",
                      "only " + std::to_string(entry.reference.size()) + " valid pairs of samples, and " +
                          std::to_string(settings_.min_samples) + " are needed (" + std::to_string(discarded) +
                          " discarded" + (discards.empty() ? "" : ": " + discards[0]["reason"].get<std::string>()) +
                          "); allow more time or fewer samples",
                      {}};
      }
    }
    const RatioEstimate ratio =
        EstimateRatio(entry.reference, entry.candidate, static_cast<int>(block_pairs_), kBootstrapSeed);
    item["reference_median_seconds"] = Median(entry.reference);
    item["candidate_median_seconds"] = Median(entry.candidate);
    item["speedup"] = ratio.speedup;
    item["speedup_low"] = ratio.low;
    item["speedup_high"] = ratio.high;
    item["samples"] = entry.reference.size();
    if (settings_.keep_samples) {
      item["reference_seconds"] = entry.reference;
      item["candidate_seconds"] = entry.candidate;
    }
    baselines.push_back(item);
  }
  std::string method = "duet, ";
  if (ops_.cuda()) {
    method += batch_ == 1 ? "cold L2, CUDA events checked by slope"
                          : "batches of " + std::to_string(batch_) + " on the judge's clock";
  } else {
    method += "runs of " + std::to_string(batch_) + " on the judge's clock";
    method += settings_.hold ? ", the candidate held between them" : "";
  }
  timing_ = {{"baselines", baselines},
             {"discarded", discarded},
             {"discards", discards},
             {"method", method},
             {"slope_seconds", slope.seconds},
             {"slope_k", slope.k},
             {"claimed_median_seconds", std::isfinite(claimed) ? claimed : 0.0},
             {"flush_bytes", ops_.flush_bytes()},
             {"buffer_sets", timed_slots_},
             {"sampling_seconds", sampling},
             {"outputs_verified", outputs_verified_}};
}

}  // namespace grove::judge
