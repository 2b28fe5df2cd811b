// Softmax and log-softmax along one dimension.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/families.h"
#include "coordinator/generate/catalogue/cuda/rows_text.h"
#include "coordinator/generate/catalogue/cuda/text.h"

namespace grove::generate::catalogue::cuda {
namespace {

constexpr char kExp[] = R"cuda(
__device__ __forceinline__ float Exp(float x) { return $exp$(x); }  // x <= 0
// exp(from - to), also when a part of the row was empty or all -inf.
__device__ __forceinline__ float Rescale(float from, float to) { return from == to ? 1.0f : Exp(from - to); }
)cuda";

// Three passes over the row: maximum, sum, result.
constexpr char kThreePass[] = R"cuda(
__global__ void __launch_bounds__(kThreads) Softmax(Operands ops, float* out) {
  __shared__ float scratch[2][kWarps];
  const Index row = blockIdx.x;
  float top = -INFINITY;
  for (Index col = threadIdx.x * kVec; col < kColumns; col += kThreads * kVec) {
    float v[kVec];
    LoadPack(ops, row, col, v);
#pragma unroll
    for (int i = 0; i < kVec; ++i) top = fmaxf(top, v[i]);
  }
  top = BlockMax(top, scratch[0]);
  float sum = 0.0f;
  for (Index col = threadIdx.x * kVec; col < kColumns; col += kThreads * kVec) {
    float v[kVec];
    LoadPack(ops, row, col, v);
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum += Exp(v[i] - top);
  }
  sum = BlockSum(sum, scratch[1]);
  $scale$
  for (Index col = threadIdx.x * kVec; col < kColumns; col += kThreads * kVec) {
    float v[kVec];
    LoadPack(ops, row, col, v);
#pragma unroll
    for (int i = 0; i < kVec; ++i) v[i] = $value$;
    StorePack(out, ops, row, col, v);
  }
}
)cuda";

// Two passes: each thread keeps a running maximum and the sum relative to it.
constexpr char kOnline[] = R"cuda(
__global__ void __launch_bounds__(kThreads) Softmax(Operands ops, float* out) {
  __shared__ float scratch[2][kWarps];
  const Index row = blockIdx.x;
  float top = -INFINITY, sum = 0.0f;
  for (Index col = threadIdx.x * kVec; col < kColumns; col += kThreads * kVec * kBatch) {
    float v[kBatch][kVec];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (col + j * kThreads * kVec < kColumns) {
        LoadPack(ops, row, col + j * kThreads * kVec, v[j]);
      } else {
#pragma unroll
        for (int i = 0; i < kVec; ++i) v[j][i] = -INFINITY;
      }
    }
    float next = top;
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
#pragma unroll
      for (int i = 0; i < kVec; ++i) next = fmaxf(next, v[j][i]);
    }
    sum *= Rescale(top, next);
    top = next;
    const float base = top == -INFINITY ? 0.0f : top;
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
#pragma unroll
      for (int i = 0; i < kVec; ++i) sum += Exp(v[j][i] - base);
    }
  }
  const float own = top;
  top = BlockMax(top, scratch[0]);
  sum = BlockSum(sum * Rescale(own, top), scratch[1]);
  $scale$
  for (Index col = threadIdx.x * kVec; col < kColumns; col += kThreads * kVec) {
    float v[kVec];
    LoadPack(ops, row, col, v);
#pragma unroll
    for (int i = 0; i < kVec; ++i) v[i] = $value$;
    StorePack(out, ops, row, col, v);
  }
}
)cuda";

// One pass: the row stays in the registers of a block, or of a cluster of blocks.
constexpr char kOnChip[] = R"cuda(
__global__ void $cluster_dims$__launch_bounds__(kThreads) Softmax(Operands ops, float* out) {
  __shared__ float scratch[2][kWarps];
  __shared__ float partial[2];  // this block's maximum, and its sum relative to it
  const Index row = blockIdx.x / kCluster;
  const int rank = blockIdx.x % kCluster;
  float v[kPacks][kVec];
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    const Index col = ((j * kCluster + rank) * kThreads + threadIdx.x) * kVec;
    if (col < kColumns) {
      LoadPack(ops, row, col, v[j]);
    } else {
#pragma unroll
      for (int i = 0; i < kVec; ++i) v[j][i] = -INFINITY;
    }
  }
  float top = -INFINITY;
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
#pragma unroll
    for (int i = 0; i < kVec; ++i) top = fmaxf(top, v[j][i]);
  }
  top = BlockMax(top, scratch[0]);
  float sum = 0.0f;
  const float base = top == -INFINITY ? 0.0f : top;
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
#pragma unroll
    for (int i = 0; i < kVec; ++i) $accumulate$
  }
  sum = BlockSum(sum, scratch[1]);
$exchange$  $finish$
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    const Index col = ((j * kCluster + rank) * kThreads + threadIdx.x) * kVec;
    if (col < kColumns) {
#pragma unroll
      for (int i = 0; i < kVec; ++i) v[j][i] = $kept_value$;
      StorePack(out, ops, row, col, v[j]);
    }
  }
$leave$}
)cuda";

constexpr char kExchange[] = R"cuda(  if (threadIdx.x == 0) partial[0] = top, partial[1] = sum;
  ClusterArrive();
  ClusterWait();
  const float own = top;
  float tops[kCluster], sums[kCluster];
#pragma unroll
  for (int i = 0; i < kCluster; ++i) tops[i] = ReadOfBlock(&partial[0], i), sums[i] = ReadOfBlock(&partial[1], i);
  ClusterArrive();  // waited for at the end: a block must not leave while others read its shared memory
  sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kCluster; ++i) top = fmaxf(top, tops[i]);
#pragma unroll
  for (int i = 0; i < kCluster; ++i) sum += sums[i] * Rescale(tops[i], top);
)cuda";

// Each warp owns a row.
constexpr char kWarpRows[] = R"cuda(
__global__ void __launch_bounds__(kThreads) Softmax(Operands ops, float* out) {
  const Index row = static_cast<Index>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= kRows) return;
  float v[kPacks][kVec];
  float top = -INFINITY;
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    const Index col = (j * 32 + threadIdx.x % 32) * kVec;
    if (col < kColumns) {
      LoadPack(ops, row, col, v[j]);
    } else {
#pragma unroll
      for (int i = 0; i < kVec; ++i) v[j][i] = -INFINITY;
    }
#pragma unroll
    for (int i = 0; i < kVec; ++i) top = fmaxf(top, v[j][i]);
  }
  top = WarpMax(top);
  float sum = 0.0f;
  const float base = top == -INFINITY ? 0.0f : top;
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
#pragma unroll
    for (int i = 0; i < kVec; ++i) $accumulate$
  }
  sum = WarpSum(sum);
  $finish_warp$
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    const Index col = (j * 32 + threadIdx.x % 32) * kVec;
    if (col < kColumns) {
#pragma unroll
      for (int i = 0; i < kVec; ++i) v[j][i] = $kept_value$;
      StorePack(out, ops, row, col, v[j]);
    }
  }
}
)cuda";

// A strided dimension: neighbouring threads own neighbouring columns; kDepth threads share one.
constexpr char kStrided[] = R"cuda(
__global__ void __launch_bounds__(32 * kDepth) Softmax(Operands ops, float* out) {
  __shared__ float tops[kDepth][32], sums[kDepth][32];
  const Index row = blockIdx.x / kTiles;
  const Index inner = static_cast<Index>(blockIdx.x % kTiles) * 32 + threadIdx.x;
  const bool valid = inner < kInner;
  float top = -INFINITY, sum = 0.0f;
  for (Index k = threadIdx.y; valid && k < kLength; k += kDepth) {
    const float v = Load(ops, row, k * kInner + inner);
    const float next = fmaxf(top, v);
    if (next > -INFINITY || v != v) sum = sum * Rescale(top, next) + Exp(v - next);
    top = next;
  }
  tops[threadIdx.y][threadIdx.x] = top, sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kDepth; ++i) top = fmaxf(top, tops[i][threadIdx.x]);
#pragma unroll
  for (int i = 0; i < kDepth; ++i) sum += sums[i][threadIdx.x] * Rescale(tops[i][threadIdx.x], top);
  $scale$
  for (Index k = threadIdx.y; valid && k < kLength; k += kDepth) {
    const Index col = k * kInner + inner;
    float v[1] = {Load(ops, row, col)};
    const int i = 0;
    Write(out + row * kColumns + col, Finish(ops, $value$, row, col));
  }
}
)cuda";

constexpr char kLaunch[] = R"cuda(
GROVE_KERNEL(args) {
$fill$  float* out = static_cast<float*>(args->outputs[0].data);
  Softmax<<<$grid$, $block$, 0, static_cast<cudaStream_t>(args->stream)>>>(ops, out);
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
)cuda";

class SoftmaxFamily : public CudaFamily {
 public:
  bool Matches(absl::string_view operation) const override {
    return operation == "softmax" || operation == "log_softmax";
  }

  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    if (!Matches(spec.operation)) return absl::FailedPreconditionError("no softmax");
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
                          "rows of threads walk the softmax dimension together and merge their running maximum "
                          "and sum in shared memory: more loads in flight when there are few columns.",
                      .category = "parallelism",
                      .predicted_speedup = rows.outer * rows.inner < 65536 ? 3.0 : 1.2,
                      .parameters = {{"threads", {2, 4, 8, 16, 32}, 8, 2, "threads"}}});
    } else {
      if (VectorColumns(rows.n)) {
        list.push_back({.id = "vector_loads",
                        .title = "Read and write four floats at a time",
                        .description =
                            "16-byte accesses need a quarter of the instructions and keep more bytes in flight "
                            "per thread.",
                        .category = "memory",
                        .predicted_speedup = 1.3});
      }
      list.push_back({.id = "online",
                      .title = "Find the maximum and the sum in one pass (online softmax)",
                      .description =
                          "Each thread keeps a running maximum and rescales its sum when the maximum moves, so the "
                          "row is read twice instead of three times. Several packs are loaded before they are used.",
                      .category = "memory",
                      .predicted_speedup = 1.3,
                      .parameters = {{"batch", {1, 2, 4, 8}, 4, 1, "packs"}},
                      .excludes = {"on_chip", "warp_per_row"}});
      if (FitsOnChip(rows, device)) {
        list.push_back({.id = "on_chip",
                        .title = MaxCluster(device) > 1 ? "Keep the row in the registers of a cluster of blocks"
                                                        : "Keep the row in the registers of one block",
                        .description =
                            "The row is read from memory once and stays in registers until it is written; blocks of "
                            "a cluster exchange their maximum and sum through distributed shared memory. Memory "
                            "traffic falls to one read and one write.",
                        .category = "memory",
                        .predicted_speedup = 1.8,
                        .parameters = {{"elements", {8, 16, 32, 64}, 32, 16, "columns per thread"}},
                        .excludes = {"online", "warp_per_row"}});
      }
      if (rows.n <= 1024) {
        list.push_back({.id = "warp_per_row",
                        .title = "Give each row to one warp",
                        .description =
                            "Short rows leave most of a block idle and pay for two block barriers. A warp reduces by "
                            "shuffles alone, and several rows share a block.",
                        .category = "parallelism",
                        .predicted_speedup = rows.n <= 512 ? 3.0 : 1.5,
                        .excludes = {"online", "on_chip"}});
      }
      list.push_back({.id = "threads",
                      .title = "Choose the number of threads of a block",
                      .description =
                          "More threads shorten each thread's walk and hide latency; fewer leave room for more "
                          "blocks on a multiprocessor, whose phases then overlap.",
                      .category = "parallelism",
                      .predicted_speedup = 1.1,
                      .parameters = {{"count", {128, 256, 512, 1024}, 512, 256, "threads"}}});
    }
    list.push_back({.id = "fast_exp",
                    .title = "Use the hardware's exponential",
                    .description =
                        "ex2.approx with one multiplication instead of expf's range reduction; about 2 units in the "
                        "last place for arguments near zero, where softmax has its weight.",
                    .category = "precision",
                    .predicted_speedup = 1.05});
    list.push_back({.id = "stream",
                    .title = "Mark the data as streaming",
                    .description =
                        "Evict-first reads and writes keep data that is used once from displacing what is used again "
                        "in the L2 cache.",
                    .category = "memory",
                    .predicted_speedup = 1.03});
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const RowsSpec& rows = *spec.rows;
    std::vector<Start> starts;
    if (rows.inner > 1) {
      starts.push_back(
          {"One thread per column", "Each thread walks one strided column with an online softmax.", 1.0, {}});
      starts.push_back({"Shared columns", "Eight threads share a column; hardware exponential.", 1.5,
                        MakeRecipe({{"depth", 1}, {"depth.threads", 8}, {"fast_exp", 1}})});
      return starts;
    }
    starts.push_back({"One block per row, three passes",
                      "256 threads find the maximum, then the sum, then write; the row is read three times.",
                      0.6,
                      {}});
    const int vec = VectorColumns(rows.n) ? 1 : 0;
    if (rows.n <= 1024) {
      starts.push_back({"One warp per row", "The row lives in a warp's registers.", 1.5,
                        WithVector(vec, {{"warp_per_row", 1}, {"fast_exp", 1}})});
    }
    if (FitsOnChip(rows, device)) {
      starts.push_back({"One pass with the row on chip",
                        "Registers of a block or cluster hold the row; memory is read once.", 1.9,
                        WithVector(vec, {{"on_chip", 1}, {"on_chip.elements", 32}, {"fast_exp", 1}})});
    }
    starts.push_back({"Online softmax in two passes", "Running maximum and sum, then the result.", 1.2,
                      WithVector(vec, {{"online", 1}, {"online.batch", 4}, {"threads", 1}, {"threads.count", 1024}})});
    return starts;
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo& device, const Recipe& recipe) const override {
    const RowsSpec& rows = *spec.rows;
    const bool log = spec.operation == "log_softmax";
    const int64_t columns = rows.n * rows.inner;
    const bool vector = rows.inner == 1 && recipe.Has("vector_loads");
    const int vec = vector ? 4 : 1;
    int threads = static_cast<int>(recipe.Get("threads", "count", 256));

    Operands operands(spec);
    const std::string functions = MathPrelude({&spec.prologue, &spec.epilogue}) +
                                  ExprFunctions(spec.prologue, &operands, "Load", rows.outer, columns, false, vector) +
                                  ExprFunctions(spec.epilogue, &operands, "Finish", rows.outer, columns, true, vector);
    std::map<std::string, std::string> values = {
        {"exp", recipe.Has("fast_exp") ? "__expf" : "expf"},
        {"fill", operands.HostFill()},
        {"scale", log ? "const float shift = top + logf(sum);" : "const float scale = 1.0f / sum;"},
        {"value", log ? "v[i] - shift" : "Exp(v[i] - top) * scale"},
        {"accumulate", log ? "sum += Exp(v[j][i] - base);" : "sum += v[j][i] = Exp(v[j][i] - base);"},
        {"kept_value", log ? "v[j][i] - shift" : "v[j][i] * scale"},
        {"finish_warp", log ? "const float shift = top + logf(sum);" : "const float scale = 1.0f / sum;"},
    };
    std::vector<std::pair<std::string, int64_t>> constants = {{"kRows", rows.outer}, {"kColumns", columns}};
    std::string body;
    std::string more;
    if (rows.inner > 1) {
      const int64_t depth = recipe.Get("depth", "threads", 1);
      const int64_t tiles = CeilDiv(rows.inner, 32);
      constants.insert(constants.end(),
                       {{"kLength", rows.n}, {"kInner", rows.inner}, {"kTiles", tiles}, {"kDepth", depth}});
      body = kStrided;
      values["grid"] = absl::StrCat("dim3(", rows.outer * tiles, ")");
      values["block"] = "dim3(32, kDepth)";
    } else {
      int cluster = 1;
      values["grid"] = "dim3(kRows)";
      values["block"] = "dim3(kThreads)";
      if (recipe.Has("on_chip")) {
        OnChip plan = PlanOnChip(columns, vec, threads, static_cast<int>(recipe.Get("on_chip", "elements", 16)),
                                 MaxCluster(device));
        while (!plan.fits && threads < 1024) {
          threads *= 2;
          plan = PlanOnChip(columns, vec, threads, 64, MaxCluster(device));
        }
        if (!plan.fits) return absl::InternalError("the row does not fit on chip");
        threads = plan.threads;
        cluster = plan.cluster;
        constants.insert(constants.end(), {{"kCluster", cluster}, {"kPacks", plan.packs}});
        body = kOnChip;
        values["cluster_dims"] = cluster > 1 ? "__cluster_dims__(kCluster) " : "";
        values["exchange"] = cluster > 1 ? kExchange : "";
        values["leave"] = cluster > 1 ? "  ClusterWait();\n" : "";
        values["finish"] = log           ? "const float shift = top + logf(sum);"
                           : cluster > 1 ? "const float scale = Rescale(own, top) / sum;"
                                         : "const float scale = 1.0f / sum;";
        if (log && cluster > 1) values["finish"] += "\n  (void)own;";
        values["grid"] = absl::StrCat("dim3(", rows.outer * cluster, ")");
      } else if (recipe.Has("warp_per_row")) {
        threads = std::min(threads, 512);
        constants.push_back({"kPacks", CeilDiv(columns, 32 * vec)});
        body = kWarpRows;
        values["grid"] = absl::StrCat("dim3(", CeilDiv(rows.outer, threads / 32), ")");
      } else if (recipe.Has("online")) {
        constants.push_back({"kBatch", recipe.Get("online", "batch", 1)});
        body = kOnline;
      } else {
        body = kThreePass;
      }
      constants.push_back({"kThreads", threads});
      more = PackText(vec) + ReductionText(cluster);
    }
    Source source;
    source.text = FileHead(absl::StrCat(spec.operation, " of ", rows.outer, " x ", rows.n, " x ", rows.inner),
                           SettingsText(recipe), rows.outer * columns, recipe.Has("stream")) +
                  Constants(constants) + "\n" + operands.Struct() + "\n" + functions + "\n" + more +
                  Fill(absl::StrCat(kExp, body, kLaunch), values);
    return source;
  }

 private:
  static bool FitsOnChip(const RowsSpec& rows, const v1::DeviceInfo& device) {
    // With single-float packs, so that it holds with and without vector_loads.
    return PlanOnChip(rows.n, 1, 1024, 32, MaxCluster(device)).fits && rows.n > 32;
  }
  static Recipe WithVector(int vec, std::map<std::string, int64_t> settings) {
    if (vec) settings["vector_loads"] = 1;
    return MakeRecipe(std::move(settings));
  }
};

}  // namespace

const KernelFamily* SoftmaxKernels() {
  static const auto* const kFamily = new SoftmaxFamily;
  return kFamily;
}

}  // namespace grove::generate::catalogue::cuda
