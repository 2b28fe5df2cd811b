#include "worker/judge/in_double.h"

#include <map>
#include <set>
#include <string>

#include "worker/judge/operations.h"
#include "worker/judge/words.h"

namespace grove::judge {
namespace {

using nlohmann::json;

const WordList& Converts() {
  static const auto* words = new WordList("_to_copy to type_as ");
  return *words;
}
// Hand on what they are given.
const WordList& Passes() {
  static const auto* words = new WordList(
      "ListConstruct ListUnpack TupleConstruct TupleUnpack alias chunk clone contiguous detach expand expand_as "
      "flatten movedim narrow permute ravel reshape select slice split squeeze t to transpose unbind unflatten "
      "unsqueeze "
      "view ");
  return *words;
}
// Say of what they are given how it is made, and not what is in it.
const WordList& Shapes() {
  static const auto* words = new WordList(
      "dim empty_like full_like new_empty new_full new_ones new_zeros numel ones_like rand_like randn_like size "
      "zeros_like ");
  return *words;
}
// Give fractions that jump.
const WordList& Steps() {
  static const auto* words =
      new WordList("ceil floor floor_divide fmod frac hardshrink heaviside remainder round sgn sign trunc ");
  return *words;
}

enum class Width { kNone, kShort, kDouble };  // of fractions

Width WidthOf(const json& type) {
  const std::string dtype = type.is_object() ? type.value("dtype", std::string()) : std::string();
  if (dtype == "float64" || dtype == "complex128") return Width::kDouble;
  const bool fractions =
      dtype.rfind("float", 0) == 0 || dtype.rfind("bfloat", 0) == 0 || dtype.rfind("complex", 0) == 0;
  return fractions ? Width::kShort : Width::kNone;
}

}  // namespace

bool InDouble(const json& graph, const json& inputs, const json& parameters) {
  if (graph.empty()) return false;
  bool any = false;
  for (const json* types : {&inputs, &parameters}) {
    for (const json& type : *types) {
      if (WidthOf(type) == Width::kShort) return false;
      any = any || WidthOf(type) == Width::kDouble;
    }
  }
  std::set<std::string> shorter;  // values that were converted
  for (const json& operation : graph) {
    const std::string name = OperationName(operation.value("kind", ""));
    for (const json& operand : operation.at("inputs")) {
      if (shorter.count(operand.get<std::string>()) != 0 && !Passes().Has(name)) return false;
    }
    const json &outputs = operation.at("outputs"), &types = operation.at("output_types");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool unknown = i >= types.size() && !Passes().Has(name);
      const bool is_short = i < types.size() && WidthOf(types[i]) == Width::kShort;
      if (unknown || (is_short && !Converts().Has(name) && !Passes().Has(name))) return false;
      bool passed = false;  // a list of them has no type of its own
      for (const json& operand : operation.at("inputs"))
        passed = passed || shorter.count(operand.get<std::string>()) != 0;
      if (is_short || passed) shorter.insert(outputs[i].get<std::string>());
    }
  }
  return any;
}

std::vector<bool> DoubleInputs(const json& graph, const json& inputs, const json& parameters) {
  if (InDouble(graph, inputs, parameters)) return {};
  std::vector<bool> used(inputs.size(), false);
  std::map<std::string, std::size_t> holds;  // of values: the input whose elements they are
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (WidthOf(inputs[i]) == Width::kDouble) holds["in" + std::to_string(i)] = i;
  }
  for (const json& operation : graph) {
    const std::string name = OperationName(operation.value("kind", ""));
    const json &outputs = operation.at("outputs"), &types = operation.at("output_types");
    // What jumps does so by what the conversion rounds, too, which no nudge of these inputs would show.
    if (Steps().Has(name)) return {};
    for (const json& type : types) {
      const std::string dtype = type.is_object() ? type.value("dtype", std::string()) : std::string();
      if (dtype == "bool" || dtype.rfind("int", 0) == 0 || dtype.rfind("uint", 0) == 0) return {};
    }
    for (const json& operand : operation.at("inputs")) {
      const auto held = holds.find(operand.get<std::string>());
      if (held == holds.end()) continue;
      const std::size_t input = held->second;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Width width = i < types.size() ? WidthOf(types[i]) : Width::kNone;
        if (Shapes().Has(name)) continue;
        if (Passes().Has(name)) {
          if (width != Width::kShort) holds[outputs[i].get<std::string>()] = input;
        } else if (!Converts().Has(name)) {
          used[input] = used[input] || width == Width::kDouble;
        }
      }
    }
  }
  return used;
}

}  // namespace grove::judge
