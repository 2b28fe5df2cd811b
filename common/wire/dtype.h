// The element types that cross between judge and candidate: torch's short names, DLPack's codes, sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace grove::wire {

enum class DTypeKind { kBool, kInt, kUint, kFloat, kBfloat, kComplex };

struct DType {
  std::string_view name;  // "float32"; static storage
  DTypeKind kind;
  std::uint8_t dlpack_code;  // DLDataTypeCode
  std::uint8_t bits;         // of one element
  std::size_t bytes() const { return bits / 8; }
  bool exact() const { return kind == DTypeKind::kBool || kind == DTypeKind::kInt || kind == DTypeKind::kUint; }
};

// By torch's short name; nothing for a name that is not in the table.
std::optional<DType> FindDType(std::string_view name);

// Elements of a shape; nothing when a dimension is negative or the product overflows.
std::optional<std::int64_t> CountElements(const std::vector<std::int64_t>& shape);

}  // namespace grove::wire
