#include "worker/judge/tensor_type.h"

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

}  // namespace grove::judge
