#include "worker/judge/choices.h"

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include <cstring>
#include <memory>
#include <utility>

namespace grove::judge {
namespace {

// One operation that chose places along a dimension.
struct Choice {
  at::Tensor keys, places;
  std::int64_t dim = -1;
  bool stable = false;   // the order among equal keys is part of what was asked for
  bool ordered = false;  // each place once
  bool running = false;  // no place behind the own one
};

thread_local std::vector<Choice>* choices = nullptr;

struct Watched : at::ObserverContext {
  Choice choice;
};

// argmax, argmin, max and min give the first, as torch documents it, and are not among them.
constexpr const char* kOrdered[] = {"aten::sort", "aten::argsort", "aten::topk"};
constexpr const char* kSingle[] = {"aten::median", "aten::nanmedian", "aten::mode", "aten::kthvalue"};
constexpr const char* kRunning[] = {"aten::cummax", "aten::cummin"};

template <std::size_t size>
bool Among(const char* name, const char* const (&names)[size]) {
  for (const char* one : names) {
    if (std::strcmp(name, one) == 0) return true;
  }
  return false;
}

std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& function) {
  const char* name = function.name();
  const bool ordered = Among(name, kOrdered), running = Among(name, kRunning);
  if (choices == nullptr || (!ordered && !running && !Among(name, kSingle))) return nullptr;
  const auto schema = function.operator_schema();
  const auto inputs = function.inputs();
  if (!schema || inputs.empty() || inputs.size() > schema->arguments().size() || !inputs[0].isTensor()) return nullptr;
  auto watched = std::make_unique<Watched>();
  Choice& choice = watched->choice;
  choice.ordered = ordered;
  choice.running = running;
  bool along = false;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const std::string& argument = schema->arguments()[i].name();
    if (argument == "dim" && inputs[i].isInt()) {
      choice.dim = inputs[i].toInt();
      along = true;
    }
    if (argument == "stable" && inputs[i].isBool()) choice.stable = inputs[i].toBool();
  }
  // A copy: the program may go on to write there.
  if (along && inputs[0].toTensor().dim() > 0) choice.keys = inputs[0].toTensor().detach().clone();
  return watched;
}

void End(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto* watched = dynamic_cast<Watched*>(context);
  if (watched == nullptr || choices == nullptr || !watched->choice.keys.defined()) return;
  const auto& outputs = function.outputs();
  if (outputs.empty() || !outputs.back().isTensor()) return;
  Choice choice = watched->choice;
  choice.places = outputs.back().toTensor();
  if (choice.places.defined() && choice.places.scalar_type() == at::kLong) choices->push_back(std::move(choice));
}

class Watching {
 public:
  explicit Watching(std::vector<Choice>* seen) {
    choices = seen;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(Begin, End)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~Watching() {
    at::removeCallback(handle_);
    choices = nullptr;
  }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  at::CallbackHandle handle_;
};

// Whether the output is what this operation gave, or its beginning, and not something that was made of it. What it gave
// is still held, so that nothing else is at its address; a program's output was made row-major.
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

at::Tensor Same(const at::Tensor& a, const at::Tensor& b) { return a.eq(b).logical_or(a.ne(a).logical_and(b.ne(b))); }

// `places` and `got` with the dimension that was chosen along.
at::Tensor AsGood(const Choice& choice, at::Tensor places, at::Tensor got) {
  const std::int64_t dim = choice.dim < 0 ? choice.dim + choice.keys.dim() : choice.dim;
  const bool gone = places.dim() + 1 == choice.keys.dim();
  if (gone) {
    places = places.unsqueeze(dim);
    got = got.unsqueeze(dim);
  }
  if (places.dim() != choice.keys.dim()) return {};
  const std::int64_t size = choice.keys.size(dim);
  at::Tensor good = got.ge(0).logical_and(got.lt(size));
  const at::Tensor inside = got.clamp(0, size - 1);
  good.logical_and_(Same(choice.keys.gather(dim, inside), choice.keys.gather(dim, places)));
  if (choice.ordered && got.size(dim) > 1) {
    const at::Tensor order = std::get<0>(inside.sort(dim));
    const at::Tensor twice = order.narrow(dim, 1, got.size(dim) - 1).eq(order.narrow(dim, 0, got.size(dim) - 1));
    good = good.logical_and(twice.any(dim, /*keepdim=*/true).logical_not());
  }
  if (choice.running) {
    std::vector<std::int64_t> shape(got.dim(), 1);
    shape[dim] = got.size(dim);
    good.logical_and_(got.le(at::arange(got.size(dim), got.options()).view(shape)));
  }
  return gone ? good.squeeze(dim) : good;
}

}  // namespace

at::Tensor WithEqualChoices(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output,
                            const at::Tensor& got) {
  if (got.scalar_type() != at::kLong || got.numel() == 0) return {};
  std::vector<Choice> seen;
  std::vector<at::Tensor> outputs;
  {
    const Watching watching(&seen);
    const auto call = reference.Prepare(leaves, Mode::kEager);
    call->Run();
    outputs = call->Outputs();
  }
  if (output >= outputs.size() || outputs[output].sizes() != got.sizes()) return {};
  const at::Tensor& places = outputs[output];
  at::Tensor good;
  for (const Choice& choice : seen) {
    if (!Is(places, choice)) continue;
    if (choice.stable) return {};
    if (!good.defined()) good = AsGood(choice, places, got);
  }
  if (!good.defined() || good.logical_and(got.ne(places)).sum().item<std::int64_t>() == 0) return {};
  return at::where(good, places, got);
}

}  // namespace grove::judge
