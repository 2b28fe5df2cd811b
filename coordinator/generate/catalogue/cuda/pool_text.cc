#include "coordinator/generate/catalogue/cuda/pool_text.h"

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/text.h"

namespace grove::generate::catalogue::cuda {
namespace {

constexpr char kPool[] = R"cuda(
__global__ void __launch_bounds__(256) Pool($parameter$, float* out) {
  const Index o = static_cast<Index>(blockIdx.x) * 256 + threadIdx.x;
  if (o >= $total$) return;
  const Index plane = o / $out_plane$;
  const int y0 = static_cast<int>(o / $ow$ % $oh$) * $sh$ - $ph$, x0 = static_cast<int>(o % $ow$) * $sw$ - $pw$;
  float result = $start$;
$count$#pragma unroll
  for (int r = 0; r < $kh$; ++r) {
    const int y = y0 + r * $dh$;
    if (static_cast<unsigned>(y) >= $h$u) continue;
#pragma unroll
    for (int s = 0; s < $kw$; ++s) {
      const int x = x0 + s * $dw$;
      if (static_cast<unsigned>(x) >= $w$u) continue;
      const Index inside = static_cast<Index>(y) * $w$ + x;
      const Index i = plane * $plane$ + inside;
      const float v = $value$;
      (void)i;
      $step$
    }
  }
  out[o] = $finish$;
}
)cuda";

}  // namespace

int64_t PoolBlocks(const Pool2dSpec& p) { return CeilDiv(p.planes * p.oh * p.ow, 256); }

std::string PoolText(const Pool2dSpec& p, const std::string& parameter, const std::string& value) {
  const bool max = p.kind == Pool2dSpec::Kind::kMax;
  // torch divides by the window cut to the padded input: a window that hangs over the padding (ceil mode) counts less.
  const std::string divisor =
      p.count_include_pad
          ? absl::StrCat("  const int y1 = y0 + ", p.kh, " < ", p.h + p.pad_h, " ? y0 + ", p.kh, " : ", p.h + p.pad_h,
                         ", x1 = x0 + ", p.kw, " < ", p.w + p.pad_w, " ? x0 + ", p.kw, " : ", p.w + p.pad_w,
                         ";\n  const float count = static_cast<float>((y1 - y0) * (x1 - x0));\n")
          : "  float count = 0.0f;\n";
  return Fill(kPool, {{"parameter", parameter},
                      {"value", value},
                      {"total", absl::StrCat(p.planes * p.oh * p.ow)},
                      {"out_plane", absl::StrCat(p.oh * p.ow)},
                      {"plane", absl::StrCat(p.h * p.w)},
                      {"oh", absl::StrCat(p.oh)},
                      {"ow", absl::StrCat(p.ow)},
                      {"h", absl::StrCat(p.h)},
                      {"w", absl::StrCat(p.w)},
                      {"kh", absl::StrCat(p.kh)},
                      {"kw", absl::StrCat(p.kw)},
                      {"sh", absl::StrCat(p.stride_h)},
                      {"sw", absl::StrCat(p.stride_w)},
                      {"ph", absl::StrCat(p.pad_h)},
                      {"pw", absl::StrCat(p.pad_w)},
                      {"dh", absl::StrCat(p.dilation_h)},
                      {"dw", absl::StrCat(p.dilation_w)},
                      {"start", max ? "-INFINITY" : "0.0f"},
                      {"count", max ? "" : divisor},
                      {"step", max                   ? "if (v > result || v != v) result = v;"
                               : p.count_include_pad ? "result += v;"
                                                     : "result += v, count += 1.0f;"},
                      {"finish", max ? "result" : "result / count"}});
}

}  // namespace grove::generate::catalogue::cuda
