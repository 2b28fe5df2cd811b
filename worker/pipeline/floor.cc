#include "worker/pipeline/floor.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace grove::worker {
namespace {

constexpr size_t kMaxUncounted = 8;
constexpr double kAll = 1e30;  // bytes: more than any operand has
// Rates are the best seen of a few sizes and shapes; a kernel may be somewhat better than those.
constexpr double kImplausible = 1.15;
// Of writing the outputs alone. The bandwidth was measured by copying, as two bytes for each: on a CPU three are moved
// where lines are read before they are written, and writing past the cache moves one.
constexpr double kImpossible = 2.5;

double Elements(const v1::TensorType& type) {
  double count = 1;
  for (int64_t size : type.shape()) count *= static_cast<double>(size);
  return count;
}

// 0 for what is no tensor.
double ElementBytes(const std::string& dtype) {
  static const auto* sizes = new std::map<std::string, double>{
      {"float32", 4}, {"float64", 8}, {"float16", 2}, {"bfloat16", 2}, {"int64", 8},     {"int32", 4},
      {"int16", 2},   {"int8", 1},    {"uint8", 1},   {"bool", 1},     {"complex64", 8}, {"complex128", 16}};
  auto at = sizes->find(dtype);
  return at == sizes->end() ? 0 : at->second;
}

double Bytes(const v1::TensorType& type) { return type.scalar() ? 0 : Elements(type) * ElementBytes(type.dtype()); }

// "aten::convolution_" -> "convolution"
std::string Stem(absl::string_view kind) {
  const size_t at = kind.rfind("::");
  if (at != absl::string_view::npos) kind.remove_prefix(at + 2);
  while (!kind.empty() && kind.front() == '_') kind.remove_prefix(1);
  while (!kind.empty() && kind.back() == '_') kind.remove_suffix(1);
  return std::string(kind);
}

// Takes some elements of its first operand and leaves the rest unread.
bool TakesPart(const std::string& stem) {
  static const auto* kinds = new std::set<std::string>{
      "slice",     "select",         "narrow",     "index",        "index_select", "gather",           "embedding",
      "take",      "take_along_dim", "diagonal",   "unbind",       "split",        "split_with_sizes", "chunk",
      "tril",      "triu",           "split_copy", "tensor_split", "unsafe_split", "unsafe_chunk",     "masked_select",
      "as_strided"};
  return kinds->count(stem) != 0;
}

// Gives the same elements in another shape or order: no arithmetic, no pass over memory that must be made.
bool IsView(const std::string& stem) {
  static const auto* kinds = new std::set<std::string>{"view",        "reshape",
                                                       "flatten",     "unflatten",
                                                       "permute",     "transpose",
                                                       "t",           "squeeze",
                                                       "unsqueeze",   "expand",
                                                       "expand_as",   "contiguous",
                                                       "detach",      "alias",
                                                       "clone",       "ListConstruct",
                                                       "ListUnpack",  "TupleConstruct",
                                                       "TupleUnpack", "view_as",
                                                       "reshape_as",  "movedim",
                                                       "moveaxis",    "swapaxes",
                                                       "swapdims",    "flip",
                                                       "roll",        "to",
                                                       "type_as",     "numpy_T",
                                                       "dropout",     "feature_dropout",
                                                       "NumToTensor", "Int",
                                                       "size",        "ImplicitTensorToNum",
                                                       "zeros",       "ones",
                                                       "full",        "arange",
                                                       "zeros_like",  "ones_like",
                                                       "full_like",   "empty",
                                                       "empty_like"};
  return kinds->count(stem) != 0 || TakesPart(stem);
}

class Counter {
 public:
  explicit Counter(const v1::ProblemDescription& problem) : problem_(problem) {
    for (int i = 0; i < problem.inputs_size(); ++i) types_[absl::StrCat("in", i)] = problem.inputs(i);
    for (int i = 0; i < problem.parameters_size(); ++i) types_[absl::StrCat("p", i)] = problem.parameters(i);
    for (const v1::GraphOp& op : problem.graph()) {
      for (int i = 0; i < op.outputs_size() && i < op.output_types_size(); ++i) {
        types_[op.outputs(i)] = op.output_types(i);
      }
    }
  }

  WorkCount Count() {
    for (const v1::TensorType& output : problem_.outputs()) count_.bytes += Bytes(output);
    if (problem_.graph().empty() && problem_.graph_outputs().empty()) {
      count_.error = problem_.graph_error().empty() ? "the reference has no graph" : problem_.graph_error();
      return count_;
    }
    FindNeeded();
    CountReads();
    for (const v1::GraphOp& op : problem_.graph()) {
      if (Needed(op)) CountOperation(op);
    }
    return count_;
  }

 private:
  bool Needed(const v1::GraphOp& op) const {
    return std::any_of(op.outputs().begin(), op.outputs().end(),
                       [this](const std::string& name) { return needed_.count(name) != 0; });
  }

  // Backwards from the outputs: what nothing depends on need not be read or computed.
  void FindNeeded() {
    for (const std::string& name : problem_.graph_outputs()) needed_.insert(name);
    for (int i = problem_.graph_size() - 1; i >= 0; --i) {
      const v1::GraphOp& op = problem_.graph(i);
      if (!Needed(op)) continue;
      for (const std::string& name : op.inputs()) {
        if (types_.count(name) != 0) needed_.insert(name);
      }
    }
  }

  // How much of each value has to be read, backwards from the outputs: of what is only taken from, what is taken, also
  // through views.
  void CountReads() {
    std::map<std::string, double> wanted;  // bytes, before they are bounded by the value's own
    const auto want = [&](const std::string& name) {
      const auto type = types_.find(name);
      if (type == types_.end()) return 0.0;
      if (absl::StrContains(type->second.dtype(), "Tensor")) return wanted[name];  // a list of them
      return std::min(wanted[name], Bytes(type->second));
    };
    for (const std::string& name : problem_.graph_outputs()) wanted[name] = kAll;
    for (int at = problem_.graph_size() - 1; at >= 0; --at) {
      const v1::GraphOp& op = problem_.graph(at);
      if (!Needed(op)) continue;
      const std::string stem = Stem(op.kind());
      double results = 0;
      for (const std::string& name : op.outputs()) results += want(name);
      for (int i = 0; i < op.inputs_size(); ++i) {
        double bytes = kAll;  // of indices and weights
        if (stem == "ListConstruct" || (i == 0 && IsView(stem))) {
          bytes = results * Widening(op, i);
        } else if (i == 0 && stem == "embedding_bag") {
          bytes = BagBytes(op);
        } else if (const v1::TensorType* type = Type(op, i); i == 0 && type != nullptr && !op.output_types().empty()) {
          bytes = WindowBytes(op, stem, *type);
        }
        wanted[op.inputs(i)] += bytes;
      }
    }
    auto read = [&](const std::string& name) {
      if (needed_.count(name) == 0) return;
      const double bytes = want(name);
      count_.input_bytes += bytes;
      count_.bytes += bytes;
    };
    for (int i = 0; i < problem_.inputs_size(); ++i) read(absl::StrCat("in", i));
    for (int i = 0; i < problem_.parameters_size(); ++i) read(absl::StrCat("p", i));
  }

  // Bytes of an operand to one of the result, where elements are the same and types are not.
  double Widening(const v1::GraphOp& op, int input) const {
    const v1::TensorType* type = Type(op, input);
    const double before = type != nullptr ? ElementBytes(type->dtype()) : 0;
    const double after = op.output_types().empty() ? 0 : ElementBytes(op.output_types(0).dtype());
    return before > 0 && after > 0 ? before / after : 1;
  }

  // One row of the table for each index at most.
  double BagBytes(const v1::GraphOp& op) const {
    const v1::TensorType *table = Type(op, 0), *indices = Type(op, 1);
    if (table == nullptr || indices == nullptr || table->shape_size() == 0) return kAll;
    return Elements(*indices) * Bytes(*table) / std::max<double>(static_cast<double>(table->shape(0)), 1);
  }

  // Of an operand that windows move over in steps that may be larger than they are.
  double WindowBytes(const v1::GraphOp& op, const std::string& stem, const v1::TensorType& type) const {
    const double results = Elements(op.output_types(0)) * ElementBytes(type.dtype());
    if (absl::StrContains(stem, "nearest")) return results;
    if (absl::StartsWith(stem, "conv") && !absl::StrContains(stem, "transpose") &&
        !(stem == "convolution" && op.inputs_size() > 6 && op.inputs(6) == "true")) {
      // Each place of the output meets all channels of the input below its window.
      const v1::TensorType* weight = Type(op, 1);
      if (weight == nullptr || weight->shape_size() < 3 || type.shape_size() < 2) return kAll;
      double window = 1;
      for (int i = 2; i < weight->shape_size(); ++i) window *= static_cast<double>(weight->shape(i));
      return results / std::max<double>(static_cast<double>(weight->shape(0)), 1) *
             static_cast<double>(type.shape(type.shape_size() - weight->shape_size() + 1)) * window;
    }
    if (absl::StrContains(stem, "pool") && !absl::StartsWith(stem, "adaptive") && op.inputs_size() > 1) {
      const nlohmann::json size = nlohmann::json::parse(op.inputs(1), nullptr, /*allow_exceptions=*/false);
      if (!size.is_array()) return kAll;
      double window = 1;
      for (const nlohmann::json& one : size) window *= one.is_number() ? one.get<double>() : kAll;
      // (One number stands for all dimensions.)
      if (size.size() == 1 && !absl::EndsWith(stem, "1d"))
        window = std::pow(window, absl::StrContains(stem, "3d") ? 3 : 2);
      return results * window;
    }
    return kAll;
  }

  const v1::TensorType* Type(const v1::GraphOp& op, int input) const {
    if (input >= op.inputs_size()) return nullptr;
    auto at = types_.find(op.inputs(input));
    return at == types_.end() || at->second.dtype().empty() ? nullptr : &at->second;
  }

  // The operands that come as one list.
  std::vector<const v1::TensorType*> List(const v1::GraphOp& op, int input) const {
    std::vector<const v1::TensorType*> types;
    if (input >= op.inputs_size()) return types;
    for (const v1::GraphOp& list : problem_.graph()) {
      if (Stem(list.kind()) != "ListConstruct" || list.outputs_size() != 1 || list.outputs(0) != op.inputs(input))
        continue;
      for (int i = 0; i < list.inputs_size(); ++i) types.push_back(Type(list, i));
    }
    return types;
  }

  // Of a product of two tensors in einsum's notation: a multiplication and an addition for each combination of indices.
  // 0 where it is not that: of more tensors the order decides, and one alone is no product.
  double EinsumOperations(const v1::GraphOp& op) const {
    nlohmann::json quoted =
        op.inputs().empty() ? nullptr : nlohmann::json::parse(op.inputs(0), nullptr, /*allow_exceptions=*/false);
    const std::vector<const v1::TensorType*> operands = List(op, 1);
    if (!quoted.is_string() || operands.size() != 2) return 0;
    std::string equation = quoted.get<std::string>();
    equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
    const std::vector<std::string> labels = absl::StrSplit(equation.substr(0, equation.find("->")), ',');
    if (labels.size() != operands.size()) return 0;
    std::map<char, double> sizes;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (operands[i] == nullptr || operands[i]->shape_size() != static_cast<int>(labels[i].size()))
        return 0;  // "...": no
      for (size_t d = 0; d < labels[i].size(); ++d) {
        double& size = sizes[labels[i][d]];
        size = std::max(size, static_cast<double>(operands[i]->shape(static_cast<int>(d))));
      }
    }
    double combinations = 1;
    for (const auto& [label, size] : sizes) combinations *= size;
    return 2 * combinations;
  }

  // Of a recurrent network each matrix of weights meets every step of every sequence. 0 where its operands are not
  // seen.
  double RecurrentOperations(const v1::GraphOp& op) const {
    const v1::TensorType* input = Type(op, 0);
    if (input == nullptr || input->shape_size() != 3) return 0;
    double weights = 0;
    for (int i = 1; i < op.inputs_size(); ++i) {
      for (const v1::TensorType* type : List(op, i)) {
        if (type != nullptr && type->shape_size() == 2) weights += Elements(*type);  // states have three, biases one
      }
    }
    return 2 * weights * Elements(*input) / std::max(1.0, Last(*input));
  }

  void Matrix(const v1::GraphOp& op, double operations) {
    const std::string& precision = op.output_types(0).dtype();
    count_.operations[precision] += operations;
    count_.matrix_operations[precision] += operations;
  }

  void Uncounted(const v1::GraphOp& op) {
    if (count_.uncounted.size() >= kMaxUncounted) return;
    const std::string& kind = op.kind();
    if (std::find(count_.uncounted.begin(), count_.uncounted.end(), kind) == count_.uncounted.end()) {
      count_.uncounted.push_back(kind);
    }
  }

  static double Last(const v1::TensorType& type) {
    return type.shape().empty() ? 1 : static_cast<double>(type.shape(type.shape_size() - 1));
  }

  void CountOperation(const v1::GraphOp& op) {
    const std::string stem = Stem(op.kind());
    if (IsView(stem) || op.output_types().empty()) return;
    const v1::TensorType& out = op.output_types(0);
    const v1::TensorType *first = Type(op, 0), *second = Type(op, 1);
    if (stem == "mm" || stem == "bmm" || stem == "matmul" || stem == "mv" || stem == "dot" || stem == "linear" ||
        stem == "inner") {
      if (first != nullptr) return Matrix(op, 2 * Elements(out) * Last(*first));
    } else if (stem == "addmm" || stem == "baddbmm" || stem == "addmv") {
      if (second != nullptr) return Matrix(op, 2 * Elements(out) * Last(*second));
    } else if (absl::StartsWith(stem, "conv") && first != nullptr && second != nullptr) {
      // Weights: [out, in / groups, k...]; transposed: [in, out / groups, k...]. Each element of the output
      // (transposed: of the input) meets all of a filter.
      const bool transposed = absl::StrContains(stem, "transpose") ||
                              (stem == "convolution" && op.inputs_size() > 6 && op.inputs(6) == "true");
      const double filter = Elements(*second) / std::max<double>(1, static_cast<double>(second->shape(0)));
      return Matrix(op, 2 * filter * Elements(transposed ? *first : out));
    } else if (stem == "scaled_dot_product_attention") {
      const v1::TensorType* value = Type(op, 2);
      if (first != nullptr && second != nullptr && value != nullptr && second->shape_size() >= 2) {
        // Q K^T and P V: rows of Q times keys times the sizes of a key and of a value.
        const double rows = Elements(*first) / std::max(1.0, Last(*first));
        const double keys = static_cast<double>(second->shape(second->shape_size() - 2));
        return Matrix(op, 2 * rows * keys * (Last(*first) + Last(*value)));
      }
    } else if (stem == "einsum" || stem == "lstm" || stem == "gru" || stem == "rnn_tanh" || stem == "rnn_relu") {
      const double operations = stem == "einsum" ? EinsumOperations(op) : RecurrentOperations(op);
      return operations > 0 ? Matrix(op, operations) : Uncounted(op);
    } else if (absl::StrContains(stem, "lstm") || absl::StrContains(stem, "gru") || absl::StrContains(stem, "rnn") ||
               absl::StrContains(stem, "fft") || absl::StrContains(stem, "linalg") || stem == "cdist" ||
               stem == "multi_head_attention_forward" || absl::StartsWith(op.kind(), "prim::")) {
      return Uncounted(op);
    }
    double elements = 0;
    for (int i = 0; i < op.inputs_size(); ++i) {
      if (const v1::TensorType* type = Type(op, i)) elements = std::max(elements, Elements(*type));
    }
    for (const v1::TensorType& type : op.output_types()) elements = std::max(elements, Elements(type));
    if (ElementBytes(out.dtype()) > 0) count_.operations[out.dtype()] += elements;
  }

  const v1::ProblemDescription& problem_;
  std::map<std::string, v1::TensorType> types_;
  std::set<std::string> needed_;
  WorkCount count_;
};

double RateOf(const v1::Calibration& calibration, const std::string& precision) {
  for (const v1::Rate& rate : calibration.rates()) {
    if (rate.precision() == precision) return rate.operations_per_second();
  }
  return 0;
}

// Operations a second at most for work whose result has this type.
double BestRate(const v1::Calibration& calibration, const std::string& precision, bool reduced) {
  double rate = RateOf(calibration, precision);
  if (precision == "float32" || precision == "complex64") {
    const double tf32 = RateOf(calibration, "tf32"), float32 = RateOf(calibration, "float32");
    rate = std::max(float32, tf32 / 3);
    if (reduced) {
      rate = std::max({rate, tf32, RateOf(calibration, "bfloat16"), RateOf(calibration, "float16")});
    }
  }
  return rate;
}

std::string Figure(double value, const char* unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  int at = 0;
  while (value >= 1000 && at < 5) value /= 1000, ++at;
  char text[40];
  std::snprintf(text, sizeof text, "%.3g %s%s", value, kPrefixes[at], unit);
  return text;
}

// A native candidate's outputs are poisoned before a run and compared after it, so that all of their bytes are written
// within it, but for what a cache still holds when it ends. What the graph reads and computes a clever kernel may do
// without; not this. (Results of a script are in its own memory, and may be there before.)
std::string FasterThanMemory(const v1::ProblemDescription& problem, const v1::EvaluationResult& result) {
  const double bandwidth = result.device().calibration().bandwidth_bytes_per_second();
  const double calls = std::max<double>(result.timing().calls_per_sample(), 1);
  double bytes = 0;
  for (const v1::TensorType& type : problem.outputs()) bytes += Bytes(type);
  const double cached = 2 * static_cast<double>(result.device().l2_bytes());  // of the candidate's, and the judge's
  const double written = calls * bytes - cached;
  const double seconds = result.timing().baselines(0).candidate_median_seconds();
  if (!(bandwidth > 0) || written <= 0 || calls * seconds * kImpossible >= written / bandwidth) return "";
  return absl::StrCat("a call took ", Figure(seconds, "s"), " by the clock, and writing its outputs alone, ",
                      Figure(bytes, "B"), ", takes ", Figure(bytes / bandwidth, "s"), " at the ",
                      Figure(bandwidth, "B/s"), " that grove calibrate measured: the time is not true");
}

// Where what the candidate's process claims is less than the device needs: "" if it is not. It decides nothing, as no
// claim does; beside a clock that contradicts it, it says by how much it cannot be.
std::string ClaimBelowFloor(const v1::FloorReport& floor, const v1::TimingReport& timing) {
  const double claimed = timing.claimed_median_seconds();
  if (claimed * kImplausible >= floor.seconds()) return "";
  return absl::StrCat("the ", Figure(claimed, "s"), " that it claims for a call is below the floor of ",
                      Figure(floor.seconds(), "s"), " (", floor.source(), ")");
}

}  // namespace

WorkCount CountWork(const v1::ProblemDescription& problem) { return Counter(problem).Count(); }

v1::FloorReport FloorOf(const WorkCount& count, const v1::DeviceInfo& device, bool reduced, bool warm) {
  v1::FloorReport report;
  report.set_bytes(count.bytes);
  std::vector<std::string> parts, unknown;
  for (const auto& [precision, operations] : count.operations) {
    v1::Rate* rate = report.add_operations();
    rate->set_precision(precision);
    rate->set_operations_per_second(operations);
  }
  if (!count.error.empty()) {
    report.set_source(absl::StrCat("operations not counted: ", count.error));
    // Which of the inputs are needed is not known either.
    return report;
  }
  const v1::Calibration& calibration = device.calibration();
  if (calibration.bandwidth_bytes_per_second() > 0) {
    const double cache = static_cast<double>(device.l2_bytes());
    const double moved = !warm ? count.bytes : cache > 0 ? std::max(0.0, count.bytes - cache) : 0;
    report.set_memory_seconds(moved / calibration.bandwidth_bytes_per_second());
    const std::string at = absl::StrCat(" at ", Figure(calibration.bandwidth_bytes_per_second(), "B/s"));
    if (!warm) {
      parts.push_back(absl::StrCat(Figure(count.bytes, "B"), at));
    } else if (!(cache > 0)) {
      parts.push_back("no memory bound, because the cache is warm and its size is not known");
    } else if (moved > 0) {
      parts.push_back(absl::StrCat(Figure(moved, "B"), at, ", which is what the warm cache of ", Figure(cache, "B"),
                                   " cannot hold of ", Figure(count.bytes, "B")));
    } else {
      parts.push_back(absl::StrCat("no memory bound, because the warm cache of ", Figure(cache, "B"), " holds all ",
                                   Figure(count.bytes, "B")));
    }
  }
  for (const auto& [precision, operations] : count.operations) {
    const double rate = BestRate(calibration, precision, reduced);
    if (rate > 0) {
      report.set_compute_seconds(report.compute_seconds() + operations / rate);
      parts.push_back(absl::StrCat(Figure(operations, ""), " operations in ", precision, " at ", Figure(rate, "/s")));
    } else {
      unknown.push_back(precision);
    }
  }
  report.set_seconds(std::max(report.memory_seconds(), report.compute_seconds()));
  if (report.seconds() > 0)
    report.set_bound(report.memory_seconds() >= report.compute_seconds() ? "memory" : "compute");
  std::string source = calibration.bandwidth_bytes_per_second() > 0
                           ? absl::StrJoin(parts, ", ")
                           : "this device's rates are not known: run `grove calibrate`";
  if (!count.uncounted.empty()) absl::StrAppend(&source, "; not counted: ", absl::StrJoin(count.uncounted, ", "));
  if (!unknown.empty() && calibration.bandwidth_bytes_per_second() > 0) {
    absl::StrAppend(&source, "; no rate known for ", absl::StrJoin(unknown, ", "));
  }
  report.set_source(source);
  return report;
}

void AddFloor(const v1::ProblemDescription& problem, const v1::EvaluationOptions& options, bool native,
              v1::EvaluationResult* result) {
  const auto reckon = [&] {
    return FloorOf(CountWork(problem), result->device(), options.precision() == v1::PRECISION_POLICY_REDUCED,
                   options.cache() == v1::CACHE_POLICY_WARM);
  };
  if (result->verdict() == v1::VERDICT_CHEATED && result->timing().slope_seconds() > 0) {
    // Its claims contradict the clock: there is no time of which a fraction could be said.
    const v1::FloorReport floor = reckon();
    if (const std::string why = ClaimBelowFloor(floor, result->timing()); !why.empty()) {
      absl::StrAppend(result->mutable_fault()->mutable_evidence(), "; ", why);
      *result->mutable_floor() = floor;
    }
    return;
  }
  if (result->verdict() != v1::VERDICT_CORRECT || result->timing().baselines().empty()) return;
  const double candidate = result->timing().baselines(0).candidate_median_seconds();
  if (!(candidate > 0)) return;
  *result->mutable_floor() = reckon();
  v1::FloorReport* floor = result->mutable_floor();
  floor->set_fraction(floor->seconds() / candidate);
  if (const std::string why = native ? FasterThanMemory(problem, *result) : ""; !why.empty()) {
    result->set_verdict(v1::VERDICT_UNMEASURABLE);
    result->set_reason(why);
    result->mutable_fault()->set_stage("time");
    result->mutable_fault()->set_evidence(why);
  } else if (floor->fraction() > kImplausible) {
    absl::StrAppend(floor->mutable_source(),
                    "; faster than this device can do what the reference does: the outputs need less than the graph "
                    "says (grove problem check tells), or the time is not true");
  }
}

}  // namespace grove::worker
