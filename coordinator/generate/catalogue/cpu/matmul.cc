// Matrix products, batched or not, with any transposes, followed by any elementwise epilogue.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cpu/cpu_source.h"
#include "coordinator/generate/catalogue/cpu/families.h"
#include "coordinator/generate/catalogue/cpu/gemm.h"

namespace grove::generate::catalogue::cpu {
namespace {

class Matmul final : public KernelFamily {
 public:
  v1::DeviceKind device() const override { return v1::DEVICE_KIND_CPU; }
  bool Matches(absl::string_view operation) const override {
    return operation == "matmul" || operation == "matmul_epilogue";
  }
  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo&) const override { return AcceptFloat(spec); }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const MatmulSpec& mm = *spec.matmul;
    const double work = static_cast<double>(mm.batch * mm.m * mm.n) * static_cast<double>(mm.k);
    Optimisation simd = Simd(device, 4.0);
    simd.title = "Add up whole rows of the result on vectors";
    simd.description =
        "The loops are exchanged: a value of A times a row of B is added to a row of the result that stays in the "
        "cache. "
        "B and the result are read in order, and the compiler works on vectors.";
    std::vector<Optimisation> list = {simd, Threads(static_cast<double>(mm.batch * mm.n), work)};
    for (Optimisation& each : GemmOptimisations(mm.m, mm.n, mm.k)) list.push_back(std::move(each));
    Optimisation rows;
    rows.id = "by_rows";
    rows.title = "Give each thread rows of the result";
    rows.description =
        "Threads share the result by rows and not by columns: each packs its own part of A and all of B. Better where "
        "there are more rows than columns.";
    rows.category = "parallelism";
    rows.predicted_speedup = mm.m > 2 * mm.n ? 1.2 : 0.95;
    rows.needs = {"threads"};
    list.push_back(rows);
    if (!spec.epilogue.IsAcc() && CallsExp(spec.epilogue)) list.push_back(ShortPolynomial());
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const std::vector<Optimisation> list = Optimisations(spec, device);
    return {
        MakeStart(list, {}, "Three nested loops", "Each result is a dot product of its own. Simple and right.", 0.05),
        MakeStart(list, {"simd"}, "Rows of the result on vectors",
                  "Loops exchanged so that everything is read in order.", 0.4),
        MakeStart(list, {"simd", "threads"}, "Rows of the result on vectors and all threads",
                  "Loops exchanged, the result shared among the threads.", 0.7),
        MakeStart(list, {"tile", "threads"}, "Register tiles with packed operands",
                  "Packed strips of A and B, a tile of the result in registers, all threads.", 1.5)};
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo&, const Recipe& recipe) const override {
    const MatmulSpec& mm = *spec.matmul;
    const bool tile = recipe.Has("tile");
    Source source;
    source.text = Prelude(absl::StrCat("matmul: ", mm.batch, " x [", mm.m, ", ", mm.k, "] * [", mm.k, ", ", mm.n, "]."),
                          recipe, VectorBytes(recipe), ExpDegree(recipe));
    if (tile) source.text += GemmFunctions(recipe);
    absl::StrAppend(&source.text, OpenKernel(spec, UsedArgs(spec)), "  int failed = 0;\n  constexpr int64_t M = ", mm.m,
                    ", N = ", mm.n, ", K = ", mm.k, ";\n");
    // Units: strips of the result within each of the batch.
    const bool rows = recipe.Has("by_rows");
    const int64_t vl = VectorBytes(recipe) / 4;
    const int64_t strip = rows ? (tile ? recipe.Get("tile", "mr", 6) : 1)
                               : std::min<int64_t>(mm.n, tile ? recipe.Get("tile", "nv", 2) * vl : 64);
    const int64_t extent = rows ? mm.m : mm.n;
    const int64_t strips = (extent + strip - 1) / strip;
    std::string body;
    const int64_t staged = recipe.Has("simd") && !tile ? (mm.n + 63) / 64 * 64 : 0;
    if (tile || staged > 0) {
      absl::StrAppend(&body, "      float* const buffer = scratch(", tile ? "kPackFloats" : Num(staged),
                      ");\n      if (buffer == nullptr) { failed = 1; continue; }\n");
    }
    absl::StrAppend(&body, "      for (int64_t unit = begin; unit < end;) {\n        const int64_t batch = unit / ",
                    Num(strips), ", s0 = unit % ", Num(strips),
                    ";\n        int64_t s1 = s0 + (end - unit);\n        if (s1 > ", Num(strips),
                    ") s1 = ", Num(strips), ";\n        unit += s1 - s0;\n        const int64_t lo = s0 * ", Num(strip),
                    ", hi = s1 * ", Num(strip), " < ", Num(extent), " ? s1 * ", Num(strip), " : ", Num(extent),
                    ";\n        const int64_t m0 = ", rows ? "lo" : "0", ", m1 = ", rows ? "hi" : "M",
                    ", n0 = ", rows ? "0" : "lo", ", n1 = ", rows ? "N" : "hi", ";\n        const float* const A = in",
                    mm.a.arg, " + batch * ", Num(mm.a.strides[0]), ";\n        const float* const B = in", mm.b.arg,
                    " + batch * ", Num(mm.b.strides[0]), ";\n        float* const C = out + batch * (M * N);\n");
    const std::string am = Num(mm.a.strides[1]), ak = Num(mm.a.strides[2]), bk = Num(mm.b.strides[1]),
                      bn = Num(mm.b.strides[2]);
    if (tile) {
      absl::StrAppend(&body, "        gemm(m0, m1, n0, n1, K, C, N, buffer,\n", PackA(am, ak), ",\n",
                      PackB(bk, bn, mm.b.strides[2] == 1), ");\n");
    } else if (recipe.Has("simd")) {
      absl::StrAppend(&body,
                      "        for (int64_t m = m0; m < m1; ++m) {\n          float* const r = buffer;\n"
                      "          for (int64_t n = n0; n < n1; ++n) r[n] = 0;\n          for (int64_t k = 0; k < K; "
                      "++k) {\n            const float a = A[m * ",
                      am, " + k * ", ak, "];\n            const float* const b = B + k * ", bk,
                      ";\n            for (int64_t n = n0; n < n1; ++n) r[n] += a * b[n * ", bn,
                      "];\n          }\n          memcpy(C + m * N + n0, r + n0, (size_t)(n1 - n0) * 4);\n        }\n");
    } else {
      absl::StrAppend(&body,
                      "        for (int64_t m = m0; m < m1; ++m)\n          for (int64_t n = n0; n < n1; ++n) {\n      "
                      "      double sum = 0;\n"
                      "            for (int64_t k = 0; k < K; ++k) sum += (double)A[m * ",
                      am, " + k * ", ak, "] * B[k * ", bk, " + n * ", bn,
                      "];\n            C[m * N + n] = (float)sum;\n          }\n");
    }
    if (!spec.epilogue.IsAcc()) {
      RangeOptions options;
      options.simd = recipe.Has("simd");
      absl::StrAppend(
          &body,
          "        for (int64_t m = m0; m < m1; ++m) {\n          const int64_t from = (batch * M + m) * N + n0, to = "
          "from + (n1 - n0);\n",
          RangeLoop(
              spec.epilogue, "from", "to", "out", "",
              [](const std::string& p, Lanes lanes) { return Read("out", p, "0", lanes); }, options, "          "),
          "        }\n");
    }
    absl::StrAppend(&body, "      }\n");
    absl::StrAppend(&source.text, ParallelLoop(Num(mm.batch * strips), 1, recipe, body), "  return failed;\n}\n");
    return source;
  }

 private:
  static std::string PackA(const std::string& am, const std::string& ak) {
    return absl::StrCat(
        "             [&](float* dst, int64_t m, int64_t rows, int64_t k, int64_t kc) {\n"
        "               for (int64_t r = 0; r < MR; ++r) {\n"
        "                 const float* a = A + (m + r) * ",
        am, " + k * ", ak,
        ";\n"
        "                 if (r < rows) {\n                   for (int64_t i = 0; i < kc; ++i) dst[i * MR + r] = a[i "
        "* ",
        ak,
        "];\n"
        "                 } else {\n                   for (int64_t i = 0; i < kc; ++i) dst[i * MR + r] = 0;\n         "
        "        }\n"
        "               }\n             }");
  }
  static std::string PackB(const std::string& bk, const std::string& bn, bool contiguous) {
    std::string out = absl::StrCat(
        "             [&](float* dst, int64_t n, int64_t cols, int64_t k, int64_t kc) {\n"
        "               const float* b = B + k * ",
        bk, " + n * ", bn, ";\n");
    if (contiguous) {
      absl::StrAppend(
          &out,
          "               for (int64_t i = 0; i < kc; ++i) {\n                 float* d = dst + i * NR;\n"
          "                 memcpy(d, b + i * ",
          bk,
          ", (size_t)cols * 4);\n"
          "                 for (int64_t c = cols; c < NR; ++c) d[c] = 0;\n               }\n             }");
    } else {
      absl::StrAppend(&out,
                      "               for (int64_t c = 0; c < NR; ++c) {\n                 if (c < cols) {\n"
                      "                   for (int64_t i = 0; i < kc; ++i) dst[i * NR + c] = b[i * ",
                      bk, " + c * ", bn,
                      "];\n"
                      "                 } else {\n                   for (int64_t i = 0; i < kc; ++i) dst[i * NR + c] "
                      "= 0;\n                 }\n"
                      "               }\n             }");
    }
    return out;
  }
};

}  // namespace

const KernelFamily* MatmulFamily() {
  static const Matmul family;
  return &family;
}

}  // namespace grove::generate::catalogue::cpu
