#include "worker/judge/on_the_way.h"

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "worker/judge/distributions.h"
#include "worker/judge/observed.h"
#include "worker/judge/problem_error.h"
#include "worker/judge/random.h"
#include "worker/judge/set.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr std::int64_t kLeast = 256, kMost = 8192;  // elements of a result that say enough
constexpr std::size_t kMostResults = 1024;          // of a run, the first ones
// A rectifier of values around zero takes half of them off.
constexpr double kMostIdle = 0.625;
// What is idle follows the values where of those that work in another draw so many are idle in this one; and so does
// what stays as it is within a draw where so many are others in another, by so much that it is no rounding.
constexpr double kOthers = 0.25, kOther = 0.125;
constexpr double kLeastWorking = 3;  // one or two may be there by chance

// What they give was not written yet: it is what stood there before.
constexpr const char* kUnwritten[] = {"aten::empty", "aten::new_empty", "aten::resize", "aten::set_", "aten::_resize"};

enum class Made { kElsewhere, kNew, kWritten };

// What an operation is to each of its results. Not its own: a view may be one of memory that was not written yet
// either, and what it shows otherwise was some operation's before.
std::vector<Made> Own(const at::RecordFunction& function) {
  const char* name = function.name();
  const auto schema = function.operator_schema();
  if (!schema || std::any_of(std::begin(kUnwritten), std::end(kUnwritten),
                             [name](const char* one) { return std::strncmp(name, one, std::strlen(one)) == 0; })) {
    return {};
  }
  std::vector<Made> own;
  for (const auto& result : schema->returns()) {
    own.push_back(result.alias_info() == nullptr   ? Made::kNew
                  : result.alias_info()->isWrite() ? Made::kWritten
                                                   : Made::kElsewhere);
  }
  return own;
}

// Where a result is idle in two runs: zeros and bounds that stay what they are, and what is next to nothing beside the
// largest of all, which need not be among those that were taken.
at::Tensor Idle(const OnTheWay& one, const OnTheWay& two, double nothing) {
  const at::Tensor& some = one.some;
  const at::Tensor bound = some.eq(one.least).logical_or(some.eq(one.greatest)).logical_or(some.eq(0));
  const double most = std::max(std::fabs(one.least), std::fabs(one.greatest)) * nothing;
  const at::Tensor small = some.abs().le(most).logical_and(two.some.abs().le(most));
  return some.eq(two.some).logical_and(bound).logical_or(std::isfinite(most) ? small : at::zeros_like(small));
}

double Share(const at::Tensor& some) { return some.sum().item<double>() / static_cast<double>(some.numel()); }

// Whether most of what an operation gave stays what it is within a draw, and is something else in another one.
bool MostStay(const OnTheWay& one, const OnTheWay& two, const OnTheWay& three, const OnTheWay& four) {
  if (one.coarse) return false;  // rounding lets values stay
  const at::Tensor &a = one.some, &c = three.some;
  const at::Tensor stay = a.eq(two.some);
  if (Share(stay) <= kMostIdle) return false;
  const at::Tensor other = (a - c).abs().gt(at::maximum(a.abs(), c.abs()) * kOther);
  return Share(stay.logical_and(c.eq(four.some)).logical_and(other)) >= kOthers;
}

// Whether most of what an operation gave is idle within a draw, and what works in another one among it.
bool OthersWork(const OnTheWay& one, const OnTheWay& two, const OnTheWay& three, const OnTheWay& four, double nothing) {
  const at::Tensor idle = Idle(one, two, nothing), working = Idle(three, four, nothing).logical_not();
  if (Share(idle) <= kMostIdle) return false;
  const auto all = working.sum().item<double>(), others = working.logical_and(idle).sum().item<double>();
  if (all >= kLeastWorking) return others >= kOthers * all;
  // Too few to be among those that were taken: then their largest one is where it is in every draw, or not.
  return Share(idle) == 1 && one.least < one.greatest && one.place == two.place && three.place == four.place &&
         one.place != three.place;
}

struct Taking {
  std::uint64_t seed;
  bool busy = false;    // what is run is no part of the program
  bool coarse = false;  // something was of a half type
  std::string no_room;  // what was said when memory was wanted
  at::Tensor last;      // an operation that is made of one other gives what that gave
  std::vector<OnTheWay> taken;
};

thread_local Taking* taking = nullptr;

void Take(const at::Tensor& result, OnTheWay* one) {
  const at::Tensor all = result.detach();
  const auto [least, greatest] = at::aminmax(all);
  one->least = least.item<double>();
  one->greatest = greatest.item<double>();
  one->place = all.argmax().item<std::int64_t>();
  if (all.numel() <= kMost) {
    one->some = all.reshape({-1}).to(at::kDouble, false, true);
    return;
  }
  const at::Tensor places =
      at::randint(all.numel(), {kMost}, MakeGenerator(at::kCPU, taking->seed + taking->taken.size()),
                  at::TensorOptions().dtype(at::kLong));
  one->some = at::take(all, places.to(all.device())).to(at::kDouble);
}

std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction&) { return nullptr; }

// (torch would log what it throws, and go on.)
void End(const at::RecordFunction& function, at::ObserverContext*) {
  if (taking == nullptr || taking->busy) return;
  const Set<bool> busy(&taking->busy, true);
  try {
    const std::vector<Made> own = Own(function);
    const std::vector<c10::IValue> outputs = function.outputs();
    for (std::size_t i = 0; i < std::min(own.size(), outputs.size()); ++i) {
      if (own[i] == Made::kElsewhere || !outputs[i].isTensor() || !outputs[i].toTensor().defined()) continue;
      const at::Tensor& result = outputs[i].toTensor();
      if (!result.is_floating_point() || result.layout() != at::kStrided || result.numel() < kLeast) continue;
      taking->coarse = taking->coarse || IsHalf(result.scalar_type());
      if (taking->taken.size() >= kMostResults) return;
      if (own[i] == Made::kNew && result.is_same(taking->last)) continue;
      taking->last = result;
      // (In its place in the order, whatever becomes of it, and at places of its own.)
      OnTheWay& one = taking->taken.emplace_back();
      one.name = function.name();
      one.coarse = taking->coarse;
      Take(result, &one);
    }
  } catch (const std::exception& error) {  // a type without such an operation is not looked at
    if (TellsOfMemory(error)) taking->no_room = error.what();
  }
}

}  // namespace

std::vector<OnTheWay> SomeOnTheWay(Reference& reference, const std::vector<Leaf>& leaves, Mode mode,
                                   std::uint64_t seed) {
  Taking all{seed, false, false, "", {}, {}};
  const auto call = reference.Prepare(leaves, mode);
  {
    const Set<Taking*> set(&taking, &all);
    const Observed<Begin, End> observed;
    call->Run();
  }
  if (!all.no_room.empty()) throw std::runtime_error(all.no_room);
  return std::move(all.taken);
}

bool MostIdle(const std::array<std::vector<OnTheWay>, 4>& runs, double nothing) {
  const auto& [one, two, three, four] = runs;
  const std::size_t count = std::min({one.size(), two.size(), three.size(), four.size()});
  for (std::size_t i = 0; i < count; ++i) {
    const auto alike = [&first = one[i]](const OnTheWay& other) {
      return other.some.defined() && other.name == first.name && other.some.sizes() == first.some.sizes();
    };
    if (!one[i].some.defined() || !alike(two[i]) || !alike(three[i]) || !alike(four[i])) continue;
    if (MostStay(one[i], two[i], three[i], four[i]) || OthersWork(one[i], two[i], three[i], four[i], nothing)) {
      return true;
    }
  }
  return false;
}

}  // namespace grove::judge
