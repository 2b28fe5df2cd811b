#include "worker/judge/indices.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

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
constexpr std::size_t kIndex = 2;                       // operand of these
constexpr std::size_t kLabel = 1, kIgnored = 4;         // operands of a loss
constexpr std::size_t kRows = 1, kPadding = 8;          // of an embedding and a bag of them
constexpr std::size_t kSubscript = 1, kAccumulate = 3;  // of index and index_put
constexpr double kNothingIgnored = -100;

class Reader {
 public:
  Reader(const json& inputs, const json& parameters) : uses_(inputs.size()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = "in" + std::to_string(i), dtype = inputs[i].value("dtype", "");
      types_[name] = inputs[i];
      if (dtype != "int32" && dtype != "int64") continue;
      holds_[name] = i;
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
      return;
    }
    if (InPlace(kind) && !name.empty() && name.back() == '_') {
      if (const auto changed = Held(operands, 0)) uses_[*changed].known = false;
      name.pop_back();
    }
    for (std::size_t operand = 0; operand < operands.size(); ++operand) {
      if (const auto input = Held(operands, operand)) {
        // (A view of another type has other numbers.)
        if (operand == 0 && Passes().Has(name) && !(name == "view" && Number(operands, 1))) {
          for (const json& output : outputs) holds_[output.get<std::string>()] = *input;
        } else {
          Used(name, operands, operand, &uses_[*input]);
        }
      } else if (const auto list = lists_.find(operands[operand].get<std::string>()); list != lists_.end()) {
        bool masked = false;  // a mask takes several dimensions, and what comes behind it counts otherwise
        for (std::size_t i = 0; i < list->second.size(); ++i) {
          const auto type = types_.find(list->second[i].get<std::string>());
          const std::string dtype = type != types_.end() ? type->second.value("dtype", "") : "";
          masked = masked || dtype == "bool" || dtype == "uint8";
          const auto within = Held(list->second, i);
          if (!within) continue;
          if (operand == kSubscript && Subscripts(name, operands) && !masked) {
            At(operands, 0, static_cast<double>(i), Indices::Use::kPlaces, &uses_[*within]);
            uses_[*within].adds = uses_[*within].adds || name == "index_put";
          } else {
            uses_[*within].known = false;
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
      const bool names = !uses.compared.empty() && !uses.adds;
      one.use = uses.labels ? Indices::Use::kLabels : names ? Indices::Use::kNames : Indices::Use::kPlaces;
      one.adds = uses.adds;
      double rows = HUGE_VAL;
      for (const auto& [places, ignored] : uses.places) {
        // A number that is one in all tables is one wherever the input stands. (Infinite: in whatever there is.)
        if (std::isfinite(places) && std::isfinite(rows) && rows != places) one.use = Indices::Use::kOther;
        rows = std::min(rows, places);
      }
      const auto harmless = [&uses = uses](double value) {
        return !uses.counted && std::all_of(uses.places.begin(), uses.places.end(), [&](const auto& of) {
          return of.second == value || (value >= 0 && value < of.first) || !std::isfinite(of.first);
        });
      };
      const auto keep = [&](const std::vector<double>& from, std::vector<double>* to) {
        for (double value : from) {
          if (harmless(value) && std::find(to->begin(), to->end(), value) == to->end()) to->push_back(value);
        }
      };
      keep(uses.named, &one.named);
      keep(uses.compared, &one.compared);
    }
    return all;
  }

 private:
  struct Uses {
    bool known = false, labels = true, adds = false, counted = false;
    std::vector<std::pair<double, std::optional<double>>> places;  // of each use; what it ignores
    std::vector<double> named, compared;
  };

  std::optional<std::size_t> Held(const json& operands, std::size_t at) const {
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
  void At(const json& operands, std::size_t table, std::optional<double> dim, Indices::Use use, Uses* uses,
          std::optional<double> ignored = std::nullopt) {
    uses->labels = uses->labels && use == Indices::Use::kLabels;
    const auto shape = Shape(operands.at(table));
    const double at = !dim || !shape ? -1 : *dim < 0 ? *dim + static_cast<double>(shape->size()) : *dim;
    if (at < 0 || at >= static_cast<double>(shape->size())) {
      uses->known = false;
    } else {
      uses->places.emplace_back((*shape)[static_cast<std::size_t>(at)], ignored);
    }
  }

  void Used(const std::string& name, const json& operands, std::size_t operand, Uses* uses) {
    using Use = Indices::Use;
    constexpr double kAnywhere = HUGE_VAL;
    if (Shapes().Has(name) && operand == 0) return;
    if (Compares().Has(name) && operands.size() == 2) {
      const auto number = Number(operands, 1 - operand);
      if (!number) {
        uses->known = false;
      } else {
        uses->places.emplace_back(kAnywhere, std::nullopt);
        if (*number == std::round(*number)) uses->compared.push_back(*number);
      }
    } else if (Losses().Has(name) && operand == kLabel) {
      const auto ignored = Number(operands, kIgnored);
      const auto scores = Shape(operands.at(0));
      At(operands, 0, scores && scores->size() < 2 ? 0.0 : 1.0, Use::kLabels, uses, ignored);
      if (ignored && *ignored != kNothingIgnored) uses->named.push_back(*ignored);
    } else if (name == "ctc_loss" && operand == kLabel) {
      At(operands, 0, -1, Use::kLabels, uses);
    } else if ((name == "embedding" || name == "embedding_bag") && operand == kRows) {
      At(operands, 0, 0, Use::kLabels, uses);
      const auto padding = name == "embedding_bag" ? Number(operands, kPadding) : std::nullopt;
      if (padding && *padding >= 0) uses->named.push_back(*padding);
    } else if (name == "bincount" && operand == 0) {
      // As many places as the largest number: none that is named.
      uses->places.emplace_back(kAnywhere, std::nullopt);
      uses->counted = true;
      uses->labels = false;
      uses->adds = true;
    } else if (name == "one_hot" && operand == 0 && Number(operands, 1).value_or(0) > 0) {
      uses->places.emplace_back(*Number(operands, 1), std::nullopt);
    } else if ((Reads().Has(name) || Adds().Has(name)) && operand == kIndex) {
      At(operands, 0, Number(operands, 1), Use::kPlaces, uses);
      uses->adds = uses->adds || Adds().Has(name);
    } else if (name == "scatter" && operand == kIndex && operands.size() == 4 && Number(operands, 3)) {
      At(operands, 0, Number(operands, 1), Use::kPlaces, uses);  // of a number, the same whichever is written
    } else {
      uses->known = false;
    }
  }

  std::map<std::string, std::size_t> holds_;  // of values: the input whose elements they hold as they are
  std::map<std::string, json> types_, lists_;
  std::vector<Uses> uses_;
};

}  // namespace

std::vector<Indices> IndicesOf(const json& graph, const json& inputs, const json& parameters) {
  Reader reader(inputs, parameters);
  for (const json& operation : graph) reader.Read(operation);
  return reader.Result();
}

}  // namespace grove::judge
