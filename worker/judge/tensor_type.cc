#include "worker/judge/tensor_type.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "worker/judge/reference.h"

namespace grove::judge {
namespace {

constexpr std::pair<std::string_view, at::ScalarType> kTypes[] = {{"float32", at::kFloat},
                                                                  {"float64", at::kDouble},
                                                                  {"float16", at::kHalf},
                                                                  {"bfloat16", at::kBFloat16},
                                                                  {"int64", at::kLong},
                                                                  {"int32", at::kInt},
                                                                  {"int16", at::kShort},
                                                                  {"int8", at::kChar},
                                                                  {"uint8", at::kByte},
                                                                  {"bool", at::kBool},
                                                                  {"complex64", at::kComplexFloat},
                                                                  {"complex128", at::kComplexDouble}};

}  // namespace

std::string ShortType(at::ScalarType type) {
  for (const auto& [name, known] : kTypes) {
    if (known == type) return std::string(name);
  }
  throw ProblemError(std::string("a tensor of type ") + c10::toString(type) +
                     " cannot be handed to a candidate; use float, int, bool or complex types");
}

at::ScalarType TorchType(std::string_view name) {
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  throw std::out_of_range("unknown type " + std::string(name));
}

std::string TypeText(const at::Tensor& tensor) {
  return ShortType(tensor.scalar_type()) + nlohmann::json(tensor.sizes().vec()).dump();
}

bool Fractions(const at::Tensor& tensor) { return tensor.is_floating_point() || tensor.is_complex(); }

bool True(const at::Tensor& condition) { return condition.item<bool>(); }

bool IsHalf(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

std::vector<std::int64_t> RowMajor(at::IntArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t d = sizes.size(); d-- > 0; step *= std::max<std::int64_t>(sizes[d], 1)) strides[d] = step;
  return strides;
}

at::Tensor WithStrides(const at::Tensor& tensor, at::IntArrayRef strides) {
  if (tensor.strides() == strides) return tensor;
  at::Tensor result = at::empty_strided(tensor.sizes(), strides, tensor.options());
  result.copy_(tensor);
  return result;
}

at::Tensor InMemoryOrder(const at::Tensor& tensor) { return tensor.as_strided({tensor.numel()}, {1}); }

}  // namespace grove::judge
