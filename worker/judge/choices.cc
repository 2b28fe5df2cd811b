#include "worker/judge/choices.h"

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "worker/judge/observed.h"
#include "worker/judge/set.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

// Which of equal keys is chosen.
struct Order {
  std::int64_t turn = 0;     // so many behind the first (before the last), in a circle
  bool last = false;         // from behind
  std::int64_t largest = 1;  // how many equal keys there were at most
};

thread_local std::vector<Choice>* choices = nullptr;
thread_local Order* order = nullptr;  // choices are made in this order
thread_local bool ordering = false;   // what is run is no part of the program

struct Watched : at::ObserverContext {
  Choice choice;
};

constexpr const char* kOrdered[] = {"aten::sort", "aten::argsort", "aten::topk"};
constexpr const char* kSingle[] = {"aten::median", "aten::nanmedian", "aten::mode", "aten::kthvalue"};
constexpr const char* kRunning[] = {"aten::cummax", "aten::cummin"};
constexpr const char* kFirst[] = {"aten::argmax", "aten::argmin", "aten::max", "aten::min"};

template <std::size_t size>
bool Among(const char* name, const char* const (&names)[size]) {
  for (const char* one : names) {
    if (std::strcmp(name, one) == 0) return true;
  }
  return false;
}

std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& function) {
  const char* name = function.name();
  if ((choices == nullptr && order == nullptr) || ordering) return nullptr;
  const bool ordered = Among(name, kOrdered), running = Among(name, kRunning), first = Among(name, kFirst);
  if (!ordered && !running && !first && !Among(name, kSingle)) return nullptr;
  if (first && choices == nullptr) return nullptr;  // there is no other order
  const auto schema = function.operator_schema();
  const auto inputs = function.inputs();
  if (!schema || inputs.empty() || inputs.size() > schema->arguments().size() || !inputs[0].isTensor()) return nullptr;
  auto watched = std::make_unique<Watched>();
  Choice& choice = watched->choice;
  choice.ordered = ordered;
  choice.running = running;
  choice.first = first;
  choice.often = std::strcmp(name, "aten::mode") == 0;
  bool along = false, all = false;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const std::string& argument = schema->arguments()[i].name();
    if (argument == "dim" && inputs[i].isInt()) {
      choice.dim = inputs[i].toInt();
      along = true;
    }
    all = all || (argument == "dim" && inputs[i].isNone());
    if (argument == "stable" && inputs[i].isBool()) choice.stable = inputs[i].toBool();
    if ((argument == "largest" || argument == "descending") && inputs[i].isBool()) choice.largest = inputs[i].toBool();
  }
  // A copy: the program may go on to write there.
  const at::Tensor& keys = inputs[0].toTensor();
  if (along && keys.dim() > 0) choice.keys = keys.detach().clone();
  if (all) choice.keys = keys.detach().reshape({-1}).clone();  // argmax of all
  return watched;
}

at::Tensor Same(const at::Tensor& a, const at::Tensor& b) { return a.eq(b).logical_or(a.ne(a).logical_and(b.ne(b))); }

at::Tensor Along(const at::Tensor& like, std::int64_t dim) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[static_cast<std::size_t>(dim)] = like.size(dim);
  return at::arange(like.size(dim), like.options().dtype(at::kLong)).view(shape);
}

// All places in the order of their keys, equal ones as `order` has them.
at::Tensor InOrder(const Choice& choice, std::int64_t dim) {
  const auto [keys, places] = choice.keys.sort(/*stable=*/true, dim, choice.largest);
  const std::int64_t size = keys.size(dim);
  if (size < 2) return places;
  const at::Tensor differs = Same(keys.narrow(dim, 1, size - 1), keys.narrow(dim, 0, size - 1)).logical_not();
  const at::Tensor begins = at::cat({at::ones_like(differs.narrow(dim, 0, 1)), differs}, dim);
  const at::Tensor position = Along(keys, dim), group = begins.cumsum(dim) - 1;
  const at::Tensor first = std::get<0>(at::where(begins, position, at::zeros_like(group)).cummax(dim));
  const at::Tensor count = at::zeros_like(group).scatter_add(dim, group, at::ones_like(group)).gather(dim, group);
  order->largest = std::max(order->largest, count.max().item<std::int64_t>());
  const at::Tensor turned = (position - first + order->turn).remainder(count);
  return places.gather(dim, first + (order->last ? count - 1 - turned : turned));
}

// The place among those of the same key that `order` has.
at::Tensor OneOf(const Choice& choice, std::int64_t dim) {
  const at::Tensor& places = choice.places;
  const bool gone = places.dim() + 1 == choice.keys.dim();
  const at::Tensor chosen = gone ? places.unsqueeze(dim) : places;
  const at::Tensor same = Same(choice.keys, choice.keys.gather(dim, chosen)), rank = same.cumsum(dim);
  const at::Tensor count = same.sum(dim, /*keepdim=*/true);
  order->largest = std::max(order->largest, count.max().item<std::int64_t>());
  const at::Tensor turned = at::full_like(count, order->turn).remainder(count);
  const at::Tensor wanted = same.logical_and(rank.eq(order->last ? count - turned : turned + 1));
  const at::Tensor at = wanted.to(at::kLong).argmax(dim, /*keepdim=*/true);
  return gone ? at.squeeze(dim) : at;
}

// The first or the last of those up to each place that have its key.
at::Tensor OneUpTo(const Choice& choice, std::int64_t dim) {
  const at::Tensor position = Along(choice.keys, dim).expand_as(choice.keys);
  if (choice.keys.size(dim) < 2) return choice.places;
  const at::Tensor best = choice.keys.gather(dim, choice.places);
  const std::int64_t size = best.size(dim);
  const at::Tensor differs = Same(best.narrow(dim, 1, size - 1), best.narrow(dim, 0, size - 1)).logical_not();
  const at::Tensor begins = at::cat({at::ones_like(differs.narrow(dim, 0, 1)), differs}, dim);
  const at::Tensor mine = order->last ? Same(choice.keys, best) : begins;
  order->largest = std::max<std::int64_t>(order->largest, 2);
  return std::get<0>(at::where(mine, position, at::zeros_like(position)).cummax(dim));
}

// Writes another choice to what the operation gave.
void Reorder(const Choice& choice) {
  constexpr std::int64_t kMostKeys = std::int64_t{1} << 26;
  if (choice.stable || choice.first || choice.places.numel() == 0 || choice.keys.numel() > kMostKeys) return;
  const std::int64_t dim = choice.Dim();
  if (choice.ordered) {
    choice.places.copy_(InOrder(choice, dim).narrow(dim, 0, choice.places.size(dim)));
  } else {
    choice.places.copy_(choice.running ? OneUpTo(choice, dim) : OneOf(choice, dim));
  }
}

void End(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto* watched = dynamic_cast<Watched*>(context);
  if (watched == nullptr || !watched->choice.keys.defined()) return;
  const auto& outputs = function.outputs();
  if (outputs.empty() || !outputs.back().isTensor()) return;
  Choice choice = watched->choice;
  choice.places = outputs.back().toTensor();
  if (!choice.places.defined() || choice.places.scalar_type() != at::kLong) return;
  if (order != nullptr) {
    ordering = true;
    try {
      Reorder(choice);
    } catch (const std::exception&) {  // no memory: as torch chose
    }
    ordering = false;
  }
  if (choices != nullptr) choices->push_back(std::move(choice));
}

struct Watching {
  explicit Watching(std::vector<Choice>* seen, Order* in_order = nullptr)
      : set_choices(&choices, seen), set_order(&order, in_order) {}
  Set<std::vector<Choice>*> set_choices;
  Set<Order*> set_order;
  Observed<Begin, End> observed;
};

// What the elements and their squares add up to over each dimension, and how many are infinite, in all choices that
// were tried: the least and the most, and how large these sums are.
class InCommon {
 public:
  void Add(const at::Tensor& output) {
    std::vector<Sum> sums = SumsOf(output);
    if (least_.empty()) {
      least_ = most_ = std::move(sums);
      size_ = SumsOf(output.to(at::kDouble).abs());
      return;
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      least_[i].of = at::minimum(least_[i].of, sums[i].of);
      most_[i].of = at::maximum(most_[i].of, sums[i].of);
    }
  }
  // Sums that are alike in all choices are met, and others are not far from them.
  bool In(const at::Tensor& got) const {
    constexpr double kRounded = 1e-4;
    const std::vector<Sum> sums = SumsOf(got);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const at::Tensor &sum = sums[i].of, &least = least_[i].of, &most = most_[i].of;
      at::Tensor room = most - least;
      if (sums[i].kind == Sum::kOfFractions) room = room + size_[i].of * kRounded;
      // Over what does not choose (columns, where each row does) any mixture of choices is one.
      if (sums[i].kind == Sum::kInfinities) room = room.max();
      if (sum.lt(least - room).logical_or(sum.gt(most + room)).any().item<bool>()) return false;
    }
    return true;
  }

 private:
  struct Sum {
    enum Kind { kOfFractions, kOfWholes, kInfinities };
    at::Tensor of;
    Kind kind;
  };

  static std::vector<Sum> SumsOf(const at::Tensor& output) {
    const at::Tensor values = output.to(at::kDouble), numbers = values.nan_to_num(0, 0, 0);
    const bool fractions = Fractions(output);
    const Sum::Kind kind = fractions ? Sum::kOfFractions : Sum::kOfWholes;
    std::vector<at::Tensor> infinite;
    if (fractions) infinite = {values.eq(HUGE_VAL), values.eq(-HUGE_VAL)};
    std::vector<Sum> sums;
    for (std::int64_t dim = 0; dim < values.dim(); ++dim) {
      if (values.size(dim) == 1) continue;  // the elements themselves, which were looked at
      sums.push_back({numbers.sum(dim), kind});
      sums.push_back({numbers.square().sum(dim), kind});
      for (const at::Tensor& one : infinite) sums.push_back({one.sum(dim), Sum::kInfinities});
    }
    return sums;
  }
  std::vector<Sum> least_, most_, size_;
};

}  // namespace

// What the operation gave is still held, so that nothing else is at its address; a program's output was made row-major.
bool Is(const at::Tensor& output, const Choice& choice) {
  const at::Tensor& places = choice.places;
  if (output.scalar_type() != at::kLong || output.dim() != places.dim()) return false;
  if (output.data_ptr() == places.data_ptr() && places.is_contiguous()) return output.sizes() == places.sizes();
  if (!choice.ordered) return output.sizes() == places.sizes() && output.equal(places);
  const std::int64_t dim = choice.dim < 0 ? choice.dim + places.dim() : choice.dim;
  if (output.size(dim) > places.size(dim)) return false;
  const at::Tensor beginning = places.narrow(dim, 0, output.size(dim));
  return output.sizes() == beginning.sizes() && output.equal(beginning);
}

at::Tensor Misplaced(const Choice& choice, const at::Tensor& output) {
  const std::int64_t dim = choice.Dim(), size = choice.keys.size(dim);
  const at::Tensor got = choice.Along(output);
  at::Tensor misplaced = got.lt(0).logical_or(got.ge(size));
  if (choice.ordered && got.size(dim) > 1) {
    const at::Tensor order = std::get<0>(got.sort(dim));
    const at::Tensor twice = order.narrow(dim, 1, got.size(dim) - 1).eq(order.narrow(dim, 0, got.size(dim) - 1));
    misplaced = misplaced.logical_or(twice.any(dim, /*keepdim=*/true));
  }
  if (choice.running) misplaced = misplaced.logical_or(got.gt(Along(got, dim)));
  return choice.Alone(misplaced);
}

Chosen ChosenBy(Reference& reference, const std::vector<Leaf>& leaves, Mode mode) {
  Chosen chosen;
  const Watching watching(&chosen.choices);
  const auto call = reference.Prepare(leaves, mode);
  call->Run();
  chosen.outputs = call->Outputs();
  return chosen;
}

struct Choosing::Impl {
  explicit Impl(bool last) { order.last = last; }
  Order order;
  Watching watching{nullptr, &order};
};

Choosing::Choosing(Reached::Order order) {
  if (order != Reached::kOther) impl_ = std::make_unique<Impl>(order == Reached::kLast);
}
Choosing::~Choosing() = default;
bool Choosing::had_choice() const { return impl_ != nullptr && impl_->order.largest > 1; }

at::Tensor KeysAt(const Choice& choice, const at::Tensor& places) {
  const std::int64_t dim = choice.Dim();
  return choice.Alone(choice.keys.gather(dim, choice.Along(places).clamp(0, choice.keys.size(dim) - 1)));
}

at::Tensor AsGood(const Choice& choice, const at::Tensor& places, const at::Tensor& got) {
  return Same(KeysAt(choice, got), KeysAt(choice, places)).logical_and(Misplaced(choice, got).logical_not());
}

at::Tensor WithEqualChoices(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output,
                            const at::Tensor& got, bool* is_places) {
  *is_places = false;
  if (got.scalar_type() != at::kLong || got.numel() == 0) return {};
  const Chosen seen = ChosenBy(reference, leaves, Mode::kEager);
  if (output >= seen.outputs.size() || seen.outputs[output].sizes() != got.sizes()) return {};
  const at::Tensor& places = seen.outputs[output];
  at::Tensor good;
  for (const Choice& choice : seen.choices) {
    if (choice.first || !Is(places, choice)) continue;
    *is_places = true;
    if (choice.stable) return {};
    if (!good.defined()) good = AsGood(choice, places, got);
  }
  if (!good.defined() || good.logical_and(got.ne(places)).sum().item<std::int64_t>() == 0) return {};
  return at::where(good, places, got);
}

Reached ReachedByOtherChoices(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output,
                              const at::Tensor& got, double most, double slack, Turns* turns, double each) {
  constexpr std::int64_t kMostTurns = 256, kMostElements = std::int64_t{1} << 26;
  if (got.numel() == 0 || got.numel() > kMostElements || got.is_complex()) return {};
  const auto call = reference.Prepare(leaves, Mode::kEager);
  Reached all;
  at::Tensor& reached = all.elements;
  InCommon common;
  Order chosen;
  // The first of all, the last of all, then each in turn.
  for (std::int64_t run = 0; run < kMostTurns + 2 && turns->Take(each); ++run) {
    chosen.last = run == 1;
    chosen.turn = std::max<std::int64_t>(run - 1, 0);
    if (run > 1 && chosen.turn >= chosen.largest) break;
    if (run == 1) chosen.turn = 0;
    {
      const Watching watching(nullptr, &chosen);
      call->Run();
    }
    const std::vector<at::Tensor> outputs = call->Outputs();
    if (chosen.largest < 2 || output >= outputs.size() || outputs[output].sizes() != got.sizes()) break;
    const at::Tensor& other = outputs[output];
    at::Tensor agrees = Same(got, other);
    // Not in half types: within what their rule allows of one of so many, nearly anything is.
    if (Fractions(got) && !IsHalf(got.scalar_type())) {
      const at::Tensor wide = other.to(at::kDouble);
      const at::Tensor near = (got.to(at::kDouble) - wide).abs().le(wide.abs() * slack + most);
      agrees.logical_or_(near.logical_and(at::isfinite(wide)));
    }
    if (!all.values.defined()) {
      all.values = other;
    } else if (Fractions(got)) {  // the nearest: what is far off elsewhere makes room for what is not meant
      const at::Tensor nearer = (got - other).abs().lt((got - all.values).abs());
      all.values = at::where(nearer.logical_or(Same(got, other)), other, all.values);
    }
    reached = reached.defined() ? reached.logical_or(agrees) : agrees;
    common.Add(other);
    if (agrees.all().item<bool>()) {
      all.order = run == 0 ? Reached::kFirst : run == 1 ? Reached::kLast : Reached::kOther;
      break;
    }
  }
  if (!reached.defined()) return {};
  // (What no choice gives is judged by itself.)
  return common.In(Fractions(got) ? at::where(reached, got, all.values) : got) ? all : Reached();
}

}  // namespace grove::judge
