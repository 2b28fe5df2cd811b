#include "worker/judge/sampled_outputs.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "worker/judge/clock.h"

namespace grove::judge {
namespace {

constexpr double kShare = 0.25;  // of the sampling time, for outputs beyond the first of each run

}  // namespace

void SampledOutputs::Choose(Series* series, const Sets& timed, double sampling) {
  const bool eager = series != nullptr && series->reference != nullptr && series->reference->mode() == Mode::kEager;
  const bool known = eager && series->calls >= timed.size() && !check_.chooses_otherwise();
  const double room = kShare * sampling - spent_;
  CandidateSide* rival = series != nullptr ? series->rival : nullptr;
  std::size_t most = candidate_.MostKept();
  if (rival != nullptr) most = std::min(most, rival->MostKept());
  Sets order = timed;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) std::swap(order[i], order[i + random_.Below(order.size() - i)]);
  chosen_.clear();
  double cost = 0;
  for (std::size_t set : order) {
    cost += each_ + (known ? 0 : problem_.reference_seconds);
    if (!chosen_.empty() && (room < 0 || cost > room || chosen_.size() >= most)) break;
    chosen_.push_back(set);
  }
  candidate_.Keep(chosen_);
  rival_chosen_.clear();
  if (rival == nullptr) return;
  const std::set<std::size_t> its(timed.begin(),
                                  timed.begin() + static_cast<std::ptrdiff_t>(std::min(series->calls, timed.size())));
  for (std::size_t set : chosen_) {
    if (its.count(set) != 0) rival_chosen_.push_back(set);
  }
  rival->Keep(rival_chosen_);
}

void SampledOutputs::VerifyKept(CandidateSide* side, Check* check, const Sets& sets) {
  Outputs of_rival(problem_, *check, values_, cuda_);
  (check == &check_ ? outputs_ : of_rival).Verify(side, sets, [this, check](std::size_t set) {
    return check->Compute(values_.leaves(set), false).plain;
  });
}

void SampledOutputs::Verify(Series* series) {
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
  outputs_.Verify(&candidate_, chosen_, expected_by(check_));
  verified_ += static_cast<int>(chosen_.size());
  // A rival's outputs of these values are looked at in the same way.
  if (series != nullptr && series->rival != nullptr) {
    series->Guarded([&] {
      Outputs(problem_, *series->rival_check, values_, cuda_)
          .Verify(series->rival, rival_chosen_, expected_by(*series->rival_check));
    });
  }
  const double spent = Since(begin);
  spent_ += spent;
  each_ = std::max(spent - outputs_.whole_seconds(), 0.0) / static_cast<double>(chosen_.size());
}

}  // namespace grove::judge
