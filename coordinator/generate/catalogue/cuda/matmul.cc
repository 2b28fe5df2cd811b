// Matrix products, batched and transposed ones too, with an elementwise epilogue.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/families.h"
#include "coordinator/generate/catalogue/cuda/gemm_text.h"
#include "coordinator/generate/catalogue/cuda/packed_text.h"
#include "coordinator/generate/catalogue/cuda/text.h"

namespace grove::generate::catalogue::cuda {
namespace {

// How an operand lies in memory. `along` is the direction of k for A and of n for B.
struct Lie {
  int64_t batch, outer, inner;  // strides: of the batch, of m (n), of k
  bool along_k;
  bool along_other;
  int vec;  // along the contiguous direction
};

Lie LieOf(const Operand& operand, int64_t batch_stride, int64_t outer_stride, int64_t k_stride, int64_t outer,
          int64_t k) {
  (void)operand;
  Lie lie{batch_stride, outer_stride, k_stride, k_stride == 1 || outer_stride != 1, false, 1};
  lie.along_other = !lie.along_k;
  if (lie.along_k && k_stride == 1 && k % 4 == 0 && outer_stride % 4 == 0 && batch_stride % 4 == 0) lie.vec = 4;
  if (lie.along_other && outer % 4 == 0 && k_stride % 4 == 0 && batch_stride % 4 == 0) lie.vec = 4;
  return lie;
}

int64_t Numel(const v1::TensorType& type) {
  int64_t n = 1;
  for (int64_t size : type.shape()) n *= size;
  return n;
}

std::string PointerText(const std::string& name, const std::string& args, const std::string& base, int64_t batch,
                        const std::string& x, int64_t sx, const std::string& y, int64_t sy) {
  return absl::StrCat("__device__ __forceinline__ const float* ", name, "(const Operands& ops, ", args,
                      ") {\n  return ", base, " + static_cast<Index>(b) * ", batch, " + static_cast<Index>(", x, ") * ",
                      sx, " + static_cast<Index>(", y, ") * ", sy, ";\n}\n");
}

class MatmulFamily : public CudaFamily {
 public:
  bool Matches(absl::string_view operation) const override {
    return operation == "matmul" || operation == "matmul_epilogue";
  }

  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo&) const override {
    if (!Matches(spec.operation) || !spec.matmul) return absl::FailedPreconditionError("no matrix product");
    const MatmulSpec& mm = *spec.matmul;
    if (absl::Status status = CheckReadable(spec, spec.epilogue); !status.ok()) return status;
    for (int arg : {mm.a.arg, mm.b.arg}) {
      if (spec.args[arg].scalar() || spec.args[arg].dtype() != "float32") {
        return absl::FailedPreconditionError(absl::StrCat(
            "the CUDA catalogue multiplies float32 matrices, and argument ", arg, " is ", spec.args[arg].dtype()));
      }
    }
    if (absl::Status status = CheckOutput(spec); !status.ok()) return status;
    if (mm.m < 1 || mm.n < 1 || mm.k < 1 || mm.batch < 1) return absl::FailedPreconditionError("a dimension is empty");
    if (mm.batch > 65535) return absl::FailedPreconditionError("more matrices in the batch than a grid has layers");
    if (mm.m > INT32_MAX / 2 || mm.n > INT32_MAX / 2 || mm.k > INT32_MAX / 2 ||
        CeilDiv(mm.m, 16) * CeilDiv(mm.n, 16) > INT32_MAX) {
      return absl::FailedPreconditionError("a matrix is larger than 32-bit indices reach");
    }
    return absl::OkStatus();
  }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const MatmulSpec& mm = *spec.matmul;
    const int arch = ArchNumber(device);
    std::vector<Optimisation> list;
    list.push_back({.id = "tile",
                    .title = "Tile for shared memory and registers",
                    .description =
                        "A block brings a tile of each operand into shared memory and every thread keeps a small "
                        "block of results in registers, so that each number fetched is used many times.",
                    .category = "compute",
                    .predicted_speedup = 6,
                    .parameters = {{"rows", {64, 128}, 128, 64, "rows"},
                                   {"columns", {64, 128}, 128, 64, "columns"},
                                   {"depth", {8, 16}, 16, 8, "k"},
                                   {"per_thread", {4, 8}, 8, 4, "rows and columns per thread"}},
                    .excludes = {"tf32_cores", "packed_split"}});
    list.push_back({.id = "double_buffer",
                    .title = "Fetch the next tile while this one is multiplied",
                    .description =
                        "Two tiles in shared memory: global loads for the next are issued before the arithmetic of "
                        "this one and stored after it, one barrier per tile.",
                    .category = "latency",
                    .predicted_speedup = 1.15,
                    .needs = {"tile"}});
    if (LieA(spec).vec == 4 || LieB(spec).vec == 4) {
      list.push_back({.id = "vector_loads",
                      .title = "Fetch four floats at a time",
                      .description = "16-byte loads along the contiguous direction of each operand.",
                      .category = "memory",
                      .predicted_speedup = 1.15,
                      .needs = {"tile"}});
    }
    if (arch >= 80) {
      list.push_back({.id = "tf32_cores",
                      .title = "Use tensor cores with three TF32 products",
                      .description =
                          "Each float is split into two TF32 numbers in registers; three tensor-core products keep "
                          "22 bits of each operand, and cp.async keeps several tiles in flight.",
                      .category = "compute",
                      .predicted_speedup = 10,
                      .parameters = {{"rows", {64, 128}, 128, 64, "rows"},
                                     {"columns", {64, 128}, 128, 64, "columns"},
                                     {"depth", {16, 32}, 32, 16, "k"},
                                     {"stages", {2, 3, 4}, 3, 2, "tiles in flight"}},
                      .excludes = {"tile", "packed_split"}});
      list.push_back({.id = "plain_tf32",
                      .title = "Drop the correction products",
                      .description =
                          "One TF32 product instead of three: a third of the arithmetic, 11 bits of each operand. "
                          "Only right where the tolerance allows it.",
                      .category = "precision",
                      .predicted_speedup = 1.6,
                      .needs = {"tf32_cores"}});
      const std::vector<int64_t> columns = PackedColumns(spec, device);
      if (!columns.empty()) {
        list.push_back({.id = "packed_split",
                        .title = "Split the operands into 16-bit parts beforehand",
                        .description =
                            "A pass over the operands scales every float by a power of two, splits it into fp16 (or "
                            "bf16) parts and stores them in the tile layout that the tensor cores want; the product "
                            "then runs at the 16-bit rate, three products for 22 bits, with nothing to convert.",
                        .category = "compute",
                        .predicted_speedup = 14,
                        .parameters = {{"columns", columns, Nearest(columns, 128), columns.front(), "columns"},
                                       {"format", {0, 1, 2}, 0, 0, "(0: two fp16, 1: two bf16, 2: three bf16)"}},
                        .excludes = {"tile", "tf32_cores"}});
        list.push_back(
            {.id = "single_half",
             .title = "Keep only the first 16-bit part",
             .description =
                 "One product instead of three: a third of the arithmetic and half the traffic, 11 (fp16) or "
                 "8 (bf16) bits of each operand. Only right where the tolerance allows it.",
             .category = "precision",
             .predicted_speedup = 2.2,
             .needs = {"packed_split"}});
        if (arch == 90) {
          list.push_back({.id = "wgmma",
                          .title = "Issue the product by warpgroups, fed by bulk copies",
                          .description =
                              "Hopper's wgmma reads both operands from shared memory at the tensor core's full rate; "
                              "one thread brings whole tiles in with cp.async.bulk while two warpgroups multiply.",
                          .category = "compute",
                          .predicted_speedup = 1.5,
                          .needs = {"packed_split"}});
          list.push_back({.id = "promote",
                          .title = "Accumulate outside the tensor cores",
                          .description =
                              "The tensor core cuts bits off its accumulator at every step. Each chunk's sum is added "
                              "to float32 registers instead, which rounds properly; needs twice the registers.",
                          .category = "precision",
                          .predicted_speedup = 1.0,
                          .needs = {"packed_split", "wgmma"}});
        }
      }
    }
    list.push_back({.id = "raster",
                    .title = "Walk the tiles in groups that share the cache",
                    .description =
                        "Blocks that run together take neighbouring tile rows and columns, so that their operands are "
                        "fetched from memory once and from the L2 cache after that.",
                    .category = "memory",
                    .predicted_speedup = mm.m * mm.n > (1 << 22) ? 1.1 : 1.0,
                    .parameters = {{"group", {2, 4, 8, 16}, 8, 4, "tile rows"}}});
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    std::vector<Start> starts = {
        {"One thread per element", "Every thread walks a row of A and a column of B in global memory.", 0.1, {}}};
    const std::vector<Optimisation> list = Optimisations(spec, device);
    auto add = [&](const char* title, const char* description, double speedup, std::vector<std::string> ids) {
      Recipe recipe;
      for (const std::string& id : ids) {
        if (Find(list, id) != nullptr) SwitchOn(list, id, &recipe);
      }
      starts.push_back({title, description, speedup, recipe});
    };
    if (Find(list, "wgmma") != nullptr) {
      add("Split fp16 operands on Hopper's tensor cores",
          "Operands packed as two fp16 parts; wgmma with three products.", 3.0,
          {"packed_split", "wgmma", "promote", "raster"});
    }
    if (Find(list, "tf32_cores") != nullptr) {
      add("Three TF32 products on the tensor cores", "Operands split in registers, tiles staged by cp.async.", 1.6,
          {"tf32_cores", "raster"});
    }
    add("Tiles in shared memory and registers", "128 x 128 tiles, 8 x 8 results per thread, double buffering.", 0.7,
        {"tile", "double_buffer", "vector_loads"});
    return starts;
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo& device, const Recipe& recipe) const override {
    const MatmulSpec& mm = *spec.matmul;
    const Lie a = LieA(spec), b = LieB(spec);
    const int64_t limit = SharedMemoryLimit(device);
    Operands operands(spec);
    const std::string base_a = operands.Name(mm.a.arg), base_b = operands.Name(mm.b.arg);
    const std::string finish = MathPrelude({&spec.epilogue}) +
                               ExprFunctions(spec.epilogue, &operands, "Finish", mm.batch * mm.m, mm.n, true, false);
    const int group = static_cast<int>(recipe.Get("raster", "group", 1));
    std::string body, launch;
    std::vector<std::pair<std::string, int64_t>> constants = {
        {"kBatch", mm.batch}, {"kM", mm.m}, {"kN", mm.n}, {"kK", mm.k}};
    std::string access = PointerText("PtrA", "int b, int m, int k", base_a, a.batch, "m", a.outer, "k", a.inner);
    if (recipe.Has("packed_split")) {
      PackedTile tile;
      const int64_t format = recipe.Get("packed_split", "format", 0);
      tile.bf16 = format != 0;
      tile.parts = recipe.Has("single_half") ? 1 : format == 2 ? 3 : 2;
      tile.bn = static_cast<int>(recipe.Get("packed_split", "columns", 128));
      tile.wgmma = recipe.Has("wgmma");
      tile.promote = recipe.Has("promote");
      if (tile.promote) tile.bn = std::min(tile.bn, 128);
      while (tile.bn > 64 && 2 * PackedStageBytes(tile) > limit - 2048) tile.bn -= 64;
      tile.group = group;
      tile.a_along_k = a.along_k, tile.b_along_k = b.along_k;
      tile.a_vec = a.along_k ? a.vec : 1, tile.b_vec = b.along_k ? b.vec : 1;
      tile.a_numel = Numel(spec.args[mm.a.arg]), tile.b_numel = Numel(spec.args[mm.b.arg]);
      access += PointerText("PtrBk", "int b, int n, int k", base_b, b.batch, "n", b.outer, "k", b.inner);
      absl::StrAppend(&access,
                      "__device__ __forceinline__ float ElementA(const Operands& ops, int b, int m, int k) { return "
                      "__ldg(PtrA(ops, b, "
                      "m, k)); }\n"
                      "__device__ __forceinline__ float ElementB(const Operands& ops, int b, int n, int k) { return "
                      "__ldg(PtrBk(ops, "
                      "b, n, k)); }\n"
                      "__device__ __forceinline__ const float* BaseA(const Operands& ops) { return ",
                      base_a, "; }\n__device__ __forceinline__ const float* BaseB(const Operands& ops) { return ",
                      base_b, "; }\n");
      body = PackedGemmText(tile, limit);
      launch = "  return PackedGemm(ops, out, stream);\n";
    } else {
      access += PointerText("PtrB", "int b, int k, int n", base_b, b.batch, "k", b.inner, "n", b.outer);
      const bool vector = recipe.Has("vector_loads") || recipe.Has("tf32_cores");
      int vec_a = vector ? a.vec : 1, vec_b = vector ? b.vec : 1;
      if (recipe.Has("tf32_cores")) {
        MmaTile tile;
        tile.bm = static_cast<int>(recipe.Get("tf32_cores", "rows", 128));
        tile.bn = static_cast<int>(recipe.Get("tf32_cores", "columns", 128));
        tile.bk = static_cast<int>(recipe.Get("tf32_cores", "depth", 32));
        tile.stages = static_cast<int>(recipe.Get("tf32_cores", "stages", 3));
        tile.products = recipe.Has("plain_tf32") ? 1 : 3;
        tile.group = group;
        body = GemmMmaText(tile, a.along_k, b.along_other, limit);
      } else if (recipe.Has("tile")) {
        SimtTile tile;
        tile.bm = static_cast<int>(recipe.Get("tile", "rows", 64));
        tile.bn = static_cast<int>(recipe.Get("tile", "columns", 64));
        tile.bk = static_cast<int>(recipe.Get("tile", "depth", 8));
        tile.tm = tile.tn = static_cast<int>(recipe.Get("tile", "per_thread", 4));
        tile.buffers = recipe.Has("double_buffer") ? 2 : 1;
        tile.group = group;
        const int threads = tile.bm / tile.tm * (tile.bn / tile.tn);
        if (tile.bm * tile.bk % (threads * vec_a) != 0) vec_a = 1;
        if (tile.bn * tile.bk % (threads * vec_b) != 0) vec_b = 1;
        if (tile.bm * tile.bk % threads != 0 || tile.bn * tile.bk % threads != 0) tile.bk = 16;
        body = GemmSimtText(tile);
      } else {
        body = GemmNaiveText();
      }
      constants.insert(constants.end(),
                       {{"kAlongK_A", a.along_k}, {"kAlongN_B", b.along_other}, {"kVecA", vec_a}, {"kVecB", vec_b}});
      launch = GemmLaunchText() + "  return 0;\n";
    }
    const std::string store = mm.n % 2 == 0
                                  ? "  *reinterpret_cast<float2*>(out + row * kN + n) = make_float2(f0, f1);\n"
                                  : "  out[row * kN + n] = f0;\n  if (n + 1 < kN) out[row * kN + n + 1] = f1;\n";
    const std::string second =
        mm.n % 2 == 0 ? "Finish(ops, v1, row, n + 1)" : "n + 1 < kN ? Finish(ops, v1, row, n + 1) : 0.0f";
    const std::string stores = absl::StrCat(
        "__device__ __forceinline__ void Store(const Operands& ops, float* out, int b, int m, int n, float v) {\n"
        "  const Index row = static_cast<Index>(b) * kM + m;\n  out[row * kN + n] = Finish(ops, v, row, n);\n}\n"
        "__device__ __forceinline__ void Store2(const Operands& ops, float* out, int b, int m, int n, float v0, float "
        "v1) {\n"
        "  const Index row = static_cast<Index>(b) * kM + m;\n"
        "  const float f0 = Finish(ops, v0, row, n), f1 = ",
        second, ";\n", store, "}\n");
    const int64_t elements = std::max({mm.batch * mm.m * mm.n, Numel(spec.args[mm.a.arg]), Numel(spec.args[mm.b.arg])});
    Source source;
    source.text =
        FileHead(absl::StrCat(spec.operation, ", ", mm.batch, " x [", mm.m, " x ", mm.k, "] [", mm.k, " x ", mm.n, "]"),
                 SettingsText(recipe), elements, false) +
        Constants(constants) + "\n" + operands.Struct() + "\n" + finish + "\n" + access + stores + "\n" + body +
        "\nGROVE_KERNEL(args) {\n" + operands.HostFill() +
        "  float* out = static_cast<float*>(args->outputs[0].data);\n"
        "  const cudaStream_t stream = static_cast<cudaStream_t>(args->stream);\n" +
        launch + "}\n";
    return source;
  }

 private:
  static Lie LieA(const OpSpec& spec) {
    const MatmulSpec& mm = *spec.matmul;
    return LieOf(mm.a, mm.a.strides[0], mm.a.strides[1], mm.a.strides[2], mm.m, mm.k);
  }
  static Lie LieB(const OpSpec& spec) {
    const MatmulSpec& mm = *spec.matmul;
    return LieOf(mm.b, mm.b.strides[0], mm.b.strides[2], mm.b.strides[1], mm.n, mm.k);
  }
  static int64_t Nearest(const std::vector<int64_t>& values, int64_t wanted) {
    return std::find(values.begin(), values.end(), wanted) != values.end() ? wanted : values.front();
  }
  // Tile widths for which two stages of two parts fit into shared memory and the packed operands into 1 GiB.
  static std::vector<int64_t> PackedColumns(const OpSpec& spec, const v1::DeviceInfo& device) {
    const MatmulSpec& mm = *spec.matmul;
    std::vector<int64_t> out;
    for (int64_t columns : {64, 128, 192, 256}) {
      PackedTile tile;
      tile.bn = static_cast<int>(columns);
      PackedTile most = tile;
      most.parts = 3;
      if (columns > 64 && mm.n <= columns - 64) continue;
      if (2 * PackedStageBytes(tile) > SharedMemoryLimit(device) - 2048) continue;
      if (PackedBytes(mm.batch, mm.m, mm.n, mm.k, most) > int64_t{1} << 30 || mm.k > 200000) continue;
      out.push_back(columns);
    }
    return out;
  }
};

}  // namespace

const KernelFamily* MatmulKernels() {
  static const auto* const kFamily = new MatmulFamily;
  return kFamily;
}

}  // namespace grove::generate::catalogue::cuda
