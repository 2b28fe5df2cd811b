#include "worker/judge/closed_masks.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "worker/judge/observed.h"
#include "worker/judge/operations.h"
#include "worker/judge/set.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// exp(-64) is less than what float32 can add to 1, whatever else there is.
constexpr double kCloses = 64;

struct Closing {
  Closing() = default;
  ~Closing() {  // what was changed in place may be more than this run's: a buffer
    for (auto one = changed.rbegin(); one != changed.rend(); ++one) one->first.copy_(one->second);
  }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

  bool busy = false;                                       // what is run is no part of the program
  bool closed = false;                                     // there was a mask
  std::vector<std::pair<at::Tensor, at::Tensor>> changed;  // in place, and as it was
};

thread_local Closing* closing = nullptr;

bool Doubles(const at::Tensor& tensor) {
  return tensor.defined() && tensor.scalar_type() == at::kDouble && tensor.numel() > 1;
}

// Puts infinity in the place of the largest negative number, where it stands in several places; where all others are
// zeros the largest positive one, too, for that is subtracted. Whether there is such a number.
bool Close(const at::Tensor& mask) {
  const auto close = [&](double number) {
    const at::Tensor there = mask.eq(number);
    if (there.sum().item<std::int64_t>() < 2) return false;
    mask.masked_fill_(there, number < 0 ? -kInfinity : kInfinity);
    return true;
  };
  const double least = mask.min().item<double>(), most = mask.max().item<double>();
  if (least <= -kCloses && least > -kInfinity && close(least)) return true;
  return least == 0 && most >= kCloses && most < kInfinity && mask.eq(0).logical_or(mask.eq(most)).all().item<bool>() &&
         close(most);
}

struct Masks : at::ObserverContext {
  bool in_place = false;
};

std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& function) {
  if (closing == nullptr || closing->busy) return nullptr;
  for (const char* name : {"aten::masked_fill", "aten::masked_fill_", "aten::where", "aten::mul", "aten::mul_"}) {
    if (std::strcmp(function.name(), name) != 0) continue;
    auto masks = std::make_unique<Masks>();
    masks->in_place = InPlace(name);
    return masks;
  }
  return nullptr;
}

void End(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto* masks = dynamic_cast<Masks*>(context);
  if (masks == nullptr || closing == nullptr || closing->busy) return;
  const Set<bool> busy(&closing->busy, true);
  try {
    for (const c10::IValue& output : function.outputs()) {
      if (!output.isTensor() || !Doubles(output.toTensor())) continue;
      const at::Tensor& result = output.toTensor();
      const at::Tensor before = masks->in_place ? result.clone() : at::Tensor();
      if (!Close(result)) continue;
      closing->closed = true;
      if (before.defined()) closing->changed.emplace_back(result, before);
    }
  } catch (const std::exception&) {  // no memory: as it is
  }
}

}  // namespace

std::vector<at::Tensor> WithClosedMasks(Reference& reference, const std::vector<Leaf>& leaves) {
  Closing how;
  std::vector<Leaf> closed = leaves;
  for (Leaf& leaf : closed) {
    if (leaf.scalar || !Fractions(leaf.tensor) || leaf.tensor.is_complex() || leaf.tensor.numel() < 2) continue;
    const at::Tensor values = leaf.tensor.to(at::kDouble);
    const double least = values.min().item<double>();
    if (!(least <= -kCloses) || !values.eq(0).logical_or(values.eq(least)).all().item<bool>()) continue;
    const at::Tensor mask = values.clone();
    if (!Close(mask)) continue;
    leaf.tensor = WithStrides(mask.to(leaf.tensor.scalar_type()), leaf.tensor.strides());
    how.closed = true;
  }
  const auto call = reference.Prepare(closed, Mode::kDouble);
  {
    const Set<Closing*> here(&closing, &how);
    const Observed<Begin, End> observed;
    call->Run();
  }
  std::vector<at::Tensor> outputs;
  if (!how.closed) return outputs;
  for (const at::Tensor& output : call->Outputs()) outputs.push_back(output.clone());
  return outputs;
}

}  // namespace grove::judge
