// Reductions along one (merged) dimension.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/families.h"
#include "coordinator/generate/catalogue/cuda/text.h"

namespace grove::generate::catalogue::cuda {
namespace {

// State is a running value; logsumexp carries its maximum too.
constexpr char kState[] = R"cuda(
struct State {
  float value, top;
};
__device__ __forceinline__ State Start() { return {$start$, -INFINITY}; }
__device__ __forceinline__ void Add(State& s, float x) { $add$ }
__device__ __forceinline__ State Combine(State a, const State& b) {
  $combine$
  return a;
}
__device__ __forceinline__ float Result(const State& s) { return $result$; }
__device__ __forceinline__ State WarpCombine(State s) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) {
    State other;
    other.value = __shfl_xor_sync(0xffffffffu, s.value, lane);
    other.top = __shfl_xor_sync(0xffffffffu, s.top, lane);
    s = Combine(s, other);
  }
  return s;
}
)cuda";

constexpr char kRow[] = R"cuda(
constexpr int kWarps = kThreads / 32;
// The first warp gets the result.
__device__ __forceinline__ State BlockCombine(State s, State* scratch) {
  s = WarpCombine(s);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = s;
  __syncthreads();
  s = threadIdx.x < kWarps ? scratch[threadIdx.x] : Start();
  return WarpCombine(s);
}
// Columns [from, to) of a row, by all threads of the block; kBatch packs are loaded before they are used.
__device__ __forceinline__ State Walk(const Operands& ops, Index row, Index from, Index to) {
  State states[kBatch];
#pragma unroll
  for (int j = 0; j < kBatch; ++j) states[j] = Start();
  for (Index col = from + threadIdx.x * kVec; col < to; col += kThreads * kVec * kBatch) {
    float v[kBatch][kVec];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (col + j * kThreads * kVec < to) LoadPack(ops, row, col + j * kThreads * kVec, v[j]);
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (col + j * kThreads * kVec < to) {
#pragma unroll
        for (int i = 0; i < kVec; ++i) Add(states[j], v[j][i]);
      }
    }
  }
#pragma unroll
  for (int j = 1; j < kBatch; ++j) states[0] = Combine(states[0], states[j]);
  return states[0];
}
)cuda";

constexpr char kBlockRow[] = R"cuda(
__global__ void __launch_bounds__(kThreads) Reduce(Operands ops, float* out) {
  __shared__ State scratch[kWarps];
  const Index row = blockIdx.x;
  const State s = BlockCombine(Walk(ops, row, 0, kColumns), scratch);
  if (threadIdx.x == 0) out[row] = Finish(ops, Result(s), row, 0);
}
)cuda";

constexpr char kSplit[] = R"cuda(
__device__ State partial[static_cast<size_t>(kRows) * kSlices];

__global__ void __launch_bounds__(kThreads) Partial(Operands ops) {
  __shared__ State scratch[kWarps];
  const Index row = blockIdx.x / kSlices, slice = blockIdx.x % kSlices;
  const Index from = slice * kSliceColumns, to = from + kSliceColumns < kColumns ? from + kSliceColumns : kColumns;
  const State s = BlockCombine(Walk(ops, row, from, to), scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = s;
}
__global__ void __launch_bounds__(kThreads) Reduce(Operands ops, float* out) {
  __shared__ State scratch[kWarps];
  const Index row = blockIdx.x;
  State s = Start();
  for (int i = threadIdx.x; i < kSlices; i += kThreads) s = Combine(s, partial[row * kSlices + i]);
  s = BlockCombine(s, scratch);
  if (threadIdx.x == 0) out[row] = Finish(ops, Result(s), row, 0);
}
)cuda";

constexpr char kWarpRow[] = R"cuda(
constexpr int kWarps = kThreads / 32;
__global__ void __launch_bounds__(kThreads) Reduce(Operands ops, float* out) {
  const Index row = static_cast<Index>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= kRows) return;
  State s = Start();
#pragma unroll 4
  for (Index col = threadIdx.x % 32 * kVec; col < kColumns; col += 32 * kVec) {
    float v[kVec];
    LoadPack(ops, row, col, v);
#pragma unroll
    for (int i = 0; i < kVec; ++i) Add(s, v[i]);
  }
  s = WarpCombine(s);
  if (threadIdx.x % 32 == 0) out[row] = Finish(ops, Result(s), row, 0);
}
)cuda";

// A strided dimension: neighbouring threads own neighbouring columns, kDepth threads share one.
constexpr char kStrided[] = R"cuda(
__global__ void __launch_bounds__(32 * kDepth) Reduce(Operands ops, float* out) {
  __shared__ State states[kDepth][32];
  const Index row = blockIdx.x / kTiles;
  const Index inner = static_cast<Index>(blockIdx.x % kTiles) * 32 + threadIdx.x;
  State s = Start();
#pragma unroll 4
  for (Index k = threadIdx.y; k < kLength; k += kDepth) {
    if (inner < kInner) Add(s, Load(ops, row, k * kInner + inner));
  }
  states[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.y != 0 || inner >= kInner) return;
#pragma unroll
  for (int i = 1; i < kDepth; ++i) s = Combine(s, states[i][threadIdx.x]);
  out[row * kInner + inner] = Finish(ops, Result(s), row, inner);
}
)cuda";

constexpr char kLoad4[] = R"cuda(constexpr int kVec = 4;
__device__ __forceinline__ void LoadPack(const Operands& ops, Index row, Index col, float (&v)[kVec]) {
  const float4 t = Load4(ops, row, col);
  v[0] = t.x, v[1] = t.y, v[2] = t.z, v[3] = t.w;
}
)cuda";
constexpr char kLoad1[] = R"cuda(constexpr int kVec = 1;
__device__ __forceinline__ void LoadPack(const Operands& ops, Index row, Index col, float (&v)[kVec]) {
  v[0] = Load(ops, row, col);
}
)cuda";

class ReduceFamily : public CudaFamily {
 public:
  bool Matches(absl::string_view op) const override { return op.substr(0, 7) == "reduce_"; }

  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    if (!Matches(spec.operation) || !spec.reduce) return absl::FailedPreconditionError("no reduction");
    return CheckRows(spec, device);
  }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const RowsSpec& rows = *spec.rows;
    std::vector<Optimisation> list;
    if (rows.inner > 1) {
      list.push_back({.id = "depth",
                      .title = "Let several threads share one strided column",
                      .description =
                          "Neighbouring threads stay on neighbouring columns, so that reads coalesce, and several "
                          "rows of threads walk the reduced dimension together.",
                      .category = "parallelism",
                      .predicted_speedup = rows.outer * rows.inner < 65536 ? 4.0 : 1.2,
                      .parameters = {{"threads", {2, 4, 8, 16, 32}, 8, 2, "threads"}}});
    } else {
      if (VectorColumns(rows.n)) {
        list.push_back(
            {.id = "vector_loads",
             .title = "Read four floats at a time",
             .description = "16-byte reads need a quarter of the instructions and keep more bytes in flight.",
             .category = "memory",
             .predicted_speedup = 1.3});
      }
      list.push_back({.id = "batch",
                      .title = "Keep several independent running values",
                      .description =
                          "Several packs are loaded before they are used, each with its own running value: more loads "
                          "in flight and shorter chains of dependent additions.",
                      .category = "latency",
                      .predicted_speedup = 1.3,
                      .parameters = {{"packs", {2, 4, 8}, 4, 2, "packs"}},
                      .excludes = {"warp_per_row"}});
      if (rows.n >= 8192) {
        list.push_back(
            {.id = "split_rows",
             .title = "Cut each row into slices for many blocks",
             .description = "With few long rows one block per row leaves the device empty; slices give every "
                            "multiprocessor work, and a second small kernel combines them.",
             .category = "parallelism",
             .predicted_speedup = std::max(1.0, 0.5 * Multiprocessors(device) / static_cast<double>(rows.outer)),
             .parameters = {{"columns", {4096, 8192, 32768}, 8192, 4096, "columns"}},
             .excludes = {"warp_per_row"}});
      }
      if (rows.n <= 4096) {
        list.push_back({.id = "warp_per_row",
                        .title = "Give each row to one warp",
                        .description = "Short rows leave most of a block idle; a warp reduces by shuffles alone.",
                        .category = "parallelism",
                        .predicted_speedup = rows.n <= 1024 ? 2.0 : 1.2,
                        .excludes = {"batch", "split_rows"}});
      }
      list.push_back(
          {.id = "threads",
           .title = "Choose the number of threads of a block",
           .description = "More threads shorten each thread's walk; fewer leave room for more blocks at once.",
           .category = "parallelism",
           .predicted_speedup = 1.1,
           .parameters = {{"count", {128, 256, 512, 1024}, 512, 256, "threads"}}});
    }
    list.push_back(
        {.id = "stream",
         .title = "Mark the input as streaming",
         .description = "Evict-first reads keep data that is used once out of the way of what is used again.",
         .category = "memory",
         .predicted_speedup = 1.02});
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    std::vector<Start> starts;
    const std::vector<Optimisation> list = Optimisations(spec, device);
    auto add = [&](const char* title, const char* description, double speedup, std::vector<std::string> ids) {
      Recipe recipe;
      for (const std::string& id : ids) {
        if (Find(list, id) != nullptr) SwitchOn(list, id, &recipe);
      }
      starts.push_back({title, description, speedup, recipe});
    };
    if (spec.rows->inner > 1) {
      add("One thread per column", "Each thread walks one strided column.", 0.8, {});
      add("Shared columns", "Eight threads share a column.", 1.2, {"depth"});
      return starts;
    }
    add("One block per row", "256 threads walk the row one float at a time.", 0.7, {});
    if (spec.rows->outer < 4 * Multiprocessors(device) && Find(list, "split_rows") != nullptr) {
      add("Rows split over many blocks", "Slices reduced by vector loads, then combined.", 1.2,
          {"split_rows", "vector_loads", "batch"});
    }
    add("Vector loads in batches", "Four packs in flight per thread.", 1.05, {"vector_loads", "batch"});
    if (Find(list, "warp_per_row") != nullptr)
      add("One warp per row", "Shuffles only.", 1.1, {"warp_per_row", "vector_loads"});
    return starts;
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo&, const Recipe& recipe) const override {
    const RowsSpec& rows = *spec.rows;
    const int64_t columns = rows.n * rows.inner;
    const bool vector = rows.inner == 1 && recipe.Has("vector_loads");
    const int threads = static_cast<int>(recipe.Get("threads", "count", 256));
    Operands operands(spec);
    const std::string functions =
        MathPrelude({&spec.prologue, &spec.epilogue}) +
        ExprFunctions(spec.prologue, &operands, "Load", rows.outer, columns, false, vector) +
        ExprFunctions(spec.epilogue, &operands, "Finish", rows.outer, rows.inner, true, false);
    std::map<std::string, std::string> values = StateValues(spec.reduce->kind, rows.n);
    std::vector<std::pair<std::string, int64_t>> constants = {{"kRows", rows.outer}, {"kColumns", columns}};
    std::string body = kState, launch;
    if (rows.inner > 1) {
      const int64_t tiles = CeilDiv(rows.inner, 32);
      constants.insert(constants.end(), {{"kLength", rows.n},
                                         {"kInner", rows.inner},
                                         {"kTiles", tiles},
                                         {"kDepth", recipe.Get("depth", "threads", 1)}});
      body += kStrided;
      launch = absl::StrCat("  Reduce<<<dim3(", rows.outer * tiles, "), dim3(32, kDepth), 0, stream>>>(ops, out);\n");
    } else {
      constants.insert(constants.end(), {{"kThreads", threads}, {"kBatch", recipe.Get("batch", "packs", 1)}});
      body = (vector ? kLoad4 : kLoad1) + body;
      if (recipe.Has("warp_per_row")) {
        body += kWarpRow;
        launch = absl::StrCat("  Reduce<<<dim3(", CeilDiv(rows.outer, threads / 32),
                              "), kThreads, 0, stream>>>(ops, out);\n");
      } else if (recipe.Has("split_rows")) {
        const int64_t slice = recipe.Get("split_rows", "columns", 8192);
        constants.insert(constants.end(), {{"kSliceColumns", slice}, {"kSlices", CeilDiv(rows.n, slice)}});
        body += absl::StrCat(kRow, kSplit);
        launch =
            "  Partial<<<dim3(kRows * kSlices), kThreads, 0, stream>>>(ops);\n"
            "  Reduce<<<dim3(kRows), kThreads, 0, stream>>>(ops, out);\n";
      } else {
        body += absl::StrCat(kRow, kBlockRow);
        launch = "  Reduce<<<dim3(kRows), kThreads, 0, stream>>>(ops, out);\n";
      }
    }
    Source source;
    source.text = FileHead(absl::StrCat(spec.operation, " of ", rows.outer, " x ", rows.n, " x ", rows.inner),
                           SettingsText(recipe), rows.outer * columns, recipe.Has("stream")) +
                  Constants(constants) + "\n" + operands.Struct() + "\n" + functions + "\n" + Fill(body, values) +
                  "\nGROVE_KERNEL(args) {\n" + operands.HostFill() +
                  "  float* out = static_cast<float*>(args->outputs[0].data);\n"
                  "  const cudaStream_t stream = static_cast<cudaStream_t>(args->stream);\n" +
                  launch + "  return cudaGetLastError() == cudaSuccess ? 0 : 1;\n}\n";
    return source;
  }

 private:
  static std::map<std::string, std::string> StateValues(ReduceSpec::Kind kind, int64_t n) {
    using K = ReduceSpec::Kind;
    // NaN wins over everything in max and min, as in torch.
    switch (kind) {
      case K::kSum:
        return {{"start", "0.0f"}, {"add", "s.value += x;"}, {"combine", "a.value += b.value;"}, {"result", "s.value"}};
      case K::kMean:
        return {{"start", "0.0f"},
                {"add", "s.value += x;"},
                {"combine", "a.value += b.value;"},
                {"result", absl::StrCat("s.value / ", n, ".0f")}};
      case K::kMax:
        return {{"start", "-INFINITY"},
                {"add", "if (x > s.value || x != x) s.value = x;"},
                {"combine", "if (b.value > a.value || b.value != b.value) a.value = b.value;"},
                {"result", "s.value"}};
      case K::kMin:
        return {{"start", "INFINITY"},
                {"add", "if (x < s.value || x != x) s.value = x;"},
                {"combine", "if (b.value < a.value || b.value != b.value) a.value = b.value;"},
                {"result", "s.value"}};
      case K::kProd:
        return {{"start", "1.0f"}, {"add", "s.value *= x;"}, {"combine", "a.value *= b.value;"}, {"result", "s.value"}};
      case K::kL2:
        return {{"start", "0.0f"},
                {"add", "s.value += x * x;"},
                {"combine", "a.value += b.value;"},
                {"result", "sqrtf(s.value)"}};
      case K::kLogSumExp:
        return {{"start", "0.0f"},
                {"add",
                 "if (x > s.top) s.value = s.value * expf(s.top - x) + 1.0f, s.top = x;\n"
                 "  else if (x != -INFINITY) s.value += x == s.top ? 1.0f : expf(x - s.top);"},
                {"combine",
                 "const float top = fmaxf(a.top, b.top);\n"
                 "  if (top > -INFINITY) {\n"
                 "    a.value = (a.top == top ? a.value : a.value * expf(a.top - top)) +\n"
                 "              (b.top == top ? b.value : b.value * expf(b.top - top));\n"
                 "  } else {\n    a.value += b.value;\n  }\n  a.top = top;"},
                {"result", "s.top == INFINITY ? s.top : logf(s.value) + (s.top == -INFINITY ? 0.0f : s.top)"}};
    }
    return {};
  }
};

}  // namespace

const KernelFamily* ReduceKernels() {
  static const auto* const kFamily = new ReduceFamily;
  return kFamily;
}

}  // namespace grove::generate::catalogue::cuda
