#include "worker/judge/in_double.h"

#include <algorithm>
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
// Give elements of their operands in another order or place, beside those of Passes.
const WordList& Moves() {
  static const auto* words = new WordList(
      "T atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_to cat column_stack concat concatenate "
      "constant_pad_nd diagonal dropout dsplit dstack embedding flip fliplr flipud gather hsplit hstack index "
      "index_select mT masked_fill masked_select meshgrid moveaxis numpy_T pad repeat repeat_interleave reshape_as "
      "roll "
      "rot90 split_with_sizes stack swapaxes swapdims take take_along_dim tensor_split tile tril triu unfold view_as "
      "vsplit vstack where ");
  return *words;
}
// Operations of no tensors, of which nothing is unknown. What a script or a function of its own does inside is.
const WordList& Known() {
  static const auto* words =
      new WordList("prim::ListConstruct prim::ListUnpack prim::NumToTensor prim::TupleConstruct prim::TupleUnpack ");
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

DoubleWork DoubleWorkOf(const json& graph, const json& results, const json& inputs, const json& parameters) {
  bool any = false;                          // comes in in float64
  std::set<std::string> made;                // in float64
  std::map<std::string, std::string> given;  // what comes in in a shorter type, and that; a list of it has none
  std::set<std::string> shorter;             // values that were converted to a shorter type
  const auto comes_in = [&](const json& types, const std::string& prefix) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (WidthOf(types[i]) == Width::kShort) given[prefix + std::to_string(i)] = types[i].value("dtype", "");
      any = any || WidthOf(types[i]) == Width::kDouble;
    }
  };
  comes_in(inputs, "in");
  comes_in(parameters, "p");
  const bool widened = !given.empty();
  for (const json& operation : graph) {
    const std::string kind = operation.value("kind", ""), name = OperationName(kind);
    if (kind.rfind("aten::", 0) != 0 && !Known().Has(kind)) return DoubleWork::kOther;
    const bool converts = Converts().Has(name), passes = converts || Passes().Has(name) || Moves().Has(name);
    std::vector<std::string> operands;
    if (!Shapes().Has(name)) operands = operation.at("inputs").get<std::vector<std::string>>();
    if (converts && operands.size() > 1) operands.resize(1);  // another says the type
    bool of_given = false, of_shorter = false;
    for (const std::string& operand : operands) {
      of_given = of_given || given.count(operand) != 0;
      of_shorter = of_shorter || shorter.count(operand) != 0;
    }
    if (of_shorter && !passes) return DoubleWork::kOther;
    const json &outputs = operation.at("outputs"), &types = operation.at("output_types");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Width width = i < types.size() ? WidthOf(types[i]) : Width::kNone;
      const std::string output = outputs[i].get<std::string>();
      if (width == Width::kDouble) made.insert(output);
      if (!passes) {
        if (i >= types.size() || width == Width::kShort) return DoubleWork::kOther;
        // (What is of two types is computed in the wider one.)
        if (of_given && width != Width::kDouble) return DoubleWork::kOther;
        continue;
      }
      const std::string type = width == Width::kNone ? "" : types[i].value("dtype", "");
      if (of_given && converts && width != Width::kDouble && given.at(operands[0]) != type) return DoubleWork::kOther;
      if (of_given && width != Width::kDouble) given[output] = type;
      if (of_shorter || (width == Width::kShort && !of_given)) shorter.insert(output);
    }
  }
  if (graph.empty() || (made.empty() && (widened || !any))) return DoubleWork::kOther;
  if (!widened && any) return DoubleWork::kThroughout;
  const auto result_of = [&results](const auto& values) {
    return std::any_of(results.begin(), results.end(),
                       [&](const json& result) { return values.count(result.get<std::string>()) != 0; });
  };
  const bool all_made = result_of(made) && !result_of(given) && !result_of(shorter);
  return all_made ? DoubleWork::kThroughout : DoubleWork::kWidened;
}

std::vector<bool> DoubleInputs(const json& graph, const json& results, const json& inputs) {
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
    // Nor would it show what float64 itself rounds.
    for (std::size_t i = 0; i < outputs.size() && i < types.size(); ++i) {
      const bool result = std::find(results.begin(), results.end(), outputs[i]) != results.end();
      if (result && WidthOf(types[i]) == Width::kDouble) return {};
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
