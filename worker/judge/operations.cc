#include "worker/judge/operations.h"

#include <string_view>

namespace grove::judge {

using nlohmann::json;

std::string OperationName(const std::string& kind) {
  const std::size_t at = kind.rfind("::");
  return at == std::string::npos ? kind : kind.substr(at + 2);
}

bool InPlace(const std::string& kind) {
  const auto ends = [&kind](std::string_view with) {
    return kind.size() >= with.size() && kind.compare(kind.size() - with.size(), with.size(), with) == 0;
  };
  // Python's operators: __and__ gives a new value, __iand__ changes its operand.
  if (ends("__")) return kind.find("::__i") != std::string::npos && !ends("__invert__");
  return ends("_");
}

json Constant(const std::string& operand) { return json::parse(operand, nullptr, /*allow_exceptions=*/false); }

std::optional<double> Number(const std::string& operand) {
  const json constant = Constant(operand);
  return constant.is_number() ? std::optional(constant.get<double>()) : std::nullopt;
}

std::optional<double> Number(const json& operands, std::size_t at) {
  return at < operands.size() ? Number(operands[at].get<std::string>()) : std::nullopt;
}

}  // namespace grove::judge
