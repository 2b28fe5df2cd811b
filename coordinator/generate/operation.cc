#include "coordinator/generate/operation.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace grove::generate {
namespace {

using Json = nlohmann::json;
using Shape = std::vector<int64_t>;

// A graph of more operations than this is a whole network and no kernel; the bound keeps the recogniser quick.
constexpr int kMaxGraphOps = 2000;

int64_t Product(const Shape& shape) {
  int64_t product = 1;
  for (int64_t size : shape) product *= size;
  return product;
}

Shape RowMajorStrides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

bool IsContiguous(const Operand& view) {
  int64_t expected = 1;
  for (size_t d = view.shape.size(); d-- > 0;) {
    if (view.shape[d] != 1 && view.strides[d] != expected) return false;
    expected *= view.shape[d];
  }
  return true;
}

std::string ShapeText(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ","), "]"); }

// The first size differs only by leading ones.
bool SameButLeadingOnes(const Shape& a, const Shape& b) {
  size_t i = a.size(), j = b.size();
  while (i > 0 && j > 0) {
    if (a[--i] != b[--j]) return false;
  }
  while (i > 0) {
    if (a[--i] != 1) return false;
  }
  while (j > 0) {
    if (b[--j] != 1) return false;
  }
  return true;
}

// What a value of the graph is.
struct Value {
  enum class Kind {
    kConstant,     // a number, list, string or null
    kView,         // of an argument
    kElementwise,  // node over `args`
    kHeavy,        // the result of a heavy operation, in memory as the heavy operation leaves it
    kOpaque,       // an operation that is not known; why says which
  };
  Kind kind = Kind::kOpaque;
  Json constant;
  Shape shape;
  bool is_float32 = true;
  Operand view;           // kView
  ExprNode node;          // kElementwise: op and params
  std::vector<int> args;  // kElementwise: values; kHeavy: its input(s)
  std::string operation;  // kHeavy
  OpSpec heavy;           // kHeavy: the parts without prologue and epilogue
  std::string why;        // kOpaque
};

class Recogniser {
 public:
  explicit Recogniser(const v1::ProblemDescription& description) : description_(description) {}

  absl::StatusOr<OpSpec> Run() {
    if (description_.graph().empty()) {
      return Unknown(description_.graph_error().empty()
                         ? "the reference has no graph"
                         : absl::StrCat("the reference could not be traced: ", description_.graph_error()));
    }
    if (description_.graph_size() > kMaxGraphOps) {
      return Unknown(absl::StrCat("the reference has ", description_.graph_size(), " operations"));
    }
    const int outputs = std::max(description_.graph_outputs_size(), description_.outputs_size());
    if (outputs != 1) return Unknown(absl::StrCat("the reference returns ", outputs, " tensors and not one"));
    for (const v1::TensorType& input : description_.inputs()) spec_.args.push_back(input);
    for (const v1::TensorType& parameter : description_.parameters()) spec_.args.push_back(parameter);
    for (int i = 0; i < description_.inputs_size(); ++i) AddArgument(absl::StrCat("in", i), i);
    for (int i = 0; i < description_.parameters_size(); ++i) {
      AddArgument(absl::StrCat("p", i), description_.inputs_size() + i);
    }
    for (const v1::GraphOp& op : description_.graph()) {
      if (op.outputs().empty()) continue;
      int value = Fold(op);
      names_[op.outputs(0)] = value;
      if (op.kind() == "prim::ListUnpack" && op.inputs_size() == 1) {
        auto list = lists_.find(Lookup(op.inputs(0)));
        if (list != lists_.end() && static_cast<int>(list->second.size()) == op.outputs_size()) {
          for (int i = 0; i < op.outputs_size(); ++i) names_[op.outputs(i)] = list->second[i];
          continue;
        }
      }
      for (int i = 1; i < op.outputs_size(); ++i) {
        Value other;
        other.why = absl::StrCat(op.kind(), " (output ", i, ")");
        names_[op.outputs(i)] = Add(std::move(other));
      }
    }
    auto found = names_.find(description_.graph_outputs(0));
    if (found == names_.end()) return Unknown("the graph does not define its output");
    return Finish(found->second);
  }

 private:
  // ------------------------------------------------------------------------------------------------- values
  int Add(Value value) {
    values_.push_back(std::move(value));
    return static_cast<int>(values_.size()) - 1;
  }

  void AddArgument(const std::string& name, int arg) {
    const v1::TensorType& type = spec_.args[arg];
    Value value;
    value.kind = Value::Kind::kView;
    value.shape.assign(type.shape().begin(), type.shape().end());
    value.is_float32 = type.dtype() == "float32";
    value.view = Operand{arg, value.shape, RowMajorStrides(value.shape)};
    names_[name] = Add(std::move(value));
  }

  int Constant(Json json) {
    Value value;
    value.kind = Value::Kind::kConstant;
    value.constant = std::move(json);
    return Add(std::move(value));
  }

  int Opaque(const std::string& why) {
    Value value;
    value.why = why;
    return Add(std::move(value));
  }

  int Elementwise(const std::string& op, std::vector<int> args, const Shape& shape, std::vector<double> params = {}) {
    Value value;
    value.kind = Value::Kind::kElementwise;
    value.node.op = op;
    value.node.params = std::move(params);
    value.args = std::move(args);
    value.shape = shape;
    return Add(std::move(value));
  }

  // A name of the graph, or a constant as JSON text.
  int Lookup(const std::string& text) {
    auto it = names_.find(text);
    if (it != names_.end()) return it->second;
    Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) {
      if (text == "inf" || text == "Infinity") return Constant(std::numeric_limits<double>::infinity());
      if (text == "-inf" || text == "-Infinity") return Constant(-std::numeric_limits<double>::infinity());
      return Opaque(absl::StrCat("value ", text));
    }
    if (json == "Infinity") return Constant(std::numeric_limits<double>::infinity());  // JSON has no number for it
    if (json == "-Infinity") return Constant(-std::numeric_limits<double>::infinity());
    if (json.is_array()) {  // a list of constants, perhaps with value names among them
      for (Json& each : json) {
        if (!each.is_string()) continue;
        auto named = names_.find(each.get<std::string>());
        if (named == names_.end() || values_[named->second].kind != Value::Kind::kConstant) {
          return Opaque(absl::StrCat("list ", text));
        }
        each = values_[named->second].constant;
      }
    }
    return Constant(std::move(json));
  }

  bool IsConstant(int value) const { return values_[value].kind == Value::Kind::kConstant; }
  bool IsTensor(int value) const { return !IsConstant(value); }

  // ------------------------------------------------------------------------------------------------- arguments of an
  // op The arguments of the operation at hand.
  struct Args {
    std::vector<int> values;
    const Recogniser* recogniser;

    size_t size() const { return values.size(); }
    const Json* Constant(size_t i) const {
      if (i >= values.size() || !recogniser->IsConstant(values[i])) return nullptr;
      return &recogniser->values_[values[i]].constant;
    }
    bool IsNull(size_t i) const {
      const Json* json = Constant(i);
      return i >= values.size() || (json != nullptr && json->is_null());
    }
    double Number(size_t i, double fallback) const {
      const Json* json = Constant(i);
      if (json == nullptr) return fallback;
      if (json->is_boolean()) return json->get<bool>() ? 1 : 0;
      return json->is_number() ? json->get<double>() : fallback;
    }
    bool Bool(size_t i, bool fallback) const { return Number(i, fallback ? 1 : 0) != 0; }
    std::string Text(size_t i) const {
      const Json* json = Constant(i);
      return json != nullptr && json->is_string() ? json->get<std::string>() : "";
    }
    // A list of whole numbers, or one number as a list of one.
    std::optional<Shape> List(size_t i) const {
      const Json* json = Constant(i);
      if (json == nullptr) return std::nullopt;
      if (json->is_number_integer()) return Shape{json->get<int64_t>()};
      if (!json->is_array()) return std::nullopt;
      Shape list;
      for (const Json& each : *json) {
        if (!each.is_number_integer()) return std::nullopt;
        list.push_back(each.get<int64_t>());
      }
      return list;
    }
    // Two numbers; one stands for both.
    std::optional<Shape> Pair(size_t i) const {
      std::optional<Shape> list = List(i);
      if (!list || list->empty()) return std::nullopt;
      if (list->size() == 1) list->push_back((*list)[0]);
      return list->size() == 2 ? list : std::nullopt;
    }
    // The same for one dimension of `rank` 1 seen as the second of two, of which the first has the neutral size.
    std::optional<Shape> Window(size_t i, int rank, int64_t neutral) const {
      if (rank == 2) return Pair(i);
      std::optional<Shape> list = List(i);
      return list && list->size() == 1 ? std::optional<Shape>({neutral, (*list)[0]}) : std::nullopt;
    }
  };

  static std::optional<int64_t> Dimension(int64_t dim, size_t rank) {
    if (dim < 0) dim += static_cast<int64_t>(rank);
    if (dim < 0 || dim >= static_cast<int64_t>(rank)) return std::nullopt;
    return dim;
  }

  // ------------------------------------------------------------------------------------------------- folding one op
  int Fold(const v1::GraphOp& op) {
    std::string name(absl::StripPrefix(op.kind(), "aten::"));
    if (!absl::StartsWith(name, "__"))
      name = std::string(absl::StripSuffix(name, "_"));  // in place: a value all the same
    Args args{{}, this};
    for (const std::string& input : op.inputs()) args.values.push_back(Lookup(input));
    if (args.values.empty()) return Opaque(op.kind());
    Shape shape;
    bool is_float32 = true;
    if (op.output_types_size() > 0) {
      shape.assign(op.output_types(0).shape().begin(), op.output_types(0).shape().end());
      is_float32 = op.output_types(0).dtype().empty() || op.output_types(0).dtype() == "float32";
    }
    std::optional<int> result = FoldKnown(op.kind(), name, args, shape);
    if (!result) {
      // What comes of an unknown value is unknown because of that one.
      for (int input : args.values) {
        if (values_[input].kind == Value::Kind::kOpaque && lists_.count(input) == 0) return Opaque(values_[input].why);
      }
      return Opaque(op.kind());
    }
    if (lists_.count(*result) > 0) return *result;
    Value& value = values_[*result];
    if (!is_float32 && value.kind != Value::Kind::kConstant) {
      return Opaque(absl::StrCat(op.kind(), " giving ", op.output_types(0).dtype()));
    }
    return *result;
  }

  std::optional<int> FoldKnown(const std::string& kind, const std::string& name, const Args& args, const Shape& shape) {
    // Constants that traces compute from shapes.
    if (kind == "prim::ListConstruct" || kind == "prim::TupleConstruct") {
      Json list = Json::array();
      for (int value : args.values) {
        if (IsConstant(value)) continue;
        if (args.size() == 1) return value;
        const int tensors = Opaque(kind);
        lists_[tensors] = args.values;
        return tensors;
      }
      for (int value : args.values) {
        list.push_back(values_[value].constant);
      }
      return Constant(std::move(list));
    }
    if (kind == "prim::NumToTensor" || name == "Int" || name == "ScalarImplicit" || name == "Float") {
      return IsConstant(args.values[0]) ? std::optional<int>(args.values[0]) : std::nullopt;
    }
    if (name == "size") {
      const Value& x = values_[args.values[0]];
      if (args.size() == 1) return Constant(Json(x.shape));
      auto dim = Dimension(static_cast<int64_t>(args.Number(1, 0)), x.shape.size());
      if (!dim) return std::nullopt;
      return Constant(Json(x.shape[*dim]));
    }
    if (name == "broadcast_tensors") {  // only where it does nothing
      auto list = lists_.find(args.values[0]);
      if (list == lists_.end()) return std::nullopt;
      for (int each : list->second) {
        if (values_[each].shape != values_[list->second[0]].shape) return std::nullopt;
      }
      return args.values[0];
    }
    if (values_[args.values[0]].kind == Value::Kind::kOpaque) return std::nullopt;
    static const std::set<std::string> kIdentities = {"contiguous", "clone",    "detach",
                                                      "alias",      "identity", "lift_fresh"};
    if (kIdentities.count(name) > 0) return args.values[0];
    if (name == "to" || name == "type_as" || name == "float") return args.values[0];  // the result's dtype is checked
    if (name == "dropout" || name == "feature_dropout") {
      if (args.Bool(2, true) && args.Number(1, 0.5) != 0) return std::nullopt;  // random
      return args.values[0];
    }
    if (std::optional<int> view = FoldView(name, args, shape)) return view;
    if (std::optional<int> heavy = FoldHeavy(name, args, shape)) return heavy;
    return FoldElementwise(name, args, shape);
  }

  // ------------------------------------------------------------------------------------------------- views
  std::optional<int> FoldView(const std::string& name, const Args& args, const Shape& shape) {
    static const std::set<std::string> kReshapes = {"view",    "reshape", "flatten",    "unsqueeze",
                                                    "squeeze", "view_as", "reshape_as", "_unsafe_view"};
    static const std::set<std::string> kPermutes = {"transpose", "t",  "numpy_T", "permute",
                                                    "swapaxes",  "mT", "matrix_H"};
    const bool reshape = kReshapes.count(name) > 0;
    const bool permute = kPermutes.count(name) > 0;
    const bool expand = name == "expand" || name == "expand_as" || name == "broadcast_to";
    if (!reshape && !permute && !expand) return std::nullopt;
    const int x = args.values[0];
    const Value source = values_[x];
    if (source.shape == shape) {
      if (!permute) return x;
    }
    if (source.kind != Value::Kind::kView) {
      // In memory a reshaped result is the same; anything else moves data.
      if (!reshape || source.kind == Value::Kind::kConstant || Product(source.shape) != Product(shape))
        return std::nullopt;
      if (source.kind == Value::Kind::kElementwise && !SameButLeadingOnes(source.shape, shape)) {
        Value value = source;
        value.shape = shape;
        value.args = {x};
        value.node = ExprNode{"reshape"};
        return Add(std::move(value));
      }
      Value value = source;
      value.shape = shape;
      return Add(std::move(value));
    }
    Value value = source;
    value.shape = shape;
    value.view.shape = shape;
    if (expand) {
      value.view.strides = BroadcastStrides(source.view, shape);
      if (value.view.strides.size() != shape.size()) return std::nullopt;
      return Add(std::move(value));
    }
    if (permute) {
      std::vector<int64_t> order(source.shape.size());
      for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
      if (name == "permute") {
        std::optional<Shape> dims = args.List(1);
        if (!dims || dims->size() != order.size()) return std::nullopt;
        for (size_t d = 0; d < order.size(); ++d) {
          auto dim = Dimension((*dims)[d], order.size());
          if (!dim) return std::nullopt;
          order[d] = *dim;
        }
      } else if (name == "transpose" || name == "swapaxes") {
        auto a = Dimension(static_cast<int64_t>(args.Number(1, 0)), order.size());
        auto b = Dimension(static_cast<int64_t>(args.Number(2, 1)), order.size());
        if (!a || !b) return std::nullopt;
        std::swap(order[*a], order[*b]);
      } else if (name == "mT") {
        if (order.size() < 2) return std::nullopt;
        std::swap(order[order.size() - 1], order[order.size() - 2]);
      } else {
        std::reverse(order.begin(), order.end());
      }
      for (size_t d = 0; d < order.size(); ++d) {
        value.view.shape[d] = source.view.shape[order[d]];
        value.view.strides[d] = source.view.strides[order[d]];
      }
      if (value.view.shape != shape) return std::nullopt;
      return Add(std::move(value));
    }
    if (Product(source.shape) != Product(shape)) return std::nullopt;
    if (IsContiguous(source.view)) {
      value.view.strides = RowMajorStrides(shape);
      return Add(std::move(value));
    }
    // Only ones come and go: the other strides stay as they are.
    size_t from = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) {
        value.view.strides[d] = 0;
        continue;
      }
      while (from < source.shape.size() && source.shape[from] == 1) ++from;
      if (from == source.shape.size() || source.shape[from] != shape[d]) return std::nullopt;
      value.view.strides.resize(shape.size());
      value.view.strides[d] = source.view.strides[from++];
    }
    value.view.strides.resize(shape.size());
    return Add(std::move(value));
  }

  // Strides of a view broadcast to a larger shape; empty (for a shape of rank > 0) when it does not broadcast.
  static Shape BroadcastStrides(const Operand& view, const Shape& shape) {
    if (view.shape.size() > shape.size()) return {};
    Shape strides(shape.size(), 0);
    const size_t skip = shape.size() - view.shape.size();
    for (size_t d = 0; d < view.shape.size(); ++d) {
      if (view.shape[d] == 1) continue;
      if (view.shape[d] != shape[skip + d]) return {};
      strides[skip + d] = view.strides[d];
    }
    return strides;
  }

  // ------------------------------------------------------------------------------------------------- elementwise
  // Losses as expressions of (x, target, reduction, beta): 0 none, 1 mean, 2 sum.
  std::optional<int> Loss(const std::string& name, const Args& args) {
    const double reduction = args.Number(2, 1);
    const Shape shape = values_[args.values[0]].shape;
    if (args.size() < 3 || values_[args.values[1]].shape != shape || IsConstant(args.values[0]) ||
        IsConstant(args.values[1])) {
      return std::nullopt;
    }
    int loss = Elementwise("sub", {args.values[0], args.values[1]}, shape);
    if (name == "mse_loss") {
      loss = Elementwise("square", {loss}, shape);
    } else {
      loss = Elementwise("abs", {loss}, shape);
    }
    const double beta = args.Number(3, 1);
    if ((name == "smooth_l1_loss" || name == "huber_loss") && beta > 0) {
      // With m = min(d, beta): d^2 / 2 below beta and beta (d - beta / 2) above are both m (d - m / 2).
      const int low = Elementwise("clamp", {loss}, shape, {-std::numeric_limits<double>::infinity(), beta});
      const int half = Elementwise("mul", {low, Constant(0.5)}, shape);
      loss = Elementwise("mul", {low, Elementwise("sub", {loss, half}, shape)}, shape);
      if (name == "smooth_l1_loss" && beta != 1) loss = Elementwise("mul", {loss, Constant(1 / beta)}, shape);
    }
    if (reduction == 0) return loss;
    if (reduction != 1 && reduction != 2) return std::nullopt;
    return Reduction(reduction == 1 ? ReduceSpec::Kind::kMean : ReduceSpec::Kind::kSum,
                     reduction == 1 ? "reduce_mean" : "reduce_sum", loss, {}, {});
  }

  std::optional<int> FoldElementwise(const std::string& name, const Args& args, const Shape& shape) {
    const double inf = std::numeric_limits<double>::infinity();
    auto unary = [&](const std::string& op, std::vector<double> params = {}) {
      return Elementwise(op, {args.values[0]}, shape, std::move(params));
    };
    static const std::set<std::string> kUnaries = {
        "neg",    "abs",  "exp",  "log",     "log1p", "expm1",    "sqrt", "rsqrt",       "reciprocal",
        "square", "relu", "silu", "sigmoid", "tanh",  "softsign", "mish", "hardsigmoid", "hardswish",
        "relu6",  "selu", "erf",  "sin",     "cos",   "floor",    "ceil", "round",       "sign"};
    for (size_t i = 0; i < args.size(); ++i) {
      if (values_[args.values[i]].kind == Value::Kind::kOpaque) return std::nullopt;
    }
    if (kUnaries.count(name) > 0) return unary(name);
    if (name == "gelu") return unary(args.Text(1) == "tanh" ? "gelu_tanh" : "gelu");
    if (name == "leaky_relu") return unary("leaky_relu", {args.Number(1, 0.01)});
    if (name == "elu") {
      if (args.Number(2, 1) != 1 || args.Number(3, 1) != 1) return std::nullopt;
      return unary("elu", {args.Number(1, 1)});
    }
    if (name == "celu") {
      if (args.Number(1, 1) != 1) return std::nullopt;
      return unary("elu", {1.0});
    }
    if (name == "softplus") {
      const double beta = args.Number(1, 1), threshold = args.Number(2, 20);
      if (beta == 1 && threshold == 20) return unary("softplus");
      return unary("softplus_beta", {beta, threshold});
    }
    if (name == "log_sigmoid") {
      int negative = Elementwise("neg", {args.values[0]}, shape);
      int softplus = Elementwise("softplus", {negative}, shape);
      return Elementwise("neg", {softplus}, shape);
    }
    if (name == "hardtanh") return unary("clamp", {args.Number(1, -1), args.Number(2, 1)});
    if (name == "clamp" || name == "clip") {
      for (size_t i = 1; i < args.size(); ++i) {
        if (IsTensor(args.values[i])) return std::nullopt;
      }
      return unary("clamp", {args.Number(1, -inf), args.Number(2, inf)});
    }
    if (name == "clamp_min")
      return args.Constant(1) ? std::optional<int>(unary("clamp", {args.Number(1, -inf), inf})) : std::nullopt;
    if (name == "clamp_max")
      return args.Constant(1) ? std::optional<int>(unary("clamp", {-inf, args.Number(1, inf)})) : std::nullopt;
    if (args.size() < 2) return std::nullopt;
    if (name == "mse_loss" || name == "l1_loss" || name == "smooth_l1_loss" || name == "huber_loss") {
      return Loss(name, args);
    }
    if (name == "add" || name == "sub" || name == "rsub") {
      int left = args.values[0], right = args.values[1];
      if (name == "rsub") std::swap(left, right);
      const double alpha = args.Number(2, 1);
      if (alpha != 1) {
        right = Elementwise("mul", {right, Constant(alpha)}, values_[right].shape);
      }
      return Binary(name == "add" ? "add" : "sub", left, right, shape);
    }
    if (name == "mul" || name == "multiply") return Times(args.values[0], args.values[1], shape);
    if (name == "div" || name == "true_divide" || name == "divide") {
      if (args.size() > 2 && !args.IsNull(2)) return std::nullopt;  // a rounding mode
      return Quotient(args.values[0], args.values[1], shape);
    }
    if (name == "maximum" || name == "minimum") return Binary(name, args.values[0], args.values[1], shape);
    if ((name == "max" || name == "min") && args.size() == 2 && IsTensor(args.values[1])) {
      return Binary(name == "max" ? "maximum" : "minimum", args.values[0], args.values[1], shape);
    }
    if (name == "pow") {
      if (const Json* exponent = args.Constant(1); exponent != nullptr && exponent->is_number()) {
        const double e = exponent->get<double>();
        if (e == 1) return args.values[0];
        if (e == 2) return unary("square");
        if (e == 0.5) return unary("sqrt");
        if (e == -0.5) return unary("rsqrt");
        if (e == -1) return unary("reciprocal");
        return unary("pow_const", {e});
      }
      return Binary("pow", args.values[0], args.values[1], shape);
    }
    return std::nullopt;
  }

  std::optional<int> Binary(const std::string& op, int left, int right, const Shape& shape) {
    for (int value : {left, right}) {
      if (IsConstant(value) && !values_[value].constant.is_number()) return std::nullopt;
    }
    return Elementwise(op, {left, right}, shape);
  }

  std::optional<int> Times(int left, int right, const Shape& shape) {
    if (auto norm = NormPattern(left, right, "rsqrt", shape)) return norm;
    if (auto norm = NormPattern(right, left, "rsqrt", shape)) return norm;
    return Binary("mul", left, right, shape);
  }

  std::optional<int> Quotient(int left, int right, const Shape& shape) {
    if (auto norm = NormPattern(left, right, "sqrt", shape)) return norm;
    return Binary("div", left, right, shape);
  }

  // x * rsqrt(mean(x^2) + eps), x / sqrt(mean(x^2) + eps), the same with sum, and x / norm(x): a normalisation that
  // somebody wrote out by hand.
  std::optional<int> NormPattern(int x, int scale, const std::string& root, const Shape& shape) {
    if (IsConstant(x) || IsConstant(scale) || values_[x].shape != shape) return std::nullopt;
    int reduced = scale;
    double eps = 0;
    bool squares = false;
    if (values_[scale].kind == Value::Kind::kElementwise && values_[scale].node.op == root) {
      squares = true;
      reduced = values_[scale].args[0];
      const Value& sum = values_[reduced];
      if (sum.kind == Value::Kind::kElementwise && sum.node.op == "add") {
        int constant = IsConstant(sum.args[1]) ? 1 : 0;
        if (!IsConstant(sum.args[constant])) return std::nullopt;
        eps = values_[sum.args[constant]].constant.get<double>();
        reduced = sum.args[1 - constant];
      }
    } else if (root != "sqrt") {
      return std::nullopt;
    }
    const Value& reduce = values_[reduced];
    if (reduce.kind != Value::Kind::kHeavy || !reduce.heavy.reduce) return std::nullopt;
    int input = reduce.args[0];
    NormSpec norm;
    norm.eps = eps;
    if (squares) {
      const Value& square = values_[input];
      if (square.kind != Value::Kind::kElementwise) return std::nullopt;
      const bool is_square = square.node.op == "square" && square.args[0] == x;
      const bool is_product = square.node.op == "mul" && square.args[0] == x && square.args[1] == x;
      if (!is_square && !is_product) return std::nullopt;
      if (reduce.heavy.reduce->kind == ReduceSpec::Kind::kMean) {
        norm.kind = NormSpec::Kind::kRms;
      } else if (reduce.heavy.reduce->kind == ReduceSpec::Kind::kSum) {
        norm.kind = NormSpec::Kind::kL2;
      } else {
        return std::nullopt;
      }
    } else {
      if (reduce.heavy.reduce->kind != ReduceSpec::Kind::kL2 || input != x) return std::nullopt;
      norm.kind = NormSpec::Kind::kL2;
    }
    // The reduced value must broadcast along the reduced dimensions and no others.
    const RowsSpec rows = *reduce.heavy.rows;
    if (Product(reduce.shape) != rows.outer * rows.inner) return std::nullopt;
    const bool whole = rows.outer * rows.inner == 1;
    if (!whole && reduce.shape.size() != shape.size()) return std::nullopt;
    Value value;
    value.kind = Value::Kind::kHeavy;
    value.operation = norm.kind == NormSpec::Kind::kRms ? "rms_norm" : "l2_norm";
    value.shape = shape;
    value.args = {x};
    value.heavy.norm = norm;
    value.heavy.rows = rows;
    return Add(std::move(value));
  }

  // ------------------------------------------------------------------------------------------------- heavy operations
  int Heavy(const std::string& operation, std::vector<int> inputs, const Shape& shape, OpSpec parts) {
    Value value;
    value.kind = Value::Kind::kHeavy;
    value.operation = operation;
    value.shape = shape;
    value.args = std::move(inputs);
    value.heavy = std::move(parts);
    return Add(std::move(value));
  }

  // [outer, n, inner] for a set of dimensions that lie side by side.
  static std::optional<RowsSpec> Rows(const Shape& shape, Shape dims) {
    if (dims.empty()) {
      for (size_t d = 0; d < shape.size(); ++d) dims.push_back(static_cast<int64_t>(d));
    }
    std::set<int64_t> set;
    for (int64_t dim : dims) {
      auto d = Dimension(dim, shape.size());
      if (!d) return std::nullopt;
      set.insert(*d);
    }
    RowsSpec rows;
    if (set.empty()) return rows;  // a 0-dimensional tensor
    const int64_t first = *set.begin(), last = *set.rbegin();
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
      if (d < first) {
        rows.outer *= shape[d];
      } else if (d > last) {
        rows.inner *= shape[d];
      } else {
        if (set.count(d) == 0 && shape[d] != 1) return std::nullopt;
        rows.n *= shape[d];
      }
    }
    return rows;
  }

  std::optional<int> Reduction(ReduceSpec::Kind kind, const std::string& operation, int x, const Shape& dims,
                               const Shape& shape) {
    std::optional<RowsSpec> rows = Rows(values_[x].shape, dims);
    if (!rows || IsConstant(x)) return std::nullopt;
    OpSpec parts;
    parts.rows = rows;
    parts.reduce = ReduceSpec{kind};
    return Heavy(operation, {x}, shape, std::move(parts));
  }

  // Adds "* weight + bias" with per-channel (dimension 1) or trailing parameters; null ones are left out.
  std::optional<int> Affine(int x, const Args& args, size_t weight, size_t bias, const Shape& shape, bool channels) {
    for (auto [index, op] : {std::pair<size_t, const char*>{weight, "mul"}, {bias, "add"}}) {
      if (args.IsNull(index)) continue;
      std::optional<int> parameter = channels ? PerChannel(args.values[index], shape.size()) : args.values[index];
      if (!parameter || values_[*parameter].kind != Value::Kind::kView) return std::nullopt;
      x = Elementwise(op, {x, *parameter}, shape);
    }
    return x;
  }

  // A vector as [c, 1, 1, ...] so that it broadcasts along dimension 1 of a tensor of that rank.
  std::optional<int> PerChannel(int vector, size_t rank) {
    if (values_[vector].kind != Value::Kind::kView || values_[vector].shape.size() != 1 || rank < 2)
      return std::nullopt;
    Value value = values_[vector];
    while (value.shape.size() < rank - 1) {
      value.shape.push_back(1);
      value.view.shape.push_back(1);
      value.view.strides.push_back(0);
    }
    return Add(std::move(value));
  }

  std::optional<int> FoldHeavy(const std::string& name, const Args& args, const Shape& shape) {
    const int x = args.values[0];
    const Shape xs = values_[x].shape;
    if (name == "softmax" || name == "log_softmax" || name == "_softmax" || name == "_log_softmax") {
      std::optional<RowsSpec> rows = Rows(xs, {static_cast<int64_t>(args.Number(1, -1))});
      if (!rows || !IsTensor(x)) return std::nullopt;
      OpSpec parts;
      parts.rows = rows;
      return Heavy(absl::StrContains(name, "log") ? "log_softmax" : "softmax", {x}, shape, std::move(parts));
    }
    if (name == "layer_norm" && args.size() >= 5) {
      std::optional<Shape> dims = args.List(1);
      if (!dims || dims->size() > xs.size()) return std::nullopt;
      OpSpec parts;
      parts.rows = RowsSpec{};
      for (size_t d = 0; d < xs.size(); ++d) {
        (d + dims->size() < xs.size() ? parts.rows->outer : parts.rows->n) *= xs[d];
      }
      parts.norm = NormSpec{NormSpec::Kind::kLayer, args.Number(4, 1e-5)};
      return Affine(Heavy("layer_norm", {x}, shape, std::move(parts)), args, 2, 3, shape, /*channels=*/false);
    }
    if (name == "rms_norm" && args.size() >= 2) {
      std::optional<Shape> dims = args.List(1);
      if (!dims || dims->size() > xs.size() || args.IsNull(3)) return std::nullopt;
      OpSpec parts;
      parts.rows = RowsSpec{};
      for (size_t d = 0; d < xs.size(); ++d) {
        (d + dims->size() < xs.size() ? parts.rows->outer : parts.rows->n) *= xs[d];
      }
      parts.norm = NormSpec{NormSpec::Kind::kRms, args.Number(3, 1e-6)};
      return Affine(Heavy("rms_norm", {x}, shape, std::move(parts)), args, 2, args.size(), shape, /*channels=*/false);
    }
    if (name == "group_norm" && args.size() >= 5 && xs.size() >= 2) {
      const int64_t groups = static_cast<int64_t>(args.Number(1, 0));
      if (groups <= 0 || xs[1] % groups != 0) return std::nullopt;
      OpSpec parts;
      parts.rows = RowsSpec{xs[0] * groups, Product(xs) / std::max<int64_t>(1, xs[0] * groups), 1};
      parts.norm = NormSpec{NormSpec::Kind::kLayer, args.Number(4, 1e-5)};
      return Affine(Heavy("group_norm", {x}, shape, std::move(parts)), args, 2, 3, shape, /*channels=*/true);
    }
    if (name == "instance_norm" && args.size() >= 8 && xs.size() >= 3) {
      if (!args.Bool(5, true)) return std::nullopt;
      OpSpec parts;
      parts.rows = RowsSpec{xs[0] * xs[1], Product(xs) / std::max<int64_t>(1, xs[0] * xs[1]), 1};
      parts.norm = NormSpec{NormSpec::Kind::kLayer, args.Number(7, 1e-5)};
      return Affine(Heavy("instance_norm", {x}, shape, std::move(parts)), args, 1, 2, shape, /*channels=*/true);
    }
    if (name == "batch_norm" && args.size() >= 8) {
      // With running statistics it is a chain; with batch statistics it also updates buffers, which no kernel here
      // does.
      if (args.Bool(5, false) || args.IsNull(3) || args.IsNull(4)) return std::nullopt;
      std::optional<int> mean = PerChannel(args.values[3], xs.size()), var = PerChannel(args.values[4], xs.size());
      if (!mean || !var) return std::nullopt;
      const Shape small = values_[*var].shape;
      int shifted = Elementwise("add", {*var, Constant(args.Number(7, 1e-5))}, small);
      int scale = Elementwise("rsqrt", {shifted}, small);
      int centred = Elementwise("sub", {x, *mean}, shape);
      return Affine(Elementwise("mul", {centred, scale}, shape), args, 1, 2, shape, /*channels=*/true);
    }
    if (std::optional<int> reduction = FoldReduction(name, args, shape)) return reduction;
    if (name == "linear") {
      if (args.size() < 2 || values_[args.values[1]].kind != Value::Kind::kView ||
          values_[args.values[1]].shape.size() != 2) {
        return std::nullopt;
      }
      Value transposed = values_[args.values[1]];
      std::swap(transposed.shape[0], transposed.shape[1]);
      std::swap(transposed.view.shape[0], transposed.view.shape[1]);
      std::swap(transposed.view.strides[0], transposed.view.strides[1]);
      std::optional<int> product = MatrixProduct(x, Add(std::move(transposed)), shape);
      if (!product || args.IsNull(2)) return product;
      return Elementwise("add", {*product, args.values[2]}, shape);
    }
    if (name == "matmul" || name == "mm" || name == "bmm" || name == "mv") {
      return args.size() < 2 ? std::nullopt : MatrixProduct(x, args.values[1], shape);
    }
    if (name == "einsum") return Einsum(args, shape);
    if ((name == "addmm" || name == "baddbmm") && args.size() >= 3) {
      std::optional<int> product = MatrixProduct(args.values[1], args.values[2], shape);
      if (!product) return std::nullopt;
      const double beta = args.Number(3, 1), alpha = args.Number(4, 1);
      if (alpha != 1) product = Elementwise("mul", {*product, Constant(alpha)}, shape);
      if (beta == 0) return product;
      int bias = beta == 1 ? x : Elementwise("mul", {x, Constant(beta)}, xs);
      return Elementwise("add", {*product, bias}, shape);
    }
    if (name == "_convolution" || name == "conv2d" || name == "conv1d") return Convolution(name, args, shape);
    if (name == "max_pool2d" || name == "avg_pool2d") return Pooling(name == "max_pool2d", 2, args, shape);
    if (name == "max_pool1d" || name == "avg_pool1d") return Pooling(name == "max_pool1d", 1, args, shape);
    return std::nullopt;
  }

  std::optional<int> FoldReduction(const std::string& name, const Args& args, const Shape& shape) {
    using Kind = ReduceSpec::Kind;
    const int x = args.values[0];
    if (!IsTensor(x)) return std::nullopt;
    if (name == "sum" || name == "mean") {
      const Kind kind = name == "sum" ? Kind::kSum : Kind::kMean;
      // (x, dtype) or (x, dims, keepdim, dtype)
      if (args.size() <= 2) return Reduction(kind, "reduce_" + name, x, {}, shape);
      std::optional<Shape> dims = args.IsNull(1) ? Shape{} : args.List(1);
      return dims ? Reduction(kind, "reduce_" + name, x, *dims, shape) : std::nullopt;
    }
    if (name == "prod") {
      if (args.size() <= 2) return Reduction(Kind::kProd, "reduce_prod", x, {}, shape);
      std::optional<Shape> dims = args.List(1);
      return dims ? Reduction(Kind::kProd, "reduce_prod", x, *dims, shape) : std::nullopt;
    }
    if (name == "max" || name == "min" || name == "amax" || name == "amin") {
      if (args.size() == 2 && IsTensor(args.values[1])) return std::nullopt;  // elementwise
      const bool max = absl::EndsWith(name, "max");
      std::optional<Shape> dims = args.size() < 2 ? Shape{} : args.List(1);
      return dims ? Reduction(max ? Kind::kMax : Kind::kMin, max ? "reduce_max" : "reduce_min", x, *dims, shape)
                  : std::nullopt;
    }
    if (name == "logsumexp") {
      std::optional<Shape> dims = args.List(1);
      return dims ? Reduction(Kind::kLogSumExp, "reduce_logsumexp", x, *dims, shape) : std::nullopt;
    }
    if (name == "norm" || name == "linalg_vector_norm" || name == "frobenius_norm") {
      size_t dims_at = 2;
      if (name == "frobenius_norm") {
        dims_at = 1;
      } else if (args.Number(1, 2) != 2 || (!args.Text(1).empty() && args.Text(1) != "fro")) {
        return std::nullopt;
      }
      std::optional<Shape> dims = args.IsNull(dims_at) ? Shape{} : args.List(dims_at);
      return dims ? Reduction(Kind::kL2, "reduce_l2", x, *dims, shape) : std::nullopt;
    }
    return std::nullopt;
  }

  // Dimensions [from, to) of a view as one, when their strides allow it.
  static std::optional<std::pair<int64_t, int64_t>> FoldDims(const Operand& view, size_t from, size_t to) {
    int64_t size = 1, stride = 0;
    for (size_t d = to; d-- > from;) {
      if (view.shape[d] == 1) continue;
      if (size == 1) {
        stride = view.strides[d];
      } else if (view.strides[d] != stride * size) {
        return std::nullopt;
      }
      size *= view.shape[d];
    }
    return std::pair<int64_t, int64_t>{size, stride};
  }

  std::optional<int> MatrixProduct(int left, int right, const Shape& shape) {
    if (values_[left].kind != Value::Kind::kView || values_[right].kind != Value::Kind::kView) {
      note_ = "a matrix product whose operands are computed first";
      return std::nullopt;
    }
    Operand a = values_[left].view, b = values_[right].view;
    if (b.shape.size() == 1) {  // matrix times vector
      b.shape.push_back(1);
      b.strides.push_back(0);
    }
    if (a.shape.size() == 1) {  // vector times matrix
      a.shape.insert(a.shape.begin(), 1);
      a.strides.insert(a.strides.begin(), 0);
    }
    const size_t ra = a.shape.size(), rb = b.shape.size();
    if (a.shape[ra - 1] != b.shape[rb - 2]) return std::nullopt;
    MatmulSpec matmul;
    matmul.k = a.shape[ra - 1];
    matmul.n = b.shape[rb - 1];
    auto a_batch = FoldDims(a, 0, ra - 2), b_batch = FoldDims(b, 0, rb - 2);
    auto a_rows = FoldDims(a, 0, ra - 1);
    if (!b_batch) return std::nullopt;
    const Shape tail_a = {a.strides[ra - 2], a.strides[ra - 1]};
    const Shape tail_b = {b.strides[rb - 2], b.strides[rb - 1]};
    if (b_batch->first == 1 && a_rows) {  // one B for all: the batch is more rows
      matmul.m = a_rows->first;
      matmul.a = Operand{a.arg, {1, matmul.m, matmul.k}, {0, a_rows->second, tail_a[1]}};
      matmul.b = Operand{b.arg, {1, matmul.k, matmul.n}, {0, tail_b[0], tail_b[1]}};
    } else {
      if (!a_batch) return std::nullopt;
      matmul.m = a.shape[ra - 2];
      matmul.batch = std::max(a_batch->first, b_batch->first);
      for (auto* batch : {&*a_batch, &*b_batch}) {
        if (batch->first != matmul.batch && batch->first != 1) return std::nullopt;  // broadcast both ways
      }
      // Batches of unlike shapes that happen to have the same count would pair wrongly.
      if (a_batch->first == b_batch->first &&
          !SameButLeadingOnes(Shape(a.shape.begin(), a.shape.end() - 2), Shape(b.shape.begin(), b.shape.end() - 2))) {
        return std::nullopt;
      }
      matmul.a = Operand{
          a.arg, {matmul.batch, matmul.m, matmul.k}, {a_batch->first == 1 ? 0 : a_batch->second, tail_a[0], tail_a[1]}};
      matmul.b = Operand{
          b.arg, {matmul.batch, matmul.k, matmul.n}, {b_batch->first == 1 ? 0 : b_batch->second, tail_b[0], tail_b[1]}};
    }
    if (matmul.batch * matmul.m * matmul.n != Product(shape)) return std::nullopt;
    OpSpec parts;
    parts.matmul = matmul;
    return Heavy("matmul", {left, right}, shape, std::move(parts));
  }

  // einsum of two tensors that is a matrix product: "bijl,lk->bijk", "bik,bjk->bij".
  std::optional<int> Einsum(const Args& args, const Shape& shape) {
    std::string text = args.Text(0);
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    const size_t comma = text.find(','), arrow = text.find("->");
    if (comma == std::string::npos || arrow == std::string::npos || comma > arrow || args.size() < 2) {
      return std::nullopt;
    }
    const std::string labels[2] = {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1)};
    const std::string result = text.substr(arrow + 2);
    // The tensors come as a list, which folds to an opaque value; the operation at hand keeps its names.
    auto list = lists_.find(args.values[1]);
    if (list == lists_.end() || list->second.size() != 2) return std::nullopt;
    // Labels in the order batch, rows, columns; the summed one is in no result.
    std::string batch, rows, columns, summed;
    for (int side : {0, 1}) {
      const Value& value = values_[list->second[side]];
      if (value.kind != Value::Kind::kView || value.shape.size() != labels[side].size()) return std::nullopt;
      for (char label : labels[side]) {
        if (std::isalpha(static_cast<unsigned char>(label)) == 0) return std::nullopt;
        if (std::count(labels[side].begin(), labels[side].end(), label) != 1) return std::nullopt;
        const bool other = labels[1 - side].find(label) != std::string::npos;
        const bool kept = result.find(label) != std::string::npos;
        if (!other && !kept) return std::nullopt;
        if (side == 1 && other) continue;
        (other ? kept ? batch : summed : side == 0 ? rows : columns) += label;
      }
    }
    if (summed.size() != 1 || columns.size() != 1 || rows.empty() || (!batch.empty() && rows.size() != 1)) {
      return std::nullopt;
    }
    if (result != batch + rows + columns) return std::nullopt;
    int sides[2];
    for (int side : {0, 1}) {
      Value value = values_[list->second[side]];
      const Operand view = value.view;
      const std::string order = batch + (side == 0 ? rows + summed : summed + columns);
      for (size_t d = 0; d < order.size(); ++d) {
        const size_t from = labels[side].find(order[d]);
        value.view.shape[d] = view.shape[from];
        value.view.strides[d] = view.strides[from];
      }
      value.shape = value.view.shape;
      sides[side] = Add(std::move(value));
    }
    return MatrixProduct(sides[0], sides[1], shape);
  }

  std::optional<int> Convolution(const std::string& name, const Args& args, const Shape& shape) {
    // _convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups, ...)
    // conv2d(x, w, b, stride, padding, dilation, groups), conv1d the same: an image of height 1
    const bool full = name == "_convolution";
    if (args.size() < (full ? 9u : 7u) || (full && args.Bool(6, false))) {
      note_ = "transposed";
      return std::nullopt;
    }
    const Value& x = values_[args.values[0]];
    const Value& w = values_[args.values[1]];
    const size_t rank = shape.size();
    if (rank != 3 && rank != 4) {
      note_ = "of three dimensions";
      return std::nullopt;
    }
    const int dims = static_cast<int>(rank) - 2;
    auto stride = args.Window(3, dims, 1), padding = args.Window(4, dims, 0), dilation = args.Window(5, dims, 1);
    if (x.shape.size() != rank || w.shape.size() != rank || !stride || !padding || !dilation) {
      return std::nullopt;
    }
    if (x.kind != Value::Kind::kView || w.kind != Value::Kind::kView || !IsContiguous(x.view) ||
        !IsContiguous(w.view)) {
      note_ = "a convolution whose operands are computed first";
      return std::nullopt;
    }
    Conv2dSpec conv;
    conv.n = x.shape[0], conv.c = x.shape[1], conv.h = dims == 2 ? x.shape[2] : 1, conv.w = x.shape[rank - 1];
    conv.oc = shape[1], conv.oh = dims == 2 ? shape[2] : 1, conv.ow = shape[rank - 1];
    conv.kh = dims == 2 ? w.shape[2] : 1, conv.kw = w.shape[rank - 1];
    conv.stride_h = (*stride)[0], conv.stride_w = (*stride)[1];
    conv.pad_h = (*padding)[0], conv.pad_w = (*padding)[1];
    conv.dilation_h = (*dilation)[0], conv.dilation_w = (*dilation)[1];
    conv.groups = static_cast<int64_t>(args.Number(full ? 8 : 6, 1));
    conv.input = x.view.arg, conv.weight = w.view.arg;
    if (conv.groups <= 0 || w.shape[0] != conv.oc || w.shape[1] * conv.groups != conv.c) return std::nullopt;
    OpSpec parts;
    parts.conv2d = conv;
    int result = Heavy("conv2d", {args.values[0], args.values[1]}, shape, std::move(parts));
    if (args.IsNull(2)) return result;
    std::optional<int> bias = PerChannel(args.values[2], rank);
    if (!bias) return std::nullopt;
    return Elementwise("add", {result, *bias}, shape);
  }

  std::optional<int> Pooling(bool max, int rank, const Args& args, const Shape& shape) {
    // max_pool2d(x, kernel, stride, padding, dilation, ceil_mode), max_pool1d the same: an image of height 1
    // avg_pool2d(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override), avg_pool1d without the
    // last
    const Shape& xs = values_[args.values[0]].shape;
    auto kernel = args.Window(1, rank, 1), padding = args.Window(3, rank, 0);
    if (!kernel || !padding || static_cast<int>(xs.size()) <= rank || shape.size() != xs.size()) return std::nullopt;
    auto stride = args.Window(2, rank, 1);
    if (!stride) stride = kernel;
    if (args.Bool(max ? 5 : 4, false) || (!max && !args.IsNull(6))) return std::nullopt;
    Pool2dSpec pool;
    pool.kind = max ? Pool2dSpec::Kind::kMax : Pool2dSpec::Kind::kAvg;
    pool.h = rank == 2 ? xs[xs.size() - 2] : 1, pool.w = xs[xs.size() - 1];
    pool.oh = rank == 2 ? shape[shape.size() - 2] : 1, pool.ow = shape[shape.size() - 1];
    pool.planes = Product(xs) / std::max<int64_t>(1, pool.h * pool.w);
    pool.kh = (*kernel)[0], pool.kw = (*kernel)[1];
    pool.stride_h = (*stride)[0], pool.stride_w = (*stride)[1];
    pool.pad_h = (*padding)[0], pool.pad_w = (*padding)[1];
    if (max) {
      auto dilation = args.Window(4, rank, 1);
      if (!dilation) dilation = Shape{1, 1};
      pool.dilation_h = (*dilation)[0], pool.dilation_w = (*dilation)[1];
    }
    pool.count_include_pad = args.Bool(5, true);
    OpSpec parts;
    parts.pool = pool;
    return Heavy(max ? "max_pool2d" : "avg_pool2d", {args.values[0]}, shape, std::move(parts));
  }

  // ------------------------------------------------------------------------------------------------- the whole
  // Writes the elementwise expression that ends in `root` over `space`; heavy values become "acc" and are noted.
  absl::Status Build(int root, const Shape& space, Expr* expr, std::optional<int>* heavy) {
    expr->space = space;
    std::unordered_map<int, int> done;
    // Depth-first without recursion: graphs are bounded, but chains can be long.
    std::vector<std::pair<int, bool>> stack = {{root, false}};
    while (!stack.empty()) {
      auto [id, ready] = stack.back();
      stack.pop_back();
      if (done.count(id) > 0) continue;
      const Value& value = values_[id];
      ExprNode node;
      switch (value.kind) {
        case Value::Kind::kOpaque:
          return Unknown(value.why);
        case Value::Kind::kConstant:
          if (!value.constant.is_number()) return Unknown("a constant that is no number");
          node.op = "const";
          node.value = value.constant.get<double>();
          break;
        case Value::Kind::kView: {
          if (!value.is_float32) {
            return Unknown(
                absl::StrCat("a ", spec_.args[value.view.arg].dtype(), " tensor; the catalogue works on float32"));
          }
          Operand operand{value.view.arg, space, BroadcastStrides(value.view, space)};
          if (operand.strides.size() != space.size()) {
            return Unknown(absl::StrCat("a tensor of shape ", ShapeText(value.shape), " over a result of shape ",
                                        ShapeText(space)));
          }
          for (size_t d = 0; d < space.size(); ++d) operand.shape[d] = operand.strides[d] == 0 ? 1 : space[d];
          node.op = "input";
          for (size_t o = 0; o < expr->operands.size(); ++o) {
            if (expr->operands[o].arg == operand.arg && expr->operands[o].strides == operand.strides) {
              node.operand = static_cast<int>(o);
            }
          }
          if (node.operand < 0) {
            node.operand = static_cast<int>(expr->operands.size());
            expr->operands.push_back(std::move(operand));
          }
          break;
        }
        case Value::Kind::kHeavy:
          if (heavy == nullptr) return Unknown(absl::StrCat(value.operation, " after another operation of its kind"));
          if (heavy->has_value() && **heavy != id) {
            return Unknown(absl::StrCat("both ", values_[**heavy].operation, " and ", value.operation));
          }
          if (!SameButLeadingOnes(value.shape, space)) {
            return Unknown(absl::StrCat("the result of ", value.operation, " broadcast to ", ShapeText(space)));
          }
          *heavy = id;
          node.op = "acc";
          break;
        case Value::Kind::kElementwise:
          if (value.node.op == "reshape") return Unknown("a reshape between elementwise operations");
          if (!ready) {
            stack.push_back({id, true});
            for (auto it = value.args.rbegin(); it != value.args.rend(); ++it) {
              if (done.count(*it) == 0) stack.push_back({*it, false});
            }
            continue;
          }
          node = value.node;
          for (int arg : value.args) node.args.push_back(done.at(arg));
          break;
      }
      done[id] = static_cast<int>(expr->nodes.size());
      expr->nodes.push_back(std::move(node));
    }
    return absl::OkStatus();
  }

  static Expr Acc(const Shape& space) {
    Expr expr;
    expr.space = space;
    expr.nodes.push_back(ExprNode{"acc"});
    return expr;
  }

  // Whether the epilogue is only "acc + one broadcast input", a bias.
  static bool OnlyBias(const Expr& expr) {
    if (expr.IsAcc()) return true;
    if (expr.nodes.size() != 3 || expr.nodes[2].op != "add" || expr.operands.size() != 1) return false;
    int broadcast = 0;
    for (size_t d = 0; d < expr.space.size(); ++d) {
      if (expr.space[d] != 1 && expr.operands[0].strides[d] == 0) ++broadcast;
    }
    return broadcast > 0;
  }

  absl::StatusOr<OpSpec> Finish(int output) {
    // A reshape of the whole result moves nothing in memory.
    while (values_[output].kind == Value::Kind::kElementwise && values_[output].node.op == "reshape") {
      output = values_[output].args[0];
    }
    if (description_.outputs_size() > 0) {
      const v1::TensorType& type = description_.outputs(0);
      spec_.output_shape.assign(type.shape().begin(), type.shape().end());
      if (type.dtype() != "float32") {
        return Unknown(absl::StrCat("a ", type.dtype(), " result; the catalogue works on float32"));
      }
    } else {
      spec_.output_shape = values_[output].shape;
    }
    if (values_[output].kind == Value::Kind::kView) return Unknown("no computation at all: the result is an input");
    if (values_[output].kind == Value::Kind::kOpaque) return Unknown(values_[output].why);
    const Shape space = values_[output].shape;
    if (Product(space) != Product(spec_.output_shape)) return Unknown("a graph whose result has another shape");
    std::optional<int> heavy;
    GROVE_RETURN_IF_ERROR(Build(output, space, &spec_.epilogue, &heavy));
    if (Product(space) == 0) return Unknown("an empty result");
    if (!heavy) {
      spec_.operation = "elementwise";
      return spec_;
    }
    const Value value = values_[*heavy];
    spec_.operation = value.operation;
    spec_.matmul = value.heavy.matmul;
    spec_.rows = value.heavy.rows;
    spec_.norm = value.heavy.norm;
    spec_.reduce = value.heavy.reduce;
    spec_.conv2d = value.heavy.conv2d;
    spec_.pool = value.heavy.pool;
    if (spec_.matmul || spec_.conv2d) {
      for (int input : value.args) {
        if (!values_[input].is_float32) {
          return Unknown(absl::StrCat(value.operation, " of tensors that are not float32"));
        }
      }
      if (!OnlyBias(spec_.epilogue)) spec_.operation += "_epilogue";
      return spec_;
    }
    if (spec_.pool) {
      if (!spec_.epilogue.IsAcc()) return Unknown("elementwise operations after pooling");
      std::optional<int> inner;
      Expr before;
      GROVE_RETURN_IF_ERROR(Build(value.args[0], values_[value.args[0]].shape, &before, &inner));
      if (!inner) {
        spec_.prologue = before;
        return spec_;
      }
      const Value convolution = values_[*inner];
      if (!convolution.heavy.conv2d) {
        return Unknown(absl::StrCat("pooling after ", convolution.operation));
      }
      if (!values_[convolution.args[0]].is_float32) return Unknown("a convolution of tensors that are not float32");
      spec_.conv2d = convolution.heavy.conv2d;
      spec_.epilogue = before;
      const bool relu = before.nodes.back().op == "relu";
      Expr without = before;
      if (relu) without.nodes.pop_back();
      spec_.operation = relu && OnlyBias(without) && spec_.pool->kind == Pool2dSpec::Kind::kMax
                            ? "conv2d_relu_maxpool"
                            : "conv2d_epilogue_pool";
      return spec_;
    }
    GROVE_RETURN_IF_ERROR(Build(value.args[0], values_[value.args[0]].shape, &spec_.prologue, nullptr));
    return spec_;
  }

  absl::Status Unknown(const std::string& why) const {
    std::set<std::string> kinds;
    for (const v1::GraphOp& op : description_.graph()) kinds.insert(op.kind());
    std::vector<std::string> seen(kinds.begin(), kinds.end());
    if (seen.size() > 20) {
      seen.resize(20);
      seen.push_back("...");
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "the catalogue does not know this operation: ", why, note_.empty() ? "" : absl::StrCat(" (", note_, ")"),
        seen.empty() ? "" : absl::StrCat(". Operations seen: ", absl::StrJoin(seen, ", ")),
        ". Use --generator openai or --generator replay:FILE, or judge a kernel of your own with grove eval"));
  }

  const v1::ProblemDescription& description_;
  OpSpec spec_;
  std::vector<Value> values_;
  std::map<std::string, int> names_;
  std::map<int, std::vector<int>> lists_;  // values of lists that hold tensors
  std::string note_;
};

}  // namespace

int64_t Expr::Elements() const { return Product(space); }

absl::StatusOr<OpSpec> Recognise(const v1::ProblemDescription& description) { return Recogniser(description).Run(); }

std::string RecogniseOperation(const v1::ProblemDescription& description) {
  absl::StatusOr<OpSpec> spec = Recognise(description);
  return spec.ok() ? spec->operation : "";
}

}  // namespace grove::generate
