#include "coordinator/generate/catalogue/cpu/cpu_source.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace grove::generate::catalogue::cpu {
namespace {

constexpr char kPrelude[] =
#include "coordinator/generate/catalogue/cpu/prelude.inc"
    ;

}  // namespace

std::string Num(int64_t value) { return absl::StrCat(value, "LL"); }

std::string Read(const std::string& base, const std::string& p, const std::string& origin, Lanes lanes) {
  const std::string at = absl::StrCat("(", p, " - ", origin, ")");
  switch (lanes) {
    case Lanes::kScalar:
      return absl::StrCat(base, "[", at, "]");
    case Lanes::kPart:
      return absl::StrCat("load_part(", base, " + ", at, ", m)");
    case Lanes::kVector:
      break;
  }
  return absl::StrCat("load(", base, " + ", at, ")");
}

std::string RangeLoop(const Expr& given, const std::string& begin, const std::string& end, const std::string& dst,
                      const std::string& dst_base, const AccText& acc, const RangeOptions& options,
                      const std::string& indent) {
  const Expr expr = Collapse(given);
  const size_t rank = expr.space.size();
  const int64_t length = expr.space.back();
  const std::string in1 = indent + "  ", in2 = indent + "    ", in3 = indent + "      ";
  std::string out;
  // Segments: the stretch of the innermost dimension that [begin, end) has of each row of the others.
  absl::StrAppend(&out, indent, "for (int64_t s = ", begin, "; s < ", end, ";) {\n");
  absl::StrAppend(&out, in1, "const int64_t col = s % ", Num(length), ", len = ", Num(length), " - col < ", end,
                  " - s ? ", Num(length), " - col : ", end, " - s;\n");
  if (rank > 1) absl::StrAppend(&out, in1, "int64_t row = s / ", Num(length), ";\n");
  for (size_t o = 0; o < expr.operands.size(); ++o) {
    absl::StrAppend(&out, in1, "const float* b", o, " = in", expr.operands[o].arg, " + col * ",
                    Num(expr.operands[o].strides.back()), ";\n");
  }
  for (size_t d = rank - 1; d-- > 0;) {
    std::string moves;
    for (size_t o = 0; o < expr.operands.size(); ++o) {
      const int64_t stride = expr.operands[o].strides[d];
      if (stride == 0) continue;
      absl::StrAppend(&moves, " b", o, " += ", d == 0 ? "row" : absl::StrCat("row % ", Num(expr.space[d])), " * ",
                      Num(stride), ";");
    }
    if (!moves.empty()) absl::StrAppend(&out, in1.substr(0, in1.size() - 1), moves, "\n");
    if (d > 0) absl::StrAppend(&out, in1, "row /= ", Num(expr.space[d]), ";\n");
  }
  if (rank > 1) absl::StrAppend(&out, in1, "(void)row;\n");
  absl::StrAppend(&out, in1, "int64_t i = 0;\n");

  auto stride_of = [&](const ExprNode& node) { return expr.operands[node.operand].strides.back(); };
  auto emit = [&](Lanes lanes, const std::string& at, const std::string& where) {
    std::string result;
    const bool scalar = lanes == Lanes::kScalar;
    std::string text = EmitExpr(
        expr, scalar ? "float" : "V", "e", where, scalar ? "" : "splat",
        [&](const ExprNode& node) -> std::string {
          const std::string p = absl::StrCat("s + ", at);
          if (node.op == "acc") return acc(p, lanes);
          const int64_t stride = stride_of(node);
          const std::string base = absl::StrCat("b", node.operand);
          if (stride == 0) return scalar ? absl::StrCat(base, "[0]") : absl::StrCat("splat(", base, "[0])");
          if (scalar) return absl::StrCat(base, "[(", at, ") * ", Num(stride), "]");
          if (stride != 1) {
            return absl::StrCat("gather(", base, " + (", at, ") * ", Num(stride), ", ", Num(stride), ", ",
                                lanes == Lanes::kPart ? "m" : "VL", ")");
          }
          if (lanes == Lanes::kPart) return absl::StrCat("load_part(", base, " + ", at, ", m)");
          return absl::StrCat("load(", base, " + ", at, ")");
        },
        &result);
    const std::string target = absl::StrCat(dst, " + (s + ", at, dst_base.empty() ? "" : " - ", dst_base, ")");
    switch (lanes) {
      case Lanes::kScalar:
        absl::StrAppend(&text, where, "*(", target, ") = ", result, ";\n");
        break;
      case Lanes::kVector:
        absl::StrAppend(&text, where, options.stream ? "stream(" : "store(", target, ", ", result, ");\n");
        break;
      case Lanes::kPart:
        absl::StrAppend(&text, where, "store_part(", target, ", ", result, ", m);\n");
        break;
    }
    return text;
  };
  if (!options.simd) {
    absl::StrAppend(&out, in1, "for (; i < len; ++i) {\n", emit(Lanes::kScalar, "i", in2), in1, "}\n");
  } else {
    const int unroll = std::max(1, options.unroll);
    if (unroll > 1) {
      absl::StrAppend(&out, in1, "for (; i + ", unroll, " * VL <= len; i += ", unroll, " * VL) {\n");
      for (int u = 0; u < unroll; ++u) {
        absl::StrAppend(&out, in2, "{\n", emit(Lanes::kVector, absl::StrCat("i + ", u, " * VL"), in3), in2, "}\n");
      }
      absl::StrAppend(&out, in1, "}\n");
    }
    std::string prefetch;
    if (options.prefetch_bytes > 0) {
      for (size_t o = 0; o < expr.operands.size(); ++o) {
        if (expr.operands[o].strides.back() == 1) {
          absl::StrAppend(&prefetch, in2, "__builtin_prefetch(b", o, " + i + ", options.prefetch_bytes / 4, ");\n");
        }
      }
    }
    absl::StrAppend(&out, in1, "for (; i + VL <= len; i += VL) {\n", prefetch, emit(Lanes::kVector, "i", in2), in1,
                    "}\n");
    absl::StrAppend(&out, in1, "if (i < len) {\n", in2, "const int64_t m = len - i;\n", emit(Lanes::kPart, "i", in2),
                    in1, "}\n");
  }
  absl::StrAppend(&out, in1, "s += len;\n", indent, "}\n");
  return out;
}

std::string Prelude(const std::string& title, const Recipe& recipe, int64_t bytes, int64_t exp_degree) {
  return absl::StrCat("// ", title, "\n// Recipe: ", ToJson(recipe), "\n#define GROVE_VECTOR_BYTES ", bytes,
                      "\n#define GROVE_EXP_DEGREE ", exp_degree, kPrelude, "\n");
}

std::vector<int> UsedArgs(const OpSpec& spec) {
  std::set<int> used;
  for (const Expr* expr : {&spec.prologue, &spec.epilogue}) {
    for (const Operand& operand : expr->operands) used.insert(operand.arg);
  }
  if (spec.matmul) used.insert({spec.matmul->a.arg, spec.matmul->b.arg});
  if (spec.conv2d) used.insert({spec.conv2d->input, spec.conv2d->weight});
  return {used.begin(), used.end()};
}

std::string OpenKernel(const OpSpec& spec, const std::vector<int>& used) {
  std::string out = absl::StrCat(
      "GROVE_KERNEL(args) {\n  // Written for these shapes only.\n  if (args->num_inputs != ", spec.args.size(),
      " || args->num_outputs != 1) return 1;\n");
  auto check = [&](const std::string& tensor, const std::string& name, const std::vector<int64_t>& shape) {
    absl::StrAppend(&out, "  static const int64_t ", name, "_shape[] = {", absl::StrJoin(shape, ", "),
                    shape.empty() ? "0" : "", "};\n  if (!has_shape(", tensor, ", ", shape.size(), ", ", name,
                    "_shape)) return 1;\n");
  };
  for (int arg : used) {
    std::vector<int64_t> shape(spec.args[arg].shape().begin(), spec.args[arg].shape().end());
    check(absl::StrCat("args->inputs[", arg, "]"), absl::StrCat("in", arg), shape);
  }
  check("args->outputs[0]", "out", spec.output_shape);
  for (int arg : used) {
    absl::StrAppend(&out, "  const float* in", arg, " = (const float*)args->inputs[", arg, "].data;\n");
  }
  absl::StrAppend(&out, "  float* out = (float*)args->outputs[0].data;\n");
  return out;
}

std::string ParallelLoop(const std::string& units, int64_t granule, const Recipe& recipe, const std::string& body) {
  const bool threads = recipe.Has("threads");
  const int64_t chunks = recipe.Get("threads", "chunks", 1);
  std::string out =
      absl::StrCat("  {\n    const int64_t granules = (", units, " + ", granule - 1, ") / ", granule, ";\n");
  absl::StrAppend(&out, "    int64_t chunks = ", threads ? absl::StrCat("(int64_t)args->num_threads * ", chunks) : "1",
                  ";\n    if (chunks > granules) chunks = granules;\n");
  if (threads) {
    absl::StrAppend(&out, "    #pragma omp parallel for num_threads(args->num_threads) schedule(",
                    chunks > 1 ? "dynamic, 1" : "static", ")\n");
  }
  absl::StrAppend(&out, "    for (int64_t chunk = 0; chunk < chunks; ++chunk) {\n",
                  "      const int64_t begin = granules * chunk / chunks * ", granule,
                  ";\n      int64_t end = granules * (chunk + 1) / chunks * ", granule, ";\n      if (end > ", units,
                  ") end = ", units, ";\n", body, recipe.Has("stream") ? "      stream_fence();\n" : "",
                  "    }\n  }\n");
  return out;
}

absl::Status AcceptFloat(const OpSpec& spec) {
  for (int arg : UsedArgs(spec)) {
    const v1::TensorType& type = spec.args[arg];
    if (type.dtype() != "float32" || type.scalar()) {
      return absl::FailedPreconditionError(absl::StrCat("argument ", arg, " is ", type.dtype(),
                                                        type.scalar() ? " (a Python number)" : "",
                                                        "; only float32 tensors are supported"));
    }
  }
  return absl::OkStatus();
}

Optimisation Threads(double units, double bytes) {
  Optimisation o;
  o.id = "threads";
  o.title = "Share the work among all threads";
  o.description =
      "The loop is cut into chunks, one or more per thread, and OpenMP runs them side by side. More chunks than "
      "threads "
      "even out cores of unequal speed, at the price of taking them from a queue.";
  o.category = "parallelism";
  o.predicted_speedup = bytes < 64e3 ? 0.8 : units < 2 ? 1.0 : 1.8;
  o.parameters = {Parameter{"chunks", {1, 2, 4, 16}, 1, 1, "chunks per thread"}};
  return o;
}

Optimisation Simd(const v1::DeviceInfo& device, double predicted) {
  Optimisation o;
  o.id = "simd";
  o.title = "Compute a vector of elements at a time";
  o.description =
      "All arithmetic runs on vector registers, with polynomials for exp, log, tanh and erf that need no call and no "
      "branch. Wider vectors do more per instruction; narrower ones leave shorter tails and a higher clock.";
  o.category = "compute";
  o.predicted_speedup = predicted;
  std::vector<int64_t> widths = {32, 16};
  if (absl::StrContains(device.arch(), "avx512") || device.arch().empty()) widths = {64, 32, 16};
  o.parameters = {Parameter{"bytes", widths, widths.front(), 32, "bytes per vector"}};
  return o;
}

Optimisation Unroll() {
  Optimisation o;
  o.id = "unroll";
  o.title = "Work on several vectors at once";
  o.description =
      "Each turn of the loop has several independent vectors, so that the latency of one chain of arithmetic is hidden "
      "behind the others. Too many spill registers.";
  o.category = "latency";
  o.predicted_speedup = 1.15;
  o.parameters = {Parameter{"factor", {2, 4, 8}, 4, 2, "vectors"}};
  o.needs = {"simd"};
  return o;
}

Optimisation Stream(double output_bytes) {
  Optimisation o;
  o.id = "stream";
  o.title = "Store the result past the caches";
  o.description =
      "Non-temporal stores do not read the line before they write it, which saves a third of the traffic of a loop "
      "that "
      "reads one array and writes one. It loses where the result would have stayed in the cache.";
  o.category = "memory";
  o.predicted_speedup = output_bytes > 16e6 ? 1.3 : 0.85;
  o.needs = {"simd"};
  return o;
}

Optimisation Prefetch() {
  Optimisation o;
  o.id = "prefetch";
  o.title = "Ask for the input ahead of its use";
  o.description =
      "Each vector of input is requested a fixed distance before the loop comes to it. Hardware prefetchers stop at "
      "page "
      "ends and start slowly; this does not.";
  o.category = "latency";
  o.predicted_speedup = 1.03;
  o.parameters = {Parameter{"distance", {256, 512, 1024, 4096}, 512, 256, "bytes"}};
  o.needs = {"simd"};
  return o;
}

Optimisation ShortPolynomial() {
  Optimisation o;
  o.id = "short_poly";
  o.title = "A shorter polynomial for exp";
  o.description =
      "The exponential's polynomial loses its last terms: fewer multiplications, and a relative error of about 3e-6 at "
      "degree 5 and 5e-5 at degree 4 in place of 1e-7. Whether the tolerance allows it is for the check to say.";
  o.category = "precision";
  o.predicted_speedup = 1.06;
  o.parameters = {Parameter{"degree", {5, 4}, 5, 5, "th degree"}};
  o.needs = {"simd"};
  return o;
}

int64_t VectorBytes(const Recipe& recipe) { return recipe.Get("simd", "bytes", 32); }
int64_t ExpDegree(const Recipe& recipe) { return recipe.Get("short_poly", "degree", 6); }

RangeOptions RangeOf(const Recipe& recipe) {
  RangeOptions options;
  options.simd = recipe.Has("simd");
  options.unroll = static_cast<int>(recipe.Get("unroll", "factor", 1));
  options.stream = recipe.Has("stream");
  options.prefetch_bytes = static_cast<int>(recipe.Get("prefetch", "distance", 0));
  return options;
}

bool CallsExp(const Expr& expr) {
  static const std::set<std::string> kExp = {"exp", "expm1", "sigmoid",  "silu",          "tanh", "gelu", "gelu_tanh",
                                             "erf", "mish",  "softplus", "softplus_beta", "elu",  "selu"};
  for (const std::string& name : CalledFunctions(expr)) {
    if (kExp.count(name) > 0) return true;
  }
  return false;
}

std::string DenseInput(const Expr& prologue) {
  if (!prologue.IsInput()) return "";
  const Expr expr = Collapse(prologue);
  const Operand& operand = expr.operands[expr.nodes[0].operand];
  if (expr.space.size() != 1 || (operand.strides[0] != 1 && expr.space[0] != 1)) return "";
  return absl::StrCat("in", operand.arg);
}

KernelFamily::Start MakeStart(const std::vector<Optimisation>& list, const std::vector<std::string>& ids,
                              const std::string& title, const std::string& description, double predicted) {
  KernelFamily::Start start;
  start.title = title;
  start.description = description;
  start.predicted_speedup = predicted;
  for (const std::string& id : ids) SwitchOn(list, id, &start.recipe);
  return start;
}

}  // namespace grove::generate::catalogue::cpu
