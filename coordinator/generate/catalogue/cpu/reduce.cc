// Reductions along any dimension: sum, mean, max, min, prod, L2 norm, log-sum-exp.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coordinator/generate/catalogue/cpu/cpu_source.h"
#include "coordinator/generate/catalogue/cpu/families.h"
#include "coordinator/generate/catalogue/cpu/rows.h"

namespace grove::generate::catalogue::cpu {
namespace {

using Kind = ReduceSpec::Kind;

// How one kind works, as text. `a` is an accumulator (float or V), `y` a value, `t` a running total (double).
struct Steps {
  std::string start;   // of an accumulator
  std::string step;    // a = ...
  std::string merge;   // t = t (+) s, both double
  std::string across;  // of the lanes: hsum, hmax, ...
  std::string finish;  // of the total
};

Steps StepsOf(const OpSpec& spec) {
  const std::string n = absl::StrCat(spec.rows->n, ".0");
  switch (spec.reduce->kind) {
    case Kind::kSum:
      return {"0.0f", "a + y", "t + s", "hsum", "t"};
    case Kind::kMean:
      return {"0.0f", "a + y", "t + s", "hsum", absl::StrCat("t / ", n)};
    case Kind::kMax:
      return {"-__builtin_inff()", "g_maximum(y, a)", "(double)g_maximum((float)t, (float)s)", "hmax", "t"};
    case Kind::kMin:
      return {"__builtin_inff()", "g_minimum(y, a)", "(double)g_minimum((float)t, (float)s)", "hmin", "t"};
    case Kind::kProd:
      return {"1.0f", "a * y", "t * s", "hprod", "t"};
    case Kind::kL2:
      return {"0.0f", "a + y * y", "t + s", "hsum", "sqrt(t)"};
    case Kind::kLogSumExp:
      return {"0.0f", "a + g_exp(y)", "t + s", "hsum", "log(t)"};  // of y - maximum, see below
  }
  return {};
}

class Reduce final : public KernelFamily {
 public:
  v1::DeviceKind device() const override { return v1::DEVICE_KIND_CPU; }
  bool Matches(absl::string_view operation) const override { return absl::StartsWith(operation, "reduce_"); }
  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo&) const override { return AcceptFloat(spec); }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const RowsSpec& rows = *spec.rows;
    const double bytes = 4.0 * static_cast<double>(rows.outer * rows.n * rows.inner);
    std::vector<Optimisation> list = {Simd(device, 2.5), Threads(static_cast<double>(rows.outer * rows.inner), bytes),
                                      Prefetch(), Unroll()};
    if (CallsExp(spec.prologue)) list.push_back(ShortPolynomial());
    if (rows.inner > 1) {
      list.push_back(ColumnBlock(rows));
    } else if (rows.n >= 4096) {
      Optimisation split;
      split.id = "split";
      split.title = "Cut each row into parts";
      split.description =
          "A row's parts are reduced on their own, by other threads where there are any, and put together at the end. "
          "It "
          "pays where there are fewer rows than threads.";
      split.category = "parallelism";
      split.predicted_speedup = rows.outer < 8 ? 1.8 : 0.95;
      split.parameters = {Parameter{"parts", {2, 4, 16}, rows.outer < 8 ? 4 : 2, 2, "parts"}};
      list.push_back(split);
    }
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const std::vector<Optimisation> list = Optimisations(spec, device);
    const std::string split = spec.rows->outer < 8 ? "split" : "simd";
    return {
        MakeStart(list, {}, "One plain loop per result", "Each result's elements one after another, in double.", 0.2),
        MakeStart(list, {"threads"}, "Plain loops on all threads", "The results shared among the threads.", 0.4),
        MakeStart(list, {"simd", "columns"}, "Vector accumulators",
                  "Lanes reduce side by side and are put together last.", 0.8),
        MakeStart(list, {"simd", "threads", "columns", split}, "Vector accumulators on all threads",
                  "Lanes reduce side by side, the results or their parts shared among the threads.", 1.2)};
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo&, const Recipe& recipe) const override {
    const RowsSpec& rows = *spec.rows;
    Source source;
    source.text = Prelude(
        absl::StrCat(spec.operation, " of [", rows.outer, ", ", rows.n, ", ", rows.inner, "] along the middle."),
        recipe, VectorBytes(recipe), ExpDegree(recipe));
    if (rows.inner == 1) source.text += RowFunction(spec, recipe);
    absl::StrAppend(&source.text, OpenKernel(spec, UsedArgs(spec)), "  int failed = 0;\n");
    source.text += rows.inner == 1 ? Rows(spec, recipe) : Columns(spec, recipe);
    absl::StrAppend(&source.text, "  return failed;\n}\n");
    return source;
  }

 private:
  // double reduce_part(x, n, shift): the kind's total of n values (of exp(x - shift) for log-sum-exp).
  static std::string RowFunction(const OpSpec& spec, const Recipe& recipe) {
    const Steps steps = StepsOf(spec);
    const bool lse = spec.reduce->kind == Kind::kLogSumExp;
    const int64_t unroll = recipe.Get("unroll", "factor", 1);
    std::string out = "namespace {\n\n";
    auto function = [&](const std::string& name, const Steps& s, bool shifted) {
      absl::StrAppend(&out, "double ", name,
                      "(const float* x, int64_t n, float shift) {\n  (void)shift;\n  double t = (double)(", s.start,
                      ");\n");
      if (recipe.Has("simd")) {
        // Blocks of 2,048 elements in float lanes, the total in double.
        absl::StrAppend(&out, "  for (int64_t at = 0; at < n; at += 2048) {\n    const float* b = x + at;\n",
                        "    const int64_t len = n - at < 2048 ? n - at : 2048;\n    constexpr int U = ", unroll,
                        ";\n    V acc[U];\n    for (int u = 0; u < U; ++u) acc[u] = splat(", s.start,
                        ");\n    int64_t i = 0;\n");
        const std::string value = shifted ? " - shift" : "";
        const std::string prefetch =
            recipe.Has("prefetch")
                ? absl::StrCat("__builtin_prefetch(b + i + ", recipe.Get("prefetch", "distance", 512) / 4, ");\n      ")
                : "";
        absl::StrAppend(&out, "    for (; i + U * VL <= len; i += U * VL) {\n      ", prefetch,
                        "for (int u = 0; u < U; ++u) {\n        const V y = load(b + i + u * VL)", value,
                        ", a = acc[u];\n        acc[u] = ", s.step, ";\n      }\n    }\n");
        absl::StrAppend(&out, "    for (; i + VL <= len; i += VL) {\n      const V y = load(b + i)", value,
                        ", a = acc[0];\n      acc[0] = ", s.step, ";\n    }\n    double s = (double)", s.across,
                        "(acc[0]);\n    t = ", s.merge, ";\n    for (int u = 1; u < U; ++u) {\n      s = (double)",
                        s.across, "(acc[u]);\n      t = ", s.merge, ";\n    }\n");
        absl::StrAppend(&out, "    for (; i < len; ++i) {\n      const float y = b[i]", value, ", a = ", s.start,
                        ";\n      s = (double)(", s.step, ");\n      t = ", s.merge, ";\n    }\n  }\n");
      } else {
        absl::StrAppend(&out, "  for (int64_t i = 0; i < n; ++i) {\n    const float y = x[i]",
                        shifted ? " - shift" : "", ", a = ", s.start, ";\n    const double s = (double)(", s.step,
                        ");\n    t = ", s.merge, ";\n  }\n");
      }
      absl::StrAppend(&out, "  return t;\n}\n\n");
    };
    if (lse) {
      function("reduce_max",
               {"-__builtin_inff()", "g_maximum(y, a)", "(double)g_maximum((float)t, (float)s)", "hmax", "t"}, false);
    }
    function("reduce_part", steps, lse);
    absl::StrAppend(&out, "}  // namespace\n\n");
    return out;
  }

  static std::string Store(const OpSpec& spec, const std::string& at, const std::string& value,
                           const std::string& indent) {
    if (spec.epilogue.IsAcc()) return absl::StrCat(indent, "out[", at, "] = ", value, ";\n");
    RangeOptions scalar;
    return absl::StrCat(indent, "{\n", indent, "  const float value = ", value, ";\n", indent,
                        "  const int64_t from = ", at, ", to = from + 1;\n",
                        RangeLoop(
                            spec.epilogue, "from", "to", "out", "",
                            [](const std::string&, Lanes) { return std::string("value"); }, scalar, indent + "  "),
                        indent, "}\n");
  }

  static std::string Rows(const OpSpec& spec, const Recipe& recipe) {
    const RowsSpec& rows = *spec.rows;
    const Steps steps = StepsOf(spec);
    const bool lse = spec.reduce->kind == Kind::kLogSumExp;
    const std::string dense = DenseInput(spec.prologue);
    const int64_t parts = recipe.Get("split", "parts", 1);
    // Without a plain input a part's values are computed to a buffer piece by piece, never a whole long row at once.
    std::string out = absl::StrCat("  constexpr int64_t parts = ", parts, ", total = ", Num(rows.outer), " * parts;\n",
                                   "  static double* partial = (double*)malloc(sizeof(double) * 2 * total);\n",
                                   "  if (partial == nullptr) return 1;\n");
    std::string body;
    if (dense.empty()) {
      absl::StrAppend(&body, "      constexpr int64_t piece = 8192;\n      float* const buffer = scratch(piece);\n",
                      "      if (buffer == nullptr) { failed = 1; continue; }\n");
    }
    absl::StrAppend(&body,
                    "      for (int64_t unit = begin; unit < end; ++unit) {\n        const int64_t r = unit / parts, "
                    "part = unit % parts;\n",
                    "        const int64_t from_ = r * ", Num(rows.n), " + ", Num(rows.n),
                    " * part / parts, to_ = r * ", Num(rows.n), " + ", Num(rows.n),
                    " * (part + 1) / parts;\n        double t = (double)(", steps.start,
                    "), top = -__builtin_inf();\n");
    auto pass = [&](const std::string& inner) {
      if (!dense.empty()) {
        absl::StrAppend(&body, "        {\n          const float* x = ", dense,
                        " + from_;\n          const int64_t n = to_ - from_;\n", inner, "        }\n");
        return;
      }
      RangeOptions options = RangeOf(recipe);
      options.stream = false;
      absl::StrAppend(&body, "        for (int64_t from = from_; from < to_; from += piece) {\n",
                      "          const int64_t to = from + piece < to_ ? from + piece : to_, n = to - from;\n",
                      RangeLoop(
                          spec.prologue, "from", "to", "buffer", "from",
                          [](const std::string&, Lanes) { return std::string("0"); }, options, "          "),
                      "          const float* x = buffer;\n", inner, "        }\n");
    };
    if (lse) pass("          top = (double)g_maximum((float)reduce_max(x, n, 0), (float)top);\n");
    pass(absl::StrCat("          const double s = reduce_part(x, n, (float)top);\n          t = ", steps.merge, ";\n"));
    absl::StrAppend(
        &body, "        (void)top;\n        partial[2 * unit] = t;\n        partial[2 * unit + 1] = top;\n      }\n");
    absl::StrAppend(&out, ParallelLoop("total", 1, recipe, body));
    absl::StrAppend(&out, "  if (failed) return 1;\n  for (int64_t r = 0; r < ", Num(rows.outer),
                    "; ++r) {\n    double t = partial[2 * r * parts];\n");
    if (lse) {
      absl::StrAppend(
          &out, "    double top = partial[2 * r * parts + 1];\n    for (int64_t k = 1; k < parts; ++k) {\n",
          "      const double s = partial[2 * (r * parts + k)], other = partial[2 * (r * parts + k) + 1];\n",
          "      const double high = (double)g_maximum((float)top, (float)other);\n",
          "      t = (top == high ? t : t * exp(top - high)) + (other == high ? s : s * exp(other - high));\n      top "
          "= high;\n    }\n");
      absl::StrAppend(&out, Store(spec, "r", "(float)(top + log(t))", "    "), "  }\n");
    } else {
      absl::StrAppend(
          &out,
          "    for (int64_t k = 1; k < parts; ++k) {\n      const double s = partial[2 * (r * parts + k)];\n      t = ",
          steps.merge, ";\n    }\n", Store(spec, "r", absl::StrCat("(float)(", steps.finish, ")"), "    "), "  }\n");
    }
    return out;
  }

  static std::string Columns(const OpSpec& spec, const Recipe& recipe) {
    const RowsSpec& rows = *spec.rows;
    const Steps steps = StepsOf(spec);
    const bool lse = spec.reduce->kind == Kind::kLogSumExp;
    const bool simd = recipe.Has("simd");
    const int64_t width = recipe.Get("columns", "width", 1);
    const int64_t padded = (width + 63) / 64 * 64;
    const std::string n = Num(rows.n);
    std::string body = absl::StrCat("        alignas(64) float acc[", padded, "];\n        alignas(64) float top[",
                                    padded, "];\n        double total[", padded, "];\n        for (int64_t j = 0; j < ",
                                    padded, "; ++j) total[j] = (double)(", steps.start,
                                    "), top[j] = ", lse ? "-__builtin_inff()" : "0", ";\n");
    auto sweep = [&](const std::string& from, const std::string& to, const std::string& target, const std::string& step,
                     bool shifted, const std::string& indent) {
      const std::string minus_v = shifted ? " - load(top + j)" : "", minus_s = shifted ? " - top[j]" : "";
      absl::StrAppend(&body, indent, "for (int64_t i = ", from, "; i < ", to, "; ++i)\n");
      if (simd) {
        absl::StrAppend(&body, indent, "  for (int64_t j = 0; j < w; j += VL) {\n", indent,
                        "    const V y = (w - j < VL ? load_part(X + i * LD + j, w - j) : load(X + i * LD + j))",
                        minus_v, ", a = load(", target, " + j);\n", indent, "    store(", target, " + j, ", step,
                        ");\n", indent, "  }\n");
      } else {
        absl::StrAppend(&body, indent, "  for (int64_t j = 0; j < w; ++j) {\n", indent,
                        "    const float y = X[i * LD + j]", minus_s, ", a = ", target, "[j];\n", indent, "    ",
                        target, "[j] = ", step, ";\n", indent, "  }\n");
      }
    };
    if (lse) sweep("0", n, "top", "g_maximum(y, a)", false, "        ");
    // 512 rows in float, the total in double.
    absl::StrAppend(&body, "        for (int64_t at = 0; at < ", n,
                    "; at += 512) {\n          const int64_t stop = at + 512 < ", n, " ? at + 512 : ", n,
                    ";\n          for (int64_t j = 0; j < ", padded, "; ++j) acc[j] = ", steps.start, ";\n");
    sweep("at", "stop", "acc", steps.step, lse, "          ");
    absl::StrAppend(
        &body,
        "          for (int64_t j = 0; j < w; ++j) {\n            const double s = acc[j], t = total[j];\n            "
        "total[j] = ",
        steps.merge,
        ";\n          }\n        }\n        for (int64_t j = 0; j < w; ++j) {\n          const double t = total[j];\n",
        "          acc[j] = (float)(", lse ? "top[j] + log(t)" : steps.finish, ");\n        }\n",
        "        const int64_t from = o * ", Num(rows.inner), " + j0, to = from + w;\n");
    RangeOptions options = RangeOf(recipe);
    absl::StrAppend(
        &body,
        RangeLoop(
            spec.epilogue, "from", "to", "out", "",
            [](const std::string& p, Lanes lanes) { return Read("acc", p, "from", lanes); }, options, "        "),
        "        (void)P0, (void)top;\n");
    return ParallelLoop(Num(ColumnUnits(rows, width)), 1, recipe, ColumnLoop(spec, recipe, width, body));
  }
};

}  // namespace

const KernelFamily* ReduceFamily() {
  static const Reduce family;
  return &family;
}

}  // namespace grove::generate::catalogue::cpu
