#include "worker/judge/trace.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <unordered_map>

#include "worker/judge/operations.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

using nlohmann::json;
using torch::jit::Node;
using torch::jit::Value;

constexpr std::size_t kMaxOps = 20000;      // a graph beyond this serves nobody
constexpr std::int64_t kMaxFolded = 4096;   // elements of a shape computation that is folded away
constexpr double kUnknownReduction = 1024;  // without a graph: a common hidden size

json Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// A constant as JSON; throws for what has no JSON form.
json ToJson(const c10::IValue& value) {
  if (value.isNone()) return nullptr;
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return Number(value.toDouble());
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return value.toDevice().str();
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return nullptr;
    if (tensor.dim() == 0 && tensor.is_floating_point()) return Number(tensor.item<double>());
    if (tensor.dim() == 0 && !tensor.is_complex()) {
      return tensor.scalar_type() == at::kBool ? json(tensor.item<bool>()) : json(tensor.item<std::int64_t>());
    }
    return {{"tensor", TypeText(tensor)}};
  }
  json list = json::array();
  if (value.isIntList()) {
    for (std::int64_t item : value.toIntVector()) list.push_back(item);
    return list;
  }
  if (value.isDoubleList()) {
    for (double item : value.toDoubleVector()) list.push_back(Number(item));
    return list;
  }
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) list.push_back(ToJson(item));
    return list;
  }
  if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) list.push_back(ToJson(item));
    return list;
  }
  return {{"constant", value.tagKind()}};
}

std::optional<std::vector<std::int64_t>> Sizes(const Value* value) {
  auto type = value->type()->cast<c10::TensorType>();
  if (!type) return std::nullopt;
  // torch 1 has its own optional, torch 2 the standard's.
  auto sizes = type->sizes().concrete_sizes();
  if (!sizes) return std::nullopt;
  return *sizes;
}

double Longest(const std::vector<std::vector<std::int64_t>>& shapes) {
  double largest = 1;
  for (const auto& shape : shapes) {
    for (std::int64_t size : shape) largest = std::max(largest, static_cast<double>(size));
  }
  return largest;
}

// How many products make one element of an einsum: the sizes of what its equation ("bij,bjk->bik") sums over.
double Summed(std::string equation, const std::vector<std::vector<std::int64_t>>& shapes) {
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const std::size_t arrow = equation.find("->");
  std::map<char, double> sizes;
  std::map<char, int> uses;
  std::size_t operand = 0;
  std::istringstream terms(equation.substr(0, arrow));
  for (std::string term; std::getline(terms, term, ',') && operand < shapes.size(); ++operand) {
    // An ellipsis stands for the dimensions that have no letter.
    const std::size_t dots = term.find("..."), letters = term.size() - (dots == std::string::npos ? 0 : 3);
    const auto& shape = shapes[operand];
    if (letters > shape.size()) return Longest(shapes);
    std::size_t dim = 0;
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (i == dots) {
        dim += shape.size() - letters;
        i += 2;
        continue;
      }
      double& size = sizes[term[i]];
      size = std::max(size, static_cast<double>(shape[dim++]));
      ++uses[term[i]];
    }
  }
  double summed = 1;
  for (const auto& [letter, size] : sizes) {
    const bool kept =
        arrow == std::string::npos ? uses[letter] == 1 : equation.find(letter, arrow + 2) != std::string::npos;
    if (!kept) summed *= size;
  }
  return summed;
}

double Elements(const std::vector<std::int64_t>& sizes) {
  double count = 1;
  for (std::int64_t size : sizes) count *= static_cast<double>(size);
  return count;
}

class GraphReader {
 public:
  GraphReader(torch::jit::Graph& graph, const std::vector<Leaf>& leaves) : graph_(graph) {
    for (const Leaf& leaf : leaves) {
      if (!leaf.scalar && leaf.tensor.has_storage()) memory_.insert(leaf.tensor.storage().data());
    }
  }

  void Read(std::size_t inputs, TraceResult* result) {
    std::size_t index = 0;
    for (const Value* value : graph_.inputs()) {
      names_[value] = index < inputs ? "in" + std::to_string(index) : "p" + std::to_string(index - inputs);
      ++index;
    }
    result->reduction = 1;
    std::map<const Value*, double> behind;  // longest reduction on the way to a value
    bool in_place = false;                  // then values change without being outputs of what changes them
    for (Node* node : graph_.nodes()) {
      const std::string kind = node->kind().toQualString();
      in_place = in_place || InPlace(kind) || !node->blocks().empty();
      result->left = result->left || !node->blocks().empty() || OfInput(node);
      double longest = Reduction(node);
      for (const Value* input : node->inputs()) {
        if (auto known = behind.find(input); known != behind.end()) longest = std::max(longest, known->second);
      }
      for (const Value* output : node->outputs()) behind[output] = longest;
      if (Fold(node) || Alias(node)) continue;
      if (result->graph.size() >= kMaxOps) throw std::runtime_error("the graph has more than 20000 operations");
      json op{{"kind", kind}};
      json arguments = json::array(), outputs = json::array(), types = json::array();
      for (const Value* input : node->inputs()) arguments.push_back(Name(input));
      for (const Value* output : node->outputs()) {
        const std::string name = "v" + std::to_string(next_++);
        names_[output] = name;
        outputs.push_back(name);
        types.push_back(Type(output));
      }
      op["inputs"] = arguments;
      op["outputs"] = outputs;
      op["output_types"] = types;
      if (std::string scope = node->scopeName(); !scope.empty()) op["scope"] = scope;
      result->graph.push_back(op);
      result->reduction = std::max(result->reduction, Reduction(node));
    }
    // A number that forward returns is a constant of the graph, and what led to it is not in it: most often all of an
    // input.
    double all = kUnknownReduction;
    for (const Value* input : graph_.inputs()) {
      if (auto sizes = Sizes(input)) all = std::max(all, Elements(*sizes));
    }
    const auto longest_behind = [&](const Value* value) {
      if (constants_.count(value) != 0) return std::max(result->reduction, all);
      const auto known = behind.find(value);
      return known != behind.end() ? known->second : 1;
    };
    for (Value* output : graph_.outputs()) {
      if (output->node()->kind() == c10::prim::TupleConstruct) {
        for (const Value* item : output->node()->inputs()) {
          result->outputs.push_back(Name(item));
          result->reductions.push_back(longest_behind(item));
        }
      } else {
        result->outputs.push_back(Name(output));
        result->reductions.push_back(longest_behind(output));
      }
    }
    if (in_place) result->reductions.clear();
    result->partial = in_place;
  }

 private:
  std::string Name(const Value* value) {
    if (auto known = names_.find(value); known != names_.end()) return known->second;
    if (auto constant = constants_.find(value); constant != constants_.end()) return ToJson(constant->second).dump();
    return "null";
  }

  json Type(const Value* value) {
    json type{{"dtype", ""}};
    auto tensor = value->type()->cast<c10::TensorType>();
    if (!tensor) {
      type["dtype"] = value->type()->str().substr(0, 40);
      return type;
    }
    if (auto scalar = tensor->scalarType()) type["dtype"] = ShortType(*scalar);
    if (auto sizes = tensor->sizes().concrete_sizes()) type["shape"] = *sizes;
    return type;
  }

  // A constant that is an input's memory (`x.data`): what is done with it is not known to be done with the input.
  bool OfInput(Node* node) const {
    if (node->kind() != c10::prim::Constant) return false;
    const auto value = torch::jit::toIValue(node->output());
    return value && value->isTensor() && value->toTensor().defined() && value->toTensor().has_storage() &&
           value->toTensor().numel() > 0 && memory_.count(value->toTensor().storage().data()) != 0;
  }

  // Computations on shapes alone are done here, once: what they feed sees constants.
  bool Fold(Node* node) {
    if (node->kind() == c10::prim::Constant) {
      constants_[node->output()] = torch::jit::toIValue(node->output()).value_or(c10::IValue());
      return true;
    }
    if (node->kind() == c10::aten::size) {
      if (auto sizes = Sizes(node->input(0))) {
        if (node->inputs().size() == 1) {
          constants_[node->output()] = *sizes;
          return true;
        }
        if (auto dim = constants_.find(node->input(1)); dim != constants_.end() && dim->second.isInt()) {
          std::int64_t at = dim->second.toInt();
          if (at < 0) at += static_cast<std::int64_t>(sizes->size());
          constants_[node->output()] = sizes->at(static_cast<std::size_t>(at));
          return true;
        }
      }
    }
    if (node->kind() == c10::prim::ListConstruct || node->kind() == c10::prim::TupleConstruct) {
      // Lists of constants become a constant; a list with tensors stays an operation.
      auto list_type = node->output()->type()->cast<c10::ListType>();
      const bool ints = list_type && list_type->getElementType()->kind() == c10::TypeKind::IntType;
      const bool floats = list_type && list_type->getElementType()->kind() == c10::TypeKind::FloatType;
      std::vector<std::int64_t> integers;
      std::vector<double> numbers;
      for (const Value* input : node->inputs()) {
        auto constant = constants_.find(input);
        if (constant == constants_.end()) return node->kind() == c10::prim::TupleConstruct;
        if (ints)
          integers.push_back(constant->second.isTensor() ? constant->second.toTensor().item<std::int64_t>()
                                                         : constant->second.toInt());
        if (floats) numbers.push_back(constant->second.toDouble());
      }
      if (ints) {
        constants_[node->output()] = integers;
        return true;
      }
      if (floats) {
        constants_[node->output()] = numbers;
        return true;
      }
      if (node->kind() == c10::prim::TupleConstruct) return true;
      return false;
    }
    // Anything else of constants alone that is cheap and pure: run it.
    if (node->inputs().empty() || node->outputs().size() != 1 || !node->blocks().empty()) return false;
    torch::jit::Stack stack;
    for (const Value* input : node->inputs()) {
      auto constant = constants_.find(input);
      if (constant == constants_.end()) return false;
      stack.push_back(constant->second);
    }
    if (auto sizes = Sizes(node->output()); sizes && Elements(*sizes) > static_cast<double>(kMaxFolded)) return false;
    if (node->isNondeterministic() || node->hasSideEffects()) return false;
    try {
      if (node->kind() == c10::prim::NumToTensor && stack[0].isInt()) {
        constants_[node->output()] = at::scalar_tensor(stack[0].toInt(), at::kLong);
        return true;
      }
      node->getOperation()(stack);
      constants_[node->output()] = stack.back();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  // Operations that pass a tensor on as it is.
  bool Alias(Node* node) {
    const std::string kind = node->kind().toQualString();
    if (kind != "aten::detach" && kind != "aten::contiguous" && kind != "aten::alias") return false;
    auto name = names_.find(node->input(0));
    if (name == names_.end()) return false;
    if (kind == "aten::contiguous") {
      auto type = node->input(0)->type()->cast<c10::TensorType>();
      if (!type || !type->strides().concrete_sizes() ||
          *type->strides().concrete_sizes() !=
              node->output()->type()->expect<c10::TensorType>()->strides().concrete_sizes()) {
        return false;
      }
    }
    names_[node->output()] = name->second;
    return true;
  }

  // Of a loss of one label for each row: the classes are summed in its logarithm, and one term of each row by itself.
  // Nothing where a row's terms are all in the loss (labels that are probabilities, or smoothed).
  std::optional<double> OfLabels(Node* node, const std::vector<std::vector<std::int64_t>>& shapes) {
    const std::vector<std::int64_t>& scores = shapes[0];
    if (shapes.size() < 2 || shapes[1].size() + 1 != scores.size()) return std::nullopt;
    const bool entropy = std::string(node->kind().toQualString()).find("cross_entropy") != std::string::npos;
    constexpr std::size_t kSmoothing = 5;
    if (entropy && node->inputs().size() > kSmoothing) {
      const auto smoothing = constants_.find(node->input(kSmoothing));
      if (smoothing == constants_.end() || !smoothing->second.isDouble() || smoothing->second.toDouble() != 0) {
        return std::nullopt;
      }
    }
    const auto out = Sizes(node->output(0));
    const double classes = static_cast<double>(scores.size() > 1 ? scores[1] : scores[0]);
    const double rows = Elements(scores) / std::max(classes, 1.0) / (out ? std::max(Elements(*out), 1.0) : 1);
    return std::max(rows, 1.0) + (entropy ? classes : 0);
  }

  // How many products or summands at most make one element of this operation's result.
  double Reduction(Node* node) {
    const std::string kind = node->kind().toQualString();
    std::vector<std::vector<std::int64_t>> shapes;
    for (const Value* input : node->inputs()) {
      if (auto sizes = Sizes(input)) shapes.push_back(*sizes);
      if (input->node()->kind() != c10::prim::ListConstruct) continue;
      for (const Value* item : input->node()->inputs()) {
        if (auto sizes = Sizes(item)) shapes.push_back(*sizes);
      }
    }
    if (shapes.empty() || shapes[0].empty()) return 1;
    auto has = [&kind](const char* part) { return kind.find(part) != std::string::npos; };
    auto last = [](const std::vector<std::int64_t>& shape) {
      return shape.empty() ? 1.0 : static_cast<double>(shape.back());
    };
    if (has("conv") && shapes.size() >= 2) {
      const double fan = Elements(shapes[1]);
      return shapes[1].empty() ? fan
                               : fan / std::max<double>(static_cast<double>(std::min(shapes[1][0], shapes[1][1])), 1);
    }
    if (has("addmm") || has("baddbmm") || has("addmv")) return shapes.size() > 1 ? last(shapes[1]) : 1;
    if (has("matmul") || has("::mm") || has("::bmm") || has("::linear") || has("::mv") ||
        (has("dot") && !has("attention")) || has("inner") || has("cov") || has("corrcoef") || has("trapz") ||
        has("trapezoid")) {
      if (!has("tensordot")) return last(shapes[0]);
      // Products of m k and k n elements give m n of them.
      const auto out = Sizes(node->output(0));
      if (!out || shapes.size() < 2) return kUnknownReduction;
      return std::sqrt(Elements(shapes[0]) * Elements(shapes[1]) / std::max(Elements(*out), 1.0));
    }
    if (has("::fft_") && !has("shift") && !has("freq")) {
      // Each value is a sum of all, in whatever steps: over the longest dimension, or over several of them.
      const std::vector<std::int64_t> shape = Sizes(node->output(0)).value_or(shapes[0]);
      const std::size_t dims = has("fft2") ? 2 : has("fftn") ? shape.size() : 1;
      double product = 1;
      for (std::size_t i = shape.size() - std::min(dims, shape.size()); i < shape.size(); ++i) {
        product *= static_cast<double>(std::max(shape[i], i < shapes[0].size() ? shapes[0][i] : 1));
      }
      return std::max({product, Longest({shape}), Longest({shapes[0]})});
    }
    if (has("einsum")) {
      const auto equation = constants_.find(node->input(0));
      if (equation != constants_.end() && equation->second.isString()) {
        return Summed(equation->second.toStringRef(), shapes);
      }
    }
    // Solvers and decompositions sum over rows and columns of a matrix.
    for (const char* part :
         {"einsum", "attention", "cdist", "pdist", "::bilinear", "inverse", "cholesky", "matrix_power", "matrix_exp",
          "chain_matmul", "multi_dot", "cosine_similarity", "pairwise_distance", "stft"}) {
      if (has(part)) return Longest(shapes);
    }
    if (has("linalg") && !has("norm")) return Longest(shapes);
    if (has("lstm") || has("gru") || has("rnn")) return 2 * last(shapes[0]);
    if (has("softmax") || has("cumsum") || has("cumprod") || has("logsumexp")) return Longest({shapes[0]});
    if (has("layer_norm") || has("group_norm") || has("instance_norm")) {
      // Over the dimensions that are named, over a group's channels, over one channel; where that is not known, over
      // all but the first dimension.
      double apart = static_cast<double>(shapes[0][0]);
      const auto known = constants_.find(node->input(1));
      const bool constant = known != constants_.end();
      if (has("layer_norm") && constant && known->second.isIntList()) {
        apart = Elements(shapes[0]) / std::max(Elements(known->second.toIntVector()), 1.0);
      } else if (has("group_norm") && constant && known->second.isInt()) {
        apart *= static_cast<double>(known->second.toInt());
      } else if (has("instance_norm") && shapes[0].size() > 1) {
        apart *= static_cast<double>(shapes[0][1]);
      }
      return Elements(shapes[0]) / std::max(apart, 1.0);
    }
    if (has("batch_norm") && shapes[0].size() > 1) {
      return Elements(shapes[0]) / std::max<double>(static_cast<double>(shapes[0][1]), 1);
    }
    if (has("::cross_entropy_loss") || has("::nll_loss")) {
      if (const auto sum = OfLabels(node, shapes)) return *sum;
    }
    if (has("sum") || has("mean") || has("norm") || has("::dist") || has("var") || has("std") || has("pool") ||
        has("prod") || has("loss") || has("trace") || has("embedding_bag") || has("kl_div") || has("cross_entropy")) {
      double smallest = Elements(shapes[0]);
      for (const Value* output : node->outputs()) {
        if (auto sizes = Sizes(output)) smallest = std::min(smallest, std::max(Elements(*sizes), 1.0));
      }
      return Elements(shapes[0]) / smallest;
    }
    if (has("scatter_add") || has("scatter_reduce") || has("index_add") || has("index_reduce") || has("index_put") ||
        has("col2im")) {
      // As many as meet in one place, which is several times the mean.
      constexpr double kUneven = 4;
      double most = 1;
      for (const auto& shape : shapes) most = std::max(most, Elements(shape));
      const auto out = Sizes(node->output(0));
      return out ? std::max(1.0, kUneven * most / std::max(Elements(*out), 1.0)) : kUnknownReduction;
    }
    return 1;
  }

  torch::jit::Graph& graph_;
  std::set<const void*> memory_;  // of the inputs
  std::unordered_map<const Value*, std::string> names_;
  std::unordered_map<const Value*, c10::IValue> constants_;
  std::size_t next_ = 0;
};

// torch tells of values that a program takes out of tensors, in the thread that traces. Nobody else in this process
// wants to be told.
thread_local bool warned = false;

std::string FirstLine(std::string text) {
  if (auto at = text.find('\n'); at != std::string::npos) text.resize(at);
  return text.substr(0, 500);
}

}  // namespace

TraceResult Trace(Reference& reference, const std::vector<Leaf>& leaves) {
  TraceResult result;
  bool begun = false;
  try {
    c10::NoGradGuard no_grad;
    torch::jit::Stack inputs;
    std::vector<std::size_t> numbers;  // leaf of each tensor input
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      // Numbers take part as constants; a tensor stands in so that names count all inputs.
      inputs.emplace_back(leaves[i].scalar ? at::zeros({}) : leaves[i].tensor);
    }
    for (const at::Tensor& parameter : reference.LiveParameters()) inputs.emplace_back(parameter);
    reference.BeginTrace();
    begun = true;
    torch::jit::tracer::setWarn([](const std::string&) { warned = true; });
    warned = false;
    auto traced = torch::jit::tracer::trace(
        std::move(inputs),
        [&](const torch::jit::Stack& stack) -> torch::jit::Stack {
          std::vector<Leaf> own = leaves;
          for (std::size_t i = 0; i < own.size(); ++i) {
            if (!own[i].scalar) own[i].tensor = stack[i].toTensor();
          }
          auto call = reference.Prepare(own, Mode::kEager);
          call->Run();
          // Some gradients cannot be traced: what raises there ends the trace, and forward, run once more, does not
          // fail.
          if (!torch::jit::tracer::isTracing()) throw std::runtime_error("forward fails only while it is traced");
          torch::jit::Stack outputs;
          for (at::Tensor& output : call->Outputs()) outputs.emplace_back(output);
          return outputs;
        },
        [](const at::Tensor&) { return std::string(); }, /*strict=*/false);
    reference.EndTrace();
    begun = false;
    auto graph = traced.first->graph;
    torch::jit::EliminateDeadCode(graph);
    GraphReader(*graph, leaves).Read(leaves.size(), &result);
    result.partial = result.partial || warned;
    result.left = result.left || warned;
  } catch (const std::exception& error) {
    if (begun) {
      try {
        reference.EndTrace();
      } catch (const std::exception&) {
      }
    }
    result = {};
    result.error = "cannot be traced: " + FirstLine(error.what());
    result.reduction = kUnknownReduction;
  }
  return result;
}

}  // namespace grove::judge
