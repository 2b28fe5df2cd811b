// Pieces that the CUDA families share: substitution in source templates, the operands of a kernel, and elementwise
// expressions as device functions of a (row, column) position.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coordinator/generate/operation.h"
#include "grove/v1/types.pb.h"

namespace grove::generate::catalogue::cuda {

// Replaces every "$name$" of the template by its value. A "$name$" without a value is a bug of the writer: it crashes.
std::string Fill(absl::string_view text, const std::map<std::string, std::string>& values);

// "constexpr int kName = value;" lines.
std::string Constants(const std::vector<std::pair<std::string, int64_t>>& values);

// The kernel arguments that expressions read, as a struct passed to kernels by value. Tensors are device pointers to
// float; Python numbers are read on the host.
class Operands {
 public:
  explicit Operands(const OpSpec& spec) : spec_(spec) {}
  std::string Name(int arg);     // "ops.in3"; remembers that argument 3 is used
  bool IsScalar(int arg) const;  // a Python number
  std::string Struct() const;    // struct Operands { ... };
  std::string HostFill() const;  // statements that declare and fill `Operands ops` from `args`

 private:
  const OpSpec& spec_;
  std::set<int> used_;
};

// OK when everything that `expr` reads is float32 (or a number).
absl::Status CheckReadable(const OpSpec& spec, const Expr& expr);
// OK when the output is float32.
absl::Status CheckOutput(const OpSpec& spec);

// True when the expression is one input, contiguous and not broadcast.
bool IsPlainInput(const Expr& expr);
// True when all four elements of an aligned group of four columns exist in one row: columns % 4 == 0.
inline bool VectorColumns(int64_t columns) { return columns % 4 == 0; }

// Device functions for `expr` over its space seen as [rows, columns]:
//   float  <name>(const Operands& ops, [float acc,] Index row, Index col)
//   float4 <name>4(const Operands& ops, [float4 acc,] Index row, Index col)   only with `vector`; col % 4 == 0
// The text expects Index, Read(const float*), Read4(const float*) (the wide operands' reads, so that cache hints are
// chosen once) and the prelude's g_ functions. `with_acc` adds the acc argument.
std::string ExprFunctions(const Expr& expr, Operands* operands, const std::string& name, int64_t rows, int64_t columns,
                          bool with_acc, bool vector);

// Device definitions of the g_ functions that the expressions call.
std::string MathPrelude(const std::vector<const Expr*>& exprs);

// The start of every file: a comment with `what` and the settings, includes, Index (32 or 64 bits by `elements`), Read
// and Read4 (streaming or cached), and Write4/Write likewise.
std::string FileHead(const std::string& what, const std::string& settings, int64_t elements, bool stream);

// Number behind "sm_", 0 when there is none: "sm_90a" -> 90.
int ArchNumber(const v1::DeviceInfo& device);
// Shared memory that one block may have, in bytes, by architecture (CUDA C++ Programming Guide, table of technical
// specifications per compute capability).
int64_t SharedMemoryLimit(const v1::DeviceInfo& device);
// The device's multiprocessors; 108 when unknown.
int Multiprocessors(const v1::DeviceInfo& device);

int64_t CeilDiv(int64_t a, int64_t b);
// The values v of `all` with v <= limit; the smallest when there is none.
std::vector<int64_t> UpTo(const std::vector<int64_t>& all, int64_t limit);

}  // namespace grove::generate::catalogue::cuda
