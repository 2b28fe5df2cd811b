#include "worker/judge/labels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "worker/judge/exactness.h"
#include "worker/judge/words.h"

namespace grove::judge {
namespace {

using nlohmann::json;

// Give elements of their first operand as they are.
const WordList& Passes() {
  static const auto* words = new WordList(
      "_to_copy alias clone contiguous detach expand expand_as flatten movedim narrow permute ravel reshape select "
      "slice "
      "squeeze t to transpose type_as unflatten unsqueeze view ");
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
constexpr std::size_t kLabel = 1, kIgnored = 4;    // operands of a loss
constexpr std::size_t kIndices = 1, kPadding = 8;  // of embedding_bag
constexpr double kNothingIgnored = -100;

std::optional<double> Number(const json& operands, std::size_t at) {
  if (at >= operands.size()) return std::nullopt;
  const json number = json::parse(operands[at].get<std::string>(), nullptr, /*allow_exceptions=*/false);
  return number.is_number() ? std::optional(number.get<double>()) : std::nullopt;
}

// Whether of two values for one place one stays, and nobody says which.
bool WritesPlaces(std::string name, const json& operands) {
  if (!name.empty() && name.back() == '_') name.pop_back();
  // (Of a number it is the same whichever is written; with `accumulate` both count.)
  if (name == "scatter") return operands.size() > 4 || !Number(operands, 3);
  if (name == "index_put" || name == "_index_put_impl" || name == "put") {
    return operands.size() <= 3 || operands[3] != "true";
  }
  return name == "index_copy";
}

class Reader {
 public:
  explicit Reader(const json& inputs) : uses_(inputs.size()), named_(inputs.size()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) holds_["in" + std::to_string(i)] = i;
  }

  void Read(const json& operation) {
    const std::string kind = operation.value("kind", "");
    const std::size_t at = kind.rfind("::");
    const std::string name = at == std::string::npos ? kind : kind.substr(at + 2);
    const json& operands = operation.at("inputs");
    may_repeat_ = may_repeat_ && !WritesPlaces(name, operands);
    const auto held = [&](std::size_t operand) { return operand < operands.size() ? Held(operands[operand]) : none_; };
    const auto knows = [&](std::size_t operand, std::optional<double> value) {
      if (!held(operand) || !value || *value != std::round(*value)) return;
      named_[*held(operand)].push_back({*value, false});
    };
    for (std::size_t operand = 0; operand < operands.size(); ++operand) {
      if (!held(operand)) continue;
      const bool passed = operand == 0 && Passes().Has(name), label = operand == kLabel && Losses().Has(name);
      if (InPlace(kind) && operand == 0) changed_.insert(*held(operand));
      if (!passed && !label && !Compares().Has(name)) uses_[*held(operand)] = true;
    }
    if (Compares().Has(name)) {
      knows(0, Number(operands, 1));
      knows(1, Number(operands, 0));
    } else if (Losses().Has(name)) {
      const auto ignored = Number(operands, kIgnored);
      if (ignored != kNothingIgnored) knows(kLabel, ignored);
    } else if (name == "embedding_bag") {
      const auto padding = Number(operands, kPadding);
      if (padding && *padding >= 0) knows(kIndices, padding);
    }
    if (!Passes().Has(name) || !held(0)) return;
    for (const json& output : operation.at("outputs")) holds_[output.get<std::string>()] = *held(0);
  }

  Labels Result() {
    for (std::size_t i = 0; i < named_.size(); ++i) {
      if (changed_.count(i) != 0) named_[i].clear();
      for (Labels::Named& one : named_[i]) one.alone = !uses_[i];
    }
    return {may_repeat_, false, std::move(named_)};
  }

 private:
  std::optional<std::size_t> Held(const json& name) const {
    const auto known = holds_.find(name.get<std::string>());
    return known != holds_.end() ? std::optional(known->second) : none_;
  }

  const std::optional<std::size_t> none_;
  bool may_repeat_ = true;
  std::map<std::string, std::size_t> holds_;  // of values: the input whose elements they hold as they are
  std::vector<bool> uses_;                    // inputs that something else is done with
  std::set<std::size_t> changed_;             // in place
  std::vector<std::vector<Labels::Named>> named_;
};

}  // namespace

Labels LabelsOf(const json& graph, const json& inputs) {
  if (!graph.is_array() || graph.empty()) return {};
  Reader reader(inputs);
  for (const json& operation : graph) reader.Read(operation);
  Labels labels = reader.Result();
  labels.any = std::any_of(inputs.begin(), inputs.end(), [](const json& type) {
    const std::string dtype = type.value("dtype", "");
    return dtype == "int32" || dtype == "int64";
  });
  return labels;
}

}  // namespace grove::judge
