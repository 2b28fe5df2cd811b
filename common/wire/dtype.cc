#include "common/wire/dtype.h"

#include <array>

namespace grove::wire {
namespace {

constexpr std::array<DType, 12> kTypes{{
    {"float32", DTypeKind::kFloat, 2, 32},
    {"float64", DTypeKind::kFloat, 2, 64},
    {"float16", DTypeKind::kFloat, 2, 16},
    {"bfloat16", DTypeKind::kBfloat, 4, 16},
    {"int64", DTypeKind::kInt, 0, 64},
    {"int32", DTypeKind::kInt, 0, 32},
    {"int16", DTypeKind::kInt, 0, 16},
    {"int8", DTypeKind::kInt, 0, 8},
    {"uint8", DTypeKind::kUint, 1, 8},
    {"bool", DTypeKind::kBool, 6, 8},
    {"complex64", DTypeKind::kComplex, 5, 64},
    {"complex128", DTypeKind::kComplex, 5, 128},
}};

}  // namespace

std::optional<DType> FindDType(std::string_view name) {
  for (const DType& type : kTypes) {
    if (type.name == name) return type;
  }
  return std::nullopt;
}

std::optional<std::int64_t> CountElements(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return std::nullopt;
  }
  return count;
}

}  // namespace grove::wire
