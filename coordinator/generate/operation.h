// Recognition of the operation that a problem computes, from the graph of its reference and never from its name.
//
// The graph is folded into at most one heavy operation (a matrix product, a convolution, a normalisation, a softmax, a
// reduction, a pooling) with an elementwise expression before it (prologue) and one after it (epilogue). A problem with
// no heavy operation is an elementwise chain. What does not fold so is not recognised, and the error says which
// operations were seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grove/v1/types.pb.h"

namespace grove::generate {

// A kernel argument (grove_args.inputs[arg]) seen through views: transposes, reshapes, expands. All in elements.
struct Operand {
  int arg = -1;
  std::vector<int64_t> shape;    // after the views
  std::vector<int64_t> strides;  // same rank; 0 where broadcast
};

// One step of an elementwise expression. `op` is
//   "input"     operands[operand] at the current index
//   "const"     value
//   "acc"       the heavy operation's result at the current index
//   a unary     neg abs exp log log1p expm1 sqrt rsqrt reciprocal square relu gelu gelu_tanh silu sigmoid tanh softplus
//               softsign mish hardsigmoid hardswish relu6 selu erf sin cos floor ceil round sign
//   a unary with parameters  clamp(lo,hi) leaky_relu(slope) elu(alpha) pow_const(exponent)
//   softplus_beta(beta,threshold)
//               hardtanh is clamp; missing bounds of clamp are infinities
//   a binary    add sub mul div maximum minimum pow
struct ExprNode {
  std::string op;
  std::vector<int> args;       // indices of earlier nodes
  double value = 0;            // const
  int operand = -1;            // input
  std::vector<double> params;  // of unaries with parameters
};

// Straight-line code over an iteration space; the last node is the result. Each operand has the rank of the space
// (1s with stride 0 where it broadcasts), row-major contiguous results.
struct Expr {
  std::vector<int64_t> space;
  std::vector<Operand> operands;
  std::vector<ExprNode> nodes;

  bool IsAcc() const { return nodes.size() == 1 && nodes[0].op == "acc"; }      // nothing after the heavy operation
  bool IsInput() const { return nodes.size() == 1 && nodes[0].op == "input"; }  // a plain (perhaps strided) input
  int64_t Elements() const;
};

// C = A * B for each of `batch` pairs. a: [batch, m, k], b: [batch, k, n] with any strides (transposes are strides;
// batch stride 0 = shared). Result [batch, m, n] contiguous.
struct MatmulSpec {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  Operand a, b;
};

// The prologue's result seen as [outer, n, inner], contiguous; the operation works along n.
struct RowsSpec {
  int64_t outer = 1, n = 1, inner = 1;
};

struct NormSpec {
  enum class Kind {
    kLayer,  // (x - mean) / sqrt(var + eps), biased variance: layer, group and instance norm; affine is in the epilogue
    kRms,    // x / sqrt(mean(x^2) + eps)
    kL2,     // x / sqrt(sum(x^2) + eps)
  };
  Kind kind = Kind::kLayer;
  double eps = 0;
};

struct ReduceSpec {
  enum class Kind { kSum, kMean, kMax, kMin, kProd, kL2, kLogSumExp };
  Kind kind = Kind::kSum;
};

// NCHW. input [n,c,h,w], weight [oc,c/groups,kh,kw], result [n,oc,oh,ow]; bias is in the epilogue.
struct Conv2dSpec {
  int64_t n = 0, c = 0, h = 0, w = 0, oc = 0, oh = 0, ow = 0, kh = 0, kw = 0;
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1, groups = 1;
  int input = -1, weight = -1;  // kernel arguments, both contiguous
};

// Pooling of [planes, h, w] to [planes, oh, ow]. Padding counts as -inf (max) or, with count_include_pad, as 0 (avg).
struct Pool2dSpec {
  enum class Kind { kMax, kAvg };
  Kind kind = Kind::kMax;
  int64_t planes = 0, h = 0, w = 0, oh = 0, ow = 0, kh = 0, kw = 0;
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1;
  bool count_include_pad = true;
};

// Everything a kernel writer needs. Exactly the parts that `operation` names are set:
//   elementwise                                   epilogue (no "acc" in it)
//   matmul, matmul_epilogue                       matmul, epilogue
//   softmax, log_softmax                          prologue, rows, epilogue
//   layer_norm, group_norm, instance_norm, rms_norm, l2_norm   prologue, rows, norm, epilogue
//   reduce_sum|mean|max|min|prod|l2|logsumexp     prologue, rows, reduce, epilogue (space: outer x inner)
//   conv2d, conv2d_epilogue                       conv2d, epilogue
//   conv2d_relu_maxpool, conv2d_epilogue_pool     conv2d, epilogue (over the convolution's result), pool
//   max_pool2d, avg_pool2d                        prologue (over the input), pool
// A bias alone does not make an "_epilogue".
struct OpSpec {
  std::string operation;
  std::vector<v1::TensorType> args;  // grove_args.inputs: inputs, then parameters
  std::vector<int64_t> output_shape;
  Expr prologue;
  Expr epilogue;
  std::optional<MatmulSpec> matmul;
  std::optional<RowsSpec> rows;
  std::optional<NormSpec> norm;
  std::optional<ReduceSpec> reduce;
  std::optional<Conv2dSpec> conv2d;
  std::optional<Pool2dSpec> pool;
};

// FAILED_PRECONDITION names what was seen, why it is not known, and what else can be done.
absl::StatusOr<OpSpec> Recognise(const v1::ProblemDescription& description);

// The operation's name, "" when it is not recognised. The bank is ordered by it.
std::string RecogniseOperation(const v1::ProblemDescription& description);

}  // namespace grove::generate
