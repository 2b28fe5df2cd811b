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

DoubleWork DoubleWorkOf(const json& graph, const json& inputs, const json& parameters) {
  bool any = false, made = false;  // comes in in float64, is made in it
  std::set<std::string> given;     // what comes in in a shorter type, until it is converted
  const auto comes_in = [&](const json& types, const std::string& prefix) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (WidthOf(types[i]) == Width::kShort) given.insert(prefix + std::to_string(i));
      any = any || WidthOf(types[i]) == Width::kDouble;
    }
  };
  comes_in(inputs, "in");
  comes_in(parameters, "p");
  const bool widened = !given.empty();
  std::set<std::string> shorter;  // values that were converted
  for (const json& operation : graph) {
    const std::string name = OperationName(operation.value("kind", ""));
    const bool passes = Passes().Has(name), converts = Converts().Has(name);
    bool of_given = false, of_shorter = false;
    for (const json& operand : operation.at("inputs")) {
      of_given = of_given || given.count(operand.get<std::string>()) != 0;
      of_shorter = of_shorter || shorter.count(operand.get<std::string>()) != 0;
    }
    if (of_shorter && !passes) return DoubleWork::kOther;
    const json &outputs = operation.at("outputs"), &types = operation.at("output_types");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Width width = i < types.size() ? WidthOf(types[i]) : Width::kNone;
      const std::string output = outputs[i].get<std::string>();
      if (passes) {  // (a list has no type of its own)
        if (of_given) given.insert(output);
        if (of_shorter || (width == Width::kShort && !of_given)) shorter.insert(output);
        continue;
      }
      if (i >= types.size() || (width == Width::kShort && !converts)) return DoubleWork::kOther;
      // (What is of two types is computed in the wider one.)
      if (of_given && width != Width::kDouble) return DoubleWork::kOther;
      if (width == Width::kShort) shorter.insert(output);
      made = made || width == Width::kDouble;
    }
  }
  if (graph.empty() || !(widened ? made : any)) return DoubleWork::kOther;
  return widened ? DoubleWork::kWidened : DoubleWork::kThroughout;
}

std::vector<bool> DoubleInputs(const json& graph, const json& inputs, const json& parameters) {
  if (DoubleWorkOf(graph, inputs, parameters) == DoubleWork::kThroughout) return {};
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
