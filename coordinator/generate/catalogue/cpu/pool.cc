// Max and average pooling.
#include "coordinator/generate/catalogue/cpu/pool.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coordinator/generate/catalogue/cpu/families.h"

namespace grove::generate::catalogue::cpu {
namespace {

class Pool final : public KernelFamily {
 public:
  v1::DeviceKind device() const override { return v1::DEVICE_KIND_CPU; }
  bool Matches(absl::string_view operation) const override {
    return operation == "max_pool2d" || operation == "avg_pool2d";
  }
  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo&) const override { return AcceptFloat(spec); }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const Pool2dSpec& pool = *spec.pool;
    Optimisation simd = Simd(device, 2.0);
    simd.title = "Fold the window into rows of the result";
    simd.description =
        "A row of the result is kept in the cache; each position of the window adds its row of the image to it, so "
        "that the compiler works on vectors and the borders are outside the loop.";
    return {simd, Threads(static_cast<double>(pool.planes), 4.0 * static_cast<double>(pool.planes * pool.h * pool.w))};
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const std::vector<Optimisation> list = Optimisations(spec, device);
    return {MakeStart(list, {}, "Each result looks at its window", "Nested loops with border checks. Simple and right.",
                      0.4),
            MakeStart(list, {"threads"}, "Windows on all threads", "The planes shared among the threads.", 0.8),
            MakeStart(list, {"simd", "threads"}, "Rows on all threads", "The window folded into rows, planes shared.",
                      1.2)};
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo&, const Recipe& recipe) const override {
    const Pool2dSpec& pool = *spec.pool;
    Source source;
    source.text = Prelude(absl::StrCat(spec.operation, " of ", pool.planes, " planes of ", pool.h, " x ", pool.w, "."),
                          recipe, VectorBytes(recipe), ExpDegree(recipe));
    absl::StrAppend(&source.text, OpenKernel(spec, UsedArgs(spec)), "  int failed = 0;\n");
    const std::string dense = DenseInput(spec.prologue);
    std::string body;
    if (dense.empty()) {
      absl::StrAppend(&body, "      float* const buffer = scratch(", Num(pool.h * pool.w),
                      ");\n      if (buffer == nullptr) { failed = 1; continue; }\n");
    }
    absl::StrAppend(&body,
                    "      for (int64_t plane = begin; plane < end; ++plane) {\n        const int64_t from = plane * ",
                    Num(pool.h * pool.w), ";\n");
    if (dense.empty()) {
      absl::StrAppend(&body,
                      RangeLoop(
                          spec.prologue, "from", absl::StrCat("(from + ", Num(pool.h * pool.w), ")"), "buffer", "from",
                          [](const std::string&, Lanes) { return std::string("0"); }, RangeOf(recipe), "        "),
                      "        const float* const P = buffer;\n");
    } else {
      absl::StrAppend(&body, "        const float* const P = ", dense, " + from;\n");
    }
    absl::StrAppend(&body, "        float* const D = out + plane * ", Num(pool.oh * pool.ow), ";\n",
                    PoolPlane(pool, recipe.Has("simd"), "        "), "      }\n");
    absl::StrAppend(&source.text, ParallelLoop(Num(pool.planes), 1, recipe, body), "  return failed;\n}\n");
    return source;
  }
};

}  // namespace

std::string PoolPlane(const Pool2dSpec& pool, bool rows, const std::string& indent) {
  const bool max = pool.kind == Pool2dSpec::Kind::kMax;
  std::string text =
      absl::StrCat("{\n  constexpr int64_t QH = ", pool.h, ", QW = ", pool.w, ", DH_ = ", pool.oh, ", DW_ = ", pool.ow,
                   ", LH = ", pool.kh, ", LW = ", pool.kw, ", TH = ", pool.stride_h, ", TW = ", pool.stride_w,
                   ", GH = ", pool.pad_h, ", GW = ", pool.pad_w, ", EH = ", pool.dilation_h, ", EW = ", pool.dilation_w,
                   ";\n  constexpr bool kMax = ", max ? "true" : "false",
                   ", kCountPad = ", pool.count_include_pad ? "true" : "false", ";\n");
  if (rows) {
    text += R"(  for (int64_t y = 0; y < DH_; ++y) {
    float* const d = D + y * DW_;
    for (int64_t x = 0; x < DW_; ++x) d[x] = kMax ? -__builtin_inff() : 0.0f;
    for (int64_t a = 0; a < LH; ++a) {
      const int64_t h = y * TH - GH + a * EH;
      if (h < 0 || h >= QH) continue;
      for (int64_t b = 0; b < LW; ++b) {
        const int64_t shift = b * EW - GW;
        const int64_t x0 = shift >= 0 ? 0 : (-shift + TW - 1) / TW;
        int64_t x1 = QW - 1 - shift < 0 ? 0 : (QW - 1 - shift) / TW + 1;
        if (x1 > DW_) x1 = DW_;
        const float* const q = P + h * QW + shift;
        for (int64_t x = x0; x < x1; ++x) d[x] = kMax ? g_maximum(q[x * TW], d[x]) : d[x] + q[x * TW];
      }
    }
    if (!kMax) {
      int64_t h0 = y * TH - GH, h1 = h0 + LH < QH + GH ? h0 + LH : QH + GH;
      const int64_t padded_h = h1 - h0;
      h0 = h0 < 0 ? 0 : h0;
      h1 = h1 < QH ? h1 : QH;
      for (int64_t x = 0; x < DW_; ++x) {
        int64_t w0 = x * TW - GW, w1 = w0 + LW < QW + GW ? w0 + LW : QW + GW;
        const int64_t padded_w = w1 - w0;
        w0 = w0 < 0 ? 0 : w0;
        w1 = w1 < QW ? w1 : QW;
        d[x] /= (float)(kCountPad ? padded_h * padded_w : (h1 - h0) * (w1 - w0));
      }
    }
  }
}
)";
  } else {
    text += R"(  for (int64_t y = 0; y < DH_; ++y)
    for (int64_t x = 0; x < DW_; ++x) {
      float best = -__builtin_inff();
      double sum = 0;
      int64_t count = 0;
      for (int64_t a = 0; a < LH; ++a)
        for (int64_t b = 0; b < LW; ++b) {
          const int64_t h = y * TH - GH + a * EH, w = x * TW - GW + b * EW;
          if (h >= QH + GH || w >= QW + GW) continue;
          const bool inside = h >= 0 && h < QH && w >= 0 && w < QW;
          if (inside || kCountPad) ++count;
          if (!inside) continue;
          best = g_maximum(P[h * QW + w], best);
          sum += P[h * QW + w];
        }
      D[y * DW_ + x] = kMax ? best : (float)(sum / (double)count);
    }
}
)";
  }
  return absl::StrCat(indent, absl::StrReplaceAll(text.substr(0, text.size() - 1), {{"\n", "\n" + indent}}), "\n");
}

const KernelFamily* PoolFamily() {
  static const Pool family;
  return &family;
}

}  // namespace grove::generate::catalogue::cpu
