#include "worker/judge/on_the_way.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>

#include "worker/judge/distributions.h"
#include "worker/judge/observed.h"
#include "worker/judge/random.h"
#include "worker/judge/set.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr std::int64_t kLeast = 64, kMost = 8192;  // elements of a result that say enough
constexpr std::size_t kMostResults = 4096;
// A rectifier of values around zero takes half of them off.
constexpr double kMostIdle = 0.625;
// What is idle follows the values where of those that work in another draw so many are idle in this one; and so does
// what stays as it is within a draw where so many are others in another.
constexpr double kOthers = 0.25;

// What they give was not written yet: it is what stood there before.
constexpr const char* kUnwritten[] = {"aten::empty", "aten::new_empty", "aten::resize", "aten::set_", "aten::_resize"};

// Which of an operation's results are its own: a view may be one of memory that was not written yet either, and what it
// shows otherwise was some operation's before.
std::vector<bool> Own(const at::RecordFunction& function) {
  const char* name = function.name();
  const auto schema = function.operator_schema();
  if (!schema || std::any_of(std::begin(kUnwritten), std::end(kUnwritten),
                             [name](const char* one) { return std::strncmp(name, one, std::strlen(one)) == 0; })) {
    return {};
  }
  std::vector<bool> own;
  for (const auto& result : schema->returns()) {
    own.push_back(result.alias_info() == nullptr || result.alias_info()->isWrite());
  }
  return own;
}

// Where a result is idle in two runs: zeros and bounds that stay what they are, and what is next to nothing beside the
// largest of all, which need not be among those that were taken.
at::Tensor Idle(const OnTheWay& one, const OnTheWay& two, double nothing) {
  const auto& [some, least, greatest, place] = one;
  const at::Tensor bound = some.eq(least).logical_or(some.eq(greatest)).logical_or(some.eq(0));
  const double most = std::max(std::fabs(least), std::fabs(greatest)) * nothing;
  const at::Tensor small = some.abs().le(most).logical_and(two.some.abs().le(most));
  return some.eq(two.some).logical_and(bound).logical_or(std::isfinite(most) ? small : at::zeros_like(small));
}

double Share(const at::Tensor& some) { return some.sum().item<double>() / static_cast<double>(some.numel()); }

struct Taking {
  std::uint64_t seed;
  bool busy = false;  // what is run is no part of the program
  std::vector<OnTheWay> taken;
};

thread_local Taking* taking = nullptr;

std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction&) { return nullptr; }

void End(const at::RecordFunction& function, at::ObserverContext*) {
  if (taking == nullptr || taking->busy || taking->taken.size() > kMostResults) return;
  const Set<bool> busy(&taking->busy, true);
  const std::vector<bool> own = Own(function);
  const std::vector<c10::IValue> outputs = function.outputs();
  for (std::size_t i = 0; i < std::min(own.size(), outputs.size()); ++i) {
    if (!own[i] || !outputs[i].isTensor() || !outputs[i].toTensor().defined()) continue;
    const at::Tensor& result = outputs[i].toTensor();
    if (!result.is_floating_point() || result.layout() != at::kStrided || result.numel() < kLeast) continue;
    // (In its place in the order, whatever becomes of it, and at places of its own.)
    OnTheWay& one = taking->taken.emplace_back();
    const at::Tensor all = result.detach();
    const auto [least, greatest] = at::aminmax(all);
    const at::Tensor places =
        at::randint(all.numel(), {std::min(all.numel(), kMost)},
                    MakeGenerator(at::kCPU, taking->seed + taking->taken.size()), at::TensorOptions().dtype(at::kLong));
    one = {at::take(all, places.to(all.device())).to(at::kDouble), least.item<double>(), greatest.item<double>(),
           all.argmax().item<std::int64_t>()};
  }
}

// Without attention that is one operation, of which the weights are not seen.
class PlainAttention {
 public:
  PlainAttention(const PlainAttention&) = delete;
  PlainAttention& operator=(const PlainAttention&) = delete;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 5)
  PlainAttention() {
    context_.setSDPUseFlash(false);
    context_.setSDPUseMemEfficient(false);
    context_.setSDPUseCuDNN(false);
  }
  ~PlainAttention() {
    context_.setSDPUseFlash(flash_);
    context_.setSDPUseMemEfficient(efficient_);
    context_.setSDPUseCuDNN(cudnn_);
  }

 private:
  at::Context& context_ = at::globalContext();
  bool flash_ = context_.userEnabledFlashSDP(), efficient_ = context_.userEnabledMemEfficientSDP(),
       cudnn_ = context_.userEnabledCuDNNSDP();
#else  // (there is no other)
  PlainAttention() {}
  ~PlainAttention() {}
#endif
};

}  // namespace

std::vector<OnTheWay> SomeOnTheWay(Reference& reference, const std::vector<Leaf>& leaves, Mode mode,
                                   std::uint64_t seed) {
  const PlainAttention plain;
  Taking all{seed, false, {}};
  const auto call = reference.Prepare(leaves, mode);
  {
    const Set<Taking*> set(&taking, &all);
    const Observed<Begin, End> observed;
    call->Run();
  }
  if (all.taken.size() > kMostResults) all.taken.clear();
  return std::move(all.taken);
}

bool MostIdle(const std::array<std::vector<OnTheWay>, 4>& runs, double nothing) {
  const auto& [one, two, three, four] = runs;
  const std::size_t count = std::min({one.size(), two.size(), three.size(), four.size()});
  for (std::size_t i = 0; i < count; ++i) {
    const at::Tensor &a = one[i].some, &b = two[i].some, &c = three[i].some, &d = four[i].some;
    const auto alike = [&a](const at::Tensor& other) { return other.defined() && other.sizes() == a.sizes(); };
    if (!a.defined() || !alike(b) || !alike(c) || !alike(d)) continue;
    const at::Tensor kept = a.eq(b);
    if (Share(kept) > kMostIdle && Share(kept.logical_and(c.eq(d)).logical_and(a.ne(c))) >= kOthers) return true;
    const at::Tensor idle = Idle(one[i], two[i], nothing), working = Idle(three[i], four[i], nothing).logical_not();
    if (Share(idle) <= kMostIdle) continue;
    const auto all = working.sum().item<double>(), others = working.logical_and(idle).sum().item<double>();
    if (all > 0 && others >= kOthers * all) return true;
    // Too few to be among those that were taken: then their largest one is where it is in every draw, or not.
    if (all == 0 && Share(idle) == 1 && one[i].least < one[i].greatest && one[i].place == two[i].place &&
        three[i].place == four[i].place && one[i].place != three[i].place) {
      return true;
    }
  }
  return false;
}

}  // namespace grove::judge
