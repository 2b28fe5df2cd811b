// The one place where torch's names of element types and the protocol's meet (common/wire/dtype.h has the latter).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace grove::judge {

// "float32". Throws ProblemError for a type that no candidate can be given.
std::string ShortType(at::ScalarType type);
// The other way round; the name must be one of wire::FindDType's.
at::ScalarType TorchType(std::string_view name);
std::string TypeText(const at::Tensor& tensor);  // "float32[4,8]"
// Whether its elements are floating-point or complex numbers; all others are of an exact type.
bool Fractions(const at::Tensor& tensor);

}  // namespace grove::judge
