// softmax and log_softmax along any dimension.
#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cpu/cpu_source.h"
#include "coordinator/generate/catalogue/cpu/families.h"
#include "coordinator/generate/catalogue/cpu/rows.h"

namespace grove::generate::catalogue::cpu {
namespace {

// Rows on vectors. U independent accumulators.
constexpr char kRowFunctions[] = R"grove(
namespace {

template <int U>
float row_max(const float* x, int64_t n) {
  V a[U];
  for (int u = 0; u < U; ++u) a[u] = splat(-__builtin_inff());
  int64_t i = 0;
  for (; i + U * VL <= n; i += U * VL)
    for (int u = 0; u < U; ++u) a[u] = g_maximum(load(x + i + u * VL), a[u]);
  for (; i + VL <= n; i += VL) a[0] = g_maximum(load(x + i), a[0]);
  if (i < n) a[0] = g_maximum(load_part(x + i, n - i, -__builtin_inff()), a[0]);
  for (int u = 1; u < U; ++u) a[0] = g_maximum(a[u], a[0]);
  return hmax(a[0]);
}

// Sum of exp(x - m); kept in e where e is given.
template <int U, bool KEEP>
float row_sum(const float* x, int64_t n, float m, float* e) {
  V a[U] = {};
  const V s = splat(m);
  int64_t i = 0;
  for (; i + U * VL <= n; i += U * VL)
    for (int u = 0; u < U; ++u) {
      const V y = g_exp(load(x + i + u * VL) - s);
      if (KEEP) store(e + i + u * VL, y);
      a[u] += y;
    }
  for (; i + VL <= n; i += VL) {
    const V y = g_exp(load(x + i) - s);
    if (KEEP) store(e + i, y);
    a[0] += y;
  }
  if (i < n) {
    const V y = g_exp(load_part(x + i, n - i, -__builtin_inff()) - s);
    if (KEEP) store_part(e + i, y, n - i);
    a[0] += y;
  }
  for (int u = 1; u < U; ++u) a[0] += a[u];
  return hsum(a[0]);
}

}  // namespace

)grove";

class Softmax final : public KernelFamily {
 public:
  v1::DeviceKind device() const override { return v1::DEVICE_KIND_CPU; }
  bool Matches(absl::string_view operation) const override {
    return operation == "softmax" || operation == "log_softmax";
  }
  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo&) const override { return AcceptFloat(spec); }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const RowsSpec& rows = *spec.rows;
    const double bytes = 4.0 * static_cast<double>(rows.outer * rows.n * rows.inner);
    std::vector<Optimisation> list = {Simd(device, 4.0), Threads(static_cast<double>(rows.outer), bytes),
                                      Stream(bytes),     Prefetch(),
                                      ShortPolynomial(), Unroll()};
    if (rows.inner > 1) {
      list.push_back(ColumnBlock(rows));
      return list;
    }
    list.push_back(Backwards());
    if (spec.operation == "softmax") {
      Optimisation keep;
      keep.id = "keep_exp";
      keep.title = "Keep the exponentials instead of computing them twice";
      keep.description =
          "The pass that sums the exponentials also stores them in a row buffer, and the last pass only scales. One "
          "exponential per element and not two, for a store and a load that stay in the cache while rows are short.";
      keep.category = "compute";
      keep.predicted_speedup = rows.n <= 65536 ? 1.4 : 1.05;
      keep.needs = {"simd"};
      list.push_back(keep);
    }
    Optimisation online;
    online.id = "online";
    online.title = "Find maximum and sum in one pass";
    online.description =
        "The row is read in blocks that fit the first-level cache: a block's maximum is found, the running sum is "
        "rescaled "
        "when the maximum grew, and the block's exponentials are added. Memory is read once and not twice before the "
        "result.";
    online.category = "memory";
    online.predicted_speedup = rows.n * 4 > 512 * 1024 ? 1.3 : 1.02;
    online.needs = {"simd"};
    online.excludes = {"keep_exp"};
    online.parameters = {Parameter{"block", {512, 2048, 4096}, 2048, 2048, "elements"}};
    list.push_back(online);
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const std::vector<Optimisation> list = Optimisations(spec, device);
    std::vector<Start> starts = {
        MakeStart(
            list, {}, "Three plain passes",
            "Maximum, sum of exponentials, result: one row after another with the C library's expf. Simple and right.",
            0.3),
        MakeStart(list, {"threads"}, "Three plain passes on all threads",
                  "The same loops, the rows shared among the threads.", 0.5),
        MakeStart(list, {"simd", "columns"}, "Three passes on vectors",
                  "A polynomial exponential on vector registers; one thread.", 0.9),
        MakeStart(list, {"simd", "threads", "columns"}, "Three passes on vectors and all threads",
                  "The vectorised passes, the rows shared among the threads.", 1.3)};
    return starts;
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
  static std::string Rows(const OpSpec& spec, const Recipe& recipe) {
    const std::string n = Num(spec.rows->n);
    const bool log = spec.operation == "log_softmax";
    const std::string u = absl::StrCat(recipe.Get("unroll", "factor", 1));
    std::string body;
    int64_t extra = 0;
    if (!recipe.Has("simd")) {
      absl::StrAppend(&body, "        float peak = -__builtin_inff();\n        for (int64_t i = 0; i < ", n,
                      "; ++i) peak = g_maximum(x[i], peak);\n        double sum = 0;\n        for (int64_t i = 0; i < ",
                      n, "; ++i) sum += expf(x[i] - peak);\n");
    } else if (recipe.Has("online")) {
      const int64_t block = recipe.Get("online", "block", 2048);
      absl::StrAppend(
          &body, "        float peak = -__builtin_inff();\n        double sum = 0;\n        for (int64_t at = 0; at < ",
          n, "; at += ", block, ") {\n          const int64_t len = ", n, " - at < ", block, " ? ", n,
          " - at : ", block, ";\n          const float bm = row_max<", u, ">(x + at, len);\n",
          "          if (bm > peak || bm != bm) {\n            sum = sum == 0 ? 0 : sum * exp((double)peak - bm);\n    "
          "      "
          "  peak = bm;\n",
          "          }\n          if (peak != -__builtin_inff()) sum += row_sum<", u,
          ", false>(x + at, len, peak, nullptr);\n        }\n",
          "        if (peak == -__builtin_inff()) sum = __builtin_nan(\"\");\n");
    } else {
      const bool keep = recipe.Has("keep_exp");
      if (keep) extra = (spec.rows->n + 63) / 64 * 64;
      absl::StrAppend(&body, "        const float peak = row_max<", u, ">(x, ", n,
                      ");\n        const double sum = row_sum<", u, ", ", keep ? "true" : "false", ">(x, ", n,
                      ", peak, ", keep ? "extra" : "nullptr", ");\n");
    }
    AccText acc;
    if (log) {
      absl::StrAppend(&body, "        const float shift = peak + (float)log(sum);\n");
      acc = [](const std::string& p, Lanes lanes) { return absl::StrCat("(", Read("x", p, "p0", lanes), " - shift)"); };
    } else {
      absl::StrAppend(&body, "        const float scale = (float)(1 / sum);\n");
      if (recipe.Has("keep_exp")) {
        acc = [](const std::string& p, Lanes lanes) {
          return absl::StrCat("(", Read("extra", p, "p0", lanes), " * scale)");
        };
      } else {
        acc = [](const std::string& p, Lanes lanes) {
          return absl::StrCat("(g_exp(", Read("x", p, "p0", lanes), " - peak) * scale)");
        };
      }
    }
    absl::StrAppend(&body, LastPass(spec, recipe, acc));
    return ParallelLoop(Num(spec.rows->outer), 1, recipe, RowLoop(spec, recipe, extra, body));
  }

  static std::string Columns(const OpSpec& spec, const Recipe& recipe) {
    const RowsSpec& rows = *spec.rows;
    const bool log = spec.operation == "log_softmax";
    const bool simd = recipe.Has("simd");
    const int64_t width = recipe.Get("columns", "width", 1);
    const std::string n = Num(rows.n);
    // Padded to whole vectors, so that the arithmetic on the accumulators needs no tails.
    const int64_t padded = (width + 63) / 64 * 64;
    std::string body =
        absl::StrCat("        alignas(64) float cm[", padded, "], cs[", padded, "];\n        for (int64_t j = 0; j < ",
                     padded, "; ++j) cm[j] = -__builtin_inff(), cs[j] = 0;\n");
    if (simd) {
      absl::StrAppend(
          &body, "        for (int64_t i = 0; i < ", n,
          "; ++i)\n          for (int64_t j = 0; j < w; j += VL) {\n"
          "            const V y = w - j < VL ? load_part(X + i * LD + j, w - j) : load(X + i * LD + j);\n"
          "            store(cm + j, g_maximum(y, load(cm + j)));\n          }\n        for (int64_t i = 0; i < ",
          n,
          "; ++i)\n          for (int64_t j = 0; j < w; j += VL) {\n"
          "            const V y = w - j < VL ? load_part(X + i * LD + j, w - j) : load(X + i * LD + j);\n"
          "            store(cs + j, load(cs + j) + g_exp(y - load(cm + j)));\n          }\n");
    } else {
      absl::StrAppend(&body, "        for (int64_t i = 0; i < ", n,
                      "; ++i)\n          for (int64_t j = 0; j < w; ++j) cm[j] = g_maximum(X[i * LD + j], cm[j]);\n"
                      "        for (int64_t i = 0; i < ",
                      n, "; ++i)\n          for (int64_t j = 0; j < w; ++j) cs[j] += expf(X[i * LD + j] - cm[j]);\n");
    }
    absl::StrAppend(&body,
                    "        for (int64_t j = 0; j < w; ++j) cs[j] = ", log ? "cm[j] + logf(cs[j])" : "1 / cs[j]",
                    ";\n        for (int64_t i = 0; i < ", n, "; ++i) {\n          const int64_t from = P0 + i * ",
                    Num(rows.inner), ", to = from + w;\n          const float* const x = X + i * LD;\n");
    AccText acc = [log](const std::string& p, Lanes lanes) {
      const std::string x = Read("x", p, "from", lanes), s = Read("cs", p, "from", lanes);
      if (log) return absl::StrCat("(", x, " - ", s, ")");
      return absl::StrCat("(g_exp(", x, " - ", Read("cm", p, "from", lanes), ") * ", s, ")");
    };
    absl::StrAppend(&body, RangeLoop(spec.epilogue, "from", "to", "out", "", acc, RangeOf(recipe), "          "),
                    "        }\n");
    return ParallelLoop(Num(ColumnUnits(rows, width)), 1, recipe, ColumnLoop(spec, recipe, width, body));
  }
};

}  // namespace

const KernelFamily* SoftmaxFamily() {
  static const Softmax family;
  return &family;
}

}  // namespace grove::generate::catalogue::cpu
