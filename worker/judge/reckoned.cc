#include "worker/judge/reckoned.h"

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

// Beyond this a sum that an honest program makes in float32, or in 32 bits, may be another one.
constexpr double kMost = 0x1p24;
// Where no input is small enough for that, a sum that is kept in 64 bits may be as large as 32 bits hold: nobody makes
// it in float32.
constexpr double kMostWide = 0x1p31 - 1;
// What is made of whole numbers and fractions, in units of the whole ones: a program that sums these in 32 bits first,
// and multiplies the sums by the fractions, is as good.
constexpr double kMostSum = 0x1p30;
// What is smaller than this shows little.
constexpr double kLeast = 8;

const WordList& Moves() {
  static const auto* words = new WordList(
      "ListConstruct ListUnpack TupleConstruct TupleUnpack _to_copy alias broadcast_tensors cat chunk clone concat "
      "contiguous detach expand expand_as flatten flip movedim narrow permute ravel repeat reshape roll select slice "
      "split split_with_sizes squeeze stack t tile to transpose type_as unbind unflatten unsqueeze view ");
  return *words;
}
const WordList& Largest() {
  static const auto* words = new WordList("abs amax amin clamp clamp_max clamp_min maximum minimum neg negative relu ");
  return *words;
}
const WordList& Products() {
  static const auto* words = new WordList("bmm dot matmul mm mv ");
  return *words;
}
const WordList& Quotients() {
  static const auto* words = new WordList("div divide floor_divide fmod remainder ");
  return *words;
}

bool Fractions(const std::string& dtype) {
  return dtype.rfind("float", 0) == 0 || dtype.rfind("bfloat", 0) == 0 || dtype.rfind("complex", 0) == 0;
}

// What a type of whole numbers holds, of both signs; 0 where it does not hold both, or is another type.
double Holds(const std::string& dtype) {
  return dtype == "int64" || dtype == "int32" ? kMost : dtype == "int16" ? 0x1p15 - 1 : 0;
}

struct Value {
  std::set<std::size_t> sources;  // inputs that it is reckoned from
  double size = 0;                // no element is larger; of fractions in units of the whole numbers behind them
  bool known = false;             // `size` is
  std::string dtype;
  std::vector<std::int64_t> shape;
};

Value Typed(const json& type) {
  Value value;
  if (!type.is_object()) return value;
  value.dtype = type.value("dtype", std::string());
  if (type.contains("shape")) value.shape = type.at("shape").get<std::vector<std::int64_t>>();
  return value;
}

double Elements(const Value& value) {
  double count = 1;
  for (std::int64_t size : value.shape) count *= static_cast<double>(size);
  return std::max(count, 1.0);
}

// One reading of the graph with inputs of one size.
class Reading {
 public:
  Reading(const json& inputs, const std::vector<bool>& wanted, double size, bool wide_sums,
          std::set<std::size_t>* others)
      : wide_sums_(wide_sums), others_(*others) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Value value = Typed(inputs[i]);
      if (wanted[i]) {
        value.sources = {i};
        value.size = size;
        value.known = true;
      }
      values_["in" + std::to_string(i)] = value;
    }
  }

  void Read(const json& operation) {
    const std::string name = OperationName(operation.value("kind", ""));
    std::vector<Value> operands;
    std::set<std::size_t> sources;
    bool floats = false;  // fractions that are reckoned from whole numbers
    for (const json& input : operation.at("inputs")) {
      operands.push_back(Operand(input.get<std::string>()));
      sources.insert(operands.back().sources.begin(), operands.back().sources.end());
      floats = floats || (!operands.back().sources.empty() && Fractions(operands.back().dtype));
    }
    const json& outputs = operation.at("outputs");
    const json& types = operation.at("output_types");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Value value = Typed(i < types.size() ? types[i] : json());
      value.sources = sources;
      if (!sources.empty()) {
        const auto size = SizeOf(name, operands, value);
        const bool list = name == "ListConstruct" || name == "TupleConstruct" || value.dtype == "Tensor[]";
        const bool whole = !list && !Fractions(value.dtype);
        const bool wide = wide_sums_ && value.dtype == "int64" && (name == "sum" || name == "cumsum");
        const double holds = wide ? kMostWide : Holds(value.dtype);
        // What is made whole of fractions, or a flag, is decided by the values.
        if (!size || (whole && (holds == 0 || floats || !std::isfinite(*size)))) {
          others_.insert(sources.begin(), sources.end());
        } else {
          value.size = *size;
          value.known = true;
          const double sum = name == "mean" ? *size * Terms(operands[0], value) : *size;
          too_large_ = too_large_ || (whole ? *size > holds : !list && sum > kMostSum);
        }
      }
      values_[outputs[i].get<std::string>()] = value;
    }
  }

  bool too_large() const { return too_large_; }
  const std::set<std::size_t>& others() const { return others_; }

 private:
  Value Operand(const std::string& name) const {
    if (const auto known = values_.find(name); known != values_.end()) return known->second;
    Value value;
    const json constant = Constant(name);
    if (constant.is_number()) {
      value.size = std::fabs(constant.get<double>());
      value.known = true;
      value.dtype = constant.is_number_integer() ? "int" : "number";
    }
    return value;
  }

  static double Terms(const Value& operand, const Value& output) { return Elements(operand) / Elements(output); }

  // Nothing where the operation is not known to be arithmetic; infinite where the size is not known, but for fractions.
  static std::optional<double> SizeOf(const std::string& name, const std::vector<Value>& operands,
                                      const Value& output) {
    const bool fractions = Fractions(output.dtype);
    const auto reckoned = [&](std::size_t i) { return i < operands.size() && !operands[i].sources.empty(); };
    const auto size = [&](std::size_t i) {
      const bool known = i < operands.size() && operands[i].known && std::isfinite(operands[i].size);
      const bool unit = !known || (!reckoned(i) && operands[i].size != std::round(operands[i].size));
      return fractions && unit ? 1 : known ? operands[i].size : HUGE_VAL;
    };
    const auto constant = [&](std::size_t i) {
      return i < operands.size() && operands[i].known && operands[i].sources.empty();
    };
    if (operands.empty()) return std::nullopt;
    if (Moves().Has(name)) {
      double most = 0;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        // What says how to move the others is none of them.
        const bool moved = i == 0 || name == "ListConstruct" || name == "TupleConstruct";
        if (!moved && reckoned(i)) return std::nullopt;
        if (moved) most = std::max(most, size(i));
      }
      return most;
    }
    if (Largest().Has(name)) {
      double most = size(0);
      for (std::size_t i = 1; i < operands.size(); ++i) {
        if (reckoned(i) || ((name == "maximum" || name == "minimum") && i == 1)) {
          most = std::max(most, size(i));
        } else if (operands[i].known && name.rfind("clamp", 0) == 0) {
          most = std::max(most, size(i));
        }
      }
      return most;
    }
    // (max and min of all elements, or of two tensors; with a dimension they give places, too.)
    if ((name == "max" || name == "min") && operands.size() == 1) return size(0);
    if ((name == "max" || name == "min") && operands.size() == 2) return std::max(size(0), size(1));
    if (name == "add" || name == "sub" || name == "rsub") {
      return size(0) + size(1) * (operands.size() > 2 ? size(2) : 1);
    }
    if (name == "mul" || name == "multiply") return size(0) * size(1);
    if (name == "square") return size(0) * size(0);
    if (name == "pow" && operands.size() == 2 && constant(1) && operands[1].size == 2) return size(0) * size(0);
    if (name == "sign" || name == "sgn") return 1;
    if (name == "mean") return size(0);
    if (name == "sum") return size(0) * Terms(operands[0], output);
    if (name == "cumsum") return size(0) * Elements(operands[0]);
    if (Products().Has(name)) {
      const auto& shape = operands[0].shape;
      if (shape.empty() || operands.size() != 2) return std::nullopt;
      return size(0) * size(1) * static_cast<double>(shape.back());
    }
    if (Quotients().Has(name)) {
      if (!constant(1) || operands[1].size == 0) return std::nullopt;
      if (fractions) return std::max(size(0), size(1));
      // (Below zero a remainder is what is left to the divisor.)
      if (name == "fmod") return std::min(size(0), operands[1].size);
      if (name == "remainder") return operands[1].size;
      return size(0) / operands[1].size + 1;
    }
    return std::nullopt;
  }

  std::map<std::string, Value> values_;
  const bool wide_sums_;
  std::set<std::size_t>& others_;
  bool too_large_ = false;
};

}  // namespace

std::vector<double> Reckoned(const json& graph, const json& inputs) {
  std::vector<double> most(inputs.size(), 0);
  std::vector<bool> wanted(inputs.size(), false);
  const auto any = [&] { return std::find(wanted.begin(), wanted.end(), true) != wanted.end(); };
  std::set<std::string> used;
  for (const json& operation : graph) {
    if (InPlace(operation.value("kind", ""))) return most;
    for (const json& input : operation.at("inputs")) used.insert(input.get<std::string>());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string dtype = Typed(inputs[i]).dtype;
    wanted[i] = (dtype == "int32" || dtype == "int64") && used.count("in" + std::to_string(i)) != 0;
  }
  for (const bool wide_sums : {false, true}) {
    // Largest first. An input that turns out to be none leaves the others with operands of which nothing is known.
    for (double size = kMost; size >= kLeast && any();) {
      std::set<std::size_t> others;
      Reading reading(inputs, wanted, size, wide_sums, &others);
      for (const json& operation : graph) reading.Read(operation);
      if (!others.empty()) {
        for (std::size_t input : others) wanted[input] = false;
        continue;
      }
      if (!reading.too_large()) {
        for (std::size_t i = 0; i < inputs.size(); ++i) most[i] = wanted[i] ? size : 0;
        return most;
      }
      size /= 2;
    }
  }
  return most;
}

}  // namespace grove::judge
