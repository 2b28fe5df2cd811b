// 2-D pooling.
#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/families.h"
#include "coordinator/generate/catalogue/cuda/pool_text.h"
#include "coordinator/generate/catalogue/cuda/text.h"

namespace grove::generate::catalogue::cuda {
namespace {

// A tile of the input is brought into shared memory, where windows that overlap share it.
constexpr char kTiled[] = R"cuda(
constexpr int kTileW = 32, kTileH = $rows$;
constexpr int kInW = (kTileW - 1) * $sw$ + ($kw$ - 1) * $dw$ + 1;
constexpr int kInH = (kTileH - 1) * $sh$ + ($kh$ - 1) * $dh$ + 1;
__global__ void __launch_bounds__(kTileW * kTileH) Pool(Operands ops, float* out) {
  __shared__ float tile[kInH][kInW];
  constexpr int kTilesX = ($ow$ + kTileW - 1) / kTileW, kTilesY = ($oh$ + kTileH - 1) / kTileH;
  const Index plane = blockIdx.x / (kTilesX * kTilesY);
  const int oy0 = static_cast<int>(blockIdx.x) / kTilesX % kTilesY * kTileH, ox0 = static_cast<int>(blockIdx.x) % kTilesX * kTileW;
  const int y0 = oy0 * $sh$ - $ph$, x0 = ox0 * $sw$ - $pw$;
  for (int i = threadIdx.x; i < kInH * kInW; i += kTileW * kTileH) {
    const int y = y0 + i / kInW, x = x0 + i % kInW;
    const bool inside = static_cast<unsigned>(y) < $h$u && static_cast<unsigned>(x) < $w$u;
    tile[i / kInW][i % kInW] = inside ? Load(ops, plane, static_cast<Index>(y) * $w$ + x) : $outside$;
  }
  __syncthreads();
  const int ty = static_cast<int>(threadIdx.x) / kTileW, tx = static_cast<int>(threadIdx.x) % kTileW;
  if (oy0 + ty >= $oh$ || ox0 + tx >= $ow$) return;
  float result = $outside$;
#pragma unroll
  for (int r = 0; r < $kh$; ++r) {
#pragma unroll
    for (int s = 0; s < $kw$; ++s) {
      const float v = tile[ty * $sh$ + r * $dh$][tx * $sw$ + s * $dw$];
      $step$
    }
  }
$divide$  out[(plane * $oh$ + oy0 + ty) * $ow$ + ox0 + tx] = result;
}
)cuda";

class PoolFamily : public CudaFamily {
 public:
  bool Matches(absl::string_view op) const override { return op == "max_pool2d" || op == "avg_pool2d"; }

  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo&) const override {
    if (!Matches(spec.operation) || !spec.pool) return absl::FailedPreconditionError("no pooling");
    if (absl::Status status = CheckReadable(spec, spec.prologue); !status.ok()) return status;
    if (absl::Status status = CheckOutput(spec); !status.ok()) return status;
    if (spec.pool->planes * spec.pool->oh * spec.pool->ow > INT32_MAX) {
      return absl::FailedPreconditionError("more elements than a grid has");
    }
    return absl::OkStatus();
  }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo&) const override {
    std::vector<Optimisation> list;
    std::vector<int64_t> rows;
    for (int64_t r : {4, 8, 16}) {
      if (TileBytes(*spec.pool, r) <= 48 * 1024) rows.push_back(r);
    }
    if (!rows.empty()) {
      list.push_back({.id = "tile",
                      .title = "Bring a tile of the input into shared memory",
                      .description =
                          "Windows overlap: a tile read once from memory serves all windows in it, and reads coalesce "
                          "whatever the stride.",
                      .category = "memory",
                      .predicted_speedup = 1.1,
                      .parameters = {{"rows", rows, rows.front(), rows.front(), "output rows"}}});
    }
    list.push_back({.id = "stream",
                    .title = "Mark the input as streaming",
                    .description = "Evict-first reads; right only where windows do not overlap.",
                    .category = "memory",
                    .predicted_speedup = 1.0});
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    std::vector<Start> starts = {
        {"One thread per output", "Each thread reads its window from global memory.", 1.0, {}}};
    const std::vector<Optimisation> list = Optimisations(spec, device);
    if (Find(list, "tile") != nullptr) {
      Recipe recipe;
      SwitchOn(list, "tile", &recipe);
      starts.push_back({"Tiles in shared memory", "A tile of the input serves all windows in it.", 1.1, recipe});
    }
    return starts;
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo&, const Recipe& recipe) const override {
    const Pool2dSpec& p = *spec.pool;
    Operands operands(spec);
    const std::string functions = MathPrelude({&spec.prologue}) +
                                  ExprFunctions(spec.prologue, &operands, "Load", p.planes, p.h * p.w, false, false);
    std::string body;
    std::string launch;
    // An average over the valid elements alone, or over windows that a tile cannot count, is left to the plain kernel.
    if (recipe.Has("tile") && !(p.kind == Pool2dSpec::Kind::kAvg && !p.count_include_pad)) {
      const int64_t rows = recipe.Get("tile", "rows", 4);
      const bool max = p.kind == Pool2dSpec::Kind::kMax;
      const std::string divide = absl::StrCat(
          "  const int y1 = y0 + ty * ", p.stride_h, " + ", p.kh, ", x1 = x0 + tx * ", p.stride_w, " + ", p.kw, ";\n",
          "  result /= static_cast<float>((", p.kh, " - (y1 > ", p.h + p.pad_h, " ? y1 - ", p.h + p.pad_h, " : 0)) * (",
          p.kw, " - (x1 > ", p.w + p.pad_w, " ? x1 - ", p.w + p.pad_w, " : 0)));\n");
      body = Fill(kTiled, {{"rows", absl::StrCat(rows)},
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
                           {"outside", max ? "-INFINITY" : "0.0f"},
                           {"step", max ? "if (v > result || v != v) result = v;" : "result += v;"},
                           {"divide", max ? "" : divide}});
      launch = absl::StrCat("dim3(", p.planes * CeilDiv(p.ow, 32) * CeilDiv(p.oh, rows), "), kTileW * kTileH");
    } else {
      body = PoolText(p, "Operands ops", "Load(ops, plane, inside)");
      launch = absl::StrCat("dim3(", PoolBlocks(p), "), 256");
    }
    Source source;
    source.text = FileHead(absl::StrCat(spec.operation, " of ", p.planes, " planes ", p.h, " x ", p.w),
                           SettingsText(recipe), p.planes * p.h * p.w, recipe.Has("stream")) +
                  operands.Struct() + "\n" + functions + body + "\nGROVE_KERNEL(args) {\n" + operands.HostFill() +
                  "  Pool<<<" + launch +
                  ", 0, static_cast<cudaStream_t>(args->stream)>>>(ops, static_cast<float*>(args->outputs[0].data));\n"
                  "  return cudaGetLastError() == cudaSuccess ? 0 : 1;\n}\n";
    return source;
  }

 private:
  static int64_t TileBytes(const Pool2dSpec& p, int64_t rows) {
    return ((rows - 1) * p.stride_h + (p.kh - 1) * p.dilation_h + 1) *
           (31 * p.stride_w + (p.kw - 1) * p.dilation_w + 1) * 4;
  }
};

}  // namespace

const KernelFamily* PoolKernels() {
  static const auto* const kFamily = new PoolFamily;
  return kFamily;
}

}  // namespace grove::generate::catalogue::cuda
