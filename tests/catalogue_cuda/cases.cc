#include "tests/catalogue_cuda/cases.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace grove::generate::catalogue {
namespace {

using Shape = std::vector<int64_t>;

Shape RowMajor(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

v1::TensorType Float(const Shape& shape) {
  v1::TensorType type;
  type.set_dtype("float32");
  for (int64_t size : shape) type.add_shape(size);
  return type;
}

Expr InputExpr(int arg, const Shape& shape) {
  Expr expr;
  expr.space = shape;
  expr.operands = {{arg, shape, RowMajor(shape)}};
  expr.nodes = {{.op = "input", .operand = 0}};
  return expr;
}

Expr AccExpr(const Shape& shape) {
  Expr expr;
  expr.space = shape;
  expr.nodes = {{.op = "acc"}};
  return expr;
}

// Appends "<last> op input(arg)" with the given strides.
void Binary(Expr* expr, const std::string& op, int arg, const Shape& strides) {
  const int last = static_cast<int>(expr->nodes.size()) - 1;
  Shape shape = expr->space;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (strides[i] == 0) shape[i] = 1;
  }
  expr->operands.push_back({arg, shape, strides});
  expr->nodes.push_back({.op = "input", .operand = static_cast<int>(expr->operands.size()) - 1});
  expr->nodes.push_back({.op = op, .args = {last, last + 1}});
}

void Unary(Expr* expr, const std::string& op, std::vector<double> params = {}) {
  const int last = static_cast<int>(expr->nodes.size()) - 1;
  expr->nodes.push_back({.op = op, .args = {last}, .params = std::move(params)});
}

std::string ShapeText(const Shape& shape) { return absl::StrCat("(", absl::StrJoin(shape, ", "), ",)"); }

// dims: the last `dims` dimensions are normalised.
Case LayerNorm(const std::string& name, const Shape& shape, int dims, const std::string& inputs, bool large) {
  Case c{.name = name, .inputs = inputs, .large = large};
  const Shape tail(shape.end() - dims, shape.end());
  OpSpec& s = c.spec;
  s.operation = "layer_norm";
  s.args = {Float(shape), Float(tail), Float(tail)};
  s.output_shape = shape;
  s.prologue = InputExpr(0, shape);
  s.rows = RowsSpec{};
  for (size_t i = 0; i < shape.size(); ++i) (i + dims < shape.size() ? s.rows->outer : s.rows->n) *= shape[i];
  s.norm = NormSpec{NormSpec::Kind::kLayer, 1e-5};
  s.epilogue = AccExpr(shape);
  Shape strides = RowMajor(shape);
  for (size_t i = 0; i + dims < shape.size(); ++i) strides[i] = 0;
  Binary(&s.epilogue, "mul", 1, strides);
  Binary(&s.epilogue, "add", 2, strides);
  c.reference = absl::StrCat("F.layer_norm(x[0], ", ShapeText(tail), ", x[1], x[2])");
  return c;
}

// RMS norm over dimension `dim` of x, without weights: x / sqrt(mean(x^2, dim) + eps).
Case RmsNorm(const std::string& name, const Shape& shape, int dim) {
  Case c{.name = name};
  OpSpec& s = c.spec;
  s.operation = "rms_norm";
  s.args = {Float(shape)};
  s.output_shape = shape;
  s.prologue = InputExpr(0, shape);
  s.rows = RowsSpec{};
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    (i < dim ? s.rows->outer : i == dim ? s.rows->n : s.rows->inner) *= shape[i];
  }
  s.norm = NormSpec{NormSpec::Kind::kRms, 1e-5};
  s.epilogue = AccExpr(shape);
  c.reference = absl::StrCat("x[0] / torch.sqrt(torch.mean(x[0] ** 2, dim=", dim, ", keepdim=True) + 1e-5)");
  return c;
}

Case GroupNorm(const std::string& name, const Shape& shape, int groups) {
  Case c{.name = name};
  OpSpec& s = c.spec;
  s.operation = "group_norm";
  s.args = {Float(shape), Float({shape[1]}), Float({shape[1]})};
  s.output_shape = shape;
  s.prologue = InputExpr(0, shape);
  s.rows = RowsSpec{shape[0] * groups, shape[1] / groups * shape[2] * shape[3], 1};
  s.norm = NormSpec{NormSpec::Kind::kLayer, 1e-5};
  s.epilogue = AccExpr(shape);
  Binary(&s.epilogue, "mul", 1, {0, 1, 0, 0});
  Binary(&s.epilogue, "add", 2, {0, 1, 0, 0});
  c.reference = absl::StrCat("F.group_norm(x[0], ", groups, ", x[1], x[2])");
  return c;
}

Case Softmax(const std::string& name, const Shape& shape, int dim, bool log, bool large) {
  Case c{.name = name, .large = large};
  OpSpec& s = c.spec;
  s.operation = log ? "log_softmax" : "softmax";
  s.args = {Float(shape)};
  s.output_shape = shape;
  s.prologue = InputExpr(0, shape);
  s.rows = RowsSpec{};
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    (i < dim ? s.rows->outer : i == dim ? s.rows->n : s.rows->inner) *= shape[i];
  }
  s.epilogue = AccExpr(shape);
  c.reference = absl::StrCat("torch.", s.operation, "(x[0], ", dim, ")");
  return c;
}

// softmax(x0 * 0.125 + x1) * x2 as attention has it: a mask broadcast over the rows, then a weight per column.
Case MaskedSoftmax(const std::string& name, const Shape& shape) {
  Case c = Softmax(name, shape, static_cast<int>(shape.size()) - 1, false, false);
  OpSpec& s = c.spec;
  const Shape last = {shape.back()};
  s.args.push_back(Float(last));
  s.args.push_back(Float(last));
  Shape strides(shape.size(), 0);
  strides.back() = 1;
  s.prologue.nodes.push_back({.op = "const", .value = 0.125});
  s.prologue.nodes.push_back({.op = "mul", .args = {0, 1}});
  Binary(&s.prologue, "add", 1, strides);
  Binary(&s.epilogue, "mul", 2, strides);
  c.reference = "torch.softmax(x[0] * 0.125 + x[1], -1) * x[2]";
  return c;
}

// transposed: bit 0 = A is given as [k, m], bit 1 = B as [n, k]. bias: + x[2][n], then GELU.
Case Matmul(const std::string& name, int64_t batch, int64_t m, int64_t n, int64_t k, int transposed, bool bias,
            bool large) {
  Case c{.name = name, .large = large};
  OpSpec& s = c.spec;
  s.operation = bias ? "matmul_epilogue" : "matmul";
  const bool ta = transposed & 1, tb = transposed & 2;
  const bool flat = batch == 1;
  auto with_batch = [&](Shape shape) {
    if (!flat) shape.insert(shape.begin(), batch);
    return shape;
  };
  s.args = {Float(with_batch(ta ? Shape{k, m} : Shape{m, k})), Float(with_batch(tb ? Shape{n, k} : Shape{k, n}))};
  s.output_shape = with_batch({m, n});
  MatmulSpec mm{batch, m, n, k};
  mm.a = {0, {batch, m, k}, {flat ? 0 : m * k, ta ? 1 : k, ta ? m : 1}};
  mm.b = {1, {batch, k, n}, {flat ? 0 : n * k, tb ? 1 : n, tb ? k : 1}};
  s.matmul = mm;
  s.epilogue = AccExpr(s.output_shape);
  std::string a = ta ? "x[0].transpose(-1, -2)" : "x[0]", b = tb ? "x[1].transpose(-1, -2)" : "x[1]";
  c.reference = absl::StrCat("torch.matmul(", a, ", ", b, ")");
  if (bias) {
    s.args.push_back(Float({n}));
    Shape strides(s.output_shape.size(), 0);
    strides.back() = 1;
    Binary(&s.epilogue, "add", 2, strides);
    Unary(&s.epilogue, "gelu");
    c.reference = absl::StrCat("F.gelu(", c.reference, " + x[2])");
  }
  return c;
}

struct ConvShape {
  int64_t n, c, h, w, oc, k, stride, pad, dilation = 1, groups = 1;
};
Case Conv(const std::string& name, const ConvShape& v, bool relu, int pool, bool large) {
  Case c{.name = name, .large = large};
  OpSpec& s = c.spec;
  Conv2dSpec conv;
  conv.n = v.n, conv.c = v.c, conv.h = v.h, conv.w = v.w, conv.oc = v.oc;
  conv.kh = conv.kw = v.k;
  conv.stride_h = conv.stride_w = v.stride;
  conv.pad_h = conv.pad_w = v.pad;
  conv.dilation_h = conv.dilation_w = v.dilation;
  conv.groups = v.groups;
  conv.oh = (v.h + 2 * v.pad - v.dilation * (v.k - 1) - 1) / v.stride + 1;
  conv.ow = (v.w + 2 * v.pad - v.dilation * (v.k - 1) - 1) / v.stride + 1;
  conv.input = 0, conv.weight = 1;
  s.args = {Float({v.n, v.c, v.h, v.w}), Float({v.oc, v.c / v.groups, v.k, v.k}), Float({v.oc})};
  const Shape result = {v.n, v.oc, conv.oh, conv.ow};
  s.conv2d = conv;
  s.epilogue = AccExpr(result);
  Binary(&s.epilogue, "add", 2, {0, 1, 0, 0});
  c.reference = absl::StrCat("F.conv2d(x[0], x[1], x[2], stride=", v.stride, ", padding=", v.pad,
                             ", dilation=", v.dilation, ", groups=", v.groups, ")");
  if (relu) {
    Unary(&s.epilogue, "relu");
    c.reference = absl::StrCat("F.relu(", c.reference, ")");
  }
  s.operation = relu ? "conv2d_epilogue" : "conv2d";
  s.output_shape = result;
  if (pool > 0) {
    Pool2dSpec p;
    p.kind = Pool2dSpec::Kind::kMax;
    p.planes = v.n * v.oc, p.h = conv.oh, p.w = conv.ow;
    p.kh = p.kw = pool, p.stride_h = p.stride_w = 2;
    p.oh = (p.h - pool) / 2 + 1, p.ow = (p.w - pool) / 2 + 1;
    s.pool = p;
    s.operation = relu ? "conv2d_relu_maxpool" : "conv2d_epilogue_pool";
    s.output_shape = {v.n, v.oc, p.oh, p.ow};
    c.reference = absl::StrCat("F.max_pool2d(", c.reference, ", ", pool, ", 2)");
  }
  return c;
}

Case Reduce(const std::string& name, const Shape& shape, int dim, ReduceSpec::Kind kind, bool large) {
  Case c{.name = name, .large = large};
  OpSpec& s = c.spec;
  struct Text {
    ReduceSpec::Kind kind;
    const char *op, *python;
  };
  const Text texts[] = {{ReduceSpec::Kind::kSum, "reduce_sum", "torch.sum(x[0], $)"},
                        {ReduceSpec::Kind::kMean, "reduce_mean", "torch.mean(x[0], $)"},
                        {ReduceSpec::Kind::kMax, "reduce_max", "torch.amax(x[0], $)"},
                        {ReduceSpec::Kind::kMin, "reduce_min", "torch.amin(x[0], $)"},
                        {ReduceSpec::Kind::kProd, "reduce_prod", "torch.prod(x[0], $)"},
                        {ReduceSpec::Kind::kL2, "reduce_l2", "torch.linalg.vector_norm(x[0], dim=$)"},
                        {ReduceSpec::Kind::kLogSumExp, "reduce_logsumexp", "torch.logsumexp(x[0], $)"}};
  for (const Text& t : texts) {
    if (t.kind != kind) continue;
    s.operation = t.op;
    c.reference = t.python;
    c.reference.replace(c.reference.find('$'), 1, absl::StrCat(dim));
  }
  s.args = {Float(shape)};
  s.prologue = InputExpr(0, shape);
  s.rows = RowsSpec{};
  Shape out;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    (i < dim ? s.rows->outer : i == dim ? s.rows->n : s.rows->inner) *= shape[i];
    if (i != dim) out.push_back(shape[i]);
  }
  s.output_shape = out;
  s.reduce = ReduceSpec{kind};
  s.epilogue = AccExpr({s.rows->outer, s.rows->inner});
  if (kind == ReduceSpec::Kind::kProd) c.inputs = "x.abs() * 0.1 + 0.95";
  return c;
}

// gelu(x0 * 0.5 + bias) + x2, the bias along the last dimension.
Case Chain(const std::string& name, const Shape& shape, bool large) {
  Case c{.name = name, .large = large};
  OpSpec& s = c.spec;
  s.operation = "elementwise";
  s.args = {Float(shape), Float({shape.back()}), Float(shape)};
  s.output_shape = shape;
  s.epilogue = InputExpr(0, shape);
  s.epilogue.nodes.push_back({.op = "const", .value = 0.5});
  s.epilogue.nodes.push_back({.op = "mul", .args = {0, 1}});
  Shape strides(shape.size(), 0);
  strides.back() = 1;
  Binary(&s.epilogue, "add", 1, strides);
  Unary(&s.epilogue, "gelu");
  Binary(&s.epilogue, "add", 2, RowMajor(shape));
  c.reference = "F.gelu(x[0] * 0.5 + x[1]) + x[2]";
  return c;
}

// x transposed, then SiLU: a strided read.
Case TransposedSilu(const std::string& name, int64_t rows, int64_t columns) {
  Case c{.name = name};
  OpSpec& s = c.spec;
  s.operation = "elementwise";
  s.args = {Float({columns, rows})};
  s.output_shape = {rows, columns};
  s.epilogue.space = {rows, columns};
  s.epilogue.operands = {{0, {rows, columns}, {1, rows}}};
  s.epilogue.nodes = {{.op = "input", .operand = 0}};
  Unary(&s.epilogue, "silu");
  c.reference = "F.silu(x[0].t())";
  return c;
}

Case Pool(const std::string& name, const Shape& shape, bool max, int k, int stride, int pad, bool large) {
  Case c{.name = name, .large = large};
  OpSpec& s = c.spec;
  s.operation = max ? "max_pool2d" : "avg_pool2d";
  Pool2dSpec p;
  p.kind = max ? Pool2dSpec::Kind::kMax : Pool2dSpec::Kind::kAvg;
  p.planes = shape[0] * shape[1], p.h = shape[2], p.w = shape[3];
  p.kh = p.kw = k, p.stride_h = p.stride_w = stride, p.pad_h = p.pad_w = pad;
  p.oh = (p.h + 2 * pad - k) / stride + 1, p.ow = (p.w + 2 * pad - k) / stride + 1;
  s.pool = p;
  s.args = {Float(shape)};
  s.output_shape = {shape[0], shape[1], p.oh, p.ow};
  s.prologue = InputExpr(0, shape);
  c.reference = absl::StrCat("F.", s.operation, "(x[0], ", k, ", ", stride, ", ", pad, ")");
  return c;
}

}  // namespace

std::vector<Case> CudaCases() {
  using K = ReduceSpec::Kind;
  const std::string offset = "x * 0.1 + 1000 if i == 0 else x";
  std::vector<Case> cases = {
      LayerNorm("layer_norm", {16, 64, 256, 256}, 3, "", true),
      LayerNorm("layer_norm_offset", {16, 64, 256, 256}, 3, offset, true),
      Softmax("softmax", {4096, 65536}, 1, false, true),
      Matmul("matmul", 1, 4096, 4096, 4096, 0, false, true),
      Conv("conv2d", {100, 3, 224, 224, 96, 11, 4, 2}, false, 0, true),
      Conv("conv2d_relu_maxpool", {100, 3, 224, 224, 96, 11, 4, 2}, true, 3, true),

      LayerNorm("layer_norm_odd", {7, 5, 13}, 2, offset, false),
      LayerNorm("layer_norm_rows", {300, 1024}, 1, offset, false),
      LayerNorm("layer_norm_long", {3, 100004}, 1, offset, false),
      LayerNorm("layer_norm_cut", {5, 1000004}, 1, offset, false),
      RmsNorm("rms_norm_strided", {3, 64, 17, 19}, 1),
      RmsNorm("rms_norm_rows", {33, 4097}, 1),
      GroupNorm("group_norm", {4, 6, 10, 14}, 3),
      GroupNorm("group_norm_odd", {2, 6, 3, 5}, 2),
      Softmax("softmax_short", {1001, 77}, 1, false, false),
      Softmax("softmax_long", {5, 30001}, 1, false, false),
      Softmax("log_softmax", {33, 8200}, 1, true, false),
      Softmax("log_softmax_strided", {3, 50, 37}, 1, true, false),
      MaskedSoftmax("softmax_masked", {6, 40, 1000}),
      Matmul("matmul_odd", 1, 257, 131, 77, 0, false, false),
      Matmul("matmul_at", 1, 200, 136, 100, 1, false, false),
      Matmul("linear_gelu", 1, 130, 260, 516, 2, true, false),
      Matmul("batched", 3, 65, 66, 67, 3, false, false),
      Matmul("tiny", 2, 1, 1, 1, 0, false, false),
      Conv("conv2d_odd", {2, 3, 19, 23, 20, 3, 1, 1}, false, 0, false),
      Conv("conv2d_dilated", {1, 4, 17, 16, 6, 3, 2, 2, 2, 1}, true, 0, false),
      Conv("conv2d_groups", {2, 6, 9, 9, 8, 3, 1, 0, 1, 2}, false, 0, false),
      Conv("conv2d_pool", {3, 5, 21, 18, 33, 5, 1, 2}, true, 3, false),
      Reduce("sum_rows", {77, 3001}, 1, K::kSum, false),
      Reduce("mean_middle", {5, 129, 70}, 1, K::kMean, false),
      Reduce("max_rows", {9, 100000}, 1, K::kMax, false),
      Reduce("min_columns", {1000, 33}, 0, K::kMin, false),
      Reduce("prod_rows", {12, 40}, 1, K::kProd, false),
      Reduce("l2_rows", {4, 65536}, 1, K::kL2, false),
      Reduce("logsumexp_rows", {31, 1003}, 1, K::kLogSumExp, false),
      Reduce("sum_all", {1, 10000019}, 1, K::kSum, false),
      Reduce("sum_large", {4096, 65536}, 1, K::kSum, true),
      Chain("chain", {33, 127}, false),
      Chain("chain_large", {8192, 8192}, true),
      TransposedSilu("transposed", 133, 260),
      Pool("max_pool", {3, 4, 33, 34}, true, 3, 2, 1, false),
      Pool("avg_pool", {3, 4, 33, 34}, false, 3, 2, 1, false),
  };
  return cases;
}

}  // namespace grove::generate::catalogue
