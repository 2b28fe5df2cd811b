#include "worker/judge/indices.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "worker/judge/operations.h"
#include "worker/judge/words.h"

namespace grove::judge {
namespace {

using nlohmann::json;

// Give elements of their first operand as they are, or several tensors of them.
const WordList& Passes() {
  static const auto* words = new WordList(
      "ListUnpack TupleUnpack _to_copy alias chunk clone contiguous detach expand expand_as flatten movedim narrow "
      "permute ravel reshape select slice split squeeze t to transpose type_as unbind unflatten unsqueeze view ");
  return *words;
}
const WordList& Lists() {
  static const auto* words = new WordList("ListConstruct TupleConstruct ");
  return *words;
}
// Ask of their first operand how it is made, and not what is in it.
const WordList& Shapes() {
  static const auto* words =
      new WordList("dim empty_like full_like new_empty new_full new_ones new_zeros numel ones_like size zeros_like ");
  return *words;
}
const WordList& Compares() {
  static const auto* words = new WordList("__eq__ __ne__ eq ne not_equal ");
  return *words;
}
const WordList& Losses() {  // of one label for each row
  static const auto* words = new WordList("cross_entropy_loss nll_loss nll_loss2d nll_loss_nd ");
  return *words;
}
const WordList& Reads() {  // (self, dim, index)
  static const auto* words = new WordList("gather index_select ");
  return *words;
}
const WordList& Adds() {  // the same
  static const auto* words = new WordList("index_add scatter_add scatter_reduce ");
  return *words;
}
// (self, number): where it is none of the numbers below zero, which stand for nothing, or where it is one.
const WordList& Orders() {
  static const auto* words =
      new WordList("__ge__ __gt__ __le__ __lt__ ge greater greater_equal gt le less less_equal lt ");
  return *words;
}
const WordList& Negates() {
  static const auto* words = new WordList("__invert__ bitwise_not logical_not ");
  return *words;
}
const WordList& Zeros() {
  static const auto* words = new WordList("new_zeros zeros zeros_like ");
  return *words;
}
constexpr std::size_t kIndex = 2;                       // operand of these
constexpr std::size_t kLabel = 1, kIgnored = 4;         // operands of a loss
constexpr std::size_t kRows = 1, kPadding = 8;          // of an embedding and a bag of them
constexpr std::size_t kSubscript = 1, kAccumulate = 3;  // of index and index_put
constexpr double kNothingIgnored = -100;

class Reader {
 public:
  // `in_place`: the graph has operations that change something.
  Reader(const json& inputs, const json& parameters, bool in_place) : in_place_(in_place), uses_(inputs.size()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = "in" + std::to_string(i), dtype = inputs[i].value("dtype", "");
      types_[name] = inputs[i];
      if (dtype != "int32" && dtype != "int64") continue;
      holds_[name] = {i, {}};
      uses_[i].known = true;
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) types_["p" + std::to_string(i)] = parameters[i];
  }

  void Read(const json& operation) {
    const std::string kind = operation.value("kind", "");
    std::string name = OperationName(kind);
    const json& operands = operation.at("inputs");
    const json &outputs = operation.at("outputs"), &types = operation.at("output_types");
    for (std::size_t i = 0; i < outputs.size() && i < types.size(); ++i)
      types_[outputs[i].get<std::string>()] = types[i];
    if (Lists().Has(name)) {
      lists_[outputs.at(0).get<std::string>()] = operands;
      FollowMasks(name, operands, outputs);
      return;
    }
    if (Zeros().Has(name) && !outputs.empty()) zeros_.insert(outputs.at(0).get<std::string>());
    if (Negates().Has(name) && !operands.empty()) Negate(operands, outputs);
    if (InPlace(kind) && !name.empty() && name.back() == '_') {
      if (const auto changed = Held(operands, 0)) uses_[changed->input].known = false;
      name.pop_back();
    }
    FollowMasks(name, operands, outputs);
    for (std::size_t operand = 0; operand < operands.size(); ++operand) {
      if (const auto input = Held(operands, operand)) {
        // (A view of another type has other numbers.)
        if (operand == 0 && Passes().Has(name) && !(name == "view" && Number(operands, 1)) && Wide(types)) {
          for (const json& output : outputs) holds_[output.get<std::string>()] = *input;
        } else if (const auto kept = Guarded(name, operands, operand, *input)) {
          holds_[outputs.at(0).get<std::string>()] = *kept;
          uses_[input->input].guarded = true;
        } else {
          Used(name, operands, outputs, operand, *input);
        }
      } else if (const auto list = lists_.find(operands[operand].get<std::string>()); list != lists_.end()) {
        bool masked = false;  // a mask takes several dimensions, and what comes behind it counts otherwise
        for (std::size_t i = 0; i < list->second.size(); ++i) {
          masked = masked || IsFlags(list->second[i].get<std::string>());
          const auto within = Held(list->second, i);
          if (!within) continue;
          if (operand == kSubscript && Subscripts(name, operands) && !masked) {
            At(operands, 0, static_cast<double>(i), Indices::Use::kPlaces, *within);
            uses_[within->input].adds = uses_[within->input].adds || name == "index_put";
          } else {
            uses_[within->input].known = false;
          }
        }
      }
    }
  }

  std::vector<Indices> Result() const {
    std::vector<Indices> all;
    for (const Uses& uses : uses_) {
      Indices& one = all.emplace_back();
      if (!uses.known || uses.places.empty()) continue;
      if (uses.guarded && uses.points) continue;
      one.use = uses.labels ? Indices::Use::kLabels : Indices::Use::kPlaces;
      one.adds = uses.adds;
      double rows = HUGE_VAL;
      for (const Places& of : uses.places) {
        // A number that is one in all tables is one wherever the input stands. (Infinite: in whatever there is.)
        if (std::isfinite(of.count) && std::isfinite(rows) && rows != of.count) one.use = Indices::Use::kOther;
        rows = std::min(rows, of.count);
      }
      const auto harmless = [&uses = uses](double value) {
        return !uses.counted && std::all_of(uses.places.begin(), uses.places.end(), [&](const Places& of) {
          return of.guard.Takes(value) || (value >= 0 && value < of.count) || !std::isfinite(of.count);
        });
      };
      const auto keep = [&](const std::vector<double>& from, std::vector<double>* to) {
        for (double value : from) {
          if (harmless(value) && std::find(to->begin(), to->end(), value) == to->end()) to->push_back(value);
        }
      };
      keep(uses.named, &one.named);
      keep(uses.compared, &one.compared);
      const bool names = !uses.adds && (uses.guarded ? !one.compared.empty() : !uses.compared.empty());
      if (names && one.use == Indices::Use::kPlaces) one.use = Indices::Use::kNames;
    }
    return all;
  }

 private:
  // Numbers that have gone before a use, and the largest of what stands in their place.
  struct Guard {
    std::vector<double> numbers;
    double below = -HUGE_VAL;  // all of these
    double instead = 0;
    bool Takes(double value) const {
      return value < below || std::find(numbers.begin(), numbers.end(), value) != numbers.end();
    }
  };
  struct Element {  // of an input, as it is or guarded
    std::size_t input;
    Guard guard;
  };
  struct Places {  // of a use
    double count;
    Guard guard;
  };
  struct Mask {  // where a value is this number, or is not (below zero: all such numbers)
    std::string of;
    double number;
    bool equal;
    bool below;
  };
  struct Uses {
    bool known = false, labels = true, adds = false, counted = false;
    bool guarded = false, points = false;  // what comparisons make of it says where something is
    std::vector<Places> places;
    std::vector<double> named, compared;
  };

  std::optional<Element> Held(const json& operands, std::size_t at) const {
    if (at >= operands.size()) return std::nullopt;
    const auto known = holds_.find(operands[at].get<std::string>());
    return known != holds_.end() ? std::optional(known->second) : std::nullopt;
  }

  // What is put to places that a list of indices names is open where one is there twice, unless both are added.
  static bool Subscripts(const std::string& name, const json& operands) {
    if (name == "index") return true;
    return (name == "index_put" || name == "_index_put_impl") && operands.size() > kAccumulate &&
           operands[kAccumulate] == "true";
  }

  // Nothing where that is not known. (A constant is named by its type: {"tensor":"float32[16,8]"}.)
  std::optional<std::vector<double>> Shape(const json& name) const {
    if (const auto type = types_.find(name.get<std::string>()); type != types_.end()) {
      if (!type->second.contains("shape")) return std::nullopt;
      return type->second.at("shape").get<std::vector<double>>();
    }
    const json constant = Constant(name.get<std::string>());
    if (!constant.is_object() || !constant.contains("tensor")) return std::nullopt;
    const std::string type = constant.at("tensor").get<std::string>();
    const std::size_t begin = type.find('[');
    const json shape = begin == std::string::npos ? json() : Constant(type.substr(begin));
    if (!shape.is_array()) return std::nullopt;
    return shape.get<std::vector<double>>();
  }

  // A use for places of this dimension of an operand (negative: from the last).
  void At(const json& operands, std::size_t table, std::optional<double> dim, Indices::Use use, const Element& element,
          std::optional<double> ignored = std::nullopt) {
    Uses* uses = &uses_[element.input];
    uses->labels = uses->labels && use == Indices::Use::kLabels;
    const auto shape = Shape(operands.at(table));
    const double at = !dim || !shape ? -1 : *dim < 0 ? *dim + static_cast<double>(shape->size()) : *dim;
    if (at < 0 || at >= static_cast<double>(shape->size())) {
      uses->known = false;
      return;
    }
    const double count = (*shape)[static_cast<std::size_t>(at)];
    if (element.guard.instead >= count) uses->known = false;
    uses->places.push_back({count, element.guard});
    if (ignored) uses->places.back().guard.numbers.push_back(*ignored);
  }

  // What is written in the place of numbers that stand for nothing: elements.clamp(min=0), masked_fill(elements ==
  // -100, 0), where(elements != -1, elements, 0).
  std::optional<Element> Guarded(const std::string& name, const json& operands, std::size_t operand,
                                 Element element) const {
    if (in_place_) return std::nullopt;  // masks and zeros may be others then
    if ((name == "clamp" || name == "clamp_min" || name == "clip") && operand == 0) {
      const auto least = Number(operands, 1);
      if (!least || *least < 0) return std::nullopt;
      element.guard.below = std::max(element.guard.below, *least);
      element.guard.instead = std::max(element.guard.instead, *least);
      return element;
    }
    const bool fills = name == "masked_fill" && operand == 0, chooses = name == "where" && operand > 0;
    if ((!fills && !chooses) || operands.size() != 3) return std::nullopt;
    const auto mask = masks_.find(operands[fills ? 1 : 0].get<std::string>());
    const std::size_t other = fills ? 2 : 3 - operand;
    const auto instead = zeros_.count(operands[other].get<std::string>()) != 0 ? 0 : Number(operands, other);
    // The number goes where it is one that is equal, and here where it is chosen in the other case.
    if (mask == masks_.end() || mask->second.of != operands[operand].get<std::string>() || !instead || *instead < 0)
      return std::nullopt;
    if (mask->second.equal != (fills || operand == 2)) return std::nullopt;
    if (mask->second.below) element.guard.below = std::max(element.guard.below, 0.0);
    element.guard.numbers.push_back(mask->second.number);
    element.guard.instead = std::max(element.guard.instead, *instead);
    return element;
  }

  void Negate(const json& operands, const json& outputs) {
    const auto mask = masks_.find(operands.at(0).get<std::string>());
    if (mask == masks_.end()) return;
    Mask negated = mask->second;
    negated.equal = !negated.equal;
    masks_[outputs.at(0).get<std::string>()] = negated;
  }

  static bool Wide(const json& types) {  // shorter ones hold other numbers
    return std::all_of(types.begin(), types.end(), [](const json& type) {
      const std::string dtype = type.is_object() ? type.value("dtype", "") : "";
      return dtype.find("int8") == std::string::npos && dtype != "int16";
    });
  }

  // As many as are counted, or where they are: with more of them places may be named that do not exist.
  void FollowMasks(const std::string& name, const json& operands, const json& outputs) {
    std::set<std::size_t> of, points;
    for (std::size_t operand = 0; operand < operands.size(); ++operand) {
      std::set<std::size_t> here;
      const auto add = [&](const std::string& value) {
        if (const auto made = made_.find(value); made != made_.end())
          here.insert(made->second.begin(), made->second.end());
      };
      const std::string value = operands[operand].get<std::string>();
      add(value);
      bool flags = IsFlags(value);
      if (const auto list = lists_.find(value); list != lists_.end()) {
        for (const json& item : list->second) {
          add(item.get<std::string>());
          flags = flags || IsFlags(item.get<std::string>());
        }
      }
      const bool second = name == "take" || name == "masked_scatter" || name == "repeat_interleave";
      const bool index = ((Reads().Has(name) || Adds().Has(name) || name == "scatter") && operand == kIndex) ||
                         (name == "embedding" && operand == kRows) || (name == "one_hot" && operand == 0) ||
                         ((name == "index" || name == "index_put") && operand == kSubscript && !flags) ||
                         (second && operand == 1) || (name == "repeat_interleave" && operands.size() < 3);
      if (index) points.insert(here.begin(), here.end());
      of.insert(here.begin(), here.end());
    }
    for (const std::size_t input : points) uses_[input].points = true;
    const bool compares = Compares().Has(name) || Orders().Has(name);
    for (std::size_t operand = 0; compares && operand < operands.size(); ++operand) {
      if (const auto input = Held(operands, operand)) of.insert(input->input);
    }
    // (What is replaced by them is followed as such.)
    const bool replaces =
        (name == "masked_fill" && Held(operands, 0)) || (name == "where" && (Held(operands, 1) || Held(operands, 2)));
    if (of.empty() || replaces) return;
    for (const json& output : outputs) made_[output.get<std::string>()] = of;
  }

  bool IsFlags(const std::string& value) const {
    const auto type = types_.find(value);
    const std::string dtype = type != types_.end() ? type->second.value("dtype", "") : "";
    return dtype == "bool" || dtype == "uint8";
  }

  // Compared with zero, or with -1, by which is larger: -1 is what stands for nothing.
  static std::optional<bool> IsBelowZero(const std::string& name, double number) {
    const bool zero = number == 0, one_less = number == -1;
    if (name == "lt" || name == "less" || name == "__lt__") return zero ? std::optional(true) : std::nullopt;
    if (name == "le" || name == "less_equal" || name == "__le__") return one_less ? std::optional(true) : std::nullopt;
    if (name == "ge" || name == "greater_equal" || name == "__ge__") return zero ? std::optional(false) : std::nullopt;
    return one_less ? std::optional(false) : std::nullopt;
  }

  void Used(const std::string& name, const json& operands, const json& outputs, std::size_t operand,
            const Element& element) {
    using Use = Indices::Use;
    constexpr double kAnywhere = HUGE_VAL;
    Uses* uses = &uses_[element.input];
    if (Shapes().Has(name) && operand == 0) return;
    if (Compares().Has(name) && operands.size() == 2) {
      const auto number = Number(operands, 1 - operand);
      if (!number) {
        uses->known = false;
      } else {
        uses->places.push_back({kAnywhere, {}});
        if (*number == std::round(*number)) uses->compared.push_back(*number);
        const bool equal = name == "eq" || name == "__eq__";
        if (Plain(element)) masks_[outputs.at(0).get<std::string>()] = {operands[operand], *number, equal, false};
      }
    } else if (Orders().Has(name) && operand == 0 && operands.size() == 2) {
      const auto number = Number(operands, 1);
      const auto below = number ? IsBelowZero(name, *number) : std::nullopt;
      if (!below) {
        uses->known = false;
      } else {
        uses->places.push_back({kAnywhere, {}});
        uses->compared.push_back(-1);
        if (Plain(element)) masks_[outputs.at(0).get<std::string>()] = {operands[operand], -1, *below, true};
      }
    } else if (Losses().Has(name) && operand == kLabel) {
      const auto ignored = Number(operands, kIgnored);
      const auto scores = Shape(operands.at(0));
      At(operands, 0, scores && scores->size() < 2 ? 0.0 : 1.0, Use::kLabels, element, ignored);
      if (ignored && *ignored != kNothingIgnored) uses->named.push_back(*ignored);
    } else if (name == "ctc_loss" && operand == kLabel) {
      At(operands, 0, -1, Use::kLabels, element);
    } else if ((name == "embedding" || name == "embedding_bag") && operand == kRows) {
      At(operands, 0, 0, Use::kLabels, element);
      const auto padding = name == "embedding_bag" ? Number(operands, kPadding) : std::nullopt;
      if (padding && *padding >= 0) uses->named.push_back(*padding);
    } else if (name == "bincount" && operand == 0) {
      // As many places as the largest number: none that is named.
      uses->places.push_back({kAnywhere, {}});
      uses->counted = true;
      uses->labels = false;
      uses->adds = true;
    } else if (name == "one_hot" && operand == 0 && Number(operands, 1).value_or(0) > 0) {
      uses->places.push_back({*Number(operands, 1), element.guard});
      if (element.guard.instead >= *Number(operands, 1)) uses->known = false;
    } else if ((Reads().Has(name) || Adds().Has(name)) && operand == kIndex) {
      At(operands, 0, Number(operands, 1), Use::kPlaces, element);
      uses->adds = uses->adds || Adds().Has(name);
    } else if (name == "scatter" && operand == kIndex && operands.size() == 4 && Number(operands, 3)) {
      At(operands, 0, Number(operands, 1), Use::kPlaces, element);  // of a number, the same whichever is written
    } else {
      uses->known = false;
    }
  }

  static bool Plain(const Element& element) {
    return element.guard.numbers.empty() && element.guard.below == -HUGE_VAL;
  }

  std::map<std::string, Element> holds_;  // of values: the input whose elements they hold
  std::map<std::string, Mask> masks_;     // of values
  std::set<std::string> zeros_;
  std::map<std::string, std::set<std::size_t>> made_;  // of values: the inputs whose comparisons they are made of
  const bool in_place_;
  std::map<std::string, json> types_, lists_;
  std::vector<Uses> uses_;
};

}  // namespace

std::vector<Indices> IndicesOf(const json& graph, const json& inputs, const json& parameters) {
  const bool in_place = std::any_of(graph.begin(), graph.end(),
                                    [](const json& operation) { return InPlace(operation.value("kind", "")); });
  Reader reader(inputs, parameters, in_place);
  for (const json& operation : graph) reader.Read(operation);
  return reader.Result();
}

}  // namespace grove::judge
