#include "worker/judge/rare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "worker/judge/operations.h"
#include "worker/judge/words.h"

namespace grove::judge {
namespace {

using nlohmann::json;

// Give elements of their first operand, or of a list, as they are; some of them only within bounds, or unless NaN.
const WordList& Passes() {
  static const auto* words = new WordList(
      "ListConstruct ListUnpack TupleConstruct TupleUnpack _to_copy alias broadcast_tensors cat chunk clamp clamp_max "
      "clamp_min clip clone concat contiguous detach expand expand_as flatten flip hardtanh hstack movedim nan_to_num "
      "narrow permute ravel relu repeat reshape roll select slice split split_with_sizes squeeze stack swapaxes "
      "tensor_split tile to transpose t type_as unbind unflatten unsqueeze view vstack ");
  return *words;
}
// Give what may lie in the memory of their first operand.
const WordList& Views() {
  static const auto* words = new WordList(
      "ListUnpack TupleUnpack _to_copy alias chunk contiguous detach expand expand_as flatten movedim narrow permute "
      "ravel reshape select slice split split_with_sizes squeeze swapaxes t tensor_split to transpose type_as unbind "
      "unflatten unsqueeze view ");
  return *words;
}
// Change some elements of what they work on in place, by values or at places that they are asked for.
const WordList& Mends() {
  static const auto* words =
      new WordList("clamp_ clamp_max_ clamp_min_ clip_ hardtanh_ index_put_ masked_fill_ nan_to_num_ relu_ ");
  return *words;
}
// Give memory of their own.
const WordList& Copies() {
  static const auto* words = new WordList(
      "clone empty empty_like full full_like new_empty new_full new_ones new_zeros ones ones_like zeros zeros_like ");
  return *words;
}
const WordList& Bounds() {
  static const auto* words = new WordList(
      "clamp clamp_max clamp_min clip fmax fmin ge greater greater_equal gt hardtanh le less less_equal lt maximum "
      "minimum threshold ");
  return *words;
}
// Have an epsilon that their formula, as it is written down everywhere, has not: honest programs leave it out. And what
// is there for matrices that have no full rank, which torch itself does not promise on a GPU.
const WordList& NoZeroRows() {
  static const auto* words = new WordList("cosine_embedding_loss cosine_similarity linalg_lstsq lstsq ");
  return *words;
}
const WordList& Floors() {
  static const auto* words = new WordList("clamp clamp_min clip fmax maximum ");
  return *words;
}
const WordList& Numbers() {
  static const auto* words = new WordList("isfinite isinf isnan nan_to_num ");
  return *words;
}
const WordList& Selects() {
  static const auto* words = new WordList("masked_fill where ");
  return *words;
}
// How many there are, or how much of something.
const WordList& Counts() {
  static const auto* words = new WordList(
      "bincount count_nonzero cumsum index_add index_add_ matmul mean mm mv scatter_add scatter_add_ sum ");
  return *words;
}
const WordList& Compares() {
  static const auto* words = new WordList("eq ge greater greater_equal gt le less less_equal lt ne not_equal ");
  return *words;
}
// Put a number in the place of what a mask hides, or add it there.
const WordList& Fills() {
  static const auto* words = new WordList(
      "add fill fill_ full full_like masked_fill masked_fill_ mul multiply new_full rsub sub subtract where ");
  return *words;
}
const WordList& Poles() {
  static const auto* words = new WordList("div divide log log10 log2 reciprocal rsqrt true_divide xlogy ");
  return *words;
}

// They begin with a number that stands for none. (Of two tensors `max` does not, and loses nothing by it.)
const WordList& Largest() {
  static const auto* words = new WordList(
      "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d amax aminmax argmax argsort cummax index_reduce "
      "kthvalue max max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d "
      "max_pool3d_with_indices scatter_reduce sort topk ");
  return *words;
}
const WordList& Least() {
  static const auto* words =
      new WordList("amin aminmax argmin argsort cummin index_reduce kthvalue min scatter_reduce sort topk ");
  return *words;
}

constexpr double kEpsilon = 1e-3;  // smaller floors are those of norms
constexpr double kLetsNothing = 64;

bool Floating(const json& type) {
  const std::string dtype = type.is_object() ? type.value("dtype", std::string()) : std::string();
  return dtype.rfind("float", 0) == 0 || dtype.rfind("bfloat", 0) == 0;
}

class Reader {
 public:
  explicit Reader(const json& inputs) {
    rare_.inputs.resize(inputs.size());
    rare_.empties.resize(inputs.size(), false);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (Floating(inputs[i])) holds_["in" + std::to_string(i)] = {i};
      made_of_["in" + std::to_string(i)] = {i};
    }
  }

  void Read(const json& operation) {
    const std::string kind = operation.value("kind", ""), name = OperationName(kind);
    const bool in_place = InPlace(kind);
    const std::string does = in_place && name.back() == '_' ? name.substr(0, name.size() - 1) : name;  // a copy's name
    const json& operands = operation.at("inputs");
    std::set<std::size_t> held;
    std::vector<double> numbers;
    for (const json& operand : operands) {
      const auto known = holds_.find(operand.get<std::string>());
      if (known != holds_.end()) {
        held.insert(known->second.begin(), known->second.end());
      } else if (const auto number = Number(operand.get<std::string>())) {
        numbers.push_back(*number);
      }
    }
    Asks(name, operands);
    Compared(name, operands);
    std::set<std::size_t> made_of;
    for (const json& operand : operands) {
      const auto known = made_of_.find(operand.get<std::string>());
      if (known != made_of_.end()) made_of.insert(known->second.begin(), known->second.end());
    }
    if (Empties(does, operands)) {
      for (std::size_t input : made_of) rare_.empties[input] = true;
    }
    if (AsksForZero(name, operands)) asked_for_zero_.insert(made_of.begin(), made_of.end());
    if (Counts().Has(name) ||
        (Passes().Has(name) && !operands.empty() && counts_.count(operands[0].get<std::string>()))) {
      for (const json& output : operation.at("outputs")) counts_.insert(output.get<std::string>());
    }
    for (const json& output : operation.at("outputs")) made_of_[output.get<std::string>()] = made_of;
    FollowMemory(name, operands, operation.at("outputs"), in_place);
    if (held.empty()) return;
    if (Bounds().Has(does)) {
      // (The second number of a threshold is what is put there.)
      if (does == "threshold" && numbers.size() > 1) numbers.resize(1);
      for (std::size_t input : held) {
        for (double number : numbers) {
          if (number != 0 && std::isfinite(number)) rare_.inputs[input].bounds.push_back(number);
        }
      }
    }
    const bool itself = (name == "ne" || name == "eq" || name == "not_equal") && operands.size() == 2 &&
                        operands[0] == operands[1];  // NaN alone is not equal to itself
    const bool replaces = does == "nan_to_num";
    for (std::size_t input : held) {
      RareValues::OfInput& of = rare_.inputs[input];
      of.nan = of.nan || itself || replaces || name == "isnan" || name == "isfinite" || name == "nansum" ||
               name == "nanmean";
      // The largest number of a type, which stands for infinity where none is named, is another one in float64.
      const bool named = replaces && Number(operands, 2) && Number(operands, 3);
      of.infinity = of.infinity || named || name == "isinf" || name == "isfinite";
      of.largest = of.largest || Largest().Has(does);
      of.least = of.least || Least().Has(does);
    }
    if (!Passes().Has(name) && !Mends().Has(name)) return;
    const json& outputs = operation.at("outputs");
    for (const json& output : outputs) holds_[output.get<std::string>()] = held;
  }

  RareValues Result() {
    if (selects_ && divides_) {  // 1 / n where n > 0
      for (std::size_t input : asked_for_zero_) rare_.empties[input] = true;
    }
    for (RareValues::OfInput& of : rare_.inputs) {
      std::sort(of.bounds.begin(), of.bounds.end());
      of.bounds.erase(std::unique(of.bounds.begin(), of.bounds.end()), of.bounds.end());
    }
    if (anything_changes_) {
      rare_.inputs.clear();
      rare_.compared.clear();
    }
    return std::move(rare_);
  }

 private:
  // Where values lie, and what is no input's any more when something else is written there.
  void FollowMemory(const std::string& name, const json& operands, const json& outputs, bool in_place) {
    const auto known = operands.empty() ? memory_.end() : memory_.find(operands[0].get<std::string>());
    for (const json& output : outputs) {
      const std::string one = output.get<std::string>();
      if (!in_place && Copies().Has(name)) memory_[one] = one;
      if ((in_place || Views().Has(name)) && known != memory_.end()) memory_[one] = known->second;
    }
    if (!in_place) return;
    if (known == memory_.end()) {
      anything_changes_ = true;  // an input, or what something else lies in, too
      return;
    }
    if (Mends().Has(name)) return;
    for (const auto& [one, memory] : memory_) {
      if (memory == known->second) holds_.erase(one);
    }
  }

  void Asks(const std::string& name, const json& operands) {
    rare_.no_zero_rows = rare_.no_zero_rows || NoZeroRows().Has(name);
    // (Since torch 2.5 this gives zeros where all is hidden.)
    rare_.fills = rare_.fills || name.find("scaled_dot_product") != std::string::npos || name == "_safe_softmax" ||
                  name == "_native_multi_head_attention";
    for (const json& operand : operands) {
      if (!Fills().Has(name)) break;
      const std::string text = operand.get<std::string>();
      const auto number = Number(text);
      // A number that is kept in a tensor is not known.
      const bool kept =
          Selects().Has(name) && (text.rfind("p", 0) == 0 || text.find("\"tensor\"") != std::string::npos);
      rare_.fills = rare_.fills || kept || (number && std::isfinite(*number) && std::fabs(*number) >= kLetsNothing);
    }
    selects_ = selects_ || Selects().Has(name);
    const auto number = Number(operands, 1);
    divides_ = divides_ || (Poles().Has(name) && !number) || (name == "pow" && number && *number < 0);
  }

  void Compared(const std::string& name, const json& operands) {
    const bool searched = name == "bucketize", among = name == "searchsorted";
    if ((!Compares().Has(name) && !searched && !among) || operands.size() < 2) return;
    const auto first = holds_.find(operands[0].get<std::string>()),
               second = holds_.find(operands[1].get<std::string>());
    if (first == holds_.end() || second == holds_.end()) return;
    for (std::size_t one : first->second) {
      for (std::size_t two : second->second) {
        if (one == two) continue;
        if (!among) rare_.compared.push_back({one, two});
        if (!searched) rare_.compared.push_back({two, one});
      }
    }
  }

  // (A mask itself is compared with zero wherever one is applied.)
  bool AsksForZero(const std::string& name, const json& operands) const {
    return Compares().Has(name) && Number(operands, 1) == 0.0 && counts_.count(operands[0].get<std::string>()) != 0;
  }

  static bool Empties(const std::string& name, const json& operands) {
    if (Numbers().Has(name)) return true;
    if (name == "eq" && operands.size() > 1 && operands[1] == "\"Infinity\"") return true;
    const double floor = Number(operands, 1).value_or(0);
    return Floors().Has(name) && floor > kEpsilon && floor <= 1;
  }

  RareValues rare_;
  bool selects_ = false, divides_ = false;
  std::set<std::string> counts_;                          // values that are such
  std::set<std::size_t> asked_for_zero_;                  // inputs that have a part in what is compared with zero
  std::map<std::string, std::set<std::size_t>> holds_;    // of values: the inputs whose elements they hold as they are
  std::map<std::string, std::set<std::size_t>> made_of_;  // and those that have any part in them
  std::map<std::string, std::string> memory_;  // of values in memory that the program has made: the first one there
  bool anything_changes_ = false;              // behind the names of values, inputs among them
};

}  // namespace

bool RareValues::Bounded() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const OfInput& of) { return !of.bounds.empty(); });
}

bool RareValues::TreatsNan() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const OfInput& of) { return of.nan || of.infinity; });
}

bool RareValues::Largest() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const OfInput& of) { return of.largest; });
}

bool RareValues::Least() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const OfInput& of) { return of.least; });
}

bool RareValues::Emptied() const { return std::find(empties.begin(), empties.end(), true) != empties.end(); }

RareValues RareValuesOf(const json& graph, const json& inputs) {
  Reader reader(inputs);
  for (const json& operation : graph) reader.Read(operation);
  RareValues rare = reader.Result();
  rare.read = !graph.empty();
  return rare;
}

}  // namespace grove::judge
