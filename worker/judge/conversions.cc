#include "worker/judge/conversions.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "worker/judge/observed.h"
#include "worker/judge/set.h"

namespace grove::judge {
namespace {

thread_local bool* overflowed = nullptr;

// Every conversion is a copy between types in the end.
std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& function) {
  if (overflowed == nullptr || *overflowed || std::strcmp(function.name(), "aten::copy_") != 0) return nullptr;
  const auto inputs = function.inputs();
  if (inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isTensor()) return nullptr;
  const at::Tensor &to = inputs[0].toTensor(), &from = inputs[1].toTensor();
  if (!to.defined() || !from.defined() || !from.is_floating_point() || from.numel() == 0) return nullptr;
  if (!at::isIntegralType(to.scalar_type(), /*includeBool=*/false)) return nullptr;
  const bool is_signed = at::isSignedType(to.scalar_type());
  const int bits = 8 * static_cast<int>(to.element_size()) - (is_signed ? 1 : 0);
  const double most = std::ldexp(1.0, bits), least = is_signed ? -most : 0;
  const at::Tensor values = from.scalar_type() == at::kDouble ? from : from.to(at::kFloat);
  // Fractions are cut off. (NaN is neither.)
  *overflowed = !(values.min().item<double>() > least - 1 && values.max().item<double>() < most);
  return nullptr;
}

void End(const at::RecordFunction& /*function*/, at::ObserverContext* /*context*/) {}

}  // namespace

bool Overflows(const std::function<void()>& work) {
  bool seen = false;
  const Set<bool*> set(&overflowed, &seen);
  const Observed<Begin, End> observed;
  work();
  return seen;
}

}  // namespace grove::judge
