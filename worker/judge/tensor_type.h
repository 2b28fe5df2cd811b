// The one place where torch's names of element types and the protocol's meet (common/wire/dtype.h has the latter), and
// what is asked of a tensor's strides and of a single flag.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace grove::judge {

// "float32". Throws ProblemError for a type that no candidate can be given.
std::string ShortType(at::ScalarType type);
// The other way round; the name must be one of wire::FindDType's.
at::ScalarType TorchType(std::string_view name);
std::string TypeText(const at::Tensor& tensor);  // "float32[4,8]"
// Whether its elements are floating-point or complex numbers; all others are of an exact type.
bool Fractions(const at::Tensor& tensor);
bool True(const at::Tensor& condition);  // of one element
bool IsHalf(at::ScalarType type);        // float16 or bfloat16
// The strides of a contiguous tensor of these sizes, also where a size of 1 or 0 leaves others open.
std::vector<std::int64_t> RowMajor(at::IntArrayRef sizes);
// The same values in memory of these strides; the tensor itself where it has them.
at::Tensor WithStrides(const at::Tensor& tensor, at::IntArrayRef strides);
// What lies in a dense tensor's memory, in the order of the memory.
at::Tensor InMemoryOrder(const at::Tensor& tensor);

}  // namespace grove::judge
