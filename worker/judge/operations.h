// One operation of a problem's graph, as a trace of torch's writes it down (GraphOp of proto/grove/v1): its name, and
// the constants among its operands. Pure: JSON in, no torch.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace grove::judge {

// The name of a kind without its namespace: "aten::add_" is "add_".
std::string OperationName(const std::string& kind);

// Whether an operation of this kind writes to one of its operands: what else that value is known as changes, too.
bool InPlace(const std::string& kind);

// A constant that stands in an operand's place, as JSON: 1.5, true, [0,1], {"tensor":"float32[4]"}. Discarded
// (is_discarded) where the operand is the name of a value.
nlohmann::json Constant(const std::string& operand);

// The same where it is a number.
std::optional<double> Number(const std::string& operand);

// Operand `at` of these (a JSON list of texts), where there is one and it is a number.
std::optional<double> Number(const nlohmann::json& operands, std::size_t at);

}  // namespace grove::judge
