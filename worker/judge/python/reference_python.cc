// KernelBench problems: the interpreter that the judge runs in executes problem_runner.py. Lives in a shared library
// that the judge loads for a Python problem only, so that a native problem does without torch's Python.
#include <Python.h>

// Python.h first, as it asks.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstdlib>
#include <string>

#include "worker/judge/reference.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr char kDoubledSource[] =
#include "doubled.inc"
    ;
constexpr char kRunnerSource[] =
#include "problem_runner.inc"
    ;

// Owns one reference to a Python object.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* object) : object_(object) {}
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    if (this != &other) {
      Py_XDECREF(object_);
      object_ = std::exchange(other.object_, nullptr);
    }
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

std::string Text(PyObject* object) {
  if (object == nullptr) return "";
  Object text(PyObject_Str(object));
  const char* bytes = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (bytes == nullptr) {
    PyErr_Clear();
    return "";
  }
  return bytes;
}

// The pending Python exception as a C++ one.
[[noreturn]] void Raise() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Object own_type(type), own_value(value), own_trace(trace);
  const std::string name = type != nullptr ? reinterpret_cast<PyTypeObject*>(type)->tp_name : "unknown";
  if (name.find("ProblemFailure") != std::string::npos) {
    Object arguments(PyObject_GetAttrString(value, "args"));
    const std::string message = arguments ? Text(PySequence_Fast_GET_ITEM(arguments.get(), 0)) : Text(value);
    std::string detail;
    if (arguments && PyTuple_Size(arguments.get()) > 1) detail = Text(PyTuple_GetItem(arguments.get(), 1));
    throw ProblemError(message, detail);
  }
  throw std::runtime_error(name + ": " + Text(value));
}

Object Checked(PyObject* object) {
  if (object == nullptr) Raise();
  return Object(object);
}

nlohmann::json ToJson(PyObject* value) {
  if (value == Py_None) return nullptr;
  if (PyBool_Check(value)) return value == Py_True;
  if (PyLong_Check(value)) return static_cast<std::int64_t>(PyLong_AsLongLong(value));
  if (PyFloat_Check(value)) return PyFloat_AsDouble(value);
  if (PyDict_Check(value)) {
    nlohmann::json result = nlohmann::json::object();
    PyObject *key, *item;
    Py_ssize_t at = 0;
    while (PyDict_Next(value, &at, &key, &item)) result[Text(key)] = ToJson(item);
    return result;
  }
  if (PyList_Check(value) || PyTuple_Check(value)) {
    nlohmann::json result = nlohmann::json::array();
    Object items(PySequence_Fast(value, "list"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      result.push_back(ToJson(PySequence_Fast_GET_ITEM(items.get(), i)));
    }
    return result;
  }
  return Text(value);
}

class PythonReference;

class PythonCall : public Call {
 public:
  // `call` is (model, arguments).
  PythonCall(PyObject* runner, Object call, bool guarded) : runner_(runner), call_(std::move(call)), guarded_(guarded) {
    model_ = PyTuple_GetItem(call_.get(), 0);
    arguments_ = PyTuple_GetItem(call_.get(), 1);
  }
  // Nothing but the call itself: a clock runs around this. Gradients are off on the whole thread.
  void Run() override {
    result_ = Object(PyObject_CallObject(model_, arguments_));
    if (result_) return;
    if (!guarded_) Raise();
    // Once more where the failure is put into words.
    PyErr_Clear();
    result_ = Checked(PyObject_CallMethod(runner_, "guarded_run", "(O)", call_.get()));
  }
  std::vector<at::Tensor> Outputs() override {
    Object list = Checked(PyObject_CallMethod(runner_, "flatten", "(O)", result_.get()));
    std::vector<at::Tensor> outputs;
    for (Py_ssize_t i = 0; i < PyList_Size(list.get()); ++i) {
      outputs.push_back(THPVariable_Unpack(PyList_GetItem(list.get(), i)));
    }
    return outputs;
  }

 private:
  PyObject* runner_;
  Object call_, result_;
  PyObject* model_;      // held by call_
  PyObject* arguments_;  // held by call_
  bool guarded_;
};

Object Module(const std::string& name, const char* text) {
  Object module = Checked(PyModule_New(name.c_str()));
  PyObject* globals = PyModule_GetDict(module.get());
  PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins());
  Object code = Checked(Py_CompileString(text, (name + ".py").c_str(), Py_file_input));
  Checked(PyEval_EvalCode(code.get(), globals, globals));
  return module;
}

// Of a list; of anything else none.
std::vector<std::string> Texts(PyObject* list) {
  std::vector<std::string> texts;
  if (!PyList_Check(list)) return texts;
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) texts.push_back(Text(PyList_GetItem(list, i)));
  return texts;
}

class PythonReference : public Reference {
 public:
  explicit PythonReference(const ReferenceOptions& options) {
    // Known by its name while the runner imports it: a problem may have a module of the same name.
    const Object doubled = Module("doubled", kDoubledSource);
    PyObject* modules = PyImport_GetModuleDict();
    if (PyDict_SetItemString(modules, "doubled", doubled.get()) != 0) Raise();
    const Object runner = Module("problem_runner", kRunnerSource);
    if (PyDict_DelItemString(modules, "doubled") != 0) Raise();
    PyObject* maker = PyDict_GetItemString(PyModule_GetDict(runner.get()), "Runner");
    Object source(PyUnicode_DecodeUTF8(options.source.data(), static_cast<Py_ssize_t>(options.source.size()), nullptr));
    if (!source) {
      PyErr_Clear();
      throw ProblemError(options.name + ".py is not UTF-8 text; save it as UTF-8");
    }
    runner_ = Checked(PyObject_CallFunction(maker, "sOOi", options.name.c_str(), source.get(),
                                            options.cuda ? Py_True : Py_False, options.device_index));
    Object state = Checked(PyObject_CallMethod(runner_.get(), "state", nullptr));
    for (Py_ssize_t i = 0; i < PyList_Size(state.get()); ++i) {
      PyObject* pair = PyList_GetItem(state.get(), i);
      parameters_.emplace_back(Text(PyTuple_GetItem(pair, 0)), THPVariable_Unpack(PyTuple_GetItem(pair, 1)));
    }
    init_ = Text(Checked(PyObject_CallMethod(runner_.get(), "init_pickle", nullptr)).get());
    can_compile_ = PyObject_IsTrue(Checked(PyObject_CallMethod(runner_.get(), "can_compile", nullptr)).get()) == 1;
  }

  void KeepStrides(bool keep) override {
    if (PyObject_SetAttrString(runner_.get(), "keep_strides", keep ? Py_True : Py_False) != 0) Raise();
  }

  std::vector<Leaf> Draw(std::uint64_t seed) override {
    Object drawn = Checked(PyObject_CallMethod(runner_.get(), "draw", "K", static_cast<unsigned long long>(seed)));
    PyObject* list = PyTuple_GetItem(drawn.get(), 0);
    PyObject* names = PyTuple_GetItem(drawn.get(), 1);
    const Object made = Checked(PyObject_GetAttrString(runner_.get(), "made_strides"));
    std::vector<Leaf> leaves;
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
      PyObject* item = PyList_GetItem(list, i);
      Leaf leaf;
      leaf.name = Text(PyList_GetItem(names, i));
      if (PyObject* strides = PyList_GetItem(made.get(), i); PyTuple_Check(strides)) {
        for (Py_ssize_t d = 0; d < PyTuple_Size(strides); ++d) {
          leaf.made_strides.push_back(PyLong_AsLongLong(PyTuple_GetItem(strides, d)));
        }
      }
      if (PyBool_Check(item)) {
        leaf.scalar = true;
        leaf.dtype = "bool";
        leaf.integer = item == Py_True ? 1 : 0;
      } else if (PyLong_Check(item)) {
        leaf.scalar = true;
        leaf.dtype = "int64";
        leaf.integer = PyLong_AsLongLong(item);
      } else if (PyFloat_Check(item)) {
        leaf.scalar = true;
        leaf.dtype = "float64";
        leaf.number = PyFloat_AsDouble(item);
      } else {
        leaf.tensor = THPVariable_Unpack(item);
        leaf.dtype = ShortType(leaf.tensor.scalar_type());
      }
      leaves.push_back(std::move(leaf));
    }
    structure_ = ToJson(Checked(PyObject_GetAttrString(runner_.get(), "structure")).get());
    return leaves;
  }

  nlohmann::json Structure() const override { return structure_; }

  std::unique_ptr<Call> Prepare(const std::vector<Leaf>& leaves, Mode mode) override {
    Object list = Checked(PyList_New(static_cast<Py_ssize_t>(leaves.size())));
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const Leaf& leaf = leaves[i];
      PyObject* item;
      if (!leaf.scalar) {
        item = THPVariable_Wrap(leaf.tensor);
      } else if (leaf.dtype == "bool") {
        item = PyBool_FromLong(static_cast<long>(leaf.integer));
      } else if (leaf.dtype == "int64") {
        item = PyLong_FromLongLong(leaf.integer);
      } else {
        item = PyFloat_FromDouble(leaf.number);
      }
      if (item == nullptr) Raise();
      PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), item);
    }
    Object call = Checked(PyObject_CallMethod(runner_.get(), "prepare", "Oi", list.get(), static_cast<int>(mode)));
    return std::make_unique<PythonCall>(runner_.get(), std::move(call), mode == Mode::kEager);
  }

  const std::vector<std::pair<std::string, at::Tensor>>& Parameters() const override { return parameters_; }
  // parameters_ are the runner's own tensors.
  bool VaryParameters(std::uint64_t seed) override {
    Object varied =
        Checked(PyObject_CallMethod(runner_.get(), "vary", "K", static_cast<unsigned long long>(seed >> 1)));
    return PyObject_IsTrue(varied.get()) == 1;
  }
  void RestoreParameters() override { Checked(PyObject_CallMethod(runner_.get(), "unvary", nullptr)); }
  std::vector<at::Tensor> LiveParameters() const override {
    std::vector<at::Tensor> live;
    Object list = Checked(PyObject_CallMethod(runner_.get(), "live_state", nullptr));
    for (Py_ssize_t i = 0; i < PyList_Size(list.get()); ++i)
      live.push_back(THPVariable_Unpack(PyList_GetItem(list.get(), i)));
    return live;
  }
  std::vector<std::string> OwnTables() const override {
    return Texts(Checked(PyObject_CallMethod(runner_.get(), "own_tables", nullptr)).get());
  }
  std::vector<std::string> OutputPaths() const override {
    return Texts(Checked(PyObject_GetAttrString(runner_.get(), "paths")).get());
  }
  std::string InitPickle() const override { return init_; }
  bool CanCompile() const override { return can_compile_; }
  void BeginTrace() override { Checked(PyObject_CallMethod(runner_.get(), "begin_trace", nullptr)); }
  void EndTrace() override { Checked(PyObject_CallMethod(runner_.get(), "end_trace", nullptr)); }

 private:
  Object runner_;
  std::vector<std::pair<std::string, at::Tensor>> parameters_;
  std::string init_;
  bool can_compile_ = false;
  nlohmann::json structure_;
};

// The interpreter is the process's own (main.cc); that of a native problem never imports torch.
void StartPython(const std::string& python) {
  Object torch(PyImport_ImportModule("torch"));
  if (!torch) {
    PyErr_Clear();
    throw std::runtime_error("the Python of --python (" + python + ") has no torch; name one that has");
  }
}

}  // namespace
}  // namespace grove::judge

extern "C" __attribute__((visibility("default"))) grove::judge::Reference* grove_make_python_reference(
    const grove::judge::ReferenceOptions& options) {
  grove::judge::StartPython(options.python);
  return new grove::judge::PythonReference(options);
}

extern "C" __attribute__((visibility("default"))) void grove_start_python(const std::string& python) {
  grove::judge::StartPython(python);
}
