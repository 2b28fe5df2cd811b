// Layer, group and instance norm, RMS norm and L2 norm; affine parameters and whatever follows are in the epilogue.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/generate/catalogue/cpu/cpu_source.h"
#include "coordinator/generate/catalogue/cpu/families.h"
#include "coordinator/generate/catalogue/cpu/rows.h"

namespace grove::generate::catalogue::cpu {
namespace {

// Sums of (x - shift) and its square. Blocks of 2,048 elements are summed in float lanes and added up in double, so
// that a row of millions loses no more than a short one.
constexpr char kRowFunctions[] = R"grove(
namespace {

template <int U, bool FIRST, bool SECOND>
void row_sums(const float* x, int64_t n, float shift, double* first, double* second) {
  double s1 = 0, s2 = 0;
  const V k = splat(shift);
  for (int64_t at = 0; at < n; at += 2048) {
    const float* b = x + at;
    const int64_t len = n - at < 2048 ? n - at : 2048;
    V a[U] = {}, q[U] = {};
    int64_t i = 0;
    for (; i + U * VL <= len; i += U * VL)
      for (int u = 0; u < U; ++u) {
        const V y = load(b + i + u * VL) - k;
        if (FIRST) a[u] += y;
        if (SECOND) q[u] += y * y;
      }
    for (; i + VL <= len; i += VL) {
      const V y = load(b + i) - k;
      if (FIRST) a[0] += y;
      if (SECOND) q[0] += y * y;
    }
    if (i < len) {
      const V y = load_part(b + i, len - i, shift) - k;
      if (FIRST) a[0] += y;
      if (SECOND) q[0] += y * y;
    }
    for (int u = 1; u < U; ++u) a[0] += a[u], q[0] += q[u];
    if (FIRST) s1 += hsum(a[0]);
    if (SECOND) s2 += hsum(q[0]);
  }
  *first = s1;
  *second = s2;
}

}  // namespace

)grove";

std::string DoubleLiteral(double value) {
  std::string text = absl::StrFormat("%.17g", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

class Norm final : public KernelFamily {
 public:
  v1::DeviceKind device() const override { return v1::DEVICE_KIND_CPU; }
  bool Matches(absl::string_view operation) const override {
    return operation == "layer_norm" || operation == "group_norm" || operation == "instance_norm" ||
           operation == "rms_norm" || operation == "l2_norm";
  }
  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo&) const override { return AcceptFloat(spec); }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const RowsSpec& rows = *spec.rows;
    const double bytes = 4.0 * static_cast<double>(rows.outer * rows.n * rows.inner);
    std::vector<Optimisation> list = {Simd(device, 3.0), Threads(static_cast<double>(rows.outer), bytes), Stream(bytes),
                                      Prefetch(), Unroll()};
    if (CallsExp(spec.epilogue)) list.push_back(ShortPolynomial());
    if (rows.inner > 1) {
      list.push_back(ColumnBlock(rows));
      return list;
    }
    list.push_back(Backwards());
    if (spec.norm->kind == NormSpec::Kind::kLayer) {
      Optimisation one;
      one.id = "one_pass";
      one.title = "Mean and variance in one pass, shifted";
      one.description =
          "Both sums are taken of x minus the row's first element, in one read of the row. The shift keeps the "
          "subtraction "
          "of two large numbers away that a plain sum of squares ends in.";
      one.category = "memory";
      one.predicted_speedup = rows.n * 4 > 256 * 1024 ? 1.4 : 1.1;
      one.needs = {"simd"};
      list.push_back(one);
    }
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const std::vector<Optimisation> list = Optimisations(spec, device);
    return {MakeStart(list, {}, "Plain passes in double precision",
                      "Mean, variance, result: one row after another, sums in double. Simple and exact.", 0.3),
            MakeStart(list, {"threads"}, "Plain passes on all threads",
                      "The same loops, the rows shared among the threads.", 0.6),
            MakeStart(list, {"simd", "columns"}, "Passes on vectors",
                      "Sums in vector lanes, added up in double by blocks.", 1.0),
            MakeStart(list, {"simd", "threads", "columns"}, "Passes on vectors and all threads",
                      "The vectorised passes, the rows shared among the threads.", 1.4)};
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo&, const Recipe& recipe) const override {
    const RowsSpec& rows = *spec.rows;
    Source source;
    source.text = Prelude(
        absl::StrCat(spec.operation, " over [", rows.outer, ", ", rows.n, ", ", rows.inner, "] along the middle."),
        recipe, VectorBytes(recipe), ExpDegree(recipe));
    if (recipe.Has("simd")) source.text += kRowFunctions;
    absl::StrAppend(&source.text, OpenKernel(spec, UsedArgs(spec)), "  int failed = 0;\n");
    source.text += rows.inner == 1 ? Rows(spec, recipe) : Columns(spec, recipe);
    absl::StrAppend(&source.text, "  return failed;\n}\n");
    return source;
  }

 private:
  // 1 / sqrt(...) of the second sum `s2` (double), as text.
  static std::string Scale(const OpSpec& spec, const std::string& s2) {
    const std::string eps = DoubleLiteral(spec.norm->eps);
    if (spec.norm->kind == NormSpec::Kind::kL2) return absl::StrCat("(float)(1 / sqrt(", s2, " + ", eps, "))");
    return absl::StrCat("(float)(1 / sqrt(", s2, " / ", DoubleLiteral(static_cast<double>(spec.rows->n)), " + ", eps,
                        "))");
  }

  static std::string Rows(const OpSpec& spec, const Recipe& recipe) {
    const std::string n = Num(spec.rows->n), count = DoubleLiteral(static_cast<double>(spec.rows->n));
    const std::string u = absl::StrCat(recipe.Get("unroll", "factor", 1));
    const bool layer = spec.norm->kind == NormSpec::Kind::kLayer;
    std::string body = "        double s1 = 0, s2 = 0;\n";
    if (!recipe.Has("simd")) {
      if (layer) absl::StrAppend(&body, "        for (int64_t i = 0; i < ", n, "; ++i) s1 += x[i];\n");
      absl::StrAppend(&body, "        const double mean = s1 / ", count, ";\n        for (int64_t i = 0; i < ", n,
                      "; ++i) s2 += (x[i] - mean) * (x[i] - mean);\n");
    } else if (!layer) {
      absl::StrAppend(&body, "        row_sums<", u, ", false, true>(x, ", n,
                      ", 0, &s1, &s2);\n        const double mean = 0;\n");
    } else if (recipe.Has("one_pass")) {
      absl::StrAppend(&body, "        const float shift = x[0];\n        row_sums<", u, ", true, true>(x, ", n,
                      ", shift, &s1, &s2);\n        const double mean = shift + s1 / ", count,
                      ";\n        s2 -= s1 * s1 / ", count, ";\n        if (s2 < 0) s2 = 0;\n");
    } else {
      absl::StrAppend(&body, "        double unused;\n        row_sums<", u, ", true, false>(x, ", n,
                      ", 0, &s1, &unused);\n        const double mean = s1 / ", count, ";\n        row_sums<", u,
                      ", true, true>(x, ", n, ", (float)mean, &s1, &s2);\n        s2 -= s1 * s1 / ", count,
                      ";  // what the rounding of the mean left\n        if (s2 < 0) s2 = 0;\n");
    }
    absl::StrAppend(&body, "        const float scale = ", Scale(spec, "s2"),
                    ", centre = (float)mean;\n        (void)centre;\n");
    AccText acc = [layer](const std::string& p, Lanes lanes) {
      if (!layer) return absl::StrCat("(", Read("x", p, "p0", lanes), " * scale)");
      return absl::StrCat("((", Read("x", p, "p0", lanes), " - centre) * scale)");
    };
    absl::StrAppend(&body, LastPass(spec, recipe, acc));
    return ParallelLoop(Num(spec.rows->outer), 1, recipe, RowLoop(spec, recipe, 0, body));
  }

  static std::string Columns(const OpSpec& spec, const Recipe& recipe) {
    const RowsSpec& rows = *spec.rows;
    const int64_t width = recipe.Get("columns", "width", 1);
    const int64_t padded = (width + 63) / 64 * 64;
    const bool layer = spec.norm->kind == NormSpec::Kind::kLayer;
    const bool simd = recipe.Has("simd");
    const std::string n = Num(rows.n), count = DoubleLiteral(static_cast<double>(rows.n));
    std::string body = absl::StrCat("        alignas(64) float c1[", padded, "], c2[", padded,
                                    "];\n        for (int64_t j = 0; j < ", padded, "; ++j) c1[j] = 0, c2[j] = 0;\n");
    auto pass = [&](const std::string& vector, const std::string& scalar) {
      absl::StrAppend(&body, "        for (int64_t i = 0; i < ", n, "; ++i)\n");
      if (simd) {
        absl::StrAppend(&body,
                        "          for (int64_t j = 0; j < w; j += VL) {\n"
                        "            const V y = w - j < VL ? load_part(X + i * LD + j, w - j) : load(X + i * LD + "
                        "j);\n            ",
                        vector, "\n          }\n");
      } else {
        absl::StrAppend(
            &body,
            "          for (int64_t j = 0; j < w; ++j) {\n            const float y = X[i * LD + j];\n            ",
            scalar, "\n          }\n");
      }
    };
    if (layer) {
      pass("store(c1 + j, load(c1 + j) + y);", "c1[j] += y;");
      absl::StrAppend(&body, "        for (int64_t j = 0; j < w; ++j) c1[j] = (float)(c1[j] / ", count, ");\n");
    }
    pass("const V d = y - load(c1 + j); store(c2 + j, load(c2 + j) + d * d);",
         "const float d = y - c1[j]; c2[j] += d * d;");
    absl::StrAppend(&body, "        for (int64_t j = 0; j < w; ++j) c2[j] = ", Scale(spec, "(double)c2[j]"),
                    ";\n        for (int64_t i = 0; i < ", n, "; ++i) {\n          const int64_t from = P0 + i * ",
                    Num(rows.inner), ", to = from + w;\n          const float* const x = X + i * LD;\n");
    AccText acc = [layer](const std::string& p, Lanes lanes) {
      const std::string x = Read("x", p, "from", lanes), scale = Read("c2", p, "from", lanes);
      if (!layer) return absl::StrCat("(", x, " * ", scale, ")");
      return absl::StrCat("((", x, " - ", Read("c1", p, "from", lanes), ") * ", scale, ")");
    };
    absl::StrAppend(&body, RangeLoop(spec.epilogue, "from", "to", "out", "", acc, RangeOf(recipe), "          "),
                    "        }\n");
    return ParallelLoop(Num(ColumnUnits(rows, width)), 1, recipe, ColumnLoop(spec, recipe, width, body));
  }
};

}  // namespace

const KernelFamily* NormFamily() {
  static const Norm family;
  return &family;
}

}  // namespace grove::generate::catalogue::cpu
