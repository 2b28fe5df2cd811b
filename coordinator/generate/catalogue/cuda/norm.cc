// Layer, group, instance, RMS and L2 norms along one (merged) dimension.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/families.h"
#include "coordinator/generate/catalogue/cuda/rows_text.h"
#include "coordinator/generate/catalogue/cuda/text.h"
#include "coordinator/generate/catalogue/emit.h"

namespace grove::generate::catalogue::cuda {
namespace {

// Count, mean and sum of squared deviations of a part of a row, and how two parts become one (Chan, Golub and LeVeque,
// 1979). Nothing is subtracted that is larger than the deviations themselves, and the mean is kept as the sum of two
// floats, so an offset of the data costs no digits. For RMS and L2 norms the mean is 0 by definition and m2 the sum of
// squares.
constexpr char kMerge[] = R"cuda(
struct Moments {
  float count, mean, low, m2;  // the mean is mean + low
};
__device__ __forceinline__ Moments Merge(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (kCentred == 0) return {count, 0.0f, 0.0f, a.m2 + b.m2};
  if (a.count == 0.0f || b.count == 0.0f) return a.count == 0.0f ? b : a;  // an empty part must not touch `low`
  const float share = b.count / count, delta = (b.mean - a.mean) + (b.low - a.low);
  const float step = a.low + delta * share;
  const float mean = a.mean + step, back = mean - a.mean;  // two-sum (Knuth): mean + low is a.mean + step exactly
  return {count, mean, (a.mean - (mean - back)) + (step - back), a.m2 + b.m2 + delta * delta * a.count * share};
}
__device__ __forceinline__ float Centre(float x, const Moments& m) { return kCentred ? (x - m.mean) - m.low : x; }
)cuda";

constexpr char kMoments[] = R"cuda(
__device__ __forceinline__ Moments WarpMerge(Moments v) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) {
    Moments other;
    other.count = __shfl_xor_sync(0xffffffffu, v.count, lane);
    other.mean = __shfl_xor_sync(0xffffffffu, v.mean, lane);
    other.low = __shfl_xor_sync(0xffffffffu, v.low, lane);
    other.m2 = __shfl_xor_sync(0xffffffffu, v.m2, lane);
    v = Merge(v, other);
  }
  return v;
}
// Every thread gets the result.
__device__ __forceinline__ Moments BlockMerge(Moments v, Moments* scratch) {
  v = WarpMerge(v);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  v = lane < kThreads / 32 ? scratch[lane] : Moments{0.0f, 0.0f, 0.0f, 0.0f};
  return WarpMerge(v);
}
__device__ __forceinline__ float ScaleOf(const Moments& total) {
  return $scale$;
}
// The moments of `batch` packs of which the first `valid` count; the packs stay as they are.
template <int kPacksOf>
__device__ __forceinline__ Moments PackMoments(const float (&v)[kPacksOf][kVec], int valid) {
  Moments result = {static_cast<float>(valid * kVec), 0.0f, 0.0f, 0.0f};
  if (kCentred) {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < kPacksOf; ++j) {
#pragma unroll
      for (int i = 0; i < kVec; ++i) sum += j < valid ? v[j][i] : 0.0f;
    }
    result.mean = valid > 0 ? sum / result.count : 0.0f;
  }
  float rest = 0.0f;
#pragma unroll
  for (int j = 0; j < kPacksOf; ++j) {
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      const float d = j < valid ? v[j][i] - result.mean : 0.0f;
      rest += d;
      result.m2 += d * d;
    }
  }
  if (kCentred && valid > 0) {  // what the rounded mean left over
    result.low = rest / result.count;
    result.m2 -= rest * result.low;
  }
  return result;
}
)cuda";

// The moments of columns [from, to) of a row, by all threads of the block. Two ways.
constexpr char kChunkedSlice[] = R"cuda(
// Chunks of kBatch packs are loaded together; each gives exact moments, which are merged into the running ones.
__device__ __forceinline__ Moments SliceMoments(const Operands& ops, Index row, Index from, Index to) {
  Moments total = {0.0f, 0.0f, 0.0f, 0.0f};
  for (Index col = from + threadIdx.x * kVec; col < to; col += kThreads * kVec * kBatch) {
    float v[kBatch][kVec];
    int valid = 0;
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const Index c = col + j * kThreads * kVec;
      if (c < to) LoadPack(ops, row, c, v[j]), valid = j + 1;
    }
    total = Merge(total, PackMoments<kBatch>(v, valid));
  }
  return total;
}
)cuda";
constexpr char kSumsSlice[] = R"cuda(
// Plain sums of x and x^2: fewest instructions, but the digits that mean^2 and the mean of x^2 share are lost.
__device__ __forceinline__ Moments SliceMoments(const Operands& ops, Index row, Index from, Index to) {
  float sum = 0.0f, squares = 0.0f, count = 0.0f;
  for (Index col = from + threadIdx.x * kVec; col < to; col += kThreads * kVec * kBatch) {
    float v[kBatch][kVec];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const Index c = col + j * kThreads * kVec;
      if (c < to) {
        LoadPack(ops, row, c, v[j]);
        count += kVec;
      } else {
#pragma unroll
        for (int i = 0; i < kVec; ++i) v[j][i] = 0.0f;
      }
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
#pragma unroll
      for (int i = 0; i < kVec; ++i) sum += v[j][i], squares += v[j][i] * v[j][i];
    }
  }
  if (count == 0.0f) return {0.0f, 0.0f, 0.0f, 0.0f};
  if (!kCentred) return {count, 0.0f, 0.0f, squares};
  return {count, sum / count, 0.0f, fmaxf(squares - sum * (sum / count), 0.0f)};
}
)cuda";

// One block per row.
constexpr char kBlockRow[] = R"cuda(
__global__ void __launch_bounds__(kThreads) Norm(Operands ops, float* out) {
  __shared__ Moments scratch[kThreads / 32];
  const Index row = blockIdx.x;
  const Moments total = BlockMerge(SliceMoments(ops, row, 0, kColumns), scratch);
  const float scale = ScaleOf(total);
  for (Index col = threadIdx.x * kVec; col < kColumns; col += kThreads * kVec) {
    float v[kVec];
    LoadPack(ops, row, col, v);
#pragma unroll
    for (int i = 0; i < kVec; ++i) v[i] = Centre(v[i], total) * scale;
    StorePack(out, ops, row, col, v);
  }
}
)cuda";

// Rows cut into slices: one kernel finds each slice's moments, the next merges them and writes.
constexpr char kSplitRow[] = R"cuda(
__device__ Moments partial[static_cast<size_t>(kRows) * kSlices];

// Rows row0 .. row0 + kTogether. Blocks take slice after slice, all those rows of a slice together: what the epilogue reads
// per column is shared by them.
__global__ void __launch_bounds__(kThreads) Statistics(Operands ops, Index row0) {
  __shared__ Moments scratch[kThreads / 32];
  const Index row = row0 + blockIdx.x % kTogether, slice = blockIdx.x / kTogether;
  if (row >= kRows) return;
  const Index from = slice * kSliceColumns, to = from + kSliceColumns < kColumns ? from + kSliceColumns : kColumns;
  const Moments total = BlockMerge(SliceMoments(ops, row, from, to), scratch);
  if (threadIdx.x == 0) partial[row * kSlices + slice] = total;
}

__global__ void __launch_bounds__(kThreads) Norm(Operands ops, float* out, Index row0) {
  __shared__ Moments scratch[kThreads / 32];
  const Index block = $apply_block$;
  const Index row = row0 + block % kTogether, slice = block / kTogether;
  if (row >= kRows) return;
  Moments total = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int i = threadIdx.x; i < kSlices; i += kThreads) total = Merge(total, partial[row * kSlices + i]);
  total = BlockMerge(total, scratch);
  const float scale = ScaleOf(total);
  const Index from = slice * kSliceColumns, to = from + kSliceColumns < kColumns ? from + kSliceColumns : kColumns;
#pragma unroll $unroll$
  for (Index col = from + threadIdx.x * kVec; col < to; col += kThreads * kVec) {
    float v[kVec];
    LoadPack(ops, row, col, v);
#pragma unroll
    for (int i = 0; i < kVec; ++i) v[i] = Centre(v[i], total) * scale;
    StorePack(out, ops, row, col, v);
  }
}
)cuda";

// The row stays in the registers of a block, or of a cluster of blocks.
constexpr char kOnChip[] = R"cuda(
__global__ void $cluster_dims$__launch_bounds__(kThreads) Norm(Operands ops, float* out) {
  __shared__ Moments scratch[kThreads / 32];
  const Index row = blockIdx.x / kCluster;
  const int rank = blockIdx.x % kCluster;
  float v[kPacks][kVec];
  int valid = 0;
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    const Index col = ((j * kCluster + rank) * kThreads + threadIdx.x) * kVec;
    if (col < kColumns) LoadPack(ops, row, col, v[j]), valid = j + 1;
  }
  Moments total = BlockMerge(PackMoments<kPacks>(v, valid), scratch);
$exchange$  const float scale = ScaleOf(total);
#pragma unroll
  for (int j = 0; j < kPacks; ++j) {
    const Index col = ((j * kCluster + rank) * kThreads + threadIdx.x) * kVec;
    if (col < kColumns) {
#pragma unroll
      for (int i = 0; i < kVec; ++i) v[j][i] = Centre(v[j][i], total) * scale;
      StorePack(out, ops, row, col, v[j]);
    }
  }
$leave$}
)cuda";

constexpr char kExchange[] = R"cuda(  __shared__ Moments own;
  if (threadIdx.x == 0) own = total;
  ClusterArrive();
  ClusterWait();
  total = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < kCluster; ++i) {
    total = Merge(total, {ReadOfBlock(&own.count, i), ReadOfBlock(&own.mean, i), ReadOfBlock(&own.low, i),
                          ReadOfBlock(&own.m2, i)});
  }
  ClusterArrive();  // waited for at the end: a block must not leave while others read its shared memory
)cuda";

// All blocks of a group hold one row in their registers while the next row is on its way into shared memory.
constexpr char kResident[] = R"cuda(
// Blocks kGroupBlocks * g .. form group g, which takes rows g, g + kGroups, ... The launch is cooperative: every block of
// the grid runs at once, so that they may wait for each other.
__device__ float4 slots[static_cast<size_t>(kRows) * kGroupBlocks];
__device__ unsigned arrived[kRows];  // blocks that have stored their moments of a row; 0 between calls
__device__ unsigned left;            // blocks that are done with the kernel; the last one clears `arrived`

__device__ __forceinline__ unsigned AddRelease(unsigned* p) {
  unsigned old;
  asm volatile("atom.add.release.gpu.u32 %0, [%1], 1;" : "=r"(old) : "l"(p) : "memory");
  return old;
}
__device__ __forceinline__ unsigned LoadAcquire(const unsigned* p) {
  unsigned value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}

__global__ void __launch_bounds__(kThreads, 1) Norm(Operands ops, float* out) {
  extern __shared__ float4 shared[];  // kPacks packs per thread: the next row; then kKept packs of $kept_what$
  __shared__ Moments scratch[kThreads / 32];
  __shared__ Moments merged;
  const int group = blockIdx.x / kGroupBlocks, rank = blockIdx.x % kGroupBlocks;
  const Index first = (static_cast<Index>(rank) * kPacks * kThreads + threadIdx.x) * 4;
  int valid = 0;
#pragma unroll
  for (int j = 0; j < kPacks; ++j) valid = first + j * kThreads * 4 < kColumns ? j + 1 : valid;

  auto prefetch = [&](Index row) {
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      if (j < valid) {
        const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared + j * kThreads + threadIdx.x));
        const float* const from = Address(ops, row, first + j * kThreads * 4);
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  if (group < kRows) prefetch(group);
$keep$  for (Index row = group; row < kRows; row += kGroups) {
    asm volatile("cp.async.wait_all;" ::: "memory");  // each thread reads only what it fetched itself: no barrier
    float v[kPacks][kVec];
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const float4 t = j < valid ? shared[j * kThreads + threadIdx.x] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      v[j][0] = t.x, v[j][1] = t.y, v[j][2] = t.z, v[j][3] = t.w;
    }
    Moments total = PackMoments<kPacks>(v, valid);
    if (row + kGroups < kRows) prefetch(row + kGroups);
    total = BlockMerge(total, scratch);
    if (threadIdx.x == 0) {
      __stcg(&slots[row * kGroupBlocks + rank], make_float4(total.count, total.mean, total.low, total.m2));
      AddRelease(&arrived[row]);
    }
    if (threadIdx.x < 32) {
      while (LoadAcquire(&arrived[row]) < kGroupBlocks) {
      }
      total = {0.0f, 0.0f, 0.0f, 0.0f};
      for (int i = threadIdx.x; i < kGroupBlocks; i += 32) {
        const float4 part = __ldcg(&slots[row * kGroupBlocks + i]);
        total = Merge(total, {part.x, part.y, part.z, part.w});
      }
      total = WarpMerge(total);
      if (threadIdx.x == 0) merged = total;
    }
    __syncthreads();
    total = merged;
    const float scale = ScaleOf(total);
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      if (j < valid) {
        const Index col = first + j * kThreads * 4;
#pragma unroll
        for (int i = 0; i < kVec; ++i) v[j][i] = Centre(v[j][i], total) * scale;
        StoreKept(out, ops, row, col, v[j], shared, j);
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0 && AddRelease(&left) == gridDim.x - 1) {  // every block is past its last wait
    for (int i = 0; i < kRows; ++i) arrived[i] = 0;
    left = 0;
    __threadfence();
  }
}
)cuda";

// A strided dimension: neighbouring threads own neighbouring columns; kDepth threads share one.
constexpr char kStrided[] = R"cuda(
__global__ void __launch_bounds__(32 * kDepth) Norm(Operands ops, float* out) {
  __shared__ Moments parts[kDepth][32];
  const Index row = blockIdx.x / kTiles;
  const Index inner = static_cast<Index>(blockIdx.x % kTiles) * 32 + threadIdx.x;
  const bool valid = inner < kInner;
  Moments total = {0.0f, 0.0f, 0.0f, 0.0f};
  // Everything is taken relative to the column's first value, so that sums stay small whatever the offset.
  const float shift = kCentred && valid ? Load(ops, row, inner) : 0.0f;
  if (valid) {
    float sum = 0.0f, squares = 0.0f, count = 0.0f;
    for (Index k = threadIdx.y; k < kLength; k += kDepth) {
      const float d = Load(ops, row, k * kInner + inner) - shift;
      sum += d, squares += d * d, count += 1.0f;
    }
    if (count > 0.0f) total = {count, sum / count, 0.0f, kCentred ? fmaxf(squares - sum * (sum / count), 0.0f) : squares};
  }
  parts[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  total = parts[0][threadIdx.x];
#pragma unroll
  for (int i = 1; i < kDepth; ++i) total = Merge(total, parts[i][threadIdx.x]);
  const float scale = $scale$;
  for (Index k = threadIdx.y; valid && k < kLength; k += kDepth) {
    const Index col = k * kInner + inner;
    Write(out + row * kColumns + col, Finish(ops, Centre(Load(ops, row, col) - shift, total) * scale, row, col));
  }
}
)cuda";

constexpr char kLaunchHead[] = R"cuda(
GROVE_KERNEL(args) {
$fill$  float* out = static_cast<float*>(args->outputs[0].data);
  const cudaStream_t stream = static_cast<cudaStream_t>(args->stream);
)cuda";

constexpr char kLaunchResident[] = R"cuda(  static const bool ready =
      cudaFuncSetAttribute(Norm, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared) == cudaSuccess;
  if (!ready) return 3;
  void* arguments[] = {&ops, &out};
  const cudaError_t error = cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(Norm), dim3(kGroups * kGroupBlocks),
                                                        dim3(kThreads), arguments, kShared, stream);
  return error == cudaSuccess && cudaGetLastError() == cudaSuccess ? 0 : 1;
}
)cuda";

// How the resident schedule lays rows over the device.
struct Resident {
  int packs = 0, kept = 0;
  int64_t group_blocks = 0, groups = 0;
  bool fits = false;
};

class NormFamily : public CudaFamily {
 public:
  bool Matches(absl::string_view op) const override {
    return op == "layer_norm" || op == "group_norm" || op == "instance_norm" || op == "rms_norm" || op == "l2_norm";
  }

  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    if (!Matches(spec.operation) || !spec.norm) return absl::FailedPreconditionError("no norm");
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
                          "rows of threads walk the normalised dimension together and merge their moments in "
                          "shared memory.",
                      .category = "parallelism",
                      .predicted_speedup = rows.outer * rows.inner < 65536 ? 3.0 : 1.2,
                      .parameters = {{"threads", {2, 4, 8, 16}, 8, 2, "threads"}}});
    } else {
      if (VectorColumns(rows.n)) {
        list.push_back({.id = "vector_loads",
                        .title = "Read and write four floats at a time",
                        .description =
                            "16-byte accesses need a quarter of the instructions and keep more bytes in flight "
                            "per thread.",
                        .category = "memory",
                        .predicted_speedup = 1.5});
      }
      list.push_back({.id = "batch",
                      .title = "Load several packs before using them",
                      .description =
                          "Independent loads in flight hide memory latency; the moments of a batch are exact and are "
                          "merged into the running ones by Chan's formula once per batch, not once per element.",
                      .category = "latency",
                      .predicted_speedup = 1.4,
                      .parameters = {{"packs", {2, 4, 8}, 4, 2, "packs"}},
                      .excludes = {"on_chip", "resident"}});
      if (rows.n >= 4096) {
        list.push_back(
            {.id = "split_rows",
             .title = "Cut each row into slices for many blocks",
             .description = "With few long rows one block per row leaves the device empty. Slices give every "
                            "multiprocessor work; their moments are merged by the kernel that writes.",
             .category = "parallelism",
             .predicted_speedup = std::max(1.0, 0.5 * Multiprocessors(device) / static_cast<double>(rows.outer)),
             .parameters = {{"columns", UpTo({2048, 4096, 8192, 16384, 32768}, rows.n),
                             UpTo({8192}, rows.n)[0] > rows.n ? 2048 : 8192, 4096, "columns"}},
             .excludes = {"on_chip", "resident"}});
        // Keep usual and safe inside the list for short rows.
        Parameter& columns = list.back().parameters[0];
        columns.usual = std::min(columns.usual, columns.values.back());
        columns.safe = std::min(columns.safe, columns.values.back());
        if (rows.outer > 1 && rows.outer <= 256) {
          list.push_back(
              {.id = "by_groups",
               .title = "Finish a few rows before starting the next",
               .description =
                   "Statistics and writing alternate over groups of rows that fit into the L2 cache, so that "
                   "the second read of a row comes from there; costs a pair of launches per group.",
               .category = "memory",
               .predicted_speedup = 1.0,
               .parameters = {{"rows", {1, 2, 4, 8}, 2, 8, "rows"}},
               .needs = {"split_rows"}});
        }
        list.push_back({.id = "backwards",
                        .title = "Write in the opposite order of the statistics",
                        .description =
                            "The statistics pass leaves the last part of the input in the L2 cache; the writing pass "
                            "starts there, so that part is not read from memory again.",
                        .category = "memory",
                        .predicted_speedup = 1.08,
                        .needs = {"split_rows"}});
      }
      list.push_back({.id = "plain_sums",
                      .title = "Use plain sums of x and x squared",
                      .description =
                          "Two additions per element and no merging formula. Loses digits when the mean is large "
                          "against the deviation, so it is only right for centred data.",
                      .category = "precision",
                      .predicted_speedup = 1.05,
                      .excludes = {"on_chip", "resident"}});
      if (FitsOnChip(rows, device)) {
        list.push_back({.id = "on_chip",
                        .title = MaxCluster(device) > 1 ? "Keep the row in the registers of a cluster of blocks"
                                                        : "Keep the row in the registers of one block",
                        .description =
                            "The row is read once and stays in registers until it is written; blocks of a cluster "
                            "exchange their moments through distributed shared memory.",
                        .category = "memory",
                        .predicted_speedup = 1.5,
                        .parameters = {{"elements", {8, 16, 32}, 16, 8, "columns per thread"}},
                        .excludes = {"split_rows", "by_groups", "backwards", "batch", "plain_sums", "resident"}});
      }
      if (CanReside(spec, device)) {
        list.push_back({.id = "resident",
                        .title = "Keep whole rows on chip across all multiprocessors",
                        .description =
                            "A cooperative launch spreads a row over the registers of every multiprocessor; blocks "
                            "exchange moments through a grid barrier while the next row streams into shared memory. "
                            "The input is read from memory once instead of twice.",
                        .category = "memory",
                        .predicted_speedup = 1.5,
                        .excludes = {"split_rows", "by_groups", "backwards", "batch", "plain_sums", "on_chip"}});
        if (!spec.epilogue.IsAcc()) {
          list.push_back({.id = "keep_affine",
                          .title = "Keep part of the per-column weights in shared memory",
                          .description =
                              "A block meets the same columns in every row; shared memory that the row does not need "
                              "holds their weights, which are then not fetched from the L2 cache for every row.",
                          .category = "memory",
                          .predicted_speedup = 1.1,
                          .parameters = {{"packs", {2, 4, 6}, 6, 2, "packs per thread"}},
                          .needs = {"resident"}});
        }
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
    list.push_back({.id = "stream",
                    .title = "Mark the data as streaming",
                    .description =
                        "Evict-first reads and writes keep data that is used once from displacing weights in the L2 "
                        "cache.",
                    .category = "memory",
                    .predicted_speedup = 1.03});
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    std::vector<Start> starts;
    const std::vector<Optimisation> list = Optimisations(spec, device);
    auto add = [&](const char* title, const char* description, double speedup, const std::vector<std::string>& ids) {
      Recipe recipe;
      for (const std::string& id : ids) {
        if (Find(list, id) != nullptr) SwitchOn(list, id, &recipe);
      }
      starts.push_back({title, description, speedup, recipe});
    };
    if (spec.rows->inner > 1) {
      add("One thread per column", "Each thread walks one strided column twice.", 1.0, {});
      add("Shared columns", "Eight threads share a column.", 1.5, {"depth"});
      return starts;
    }
    add("One block per row, two passes", "256 threads merge the row's moments, then read it again and write.", 0.5, {});
    const bool few = spec.rows->outer < 2 * Multiprocessors(device);
    if (Find(list, "on_chip") != nullptr) {
      add("One pass with the row on chip", "Registers of a block or cluster hold the row.", 1.5,
          {"on_chip", "vector_loads"});
    }
    if (Find(list, "split_rows") != nullptr && few) {
      add("Rows split over many blocks", "Two kernels: moments of slices, then merge and write.", 30,
          {"split_rows", "vector_loads", "batch"});
    }
    if (Find(list, "resident") != nullptr && few) {
      add("Rows resident on the whole device", "Read once: the row stays in registers across a grid barrier.", 20,
          {"resident", "vector_loads", "stream"});
    }
    if (starts.size() == 1)
      add("Vector loads in batches", "Four packs in flight per thread.", 1.2, {"vector_loads", "batch"});
    return starts;
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo& device, const Recipe& recipe) const override {
    const RowsSpec& rows = *spec.rows;
    const NormSpec& norm = *spec.norm;
    const bool centred = norm.kind == NormSpec::Kind::kLayer;
    const int64_t columns = rows.n * rows.inner;
    const bool resident = recipe.Has("resident");
    const bool vector = rows.inner == 1 && VectorColumns(rows.n) && (recipe.Has("vector_loads") || resident);
    const int vec = vector ? 4 : 1;
    int threads = static_cast<int>(recipe.Get("threads", "count", 256));

    Operands operands(spec);
    // The expression that `keep_affine` replaces is written against the operands, so it comes after Finish.
    std::string functions = MathPrelude({&spec.prologue, &spec.epilogue}) +
                            ExprFunctions(spec.prologue, &operands, "Load", rows.outer, columns, false, vector) +
                            ExprFunctions(spec.epilogue, &operands, "Finish", rows.outer, columns, true, vector);
    const std::string length = absl::StrCat(rows.n, ".0f");
    const std::string eps = FloatLiteral(norm.eps);
    const std::string scale = norm.kind == NormSpec::Kind::kL2
                                  ? absl::StrCat("1.0f / sqrtf(total.m2 + ", eps, ")")
                                  : absl::StrCat("1.0f / sqrtf(total.m2 / ", length, " + ", eps, ")");
    std::map<std::string, std::string> values = {{"fill", operands.HostFill()}, {"scale", scale}};
    std::vector<std::pair<std::string, int64_t>> constants = {
        {"kRows", rows.outer}, {"kColumns", columns}, {"kCentred", centred ? 1 : 0}};
    std::string body;
    std::string more;
    std::string launch = kLaunchHead;
    constexpr char kCheck[] = "  return cudaGetLastError() == cudaSuccess ? 0 : 1;\n}\n";
    if (rows.inner > 1) {
      const int64_t tiles = CeilDiv(rows.inner, 32);
      constants.insert(constants.end(), {{"kLength", rows.n},
                                         {"kInner", rows.inner},
                                         {"kTiles", tiles},
                                         {"kDepth", recipe.Get("depth", "threads", 1)}});
      body = absl::StrCat(kMerge, kStrided);
      absl::StrAppend(&launch, "  Norm<<<dim3(", rows.outer * tiles, "), dim3(32, kDepth), 0, stream>>>(ops, out);\n",
                      kCheck);
    } else if (resident) {
      threads = std::max(threads, 512);
      const Resident plan =
          PlanResident(rows, device, threads, static_cast<int>(recipe.Get("keep_affine", "packs", 0)));
      const bool keep = recipe.Has("keep_affine") && plan.kept > 0;
      const int packs = plan.packs;
      constants.insert(constants.end(),
                       {{"kThreads", threads},
                        {"kPacks", packs},
                        {"kKept", keep ? plan.kept : 0},
                        {"kGroupBlocks", plan.group_blocks},
                        {"kGroups", plan.groups},
                        {"kShared", static_cast<int64_t>(packs + (keep ? plan.kept : 0)) * threads * 16}});
      const Operand& input = spec.prologue.operands[spec.prologue.nodes[0].operand];
      absl::StrAppend(&functions,
                      "__device__ __forceinline__ const float* Address(const Operands& ops, Index row, Index col) {\n",
                      "  return ", operands.Name(input.arg), " + row * kColumns + col;\n}\n");
      more = PackText(vec);
      values["kept_what"] = keep ? "weights" : "nothing";
      values["keep"] = "";
      absl::StrAppend(&more, KeptText(spec, &operands, keep, packs, plan.kept, &values["keep"]));
      body = absl::StrCat(kMerge, kMoments, kResident);
      absl::StrAppend(&launch, kLaunchResident);
    } else if (recipe.Has("on_chip")) {
      OnChip plan = PlanOnChip(columns, vec, threads, static_cast<int>(recipe.Get("on_chip", "elements", 16)),
                               MaxCluster(device));
      while (!plan.fits && threads < 1024) {
        threads *= 2;
        plan = PlanOnChip(columns, vec, threads, 64, MaxCluster(device));
      }
      if (!plan.fits) return absl::InternalError("the row does not fit on chip");
      const int cluster = plan.cluster;
      constants.insert(constants.end(), {{"kThreads", plan.threads}, {"kCluster", cluster}, {"kPacks", plan.packs}});
      more = PackText(vec) + ReductionText(cluster);
      values["cluster_dims"] = cluster > 1 ? "__cluster_dims__(kCluster) " : "";
      values["exchange"] = cluster > 1 ? kExchange : "";
      values["leave"] = cluster > 1 ? "  ClusterWait();\n" : "";
      body = absl::StrCat(kMerge, kMoments, kOnChip);
      absl::StrAppend(&launch, "  Norm<<<dim3(", rows.outer * cluster, "), kThreads, 0, stream>>>(ops, out);\n",
                      kCheck);
    } else {
      const int64_t batch = recipe.Get("batch", "packs", 1);
      constants.insert(constants.end(), {{"kThreads", threads}, {"kBatch", batch}});
      more = PackText(vec);
      body = absl::StrCat(kMerge, kMoments, recipe.Has("plain_sums") ? kSumsSlice : kChunkedSlice);
      if (recipe.Has("split_rows")) {
        const int64_t slice = recipe.Get("split_rows", "columns", 4096);
        const int64_t slices = CeilDiv(rows.n, slice);
        constants.insert(constants.end(), {{"kSliceColumns", slice}, {"kSlices", slices}});
        values["apply_block"] = recipe.Has("backwards") ? "gridDim.x - 1 - blockIdx.x" : "blockIdx.x";
        values["unroll"] = absl::StrCat(batch);
        absl::StrAppend(&body, kSplitRow);
        constants.push_back({"kTogether", std::min(recipe.Get("by_groups", "rows", rows.outer), rows.outer)});
        absl::StrAppend(&launch,
                        "  for (Index row = 0; row < kRows; row += kTogether) {\n"
                        "    Statistics<<<dim3(kTogether * kSlices), kThreads, 0, stream>>>(ops, row);\n"
                        "    Norm<<<dim3(kTogether * kSlices), kThreads, 0, stream>>>(ops, out, row);\n  }\n",
                        kCheck);
      } else {
        absl::StrAppend(&body, kBlockRow);
        absl::StrAppend(&launch, "  Norm<<<dim3(kRows), kThreads, 0, stream>>>(ops, out);\n", kCheck);
      }
    }
    values["fill"] = operands.HostFill();
    Source source;
    source.text = FileHead(absl::StrCat(spec.operation, " of ", rows.outer, " x ", rows.n, " x ", rows.inner),
                           SettingsText(recipe), rows.outer * columns, recipe.Has("stream")) +
                  Constants(constants) + "\n" + operands.Struct() + "\n" + functions + "\n" + more +
                  Fill(absl::StrCat(body, launch), values);
    return source;
  }

 private:
  static bool FitsOnChip(const RowsSpec& rows, const v1::DeviceInfo& device) {
    return PlanOnChip(rows.n, 1, 1024, 32, MaxCluster(device)).fits && rows.n > 32;
  }

  // A thread keeps at most 32 columns (8 packs) of 1024 threads, 64 of 512: the register file of a multiprocessor.
  static Resident PlanResident(const RowsSpec& rows, const v1::DeviceInfo& device, int threads, int kept) {
    Resident plan;
    const int64_t limit = SharedMemoryLimit(device) - 4096;
    const int most = std::min<int64_t>(threads >= 1024 ? 8 : 20, limit / (threads * 16));
    const int64_t blocks = Multiprocessors(device);
    plan.packs = static_cast<int>(std::min<int64_t>(most, CeilDiv(rows.n / 4, threads * blocks)));
    // The fewest packs that fit leave the most blocks busy; more packs leave room for more groups. One group is enough.
    while (plan.packs < most && CeilDiv(rows.n / 4, static_cast<int64_t>(plan.packs) * threads) > blocks) ++plan.packs;
    plan.group_blocks = CeilDiv(rows.n / 4, static_cast<int64_t>(plan.packs) * threads);
    plan.fits = plan.group_blocks <= blocks;
    plan.groups = std::max<int64_t>(1, std::min<int64_t>(rows.outer, blocks / std::max<int64_t>(1, plan.group_blocks)));
    plan.kept = static_cast<int>(std::min<int64_t>(kept, limit / (threads * 16) - plan.packs));
    plan.kept = std::max(plan.kept, 0);
    return plan;
  }

  static bool CanReside(const OpSpec& spec, const v1::DeviceInfo& device) {
    const RowsSpec& rows = *spec.rows;
    if (!VectorColumns(rows.n) || !IsPlainInput(spec.prologue) || rows.n < 65536 || rows.outer > 65536) return false;
    if (ArchNumber(device) < 80 || device.multiprocessors() <= 0) return false;
    return PlanResident(rows, device, 512, 0).fits && PlanResident(rows, device, 1024, 0).fits;
  }

  // StoreKept: StorePack with the weights of the first kKept packs read from shared memory. The epilogue's operands
  // that are one vector over the columns are kept, as many as fit.
  static std::string KeptText(const OpSpec& spec, Operands* operands, bool keep, int packs, int kept,
                              std::string* fill) {
    std::string out =
        "__device__ __forceinline__ void StoreKept(float* out, const Operands& ops, Index row, Index col, const float "
        "(&v)[kVec],\n"
        "                                          const float4* shared, int j) {\n";
    // Which operands are vectors over the columns.
    std::vector<size_t> vectors;
    for (size_t i = 0; i < spec.epilogue.operands.size(); ++i) {
      const Operand& operand = spec.epilogue.operands[i];
      int64_t size = 1;
      size_t d = spec.epilogue.space.size();
      bool plain = !operands->IsScalar(operand.arg);
      while (d > 0 && size < spec.rows->n) {
        --d;
        if (spec.epilogue.space[d] != 1 && operand.strides[d] != size) plain = false;
        size *= spec.epilogue.space[d];
      }
      plain = plain && size == spec.rows->n;
      while (d > 0) plain = (spec.epilogue.space[--d] == 1 || operand.strides[d] == 0) && plain;
      if (plain) vectors.push_back(i);
    }
    if (!keep || vectors.empty()) return out + "  StorePack(out, ops, row, col, v);\n}\n";
    // Slot s of the kept packs holds pack s / vectors of operand s % vectors.
    const int per_pack = static_cast<int>(vectors.size());
    const int whole = std::min(kept / per_pack, packs);  // packs of which every vector is kept
    if (whole == 0) return out + "  StorePack(out, ops, row, col, v);\n}\n";
    absl::StrAppend(&out, "  if (j >= ", whole, ") {\n    StorePack(out, ops, row, col, v);\n    return;\n  }\n");
    std::vector<std::string> lanes[4];
    const char* const kLanes[] = {"x", "y", "z", "w"};
    for (size_t i = 0; i < spec.epilogue.operands.size(); ++i) {
      const size_t which = std::find(vectors.begin(), vectors.end(), i) - vectors.begin();
      if (which == vectors.size())
        return absl::StrCat(out.substr(0, out.find("  if (j")), "  StorePack(out, ops, row, col, v);\n}\n");
      absl::StrAppend(&out, "  const float4 p", i, " = shared[(kPacks + j * ", per_pack, " + ", which,
                      ") * kThreads + threadIdx.x];\n");
      for (int lane = 0; lane < 4; ++lane) lanes[lane].push_back(absl::StrCat("p", i, ".", kLanes[lane]));
      absl::StrAppend(fill, "#pragma unroll\n  for (int j = 0; j < ", whole,
                      "; ++j) {\n    if (j < valid) shared[(kPacks + j * ", per_pack, " + ", which,
                      ") * kThreads + threadIdx.x] =\n        __ldg(reinterpret_cast<const float4*>(",
                      operands->Name(spec.epilogue.operands[i].arg), " + first + j * kThreads * 4));\n  }\n");
    }
    std::vector<std::string> calls;
    for (int lane = 0; lane < 4; ++lane) {
      std::string call = absl::StrCat("FinishValue(v[", lane, "]");
      for (const std::string& value : lanes[lane]) absl::StrAppend(&call, ", ", value);
      calls.push_back(call + ")");
    }
    absl::StrAppend(&out, "  Write4(out + row * kColumns + col, make_float4(", calls[0], ", ", calls[1], ",\n      ",
                    calls[2], ", ", calls[3], "));\n}\n");
    return out;
  }
};

}  // namespace

const KernelFamily* NormKernels() {
  static const auto* const kFamily = new NormFamily;
  return kFamily;
}

}  // namespace grove::generate::catalogue::cuda
