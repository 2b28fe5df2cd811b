// 2-D convolutions with an elementwise epilogue and, when the problem has it, a pooling after that.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/families.h"
#include "coordinator/generate/catalogue/cuda/gemm_text.h"
#include "coordinator/generate/catalogue/cuda/packed_text.h"
#include "coordinator/generate/catalogue/cuda/pool_text.h"
#include "coordinator/generate/catalogue/cuda/text.h"

namespace grove::generate::catalogue::cuda {
namespace {

// A convolution is the product of the weights [channels, kK] with the patches [kK, pixels], where pixels counts over
// all images and kK over input channels, rows and columns of the window. Nothing is laid out: addresses are computed.
constexpr char kGeometry[] = R"cuda(
// Position of pixel p (over all images): image, and the input position of its window's corner (may be negative).
__device__ __forceinline__ void Corner(int p, int& image, int& y, int& x) {
  image = p / kPixels;
  const int inside = p % kPixels;
  y = inside / kOutW * kStrideH - kPadH;
  x = inside % kOutW * kStrideW - kPadW;
}
// The input value that weight k of group b meets at pixel p; null where the window hangs over the edge.
__device__ __forceinline__ const float* Patch(const Operands& ops, int b, int p, int k) {
  int image, y, x;
  Corner(p, image, y, x);
  const int channel = k / (kKH * kKW), r = k / kKW % kKH, s = k % kKW;
  y += r * kDilationH, x += s * kDilationW;
  if (static_cast<unsigned>(y) >= kH || static_cast<unsigned>(x) >= kW) return nullptr;
  return $input$ + ((static_cast<Index>(image) * kChannels + b * kGroupChannels + channel) * kH + y) * kW + x;
}
__device__ __forceinline__ const float* Weight(const Operands& ops, int b, int oc, int k) {
  return $weight$ + (static_cast<Index>(b) * kGroupOut + oc) * kWindow + k;
}
// Writes the result of output channel `oc` of group b at pixel p.
__device__ __forceinline__ void Put(const Operands& ops, float* out, int b, int oc, int p, float v) {
  const Index row = static_cast<Index>(p / kPixels) * (kGroupOut * kBatch) + b * kGroupOut + oc;
  out[row * kPixels + p % kPixels] = Finish(ops, v, row, p % kPixels);
}
)cuda";

constexpr char kAsWeightsTimesPatches[] = R"cuda(
__device__ __forceinline__ const float* PtrA(const Operands& ops, int b, int m, int k) { return Weight(ops, b, m, k); }
__device__ __forceinline__ const float* PtrB(const Operands& ops, int b, int k, int n) { return Patch(ops, b, n, k); }
__device__ __forceinline__ void Store(const Operands& ops, float* out, int b, int m, int n, float v) { Put(ops, out, b, m, n, v); }
__device__ __forceinline__ void Store2(const Operands& ops, float* out, int b, int m, int n, float v0, float v1) {
  Put(ops, out, b, m, n, v0);
  if (n + 1 < kN) Put(ops, out, b, m, n + 1, v1);
}
)cuda";

constexpr char kAsPatchesTimesWeights[] = R"cuda(
__device__ __forceinline__ float ElementA(const Operands& ops, int b, int m, int k) {
  const float* const p = Patch(ops, b, m, k);
  return p == nullptr ? 0.0f : __ldg(p);
}
__device__ __forceinline__ const float* PtrBk(const Operands& ops, int b, int n, int k) { return Weight(ops, b, n, k); }
__device__ __forceinline__ float ElementB(const Operands& ops, int b, int n, int k) { return __ldg(Weight(ops, b, n, k)); }
__device__ __forceinline__ const float* BaseA(const Operands& ops) { return $input$; }
__device__ __forceinline__ const float* BaseB(const Operands& ops) { return $weight$; }
__device__ __forceinline__ void Store2(const Operands& ops, float* out, int b, int m, int n, float v0, float v1) {
  Put(ops, out, b, n, m, v0);
  if (n + 1 < kN) Put(ops, out, b, n + 1, m, v1);
}
)cuda";

// For a gathering kernel: what depends on the pixel, and what depends on the window value, apart.
constexpr char kGather[] = R"cuda(
struct Place {
  const float* corner;  // of the window in the group's first channel; perhaps outside of the input
  int y, x;
};
__device__ __forceinline__ Place PlaceOf(const Operands& ops, int b, int m) {
  int image = 0, y = -1000000, x = 0;
  if (m < kM) Corner(m, image, y, x);
  return {$input$ + (static_cast<long long>(image * kChannels + b * kGroupChannels) * kH + y) * kW + x, y, x};
}
__device__ __forceinline__ int2 EntryOf(int k) {
  const int r = k / kKW % kKH * kDilationH, s = k % kKW * kDilationW;
  if (k >= kK) return make_int2(0, 0x7fff0000);  // a row that no input has
  return make_int2((k / (kKH * kKW) * kH + r) * kW + s, r << 16 | s);
}
__device__ __forceinline__ float Gather(const Place& place, int2 entry) {
  const bool inside = static_cast<unsigned>(place.y + (entry.y >> 16)) < kH && static_cast<unsigned>(place.x + (entry.y & 0xffff)) < kW;
  return inside ? __ldg(place.corner + entry.x) : 0.0f;
}
)cuda";

// One thread per output element, straight from the definition.
constexpr char kDirect[] = R"cuda(
__global__ void __launch_bounds__(256) Direct(Operands ops, float* out) {
  const Index i = static_cast<Index>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= static_cast<Index>(kBatch) * kGroupOut * kAllPixels) return;
  const int p = static_cast<int>(i % kAllPixels), channel = static_cast<int>(i / kAllPixels);
  const int b = channel / kGroupOut, oc = channel % kGroupOut;
  float sum = 0.0f;
  for (int k = 0; k < kWindow; ++k) {
    const float* const x = Patch(ops, b, p, k);
    if (x != nullptr) sum += __ldg(x) * __ldg(Weight(ops, b, oc, k));
  }
  Put(ops, out, b, oc, p, sum);
}
)cuda";

// Each thread computes kPerThread channels of one pixel: an input value is read once for all of them, and the weights
// of a slice of the window wait in shared memory.
constexpr char kShared[] = R"cuda(
constexpr int kSlice = kWindow < $slice$ ? kWindow : $slice$;
__global__ void __launch_bounds__(256) Direct(Operands ops, float* out) {
  __shared__ float weights[kSlice][kPerThread];
  const int b = blockIdx.z, oc0 = blockIdx.y * kPerThread;
  const int p = blockIdx.x * 256 + threadIdx.x;
  float sum[kPerThread] = {};
  for (int k0 = 0; k0 < kWindow; k0 += kSlice) {
    __syncthreads();
    for (int i = threadIdx.x; i < kSlice * kPerThread; i += 256) {
      const int k = i % kSlice, oc = i / kSlice;
      weights[k][oc] = k0 + k < kWindow && oc0 + oc < kGroupOut ? __ldg(Weight(ops, b, oc0 + oc, k0 + k)) : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < kSlice && k0 + k < kWindow; ++k) {
      const float* const x = p < kAllPixels ? Patch(ops, b, p, k0 + k) : nullptr;
      const float v = x != nullptr ? __ldg(x) : 0.0f;
#pragma unroll
      for (int j = 0; j < kPerThread; ++j) sum[j] += v * weights[k][j];
    }
  }
  if (p >= kAllPixels) return;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    if (oc0 + j < kGroupOut) Put(ops, out, b, oc0 + j, p, sum[j]);
  }
}
)cuda";

int64_t ResultElements(const Conv2dSpec& c) { return c.n * c.oc * c.oh * c.ow; }

class ConvFamily : public CudaFamily {
 public:
  bool Matches(absl::string_view op) const override {
    return op == "conv2d" || op == "conv2d_epilogue" || op == "conv2d_relu_maxpool" || op == "conv2d_epilogue_pool";
  }

  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo&) const override {
    if (!Matches(spec.operation) || !spec.conv2d) return absl::FailedPreconditionError("no convolution");
    const Conv2dSpec& c = *spec.conv2d;
    if (absl::Status status = CheckReadable(spec, spec.epilogue); !status.ok()) return status;
    for (int arg : {c.input, c.weight}) {
      if (spec.args[arg].scalar() || spec.args[arg].dtype() != "float32") {
        return absl::FailedPreconditionError(absl::StrCat("the CUDA catalogue convolves float32 tensors, and argument ",
                                                          arg, " is ", spec.args[arg].dtype()));
      }
    }
    if (absl::Status status = CheckOutput(spec); !status.ok()) return status;
    if (ResultElements(c) < 1) return absl::FailedPreconditionError("the result is empty");
    if (ResultElements(c) > INT32_MAX / 2 || c.n * c.c * c.h * c.w > INT32_MAX / 2 || c.groups > 65535) {
      return absl::FailedPreconditionError("the tensors are larger than 32-bit indices reach");
    }
    if (spec.pool && ResultElements(c) * 4 > int64_t{1} << 30) {
      return absl::FailedPreconditionError(
          "the convolution's result does not fit into 1 GiB of scratch memory before pooling");
    }
    return absl::OkStatus();
  }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const Conv2dSpec& c = *spec.conv2d;
    const int arch = ArchNumber(device);
    const int64_t out = c.oc / c.groups;
    std::vector<Optimisation> list;
    list.push_back(
        {.id = "channels",
         .title = "Let a thread compute several output channels",
         .description = "An input value is fetched once for several channels, whose weights wait in shared memory.",
         .category = "compute",
         .predicted_speedup = 4,
         .parameters = {{"per_thread", {4, 8, 16, 32}, 16, 4, "channels"}},
         .excludes = {"tile", "tf32_cores", "packed_split"}});
    list.push_back({.id = "tile",
                    .title = "Treat it as a matrix product, tiled for shared memory and registers (implicit GEMM)",
                    .description =
                        "Weights times patches: a block brings tiles of both into shared memory, computing the "
                        "addresses of patches on the fly, and every thread keeps a block of results in registers.",
                    .category = "compute",
                    .predicted_speedup = 8,
                    .parameters = {{"rows", {32, 64, 128}, out % 64 == 0 ? 64 : 32, 32, "channels"},
                                   {"columns", {64, 128}, 128, 64, "pixels"},
                                   {"depth", {8, 16}, 8, 8, "window values"},
                                   {"per_thread", {4, 8}, 8, 4, "channels and pixels per thread"}},
                    .excludes = {"channels", "tf32_cores", "packed_split"}});
    list.push_back(
        {.id = "double_buffer",
         .title = "Fetch the next tile while this one is multiplied",
         .description = "Two tiles in shared memory: loads for the next are issued before the arithmetic of this one.",
         .category = "latency",
         .predicted_speedup = 1.15,
         .needs = {"tile"}});
    if (arch >= 80) {
      list.push_back({.id = "tf32_cores",
                      .title = "Implicit GEMM on tensor cores with three TF32 products",
                      .description =
                          "Tiles of weights and patches come in by cp.async; each float is split into two TF32 numbers "
                          "in registers, and three products keep 22 bits of each operand.",
                      .category = "compute",
                      .predicted_speedup = 12,
                      .parameters = {{"rows",
                                      {32, 64, 96, 128},
                                      out % 96 == 0 ? 96
                                      : out > 64    ? 128
                                      : out > 32    ? 64
                                                    : 32,
                                      32,
                                      "channels"},
                                     {"columns", {64, 128}, 128, 64, "pixels"},
                                     {"depth", {16, 32}, 16, 16, "window values"},
                                     {"stages", {2, 3, 4}, 3, 2, "tiles in flight"}},
                      .excludes = {"channels", "tile", "packed_split"}});
      list.push_back({.id = "plain_tf32",
                      .title = "Drop the correction products",
                      .description =
                          "One TF32 product instead of three: a third of the arithmetic, 11 bits of each operand. "
                          "Only right where the tolerance allows it.",
                      .category = "precision",
                      .predicted_speedup = 1.5,
                      .needs = {"tf32_cores"}});
      const std::vector<int64_t> columns = PackedColumns(spec, device);
      if (!columns.empty()) {
        int64_t usual = columns.back();
        for (int64_t v : columns) {
          if (out % v == 0) usual = v;
        }
        list.push_back({.id = "packed_split",
                        .title = "Lay the patches out as 16-bit parts beforehand",
                        .description =
                            "A pass over the input writes every patch, scaled and split into fp16 (or bf16) parts, in "
                            "the tile layout that the tensor cores want; the product then runs at the 16-bit rate, "
                            "three products for 22 bits. Costs memory traffic for the patches.",
                        .category = "compute",
                        .predicted_speedup = 14,
                        .parameters = {{"columns", columns, usual, columns.front(), "channels"},
                                       {"format", {0, 1, 2}, 0, 0, "(0: two fp16, 1: two bf16, 2: three bf16)"}},
                        .excludes = {"channels", "tile", "tf32_cores"}});
        list.push_back({.id = "single_half",
                        .title = "Keep only the first 16-bit part",
                        .description =
                            "One product instead of three and half the traffic, 11 (fp16) or 8 (bf16) bits of each "
                            "operand. Only right where the tolerance allows it.",
                        .category = "precision",
                        .predicted_speedup = 1.6,
                        .needs = {"packed_split"}});
        if (arch == 90) {
          list.push_back({.id = "wgmma",
                          .title = "Issue the product by warpgroups, fed by bulk copies",
                          .description =
                              "Hopper's wgmma reads both operands from shared memory at the tensor core's full rate; "
                              "one thread brings whole tiles in with cp.async.bulk while two warpgroups multiply.",
                          .category = "compute",
                          .predicted_speedup = 1.3,
                          .needs = {"packed_split"}});
          if (GatherColumns(spec, device) > 0) {
            list.push_back({.id = "gather",
                            .title = "Gather and split the patches inside the multiplying kernel",
                            .description =
                                "Half of each block's threads fetch the patches of its pixels, split them and put them "
                                "where wgmma reads them, while the other half multiplies; the weights stay in shared "
                                "memory. The patches never travel through device memory.",
                            .category = "memory",
                            .predicted_speedup = 2.5,
                            .needs = {"packed_split", "wgmma"}});
          }
        }
      }
    }
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    std::vector<Start> starts = {
        {"Direct convolution", "One thread per output element, straight from the definition.", 0.05, {}}};
    const std::vector<Optimisation> list = Optimisations(spec, device);
    auto add = [&](const char* title, const char* description, double speedup, std::vector<std::string> ids) {
      Recipe recipe;
      for (const std::string& id : ids) {
        if (Find(list, id) != nullptr) SwitchOn(list, id, &recipe);
      }
      starts.push_back({title, description, speedup, recipe});
    };
    if (Find(list, "packed_split") != nullptr) {
      add("Patches split to fp16 on tensor cores", "Patches laid out as two fp16 parts, three products.", 2.0,
          {"packed_split", "wgmma", "gather"});
    }
    if (Find(list, "tf32_cores") != nullptr) {
      add("Implicit GEMM, three TF32 products", "Tiles by cp.async, operands split in registers.", 1.5, {"tf32_cores"});
    }
    add("Implicit GEMM in shared memory and registers", "8 x 8 results per thread, double buffering.", 0.6,
        {"tile", "double_buffer"});
    return starts;
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo& device, const Recipe& recipe) const override {
    const Conv2dSpec& c = *spec.conv2d;
    const int64_t window = c.c / c.groups * c.kh * c.kw, pixels = c.oh * c.ow, out_channels = c.oc / c.groups;
    const int64_t limit = SharedMemoryLimit(device);
    Operands operands(spec);
    std::map<std::string, std::string> values = {{"input", operands.Name(c.input)},
                                                 {"weight", operands.Name(c.weight)}};
    const std::string finish = MathPrelude({&spec.epilogue}) +
                               ExprFunctions(spec.epilogue, &operands, "Finish", c.n * c.oc, pixels, true, false);
    std::vector<std::pair<std::string, int64_t>> constants = {{"kBatch", c.groups},
                                                              {"kChannels", c.c},
                                                              {"kGroupChannels", c.c / c.groups},
                                                              {"kGroupOut", out_channels},
                                                              {"kWindow", window},
                                                              {"kPixels", pixels},
                                                              {"kAllPixels", c.n * pixels},
                                                              {"kH", c.h},
                                                              {"kW", c.w},
                                                              {"kOutW", c.ow},
                                                              {"kKH", c.kh},
                                                              {"kKW", c.kw},
                                                              {"kStrideH", c.stride_h},
                                                              {"kStrideW", c.stride_w},
                                                              {"kPadH", c.pad_h},
                                                              {"kPadW", c.pad_w},
                                                              {"kDilationH", c.dilation_h},
                                                              {"kDilationW", c.dilation_w}};
    std::string body, launch;
    if (recipe.Has("packed_split")) {
      constants.insert(constants.end(), {{"kM", c.n * pixels}, {"kN", out_channels}, {"kK", window}});
      PackedTile tile;
      const int64_t format = recipe.Get("packed_split", "format", 0);
      tile.bf16 = format != 0;
      tile.parts = recipe.Has("single_half") ? 1 : format == 2 ? 3 : 2;
      tile.bn = static_cast<int>(recipe.Get("packed_split", "columns", 64));
      while (tile.bn > 64 && 2 * PackedStageBytes(tile) > limit - 2048) tile.bn -= 32;
      tile.wgmma = recipe.Has("wgmma");
      tile.group = 1;
      tile.a_along_k = false;  // neighbouring threads take neighbouring pixels, all of them the same window value
      tile.b_along_k = true;
      tile.a_numel = c.n * c.c * c.h * c.w, tile.b_numel = c.oc * window;
      tile.b_vec = window % 4 == 0 ? 4 : 1;
      if (recipe.Has("gather")) {
        tile.gather = true;
        tile.bn = static_cast<int>(GatherColumns(spec, device));
        tile.multiprocessors = Multiprocessors(device);
        tile.k = window;
        if (!GatherFits(out_channels, window, tile, limit)) tile.parts = 2;  // three parts take more room
      }
      body =
          Fill(absl::StrCat(kAsPatchesTimesWeights, tile.gather ? kGather : ""), values) + PackedGemmText(tile, limit);
      launch = "  if (const int failed = PackedGemm(ops, result, stream)) return failed;\n";
    } else if (recipe.Has("tf32_cores") || recipe.Has("tile")) {
      constants.insert(constants.end(), {{"kM", out_channels}, {"kN", c.n * pixels}, {"kK", window}});
      constants.insert(constants.end(), {{"kAlongK_A", 1}, {"kAlongN_B", 1}, {"kVecB", 1}});
      int vec_a = window % 4 == 0 ? 4 : 1;
      if (recipe.Has("tf32_cores")) {
        MmaTile tile;
        tile.bm = static_cast<int>(recipe.Get("tf32_cores", "rows", 64));
        tile.bn = static_cast<int>(recipe.Get("tf32_cores", "columns", 128));
        tile.bk = static_cast<int>(recipe.Get("tf32_cores", "depth", 16));
        tile.stages = static_cast<int>(recipe.Get("tf32_cores", "stages", 2));
        tile.products = recipe.Has("plain_tf32") ? 1 : 3;
        tile.group = static_cast<int>(CeilDiv(out_channels, tile.bm));  // all channels of some pixels together
        body = GemmMmaText(tile, true, true, limit);
      } else {
        SimtTile tile;
        tile.bm = static_cast<int>(recipe.Get("tile", "rows", 32));
        tile.bn = static_cast<int>(recipe.Get("tile", "columns", 64));
        tile.bk = static_cast<int>(recipe.Get("tile", "depth", 8));
        tile.tm = tile.tn = static_cast<int>(recipe.Get("tile", "per_thread", 4));
        tile.buffers = recipe.Has("double_buffer") ? 2 : 1;
        tile.group = static_cast<int>(CeilDiv(out_channels, tile.bm));
        const int threads = tile.bm / tile.tm * (tile.bn / tile.tn);
        if (tile.bm * tile.bk % (threads * vec_a) != 0) vec_a = 1;
        body = GemmSimtText(tile);
      }
      constants.push_back({"kVecA", vec_a});
      body = kAsWeightsTimesPatches + body;
      launch = "  out = result;\n" + GemmLaunchText();
    } else if (recipe.Has("channels")) {
      const int64_t per_thread = recipe.Get("channels", "per_thread", 4);
      constants.push_back({"kPerThread", per_thread});
      values["slice"] = absl::StrCat(8192 / per_thread);
      body = Fill(kShared, values);
      launch = absl::StrCat("  Direct<<<dim3((kAllPixels + 255) / 256, ", CeilDiv(out_channels, per_thread),
                            ", kBatch), 256, 0, stream>>>(ops, result);\n"
                            "  if (cudaGetLastError() != cudaSuccess) return 1;\n");
    } else {
      body = kDirect;
      launch = absl::StrCat("  Direct<<<dim3(", CeilDiv(ResultElements(c), 256),
                            "), 256, 0, stream>>>(ops, result);\n  if (cudaGetLastError() != cudaSuccess) return 1;\n");
    }
    std::string result = "  float* const result = out;\n", pool_text, pool_launch;
    if (spec.pool) {
      pool_text = absl::StrCat("\n// The convolution's result on its way to the pooling.\n__device__ float convolved[",
                               ResultElements(c), "];\n", PoolText(*spec.pool, "const float* input", "input[i]"));
      result =
          "  void* convolved_address = nullptr;\n"
          "  if (cudaGetSymbolAddress(&convolved_address, convolved) != cudaSuccess) return 3;\n"
          "  float* const result = static_cast<float*>(convolved_address);\n";
      pool_launch = absl::StrCat("  Pool<<<dim3(", PoolBlocks(*spec.pool),
                                 "), 256, 0, stream>>>(result, static_cast<float*>(args->outputs[0].data));\n"
                                 "  if (cudaGetLastError() != cudaSuccess) return 1;\n");
    }
    Source source;
    source.text = FileHead(absl::StrCat(spec.operation, " of [", c.n, ", ", c.c, ", ", c.h, ", ", c.w, "] with [", c.oc,
                                        ", ", c.c / c.groups, ", ", c.kh, ", ", c.kw, "]"),
                           SettingsText(recipe), ResultElements(c), false) +
                  Constants(constants) + "\n" + operands.Struct() + "\n" + finish + Fill(kGeometry, values) + body +
                  pool_text + "\nGROVE_KERNEL(args) {\n" + operands.HostFill() +
                  "  float* out = static_cast<float*>(args->outputs[0].data);\n"
                  "  const cudaStream_t stream = static_cast<cudaStream_t>(args->stream);\n" +
                  result + launch + pool_launch + "  (void)out;\n  return 0;\n}\n";
    return source;
  }

 private:
  // The tile width of a gathering kernel: the narrowest that holds all channels of a group; 0 when none does.
  static int64_t GatherColumns(const OpSpec& spec, const v1::DeviceInfo& device) {
    const Conv2dSpec& c = *spec.conv2d;
    if (device.multiprocessors() <= 0 || c.kh * c.dilation_h > 16000 || c.kw * c.dilation_w > 16000) return 0;
    for (int columns : {16, 32, 64, 96, 128}) {
      PackedTile tile;
      tile.bn = columns;
      if (GatherFits(c.oc / c.groups, c.c / c.groups * c.kh * c.kw, tile, SharedMemoryLimit(device))) return columns;
    }
    return 0;
  }

  static std::vector<int64_t> PackedColumns(const OpSpec& spec, const v1::DeviceInfo& device) {
    const Conv2dSpec& c = *spec.conv2d;
    const int64_t out = c.oc / c.groups;
    std::vector<int64_t> result;
    for (int64_t columns : {64, 96, 128}) {
      PackedTile tile;
      tile.bn = static_cast<int>(columns);
      PackedTile most = tile;
      most.parts = 3;
      if (columns > 64 && out <= columns - 32) continue;
      if (2 * PackedStageBytes(tile) > SharedMemoryLimit(device) - 2048) continue;
      if (PackedBytes(c.groups, c.n * c.oh * c.ow, out, c.c / c.groups * c.kh * c.kw, most) > int64_t{1} << 30)
        continue;
      result.push_back(columns);
    }
    return result;
  }
};

}  // namespace

const KernelFamily* ConvKernels() {
  static const auto* const kFamily = new ConvFamily;
  return kFamily;
}

}  // namespace grove::generate::catalogue::cuda
