// Native problems: a TOML file with TorchScript text. docs/problems.md has the format.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/jit.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <sstream>

// What toml++ takes for impossible, mutated files reach: it is an error of the file and no reason to end.
#define TOML_ASSERT(condition) \
  (static_cast<bool>(condition) ? void() : throw std::runtime_error("its structure cannot be understood"))
#define TOML_HEADER_ONLY 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate"  // some of its functions are noexcept
#include <toml++/toml.h>
#pragma GCC diagnostic pop

#include "common/wire/dtype.h"
#include "worker/judge/reference.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

[[noreturn]] void Complain(const std::string& file, const toml::node* node, const std::string& what) {
  std::string where = file + ".toml";
  if (node != nullptr && node->source().begin.line > 0) where += " line " + std::to_string(node->source().begin.line);
  throw ProblemError(where + ": " + what);
}

struct InputSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  wire::DType type{};
  std::string distribution;
  double mean = 0, std = 1, low = 0, high = 1, value = 0;
  bool scalar = false;  // a number instead of a tensor
};

// A table whose every key must be asked for: what is left over is a mistake in the file.
class Table {
 public:
  Table(std::string file, const toml::table& table, std::string what)
      : file_(std::move(file)), table_(table), what_(std::move(what)) {}

  const toml::node* Find(const char* key) {
    known_.insert(key);
    return table_.get(key);
  }
  template <typename T>
  std::optional<T> Get(const char* key, const char* type) {
    const toml::node* node = Find(key);
    if (node == nullptr) return std::nullopt;
    auto value = node->value<T>();
    if (!value) Complain(file_, node, std::string("\"") + key + "\" must be " + type);
    return value;
  }
  std::optional<std::vector<std::int64_t>> Shape(const char* key) {
    const toml::node* node = Find(key);
    if (node == nullptr) return std::nullopt;
    return ParseShape(file_, *node, key);
  }
  static std::vector<std::int64_t> ParseShape(const std::string& file, const toml::node& node, const std::string& key) {
    std::vector<std::int64_t> shape;
    const toml::array* list = node.as_array();
    if (list == nullptr) Complain(file, &node, "\"" + key + "\" must be a list of sizes such as [16, 1024]");
    for (const toml::node& item : *list) {
      auto size = item.value_exact<std::int64_t>();
      if (!size || *size < 0) Complain(file, &item, "\"" + key + "\" must hold whole numbers from 0");
      shape.push_back(*size);
    }
    if (!wire::CountElements(shape)) Complain(file, &node, "\"" + key + "\" has too many elements");
    return shape;
  }
  // Before anything is missed: a key that is misspelt is named as what it is, not as the absence of the right one.
  void Only(std::initializer_list<const char*> keys) {
    known_.insert(keys.begin(), keys.end());
    Finish();
    known_.clear();
  }
  void Finish() {
    for (const auto& [key, node] : table_) {
      if (known_.count(std::string(key.str())) != 0) continue;
      std::string keys;
      for (const std::string& name : known_) keys += (keys.empty() ? "" : ", ") + name;
      Complain(file_, &node, "unknown key \"" + std::string(key.str()) + "\" in " + what_ + "; known are " + keys);
    }
  }
  const toml::table& table() const { return table_; }

 private:
  std::string file_;
  const toml::table& table_;
  std::string what_;
  std::set<std::string> known_;
};

// The whole numbers that a type holds, from the first to below the second, as far as draws of 64 bits have them.
std::pair<double, double> RangeOf(const wire::DType& type) {
  constexpr double kMost = 0x1p63 - 1024;  // the largest double below 2^63
  const int bits = type.bits;
  switch (type.kind) {
    case wire::DTypeKind::kBool:
      return {0, 2};
    case wire::DTypeKind::kUint:
      return {0, std::min(std::ldexp(1.0, bits), kMost)};
    case wire::DTypeKind::kInt:
      return {std::max(-std::ldexp(1.0, bits - 1), -kMost), std::min(std::ldexp(1.0, bits - 1), kMost)};
    default:
      return {-kMost, kMost};
  }
}

InputSpec ParseInput(const std::string& file, const toml::table& node, const std::string& what) {
  Table table(file, node, what);
  InputSpec spec;
  table.Only({"name", "dtype", "shape", "distribution", "mean", "std", "low", "high", "value"});
  auto name = table.Get<std::string>("name", "text");
  if (!name || name->empty()) Complain(file, &node, what + " needs a \"name\"");
  spec.name = *name;
  const std::string dtype = table.Get<std::string>("dtype", "text").value_or("float32");
  auto type = wire::FindDType(dtype);
  if (!type) {
    Complain(
        file, node.get("dtype"),
        "unknown dtype \"" + dtype +
            "\"; known are float32, float64, float16, bfloat16, int64, int32, int16, int8, uint8, bool, complex64, "
            "complex128");
  }
  spec.type = *type;
  auto shape = table.Shape("shape");
  const bool exact = spec.type.kind == wire::DTypeKind::kInt || spec.type.kind == wire::DTypeKind::kUint ||
                     spec.type.kind == wire::DTypeKind::kBool;
  spec.distribution = table.Get<std::string>("distribution", "text").value_or(exact ? "integers" : "normal");
  if (!shape) {
    spec.scalar = true;
    if (spec.distribution != "constant") {
      Complain(file, &node, what + " needs a \"shape\" (or distribution = \"constant\" with a value, for a number)");
    }
  } else {
    spec.shape = *shape;
  }
  auto number = [&](const char* key, double fallback) {
    const double value = table.Get<double>(key, "a number").value_or(fallback);
    // Only a constant may be NaN or infinity on purpose.
    if (!std::isfinite(value) && std::string(key) != "value") {
      Complain(file, &node, std::string("\"") + key + "\" must be finite");
    }
    return value;
  };
  if (spec.distribution == "normal") {
    spec.mean = number("mean", 0);
    spec.std = number("std", 1);
    if (spec.std < 0) Complain(file, &node, "\"std\" must not be negative");
  } else if (spec.distribution == "uniform") {
    spec.low = number("low", 0);
    spec.high = number("high", 1);
  } else if (spec.distribution == "integers") {
    spec.low = number("low", 0);
    spec.high = number("high", spec.type.kind == wire::DTypeKind::kBool ? 2 : 10);
    if (!(spec.low < spec.high)) Complain(file, &node, "\"low\" must be below \"high\" (which is not drawn itself)");
    if (spec.low != std::floor(spec.low) || spec.high != std::floor(spec.high)) {
      Complain(file, &node, "\"low\" and \"high\" of integers must be whole numbers");
    }
    const auto [least, most] = RangeOf(spec.type);
    if (spec.low < least || spec.high > most) {
      Complain(file, &node, "\"low\" to \"high\" is more than " + dtype + " holds");
    }
  } else if (spec.distribution == "constant") {
    spec.value = number("value", 0);
  } else {
    Complain(file, node.get("distribution"),
             "unknown distribution \"" + spec.distribution + "\"; known are normal, uniform, integers, constant");
  }
  if (exact && (spec.distribution == "normal" || spec.distribution == "uniform")) {
    Complain(file, node.get("distribution"),
             "distribution \"" + spec.distribution + "\" gives no " + dtype + "; use integers or constant");
  }
  table.Finish();
  return spec;
}

class NativeReference;

class NativeCall : public Call {
 public:
  NativeCall(torch::jit::Function& function, std::vector<c10::IValue> arguments)
      : function_(function), arguments_(std::move(arguments)) {}
  void Run() override {
    torch::jit::Stack stack = arguments_;
    c10::NoGradGuard no_grad;
    function_.run(stack);
    result_ = stack.empty() ? c10::IValue() : std::move(stack.back());
  }
  std::vector<at::Tensor> Outputs() override {
    std::vector<at::Tensor> outputs;
    paths.clear();
    Flatten(result_, "", &outputs);
    if (outputs.empty()) throw ProblemError("forward returns no tensor, so there is nothing to compare");
    return outputs;
  }
  std::vector<std::string> paths;

 private:
  void Flatten(const c10::IValue& value, const std::string& path, std::vector<at::Tensor>* outputs) {
    if (value.isTensor()) {
      at::Tensor tensor = value.toTensor();
      if (tensor.layout() != at::kStrided) {
        std::ostringstream layout;
        layout << tensor.layout();
        throw ProblemError("forward returns a tensor of layout " + layout.str() +
                           "; only dense tensors can be compared (call to_dense())");
      }
      if (tensor.is_conj() || tensor.is_neg()) tensor = tensor.resolve_conj().resolve_neg();
      outputs->push_back(tensor.contiguous());
      paths.push_back(path);
    } else if (value.isTuple()) {
      const auto& elements = value.toTupleRef().elements();
      for (std::size_t i = 0; i < elements.size(); ++i)
        Flatten(elements[i], path + "[" + std::to_string(i) + "]", outputs);
    } else if (value.isList()) {
      const auto elements = value.toListRef();
      for (std::size_t i = 0; i < elements.size(); ++i)
        Flatten(elements[i], path + "[" + std::to_string(i) + "]", outputs);
    } else if (value.isGenericDict()) {
      for (const auto& entry : value.toGenericDict()) {
        std::ostringstream key;
        key << entry.key();
        Flatten(entry.value(), path + "[" + key.str() + "]", outputs);
      }
    } else if (value.isDouble()) {
      outputs->push_back(at::scalar_tensor(value.toDouble(), at::kDouble));
      paths.push_back(path);
    } else if (value.isInt()) {
      outputs->push_back(at::scalar_tensor(value.toInt(), at::kLong));
      paths.push_back(path);
    } else if (value.isBool()) {
      outputs->push_back(at::scalar_tensor(value.toBool(), at::kBool));
      paths.push_back(path);
    } else if (!value.isNone()) {
      throw ProblemError("forward returns a " + value.tagKind() + ", which cannot be compared");
    }
  }

  torch::jit::Function& function_;
  std::vector<c10::IValue> arguments_;
  c10::IValue result_;
};

class NativeReference : public Reference {
 public:
  explicit NativeReference(const ReferenceOptions& options)
      : name_(options.name.empty() ? "problem" : options.name),
        device_(options.cuda ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(options.device_index))
                             : at::Device(at::kCPU)) {
    toml::table root;
    try {
      root = toml::parse(options.source, name_ + ".toml");
    } catch (const toml::parse_error& error) {
      throw ProblemError(name_ + ".toml line " + std::to_string(error.source().begin.line) +
                         ": not TOML: " + std::string(error.description()));
    } catch (const std::runtime_error& error) {
      throw ProblemError(name_ + ".toml: not TOML: " + error.what());
    }
    Parse(root);
    try {
      unit_ = torch::jit::compile(torchscript_);
      function_ = unit_->find_function("forward");
    } catch (const std::exception& error) {
      throw ProblemError(name_ + ".toml: \"torchscript\" does not compile: " + FirstLines(error.what()), error.what());
    }
    if (function_ == nullptr) throw ProblemError(name_ + ".toml: \"torchscript\" defines no function forward");
    const std::size_t takes = function_->getSchema().arguments().size();
    if (takes != inputs_.size() + parameter_specs_.size()) {
      throw ProblemError(name_ + ".toml: forward takes " + std::to_string(takes) + " arguments, and the file has " +
                         std::to_string(inputs_.size()) + " inputs and " + std::to_string(parameter_specs_.size()) +
                         " parameters");
    }
    auto generator = at::detail::createCPUGenerator(42);
    for (const InputSpec& spec : parameter_specs_) {
      parameters_.emplace_back(spec.name, DrawTensor(spec, spec.shape, generator));
    }
    nlohmann::json structure = nlohmann::json::array();
    for (std::size_t i = 0; i < inputs_.size(); ++i) structure.push_back(i);
    structure_ = structure;
  }

  std::vector<Leaf> Draw(std::uint64_t seed) override {
    // Shape sets take turns: the first is what is timed, and the caller asks for the others by NextShapes.
    auto generator = at::detail::createCPUGenerator(seed);
    drawn_ = 0;
    std::vector<Leaf> leaves;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const InputSpec& spec = inputs_[i];
      Leaf leaf;
      leaf.name = spec.name;
      if (spec.scalar) {
        leaf.scalar = true;
        if (spec.type.kind == wire::DTypeKind::kBool) {
          leaf.dtype = "bool";
          leaf.integer = spec.value != 0 ? 1 : 0;
        } else if (spec.type.kind == wire::DTypeKind::kInt || spec.type.kind == wire::DTypeKind::kUint) {
          leaf.dtype = "int64";
          leaf.integer = static_cast<std::int64_t>(spec.value);
        } else {
          leaf.dtype = "float64";
          leaf.number = spec.value;
        }
      } else {
        leaf.dtype = std::string(spec.type.name);
        leaf.tensor = DrawTensor(spec, ShapeOf(i), generator);
      }
      leaves.push_back(std::move(leaf));
    }
    return leaves;
  }

  std::size_t ShapeSets() const override { return shape_sets_.size() + 1; }
  void SelectShapeSet(std::size_t index) override { selected_ = index % ShapeSets(); }
  bool HeldOut(std::size_t index) const override { return index > 0 && held_out_.at(index - 1); }
  nlohmann::json Structure() const override { return structure_; }

  std::unique_ptr<Call> Prepare(const std::vector<Leaf>& leaves, Mode mode) override {
    if (mode == Mode::kCompile)
      throw std::runtime_error("torch.compile needs Python, and this is a TorchScript problem");
    std::vector<c10::IValue> arguments;
    auto tensor = [mode](const at::Tensor& value) {
      if (mode != Mode::kDouble) return value;
      if (value.is_complex()) return value.to(at::kComplexDouble);
      return value.is_floating_point() ? value.to(at::kDouble) : value;
    };
    for (const Leaf& leaf : leaves) {
      if (!leaf.scalar) {
        arguments.emplace_back(tensor(leaf.tensor));
      } else if (leaf.dtype == "bool") {
        arguments.emplace_back(leaf.integer != 0);
      } else if (leaf.dtype == "int64") {
        arguments.emplace_back(leaf.integer);
      } else {
        arguments.emplace_back(leaf.number);
      }
    }
    for (const auto& [name, value] : parameters_) arguments.emplace_back(tensor(value));
    class Guarded : public Call {
     public:
      Guarded(NativeReference* owner, torch::jit::Function& function, std::vector<c10::IValue> arguments)
          : owner_(owner), call_(function, std::move(arguments)) {}
      void Run() override {
        try {
          call_.Run();
        } catch (const std::exception& error) {
          throw ProblemError(owner_->name_ + ".toml: forward failed: " + FirstLines(error.what()), error.what());
        }
      }
      std::vector<at::Tensor> Outputs() override {
        auto outputs = call_.Outputs();
        for (auto& output : outputs) {
          if (output.device() != owner_->device_) output = output.to(owner_->device_);
        }
        owner_->paths_ = call_.paths;
        return outputs;
      }

     private:
      NativeReference* owner_;
      NativeCall call_;
    };
    return std::make_unique<Guarded>(this, *function_, std::move(arguments));
  }

  const std::vector<std::pair<std::string, at::Tensor>>& Parameters() const override { return parameters_; }
  // Drawn anew, by the file's own distributions.
  bool VaryParameters(std::uint64_t seed) override {
    if (built_.empty()) {
      for (const auto& [name, tensor] : parameters_) built_.push_back(tensor.clone());
    }
    auto generator = at::detail::createCPUGenerator(seed);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].second.copy_(DrawTensor(parameter_specs_[i], parameter_specs_[i].shape, generator));
    }
    return !parameters_.empty();
  }
  void RestoreParameters() override {
    for (std::size_t i = 0; i < built_.size(); ++i) parameters_[i].second.copy_(built_[i]);
  }
  std::vector<std::string> OutputPaths() const override { return paths_; }
  std::string InitPickle() const override { return ""; }
  Rule DefaultRule() const override { return rule_; }

 private:
  static std::string FirstLines(std::string text) {
    if (text.size() > 2000) text.resize(2000);
    return text;
  }

  std::vector<std::int64_t> ShapeOf(std::size_t input) const {
    if (selected_ > 0) {
      const auto& set = shape_sets_[selected_ - 1];
      if (auto found = set.find(inputs_[input].name); found != set.end()) return found->second;
    }
    return inputs_[input].shape;
  }

  at::Tensor DrawTensor(const InputSpec& spec, const std::vector<std::int64_t>& shape, at::Generator generator) const {
    try {
      return Drawn(spec, shape, std::move(generator));
    } catch (const std::exception& error) {
      const std::string text = error.what();  // behind the first line comes a trace
      throw ProblemError(name_ + ".toml: \"" + spec.name + "\" cannot be drawn: " + text.substr(0, text.find('\n')) +
                         "; make its shape smaller, or correct its distribution");
    }
  }

  at::Tensor Drawn(const InputSpec& spec, const std::vector<std::int64_t>& shape, at::Generator generator) const {
    const at::ScalarType type = TorchType(spec.type.name);
    // Drawn where it is used: on a GPU a draw on the CPU and a copy take a thousand times longer.
    if (device_.is_cuda()) {
      auto cuda = at::globalContext().defaultGenerator(device_).clone();
      cuda.set_current_seed(generator.current_seed() + 0x9e3779b97f4a7c15 * ++drawn_);
      generator = cuda;
    }
    const bool complex = spec.type.kind == wire::DTypeKind::kComplex;
    const at::ScalarType work = type == at::kDouble || type == at::kComplexDouble ? at::kDouble : at::kFloat;
    auto options = at::TensorOptions().device(device_).dtype(work);
    auto real = [&]() -> at::Tensor {
      if (spec.distribution == "normal") return at::empty(shape, options).normal_(spec.mean, spec.std, generator);
      if (spec.distribution == "uniform") return at::empty(shape, options).uniform_(spec.low, spec.high, generator);
      if (spec.distribution == "integers") {
        return at::empty(shape, options.dtype(at::kLong))
            .random_(static_cast<std::int64_t>(spec.low), static_cast<std::int64_t>(spec.high), generator);
      }
      return at::full(shape, spec.value, options.dtype(at::kDouble));
    };
    if (complex) return at::complex(real().to(work), real().to(work)).to(type);
    return real().to(type);
  }

  void Parse(const toml::table& root) {
    Table table(name_, root, "the problem");
    table.Only({"name", "description", "torchscript", "inputs", "parameters", "shapes", "held_out", "tolerance"});
    if (auto name = table.Get<std::string>("name", "text")) (void)name;
    table.Get<std::string>("description", "text");
    auto text = table.Get<std::string>("torchscript", "text");
    if (!text) throw ProblemError(name_ + ".toml has no \"torchscript\"; it must hold the text of def forward(...)");
    torchscript_ = *text;
    auto each = [this, &table](const char* key, auto&& use) {
      const toml::node* node = table.Find(key);
      if (node == nullptr) return;
      const toml::array* list = node->as_array();
      if (list == nullptr)
        Complain(name_, node, std::string("\"") + key + "\" must be a list of tables: [[" + key + "]]");
      for (const toml::node& item : *list) {
        const toml::table* entry = item.as_table();
        if (entry == nullptr)
          Complain(name_, &item, std::string("\"") + key + "\" must be a list of tables: [[" + key + "]]");
        use(*entry);
      }
    };
    each("inputs", [this](const toml::table& entry) { inputs_.push_back(ParseInput(name_, entry, "[[inputs]]")); });
    each("parameters", [this](const toml::table& entry) {
      parameter_specs_.push_back(ParseInput(name_, entry, "[[parameters]]"));
      if (parameter_specs_.back().scalar) Complain(name_, &entry, "[[parameters]] needs a \"shape\"");
    });
    std::set<std::string> names;
    for (const auto* list : {&inputs_, &parameter_specs_}) {
      for (const InputSpec& spec : *list) {
        if (!names.insert(spec.name).second) {
          throw ProblemError(name_ + ".toml: two of [[inputs]] and [[parameters]] have the name \"" + spec.name + "\"");
        }
      }
    }
    bool tensors = false;
    for (const InputSpec& spec : inputs_) tensors = tensors || !spec.scalar;
    if (!tensors) throw ProblemError(name_ + ".toml has no [[inputs]] with a shape, so there is nothing to compute on");
    for (const char* key : {"shapes", "held_out"}) {
      each(key, [this, key](const toml::table& entry) {
        std::map<std::string, std::vector<std::int64_t>> set;
        for (const auto& [name, node] : entry) {
          bool known = false;
          for (const InputSpec& spec : inputs_) {
            if (spec.name != name.str() || spec.scalar) continue;
            known = true;
            set[spec.name] = Table::ParseShape(name_, node, spec.name);
          }
          if (!known) {
            Complain(name_, &node,
                     "unknown key \"" + std::string(name.str()) + "\" in [[" + key +
                         "]]; its keys are names of [[inputs]] that have a shape");
          }
        }
        shape_sets_.push_back(std::move(set));
        held_out_.push_back(std::string_view(key) == "held_out");
      });
    }
    if (const toml::node* node = table.Find("tolerance")) {
      const toml::table* entry = node->as_table();
      if (entry == nullptr) Complain(name_, node, "\"tolerance\" must be a table: [tolerance]");
      Table tolerance(name_, *entry, "[tolerance]");
      const std::string mode = tolerance.Get<std::string>("mode", "text").value_or("scaled");
      if (mode == "absolute_relative") {
        rule_.mode = RuleMode::kAbsoluteRelative;
        const auto number = [&](const char* key) {
          const double value = tolerance.Get<double>(key, "a number").value_or(1e-4);
          if (!std::isfinite(value) || value < 0) {
            Complain(name_, entry->get(key), std::string("\"") + key + "\" must be finite and not below 0");
          }
          return value;
        };
        rule_.atol = number("atol");
        rule_.rtol = number("rtol");
      } else if (mode != "scaled") {
        Complain(name_, entry->get("mode"), "unknown mode \"" + mode + "\"; known are scaled, absolute_relative");
      }
      tolerance.Finish();
    }
    table.Finish();
  }

  std::string name_;
  at::Device device_;
  std::string torchscript_;
  std::vector<InputSpec> inputs_, parameter_specs_;
  std::vector<std::map<std::string, std::vector<std::int64_t>>> shape_sets_;
  std::vector<bool> held_out_;  // for each of them
  std::size_t selected_ = 0;
  mutable std::uint64_t drawn_ = 0;  // tensors of the latest seed
  Rule rule_;
  std::shared_ptr<torch::jit::CompilationUnit> unit_;
  torch::jit::Function* function_ = nullptr;
  std::vector<std::pair<std::string, at::Tensor>> parameters_;
  std::vector<at::Tensor> built_;  // parameters_ as first drawn, once they were varied
  std::vector<std::string> paths_;
  nlohmann::json structure_;
};

}  // namespace

std::unique_ptr<Reference> MakeNativeReference(const ReferenceOptions& options) {
  return std::make_unique<NativeReference>(options);
}

}  // namespace grove::judge
