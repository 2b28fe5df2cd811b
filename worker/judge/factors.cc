#include "worker/judge/factors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "worker/judge/operations.h"
#include "worker/judge/words.h"

namespace grove::judge {
namespace {

using nlohmann::json;
using Shape = std::vector<std::int64_t>;

// Sum products of two operands over one dimension. (Not convolutions, which some honest programs transform before they
// multiply, and not what sums over several dimensions.)
constexpr char kProducts[] = "addmm addmv baddbmm bmm linear matmul mm mv ";
// Whose first operand is added.
constexpr char kAdds[] = "addmm addmv baddbmm ";
// Give elements of their operands, whatever the others are like, but for a bound.
constexpr char kFollows[] =
    "ListConstruct ListUnpack TupleConstruct TupleUnpack abs alias amax amin cat chunk clamp clamp_max clamp_min clone "
    "contiguous detach dropout expand expand_as flatten flip hardtanh mT masked_fill maximum minimum movedim narrow "
    "neg negative numpy_T permute positive relu relu6 repeat reshape reshape_as select slice split squeeze stack "
    "swapaxes swapdims t transpose unbind unflatten unsqueeze view view_as where ";
// Give all elements of their operand, each row as a row.
constexpr char kShapes[] =
    "alias clone contiguous detach expand expand_as flatten neg negative positive reshape reshape_as squeeze unflatten "
    "unsqueeze view view_as ";
constexpr char kConverts[] = "_to_copy to type_as ";

bool IsOf(FactorTypes types, const std::string& dtype) {
  return types == FactorTypes::kFloat32 ? dtype == "float32" : dtype == "float16" || dtype == "bfloat16";
}

int Digits(const std::string& dtype) {  // 0: not a fraction
  static const std::map<std::string, int> digits{{"bfloat16", 8}, {"float16", 11}, {"float32", 24}, {"float64", 53}};
  const auto at = digits.find(dtype);
  return at == digits.end() ? 0 : at->second;
}

struct Value {
  enum class Kind { kAsItIs, kProduct, kOther };
  Kind kind = Kind::kOther;
  std::string dtype;
  Shape shape;
  // kAsItIs: the input that it is, all of it; -1 = not one alone.
  int input = -1;
  // Whether at most one element of its last dimension, and of the one before, is not zero where the input has at most
  // one in each row and each column.
  bool last = false, before = false;
  std::set<std::size_t> factors;  // of a product
};

Value Described(const json& type) {
  Value value;
  if (!type.is_object()) return value;
  value.dtype = type.value("dtype", std::string());
  value.shape = type.value("shape", Shape());
  return value;
}

class Reader {
 public:
  explicit Reader(FactorTypes types) : types_(types) {}

  void Name(const json& types, const char* prefix, bool inputs) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      Value value = Described(types[i]);
      value.kind = Value::Kind::kAsItIs;
      if (inputs && IsOf(types_, value.dtype)) {
        value.input = static_cast<int>(i);
        value.last = value.before = true;
      }
      values_[prefix + std::to_string(i)] = value;
    }
  }

  void Read(const json& operation) {
    const json& outputs = operation.at("outputs");
    const json& types = operation.at("output_types");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Value value = Described(i < types.size() ? types[i] : json());
      Fill(operation, &value);
      values_[outputs[i].get<std::string>()] = std::move(value);
    }
  }

  std::vector<std::size_t> FactorsOf(const std::string& name) const {
    const auto at = values_.find(name);
    if (at == values_.end() || at->second.kind != Value::Kind::kProduct || !IsOf(types_, at->second.dtype)) return {};
    return {at->second.factors.begin(), at->second.factors.end()};
  }

 private:
  using Kind = Value::Kind;

  void Fill(const json& operation, Value* value) const {
    static const auto* products = new std::set<std::string>(Words(kProducts));
    static const auto* follows = new std::set<std::string>(Words(kFollows));
    static const auto* converts = new std::set<std::string>(Words(kConverts));
    const std::string kind = operation.value("kind", "");
    const std::string name = OperationName(kind);
    if (kind.rfind("aten::", 0) != 0 && kind.rfind("prim::", 0) != 0) return;
    std::vector<const Value*> operands;
    for (const json& input : operation.at("inputs")) {
      const auto known = values_.find(input.get<std::string>());
      if (known != values_.end()) {
        operands.push_back(&known->second);
      } else if (input.get<std::string>().rfind('{', 0) == 0) {
        return;  // a tensor that is no input
      }
    }
    if (operands.empty() ||
        std::any_of(operands.begin(), operands.end(), [](const Value* one) { return one->kind == Kind::kOther; })) {
      return;
    }
    if (products->count(name) != 0) {
      if (std::all_of(operation.at("inputs").begin(), operation.at("inputs").end(), LosesNothing)) {
        Multiply(name, operands, value);
      }
      return;
    }
    if (converts->count(name) != 0) return Convert(*operands[0], value);
    if (follows->count(name) != 0) Follow(name, operation, operands, value);
  }

  // Of a constant that operands are multiplied by (alpha and beta of addmm): others may be rounded to a half type, as
  // torch does where it multiplies by them in a step of their own.
  static bool LosesNothing(const json& input) {
    const auto number = Number(input.get<std::string>());
    if (!number) return true;
    int exponent;
    const double fraction = std::frexp(std::fabs(*number), &exponent);
    return fraction == 0 || fraction == 0.5;
  }

  static void Multiply(const std::string& name, const std::vector<const Value*>& operands, Value* value) {
    static const auto* adds = new std::set<std::string>(Words(kAdds));
    const std::size_t first = adds->count(name);
    if (operands.size() < first + 2) return;
    for (const Value* one : operands) {
      if (one->kind != Kind::kAsItIs) return;
    }
    const Value &left = *operands[first], &right = *operands[first + 1];
    value->kind = Kind::kProduct;
    if (left.input == right.input) return;  // of one input by itself, or of none
    if (left.input >= 0 && left.last) value->factors.insert(static_cast<std::size_t>(left.input));
    const bool rows = name == "linear" || right.shape.size() == 1;
    if (right.input >= 0 && (rows ? right.last : right.before)) {
      value->factors.insert(static_cast<std::size_t>(right.input));
    }
  }

  // What is narrowed is rounded: of a product that is its own rounding, of an input one more.
  static void Convert(const Value& operand, Value* value) {
    const int from = Digits(operand.dtype), to = Digits(value->dtype);
    if (from == 0 || to == 0 || (operand.kind == Kind::kAsItIs && to < from)) return;
    Keep(operand, value);
  }

  static void Keep(const Value& operand, Value* value) {
    value->kind = operand.kind;
    value->input = operand.input;
    value->last = operand.last;
    value->before = operand.before;
    value->factors = operand.factors;
  }

  static void Follow(const std::string& name, const json& operation, const std::vector<const Value*>& operands,
                     Value* value) {
    static const auto* shapes = new std::set<std::string>(Words(kShapes));
    const Value* product = nullptr;
    for (const Value* one : operands) {
      if (one->kind != Kind::kProduct) continue;
      if (product == nullptr) {
        Keep(*one, value);
      } else {
        std::set<std::size_t> both;
        std::set_intersection(value->factors.begin(), value->factors.end(), one->factors.begin(), one->factors.end(),
                              std::inserter(both, both.begin()));
        value->factors = both;
      }
      product = one;
    }
    if (product != nullptr) return;
    value->kind = Kind::kAsItIs;
    const Value& from = *operands[0];
    if (from.input < 0 || from.shape.empty() || value->shape.empty()) return;
    const std::size_t rank = from.shape.size();
    if (shapes->count(name) != 0) {
      // A row stays one where its length does, and a matrix where both of its sizes do.
      const bool row = value->shape.back() == from.shape.back();
      const bool matrix =
          row && rank > 1 && value->shape.size() > 1 && value->shape.rbegin()[1] == from.shape.rbegin()[1];
      value->input = from.input;
      value->last = from.last && row;
      value->before = from.before && matrix;
    } else if (const std::vector<std::size_t> order = OrderOf(name, operation, rank); !order.empty()) {
      const auto single = [&from, rank](std::size_t dim) {
        return (dim == rank - 1 && from.last) || (dim + 2 == rank && from.before);
      };
      value->input = from.input;
      value->last = single(order[rank - 1]);
      value->before = rank > 1 && single(order[rank - 2]);
    }
  }

  // Which dimension comes where; empty for what does not put dimensions in another order.
  static std::vector<std::size_t> OrderOf(const std::string& name, const json& operation, std::size_t rank) {
    std::vector<std::size_t> order(rank);
    for (std::size_t i = 0; i < rank; ++i) order[i] = i;
    const auto at = [rank](const json& dim) {
      const auto n = static_cast<std::int64_t>(rank);
      const std::int64_t i = dim.is_number_integer() ? dim.get<std::int64_t>() : n;
      return static_cast<std::size_t>(i < 0 ? i + n : i);
    };
    const json& inputs = operation.at("inputs");
    const auto argument = [&inputs](std::size_t i) {
      return i < inputs.size() ? Constant(inputs[i].get<std::string>()) : json();
    };
    if (name == "t" || name == "mT" || name == "numpy_T") {
      if (name != "mT" && rank > 2) return {};
      if (rank > 1) std::swap(order[rank - 1], order[rank - 2]);
      return order;
    }
    if (name == "transpose" || name == "swapaxes" || name == "swapdims") {
      const std::size_t one = at(argument(1)), other = at(argument(2));
      if (one >= rank || other >= rank) return {};
      std::swap(order[one], order[other]);
      return order;
    }
    if (name == "permute") {
      const json dims = argument(1);
      if (!dims.is_array() || dims.size() != rank) return {};
      for (std::size_t i = 0; i < rank; ++i) {
        order[i] = at(dims[i]);
        if (order[i] >= rank) return {};
      }
      return order;
    }
    return {};
  }

  const FactorTypes types_;
  std::map<std::string, Value> values_;
};

}  // namespace

std::vector<std::vector<std::size_t>> FactorsOf(const json& graph, const json& outputs, const json& inputs,
                                                const json& parameters, FactorTypes types) {
  std::vector<std::vector<std::size_t>> factors(outputs.size());
  Reader reader(types);
  reader.Name(inputs, "in", true);
  reader.Name(parameters, "p", false);
  for (const json& operation : graph) {
    if (InPlace(operation.value("kind", ""))) return factors;
    reader.Read(operation);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) factors[i] = reader.FactorsOf(outputs[i].get<std::string>());
  return factors;
}

}  // namespace grove::judge
