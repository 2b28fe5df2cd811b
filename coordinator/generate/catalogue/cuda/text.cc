#include "coordinator/generate/catalogue/cuda/text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/generate/catalogue/emit.h"

namespace grove::generate::catalogue::cuda {
namespace {

struct Dim {
  int64_t size, stride;
};

// Dimensions of one operand with neighbours merged where one stride walks both; size 1 dropped.
std::vector<Dim> Merge(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, size_t from, size_t to) {
  std::vector<Dim> dims;
  for (size_t i = from; i < to; ++i) {
    if (shape[i] == 1) continue;
    if (!dims.empty() && dims.back().stride == shape[i] * strides[i]) {
      dims.back() = {dims.back().size * shape[i], strides[i]};
    } else {
      dims.push_back({shape[i], strides[i]});
    }
  }
  return dims;
}

// Offset of an operand as an expression of the linear position `var` over `dims`; "" for 0.
std::string OffsetText(const std::vector<Dim>& dims, const std::string& var) {
  std::vector<std::string> terms;
  int64_t after = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const Dim& d = dims[i];
    if (d.stride != 0) {
      std::string index = after == 1 ? var : absl::StrCat(var, " / ", after);
      if (i > 0) index = absl::StrCat(after == 1 ? index : absl::StrCat("(", index, ")"), " % ", d.size);
      terms.push_back(d.stride == 1 ? absl::StrCat("(", index, ")") : absl::StrCat("(", index, ") * ", d.stride));
    }
    after *= d.size;
  }
  return absl::StrJoin(terms, " + ");
}

// How four neighbouring columns of an operand are read.
enum class Group { kSame, kVector, kGather };

struct Place {
  std::string offset;  // of (row, col), in elements; "" = 0
  Group group = Group::kGather;
  bool wide = false;  // not broadcast anywhere: read once, so streaming it is right
};

Place Locate(const Expr& expr, const Operand& operand, int64_t rows, int64_t columns) {
  Place place;
  size_t split = 0;
  int64_t product = 1;
  while (split < expr.space.size() && product < rows) product *= expr.space[split++];
  std::vector<Dim> row_dims, col_dims;
  std::string col_var = "col";
  if (product == rows) {
    row_dims = Merge(expr.space, operand.strides, 0, split);
    col_dims = Merge(expr.space, operand.strides, split, expr.space.size());
    const std::string r = OffsetText(row_dims, "row"), c = OffsetText(col_dims, "col");
    place.offset = r.empty() ? c : c.empty() ? r : absl::StrCat(r, " + ", c);
  } else {  // the rows do not end where a dimension ends (groups of channels)
    col_dims = Merge(expr.space, operand.strides, 0, expr.space.size());
    place.offset = OffsetText(col_dims, absl::StrCat("(row * ", columns, " + col)"));
  }
  place.wide = true;
  for (size_t i = 0; i < expr.space.size(); ++i) {
    if (expr.space[i] != 1 && operand.strides[i] == 0) place.wide = false;
  }
  const Dim last = col_dims.empty() ? Dim{columns, 0} : col_dims.back();
  bool aligned = columns % 4 == 0 && last.size % 4 == 0;
  for (const Dim& d : row_dims) aligned = aligned && d.stride % 4 == 0;
  for (size_t i = 0; i + 1 < col_dims.size(); ++i) aligned = aligned && col_dims[i].stride % 4 == 0;
  if (columns % 4 == 0 && last.size % 4 == 0 && last.stride == 0) {
    place.group = Group::kSame;
  } else if (aligned && last.stride == 1) {
    place.group = Group::kVector;
  }
  return place;
}

const std::map<std::string, std::string>& MathFunctions() {
  static const auto* const kFunctions = new std::map<std::string, std::string>{
      {"g_neg", "float g_neg(float x) { return -x; }"},
      {"g_abs", "float g_abs(float x) { return fabsf(x); }"},
      {"g_exp", "float g_exp(float x) { return expf(x); }"},
      {"g_log", "float g_log(float x) { return logf(x); }"},
      {"g_log1p", "float g_log1p(float x) { return log1pf(x); }"},
      {"g_expm1", "float g_expm1(float x) { return expm1f(x); }"},
      {"g_sqrt", "float g_sqrt(float x) { return sqrtf(x); }"},
      {"g_rsqrt", "float g_rsqrt(float x) { return 1.0f / sqrtf(x); }"},
      {"g_reciprocal", "float g_reciprocal(float x) { return 1.0f / x; }"},
      {"g_square", "float g_square(float x) { return x * x; }"},
      {"g_relu", "float g_relu(float x) { return x < 0.0f ? 0.0f : x; }"},  // keeps NaN, as torch does
      {"g_relu6", "float g_relu6(float x) { return x < 0.0f ? 0.0f : (x > 6.0f ? 6.0f : x); }"},
      {"g_gelu", "float g_gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }"},
      {"g_gelu_tanh",
       "float g_gelu_tanh(float x) {\n  return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x "
       "* "
       "x)));\n}"},
      {"g_sigmoid", "float g_sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }"},
      {"g_silu", "float g_silu(float x) { return x / (1.0f + __expf(-x)); }"},
      {"g_tanh", "float g_tanh(float x) { return tanhf(x); }"},
      {"g_softplus", "float g_softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }"},
      {"g_softplus_beta",
       "float g_softplus_beta(float x, float beta, float threshold) {\n  return x * beta > threshold ? x : "
       "log1pf(expf(x * "
       "beta)) / beta;\n}"},
      {"g_softsign", "float g_softsign(float x) { return x / (1.0f + fabsf(x)); }"},
      {"g_mish", "float g_mish(float x) { return x * tanhf(x > 20.0f ? x : log1pf(expf(x))); }"},
      {"g_hardsigmoid",
       "float g_hardsigmoid(float x) {\n  const float t = x + 3.0f;\n  return (t < 0.0f ? 0.0f : (t > 6.0f ? 6.0f : "
       "t)) / "
       "6.0f;\n}"},
      {"g_hardswish",
       "float g_hardswish(float x) {\n  const float t = x + 3.0f;\n  return x * (t < 0.0f ? 0.0f : (t > 6.0f ? 6.0f : "
       "t)) / "
       "6.0f;\n}"},
      {"g_selu",
       "float g_selu(float x) {\n  return 1.0507009873554805f * (x > 0.0f ? x : 1.6732632423543772f * expm1f(x));\n}"},
      {"g_elu", "float g_elu(float x, float alpha) { return x > 0.0f ? x : alpha * expm1f(x); }"},
      {"g_leaky_relu", "float g_leaky_relu(float x, float slope) { return x > 0.0f ? x : x * slope; }"},
      {"g_clamp", "float g_clamp(float x, float lo, float hi) { return x < lo ? lo : (x > hi ? hi : x); }"},
      {"g_pow_const", "float g_pow_const(float x, float e) { return powf(x, e); }"},
      {"g_pow", "float g_pow(float x, float e) { return powf(x, e); }"},
      {"g_erf", "float g_erf(float x) { return erff(x); }"},
      {"g_sin", "float g_sin(float x) { return sinf(x); }"},
      {"g_cos", "float g_cos(float x) { return cosf(x); }"},
      {"g_floor", "float g_floor(float x) { return floorf(x); }"},
      {"g_ceil", "float g_ceil(float x) { return ceilf(x); }"},
      {"g_round", "float g_round(float x) { return rintf(x); }"},
      {"g_sign", "float g_sign(float x) { return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x); }"},
      {"g_maximum", "float g_maximum(float a, float b) { return a != a ? a : (b != b ? b : fmaxf(a, b)); }"},
      {"g_minimum", "float g_minimum(float a, float b) { return a != a ? a : (b != b ? b : fminf(a, b)); }"},
  };
  return *kFunctions;
}

}  // namespace

std::string Fill(absl::string_view text, const std::map<std::string, std::string>& values) {
  std::string out;
  out.reserve(text.size() + 1024);
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '$') {
      out += text[i++];
      continue;
    }
    const size_t end = text.find('$', i + 1);
    const auto it =
        end == absl::string_view::npos ? values.end() : values.find(std::string(text.substr(i + 1, end - i - 1)));
    if (it == values.end()) {
      std::fprintf(stderr, "catalogue: no value for %.*s in a CUDA template\n",
                   static_cast<int>(std::min<size_t>(40, text.size() - i)), text.data() + i);
      std::abort();
    }
    out += it->second;
    i = end + 1;
  }
  return out;
}

std::string Constants(const std::vector<std::pair<std::string, int64_t>>& values) {
  std::string out;
  for (const auto& [name, value] : values) {
    const bool wide = value > INT32_MAX || value < INT32_MIN;
    absl::StrAppend(&out, "constexpr ", wide ? "long long " : "int ", name, " = ", value, wide ? "LL" : "", ";\n");
  }
  return out;
}

std::string Operands::Name(int arg) {
  used_.insert(arg);
  return absl::StrCat("ops.in", arg);
}

bool Operands::IsScalar(int arg) const { return spec_.args[arg].scalar(); }

std::string Operands::Struct() const {
  std::string out = "struct Operands {\n";
  for (int arg : used_) {
    absl::StrAppend(&out, IsScalar(arg) ? "  float in" : "  const float* in", arg, ";\n");
  }
  if (used_.empty()) out += "  int none;\n";
  return out + "};\n";
}

std::string Operands::HostFill() const {
  std::string out = "  Operands ops = {};\n";
  for (int arg : used_) {
    const std::string data = absl::StrCat("args->inputs[", arg, "].data");
    if (!IsScalar(arg)) {
      absl::StrAppend(&out, "  ops.in", arg, " = static_cast<const float*>(", data, ");\n");
      absl::StrAppend(&out, "  if (reinterpret_cast<uintptr_t>(", data, ") % 16 != 0) return 2;\n");
      continue;
    }
    const std::string& dtype = spec_.args[arg].dtype();
    const std::string type = dtype == "int64" ? "int64_t" : dtype == "bool" ? "uint8_t" : "double";
    absl::StrAppend(&out, "  ops.in", arg, " = static_cast<float>(*static_cast<const ", type, "*>(", data, "));\n");
  }
  return out;
}

absl::Status CheckReadable(const OpSpec& spec, const Expr& expr) {
  for (const Operand& operand : expr.operands) {
    const v1::TensorType& type = spec.args[operand.arg];
    if (!type.scalar() && type.dtype() != "float32") {
      return absl::FailedPreconditionError(
          absl::StrCat("the CUDA catalogue writes float32 kernels, and argument ", operand.arg, " is ", type.dtype()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOutput(const OpSpec& spec) {
  for (int64_t size : spec.output_shape) {
    if (size == 0) return absl::FailedPreconditionError("the output has no elements");
  }
  return absl::OkStatus();
}

bool IsPlainInput(const Expr& expr) {
  if (!expr.IsInput()) return false;
  const Operand& operand = expr.operands[expr.nodes[0].operand];
  int64_t stride = 1;
  for (size_t i = expr.space.size(); i-- > 0;) {
    if (expr.space[i] != 1 && operand.strides[i] != stride) return false;
    stride *= expr.space[i];
  }
  return true;
}

std::string ExprFunctions(const Expr& expr, Operands* operands, const std::string& name, int64_t rows, int64_t columns,
                          bool with_acc, bool vector) {
  // The values of one position, then the expression over them.
  std::vector<std::string> params;
  if (with_acc) params.push_back("float acc");
  std::vector<Place> places;
  for (size_t i = 0; i < expr.operands.size(); ++i) {
    params.push_back(absl::StrCat("float o", i));
    places.push_back(Locate(expr, expr.operands[i], rows, columns));
  }
  std::string result;
  const std::string body = EmitExpr(
      expr, "float", "v", "  ", "",
      [](const ExprNode& node) { return node.op == "acc" ? std::string("acc") : absl::StrCat("o", node.operand); },
      &result);
  std::string out = absl::StrCat("__device__ __forceinline__ float ", name, "Value(", absl::StrJoin(params, ", "),
                                 ") {\n", body, "  return ", result, ";\n}\n");

  auto at = [&](size_t i, const std::string& more) {
    const std::string base = operands->Name(expr.operands[i].arg);
    std::string offset = places[i].offset;
    if (!more.empty()) offset = offset.empty() ? more : absl::StrCat(offset, " + ", more);
    return offset.empty() ? base : absl::StrCat(base, " + ", offset);
  };
  std::vector<std::string> values;
  if (with_acc) values.push_back("acc");
  for (size_t i = 0; i < expr.operands.size(); ++i) {
    if (operands->IsScalar(expr.operands[i].arg)) {
      values.push_back(operands->Name(expr.operands[i].arg));
    } else {
      values.push_back(absl::StrCat(places[i].wide ? "Read(" : "__ldg(", at(i, ""), ")"));
    }
  }
  absl::StrAppend(&out, "__device__ __forceinline__ float ", name, "(const Operands& ops",
                  with_acc ? ", float acc" : "", ", Index row, Index col) {\n  return ", name, "Value(",
                  absl::StrJoin(values, ", "), ");\n}\n");
  if (!vector) return out;

  absl::StrAppend(&out, "__device__ __forceinline__ float4 ", name, "4(const Operands& ops",
                  with_acc ? ", float4 acc" : "", ", Index row, Index col) {\n");
  std::vector<std::vector<std::string>> lanes(4);
  const char* const kLanes[] = {"x", "y", "z", "w"};
  if (with_acc) {
    for (int lane = 0; lane < 4; ++lane) lanes[lane].push_back(absl::StrCat("acc.", kLanes[lane]));
  }
  for (size_t i = 0; i < expr.operands.size(); ++i) {
    const std::string var = absl::StrCat("p", i);
    if (operands->IsScalar(expr.operands[i].arg)) {
      absl::StrAppend(&out, "  const float ", var, " = ", operands->Name(expr.operands[i].arg), ";\n");
      for (auto& lane : lanes) lane.push_back(var);
    } else if (places[i].group == Group::kSame) {
      absl::StrAppend(&out, "  const float ", var, " = __ldg(", at(i, ""), ");\n");
      for (auto& lane : lanes) lane.push_back(var);
    } else if (places[i].group == Group::kVector) {
      absl::StrAppend(&out, "  const float4 ", var, " = ",
                      places[i].wide ? "Read4(" : "__ldg(reinterpret_cast<const float4*>(", at(i, ""),
                      places[i].wide ? ");\n" : "));\n");
      for (int lane = 0; lane < 4; ++lane) lanes[lane].push_back(absl::StrCat(var, ".", kLanes[lane]));
    } else {
      absl::StrAppend(&out, "  float ", var, "[4];\n#pragma unroll\n  for (int j = 0; j < 4; ++j, ++col) ", var,
                      "[j] = __ldg(", at(i, ""), ");\n  col -= 4;\n");
      for (int lane = 0; lane < 4; ++lane) lanes[lane].push_back(absl::StrCat(var, "[", lane, "]"));
    }
  }
  std::vector<std::string> calls;
  for (const auto& lane : lanes) calls.push_back(absl::StrCat(name, "Value(", absl::StrJoin(lane, ", "), ")"));
  absl::StrAppend(&out, "  return make_float4(", absl::StrJoin(calls, ",\n                     "), ");\n}\n");
  return out;
}

std::string MathPrelude(const std::vector<const Expr*>& exprs) {
  std::set<std::string> called;
  for (const Expr* expr : exprs) {
    for (const std::string& name : CalledFunctions(*expr)) called.insert("g_" + name);
  }
  std::string out;
  for (const std::string& name : called) {
    const auto it = MathFunctions().find(name);
    if (it != MathFunctions().end()) absl::StrAppend(&out, "__device__ __forceinline__ ", it->second, "\n");
  }
  return out;
}

std::string FileHead(const std::string& what, const std::string& settings, int64_t elements, bool stream) {
  std::string out = absl::StrCat("// ", what, "\n// Settings: ", settings.empty() ? "none" : settings,
                                 "\n#include <cuda_runtime.h>\n#include <grove/kernel.h>\n#include <stdint.h>\n\n",
                                 "using Index = ", elements > INT32_MAX / 2 ? "long long" : "int", ";\n\n");
  const std::string hint = stream ? "cs" : "g";
  absl::StrAppend(&out, "__device__ __forceinline__ float Read(const float* p) { return __ld", hint, "(p); }\n",
                  "__device__ __forceinline__ float4 Read4(const float* p) {\n  return __ld", hint,
                  "(reinterpret_cast<const float4*>(p));\n}\n");
  if (stream) {
    absl::StrAppend(
        &out, "__device__ __forceinline__ void Write(float* p, float v) { __stcs(p, v); }\n",
        "__device__ __forceinline__ void Write4(float* p, float4 v) { __stcs(reinterpret_cast<float4*>(p), v); }\n\n");
  } else {
    absl::StrAppend(
        &out, "__device__ __forceinline__ void Write(float* p, float v) { *p = v; }\n",
        "__device__ __forceinline__ void Write4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }\n\n");
  }
  return out;
}

int ArchNumber(const v1::DeviceInfo& device) {
  const std::string& arch = device.arch();
  const size_t start = arch.find_first_of("0123456789");
  if (start == std::string::npos) return 0;
  int number = 0;
  for (size_t i = start; i < arch.size() && arch[i] >= '0' && arch[i] <= '9'; ++i)
    number = number * 10 + (arch[i] - '0');
  return number;
}

int64_t SharedMemoryLimit(const v1::DeviceInfo& device) {
  switch (ArchNumber(device)) {
    case 80:
    case 87:
      return 163 * 1024;
    case 90:
    case 100:
    case 103:
      return 227 * 1024;
    default:
      return 99 * 1024;  // 8.6, 8.9, 12.0; the least of all that are supported
  }
}

int Multiprocessors(const v1::DeviceInfo& device) {
  return device.multiprocessors() > 0 ? device.multiprocessors() : 108;
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::vector<int64_t> UpTo(const std::vector<int64_t>& all, int64_t limit) {
  std::vector<int64_t> out;
  for (int64_t v : all) {
    if (v <= limit) out.push_back(v);
  }
  if (out.empty()) out.push_back(*std::min_element(all.begin(), all.end()));
  return out;
}

}  // namespace grove::generate::catalogue::cuda
