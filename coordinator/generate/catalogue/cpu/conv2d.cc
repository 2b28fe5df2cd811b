// 2-D convolution with any elementwise epilogue, and pooling fused behind it.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cpu/cpu_source.h"
#include "coordinator/generate/catalogue/cpu/families.h"
#include "coordinator/generate/catalogue/cpu/gemm.h"
#include "coordinator/generate/catalogue/cpu/pool.h"

namespace grove::generate::catalogue::cpu {
namespace {

class Conv2d final : public KernelFamily {
 public:
  v1::DeviceKind device() const override { return v1::DEVICE_KIND_CPU; }
  bool Matches(absl::string_view operation) const override { return absl::StartsWith(operation, "conv2d"); }
  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo&) const override { return AcceptFloat(spec); }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const Conv2dSpec& conv = *spec.conv2d;
    const int64_t k = conv.c / conv.groups * conv.kh * conv.kw;
    Optimisation simd = Simd(device, 4.0);
    simd.title = "Work along rows of the result on vectors";
    simd.description =
        "One weight times a row of the image is added to a row of the result that stays in the cache, with the borders "
        "taken care of outside the loop.";
    std::vector<Optimisation> list = {simd, Threads(static_cast<double>(conv.n * conv.oc),
                                                    static_cast<double>(conv.n * conv.oc * conv.oh * conv.ow * k))};
    for (Optimisation& each : GemmOptimisations(conv.oc / conv.groups, conv.oh * conv.ow, k)) {
      if (each.id == "tile") {
        each.title = "Implicit matrix product with packed tiles";
        each.description =
            "The convolution is a product of the weights with the image's patches. The patches are gathered strip by "
            "strip "
            "into the packed panel and never written out whole; " +
            each.description;
      }
      list.push_back(std::move(each));
    }
    Optimisation split;
    split.id = "split_channels";
    split.title = "Smaller pieces: some output channels at a time";
    split.description =
        "The unit of work is an image's block of output channels and not a whole image. More units than images for the "
        "threads, and a result block that stays in the cache until the epilogue; the patches are gathered once per "
        "block.";
    split.category = "parallelism";
    split.predicted_speedup = conv.n == 1 ? 1.8 : 1.05;
    split.parameters = {Parameter{"channels", {16, 32, 64}, 32, 32, "channels"}};
    list.push_back(split);
    if (CallsExp(spec.epilogue)) list.push_back(ShortPolynomial());
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const std::vector<Optimisation> list = Optimisations(spec, device);
    const std::string split = spec.conv2d->n == 1 ? "split_channels" : "threads";
    return {MakeStart(list, {}, "Nested loops", "Each result gathers its own patch. Simple and right.", 0.05),
            MakeStart(list, {"simd", "threads", split}, "Rows on vectors and all threads",
                      "A weight times a row of the image, added to a row of the result.", 0.4),
            MakeStart(list, {"simd", "tile"}, "Implicit matrix product", "Packed patches, register tiles; one thread.",
                      0.7),
            MakeStart(list, {"simd", "tile", "threads", split}, "Implicit matrix product on all threads",
                      "Packed patches, register tiles, images or channels shared among the threads.", 1.1)};
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo&, const Recipe& recipe) const override {
    const Conv2dSpec& conv = *spec.conv2d;
    const bool tile = recipe.Has("tile");
    const int64_t ocg = conv.oc / conv.groups;
    // A unit is a block of output channels of one group of one image.
    const int64_t block =
        std::min(ocg, recipe.Has("split_channels") ? recipe.Get("split_channels", "channels", 32) : ocg);
    const int64_t blocks = (ocg + block - 1) / block;
    const int64_t plane = conv.oh * conv.ow;
    Source source;
    source.text = Prelude(absl::StrCat(spec.operation, ": [", conv.n, ", ", conv.c, ", ", conv.h, ", ", conv.w,
                                       "] with ", conv.oc, " filters of ", conv.kh, " x ", conv.kw, "."),
                          recipe, VectorBytes(recipe), ExpDegree(recipe));
    if (tile) source.text += GemmFunctions(recipe);
    absl::StrAppend(&source.text, OpenKernel(spec, UsedArgs(spec)), "  int failed = 0;\n");
    absl::StrAppend(&source.text, "  constexpr int64_t CG = ", conv.c / conv.groups, ", H = ", conv.h, ", W = ", conv.w,
                    ", OCG = ", ocg, ", OH = ", conv.oh, ", OW = ", conv.ow, ", KH = ", conv.kh, ", KW = ", conv.kw,
                    ", SH = ", conv.stride_h, ", SW = ", conv.stride_w, ", PH = ", conv.pad_h, ", PW = ", conv.pad_w,
                    ", DH = ", conv.dilation_h, ", DW = ", conv.dilation_w, ", K = CG * KH * KW;\n");
    const bool pooled = spec.pool.has_value();
    const int64_t staged = pooled ? (block * plane + 63) / 64 * 64 : 0;
    std::string body;
    if (tile || pooled) {
      absl::StrAppend(&body, "      float* const buffer = scratch(", Num(staged), tile ? " + kPackFloats" : "",
                      ");\n      if (buffer == nullptr) { failed = 1; continue; }\n");
      if (tile) absl::StrAppend(&body, "      float* const pack = buffer + ", Num(staged), ";\n");
    }
    absl::StrAppend(&body,
                    "      for (int64_t unit = begin; unit < end; ++unit) {\n        const int64_t group = unit / ",
                    Num(blocks), ", m0 = unit % ", Num(blocks), " * ", Num(block), ", m1 = m0 + ", Num(block),
                    " < OCG ? m0 + ", Num(block), " : OCG;\n        const float* const X = in", conv.input,
                    " + group * (CG * H * W);\n        const float* const F = in", conv.weight, " + group % ",
                    Num(conv.groups), " * (OCG * K);\n");
    // The block's first flat position in the convolution's result, and where it is kept.
    absl::StrAppend(&body,
                    "        const int64_t from = (group * OCG + m0) * (OH * OW), to = from + (m1 - m0) * (OH * OW);\n "
                    "       float* const R = ",
                    pooled ? "buffer" : "out + from", ";\n");
    body += tile ? Tiled() : recipe.Has("simd") ? RowWise() : Plain();
    if (!spec.epilogue.IsAcc()) {
      RangeOptions options;
      options.simd = recipe.Has("simd");
      absl::StrAppend(&body, RangeLoop(
                                 spec.epilogue, "from", "to", "R", "from",
                                 [](const std::string& p, Lanes lanes) { return Read("R", p, "from", lanes); }, options,
                                 "        "));
    }
    if (pooled) {
      absl::StrAppend(
          &body,
          "        for (int64_t m = 0; m < m1 - m0; ++m) {\n          const float* const P = R + m * (OH * OW);\n"
          "          float* const D = out + (group * OCG + m0 + m) * ",
          Num(spec.pool->oh * spec.pool->ow), ";\n", PoolPlane(*spec.pool, recipe.Has("simd"), "          "),
          "        }\n");
    }
    absl::StrAppend(&body, "        (void)to;\n      }\n");
    absl::StrAppend(&source.text, ParallelLoop(Num(conv.n * conv.groups * blocks), 1, recipe, body),
                    "  return failed;\n}\n");
    return source;
  }

 private:
  static std::string Plain() {
    return R"(        for (int64_t m = m0; m < m1; ++m)
          for (int64_t y = 0; y < OH; ++y)
            for (int64_t x = 0; x < OW; ++x) {
              double sum = 0;
              for (int64_t c = 0; c < CG; ++c)
                for (int64_t i = 0; i < KH; ++i) {
                  const int64_t h = y * SH - PH + i * DH;
                  if (h < 0 || h >= H) continue;
                  for (int64_t j = 0; j < KW; ++j) {
                    const int64_t v = x * SW - PW + j * DW;
                    if (v < 0 || v >= W) continue;
                    sum += (double)X[(c * H + h) * W + v] * F[((m * CG + c) * KH + i) * KW + j];
                  }
                }
              R[((m - m0) * OH + y) * OW + x] = (float)sum;
            }
)";
  }
  static std::string RowWise() {
    return R"(        for (int64_t m = m0; m < m1; ++m)
          for (int64_t y = 0; y < OH; ++y) {
            float* const r = R + ((m - m0) * OH + y) * OW;
            for (int64_t x = 0; x < OW; ++x) r[x] = 0;
            for (int64_t c = 0; c < CG; ++c)
              for (int64_t i = 0; i < KH; ++i) {
                const int64_t h = y * SH - PH + i * DH;
                if (h < 0 || h >= H) continue;
                const float* const row = X + (c * H + h) * W;
                for (int64_t j = 0; j < KW; ++j) {
                  const float f = F[((m * CG + c) * KH + i) * KW + j];
                  // The x whose column lies inside the image.
                  const int64_t shift = j * DW - PW;
                  int64_t x0 = shift >= 0 ? 0 : (-shift + SW - 1) / SW;
                  int64_t x1 = W - 1 - shift < 0 ? 0 : (W - 1 - shift) / SW + 1;
                  if (x1 > OW) x1 = OW;
                  for (int64_t x = x0; x < x1; ++x) r[x] += f * row[x * SW + shift];
                }
              }
          }
)";
  }
  static std::string Tiled() {
    return R"(        gemm(m0, m1, 0, OH * OW, K, R - m0 * (OH * OW), OH * OW, pack,
             [&](float* dst, int64_t m, int64_t rows, int64_t k, int64_t kc) {
               for (int64_t r = 0; r < MR; ++r) {
                 const float* f = F + (m + r) * K + k;
                 if (r < rows) {
                   for (int64_t i = 0; i < kc; ++i) dst[i * MR + r] = f[i];
                 } else {
                   for (int64_t i = 0; i < kc; ++i) dst[i * MR + r] = 0;
                 }
               }
             },
             [&](float* dst, int64_t n, int64_t cols, int64_t k, int64_t kc) {
               for (int64_t i = 0; i < kc; ++i) {
                 const int64_t kk = k + i, c = kk / (KH * KW), a = kk / KW % KH, b = kk % KW;
                 const float* const image = X + c * H * W;
                 float* const d = dst + i * NR;
                 int64_t y = n / OW, x = n % OW;
                 for (int64_t q = 0; q < cols;) {
                   // A stretch of one row of the result.
                   const int64_t len = OW - x < cols - q ? OW - x : cols - q;
                   const int64_t h = y * SH - PH + a * DH, shift = b * DW - PW;
                   if (h < 0 || h >= H) {
                     for (int64_t t = 0; t < len; ++t) d[q + t] = 0;
                   } else {
                     const float* const row = image + h * W;
                     if (x * SW + shift >= 0 && (x + len - 1) * SW + shift < W) {
                       for (int64_t t = 0; t < len; ++t) d[q + t] = row[(x + t) * SW + shift];
                     } else {
                       for (int64_t t = 0; t < len; ++t) {
                         const int64_t v = (x + t) * SW + shift;
                         d[q + t] = v >= 0 && v < W ? row[v] : 0;
                       }
                     }
                   }
                   q += len;
                   x = 0;
                   ++y;
                 }
                 for (int64_t q = cols; q < NR; ++q) d[q] = 0;
               }
             });
)";
  }
};

}  // namespace

const KernelFamily* Conv2dFamily() {
  static const Conv2d family;
  return &family;
}

}  // namespace grove::generate::catalogue::cpu
