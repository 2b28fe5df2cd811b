// Writing an elementwise expression as C++ or CUDA source.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "coordinator/generate/operation.h"

namespace grove::generate::catalogue {

// A float literal that reads back to exactly this float: "0.5f", "(-INFINITY)", "1e-05f".
std::string FloatLiteral(double value);

// Statements "const <type> <prefix><i> = ...;", one per node that is not a leaf, each line indented by `indent`, and in
// *result the text of the last value. leaf(node) gives the text of an "input" or "acc" node. Constants are written as
// `FloatLiteral`, wrapped in <splat>(...) when splat is not empty. Operators + - * / are infix; everything else is a
// call of g_<op>(args..., params...), which the prelude of the dialect defines for <type>: g_gelu(x), g_clamp(x, lo,
// hi), g_leaky_relu(x, slope), g_elu(x, alpha), g_pow_const(x, e), g_softplus_beta(x, beta, threshold), g_maximum(a,
// b), ...
std::string EmitExpr(const Expr& expr, const std::string& type, const std::string& prefix, const std::string& indent,
                     const std::string& splat, const std::function<std::string(const ExprNode&)>& leaf,
                     std::string* result);

// Merges neighbouring dimensions of the space over which every operand is contiguous or broadcast alike, and drops
// dimensions of size 1. A chain over equal shapes and scalars becomes one dimension.
Expr Collapse(const Expr& expr);

// The distinct g_<op> that the expression calls, sorted: a prelude may define only these.
std::vector<std::string> CalledFunctions(const Expr& expr);

}  // namespace grove::generate::catalogue
