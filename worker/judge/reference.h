// The problem's program as the judge runs it. Two kinds stand behind it: TorchScript text (reference_native.cc) and a
// Python file (python/reference_python.cc, in a library of its own that is only loaded when a problem needs Python).
// Owned and used by the judge's main thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/judge/compare.h"
#include "worker/judge/problem_error.h"

namespace grove::judge {

// One tensor, or one Python number, among the flattened inputs.
struct Leaf {
  at::Tensor tensor;  // defined for tensors: dense, on the device
  bool scalar = false;
  std::string dtype;         // torch's short name
  double number = 0;         // float64 scalars
  std::int64_t integer = 0;  // int64 and bool scalars
  std::string name;          // of the argument, where known
  // The strides of the tensor as get_inputs() made it, where not row-major. What had gaps in it was made dense since.
  std::vector<std::int64_t> made_strides;
};

enum class Mode {
  kEager,    // as written
  kCompile,  // through torch.compile
  kDouble,   // parameters and floating inputs in float64
};

// One call, its arguments converted already, so that a clock around Run sees the program alone.
class Call {
 public:
  virtual ~Call() = default;
  virtual void Run() = 0;
  virtual std::vector<at::Tensor> Outputs() = 0;  // flattened, contiguous; of the last Run
};

class Reference {
 public:
  virtual ~Reference() = default;

  // Native problems may name further shapes that a kernel must handle; set 0 is the one that is timed.
  virtual std::size_t ShapeSets() const { return 1; }
  virtual void SelectShapeSet(std::size_t) {}
  // Its shapes are not told to whoever writes kernels, in reports neither.
  virtual bool HeldOut(std::size_t) const { return false; }

  // Whether draws have the strides of the problem's own inputs, as at first, or are row-major, as native kernels are
  // given them. In each way a leaf's strides are the same in every draw.
  virtual void KeepStrides(bool) {}
  // A fresh draw of the inputs, in the selected shapes. Throws ProblemError.
  virtual std::vector<Leaf> Draw(std::uint64_t seed) = 0;
  // How the leaves stand in forward's arguments: a list of trees {"list":[..]}, {"tuple":[..]}, {"dict":[[key,..]..]},
  // {"value":constant} or the leaf's number. Known after the first Draw.
  virtual nlohmann::json Structure() const = 0;

  // Throws ProblemError (a reference that raises), or std::exception when the mode is not to be had for this problem.
  virtual std::unique_ptr<Call> Prepare(const std::vector<Leaf>& leaves, Mode mode) = 0;

  // Parameters and buffers in state_dict order; contiguous, on the device.
  virtual const std::vector<std::pair<std::string, at::Tensor>>& Parameters() const = 0;
  // Gives what training would change other values: from here on calls use them and Parameters() holds them, until
  // RestoreParameters(). False: there is nothing to vary. Calls that were prepared before must not be run after.
  virtual bool VaryParameters(std::uint64_t seed) = 0;
  virtual void RestoreParameters() = 0;  // as built
  // The tensors that calls really use: what a trace must know by name. Parameters() may be copies of them.
  virtual std::vector<at::Tensor> LiveParameters() const {
    std::vector<at::Tensor> live;
    for (const auto& [name, tensor] : Parameters()) live.push_back(tensor);
    return live;
  }
  // Names of the tables that it holds beside its parameters and buffers, so that candidates must make them themselves.
  virtual std::vector<std::string> OwnTables() const { return {}; }
  virtual std::vector<std::string> OutputPaths() const = 0;  // after the first call
  virtual std::string InitPickle() const = 0;                // base64; empty for native problems
  virtual Rule DefaultRule() const { return {}; }
  virtual bool CanCompile() const { return false; }
  // Around a trace: module names for the recorded scopes.
  virtual void BeginTrace() {}
  virtual void EndTrace() {}
};

struct ReferenceOptions {
  std::string name;
  std::string source;
  bool cuda = false;
  int device_index = 0;
  std::string python;
};

std::unique_ptr<Reference> MakeNativeReference(const ReferenceOptions& options);

// Exported by the Python library, for the interpreter that the process is (main.cc). The first call of either imports
// torch; `python` is for messages.
inline constexpr char kPythonEntry[] = "grove_make_python_reference";
using MakePythonReference = Reference* (*)(const ReferenceOptions& options);
inline constexpr char kStartPythonEntry[] = "grove_start_python";
using StartPythonFunction = void (*)(const std::string& python);

}  // namespace grove::judge
