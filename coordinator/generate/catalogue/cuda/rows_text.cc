#include "coordinator/generate/catalogue/cuda/rows_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/text.h"

namespace grove::generate::catalogue::cuda {
namespace {

constexpr char kPack4[] = R"cuda(constexpr int kVec = 4;
__device__ __forceinline__ void LoadPack(const Operands& ops, Index row, Index col, float (&v)[kVec]) {
  const float4 t = Load4(ops, row, col);
  v[0] = t.x, v[1] = t.y, v[2] = t.z, v[3] = t.w;
}
__device__ __forceinline__ void StorePack(float* out, const Operands& ops, Index row, Index col, const float (&v)[kVec]) {
  Write4(out + row * kColumns + col, Finish4(ops, make_float4(v[0], v[1], v[2], v[3]), row, col));
}

)cuda";

constexpr char kPack1[] = R"cuda(constexpr int kVec = 1;
__device__ __forceinline__ void LoadPack(const Operands& ops, Index row, Index col, float (&v)[kVec]) {
  v[0] = Load(ops, row, col);
}
__device__ __forceinline__ void StorePack(float* out, const Operands& ops, Index row, Index col, const float (&v)[kVec]) {
  Write(out + row * kColumns + col, Finish(ops, v[0], row, col));
}

)cuda";

constexpr char kReduction[] = R"cuda(constexpr int kWarps = kThreads / 32;
__device__ __forceinline__ float WarpSum(float v) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) v += __shfl_xor_sync(0xffffffffu, v, lane);
  return v;
}
__device__ __forceinline__ float WarpMax(float v) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
  return v;
}
// Every thread gets the result. `scratch` has kWarps floats, one scratch per call between barriers.
__device__ __forceinline__ float BlockSum(float v, float* scratch) {
  v = WarpSum(v);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < kWarps ? scratch[threadIdx.x % 32] : 0.0f;
  return WarpSum(v);
}
__device__ __forceinline__ float BlockMax(float v, float* scratch) {
  v = WarpMax(v);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < kWarps ? scratch[threadIdx.x % 32] : -INFINITY;
  return WarpMax(v);
}
)cuda";

constexpr char kCluster[] = R"cuda(
// A cluster's blocks run at once on neighbouring multiprocessors and can read each other's shared memory.
__device__ __forceinline__ void ClusterArrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void ClusterWait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ __forceinline__ float ReadOfBlock(const float* shared, int rank) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  unsigned remote;
  float value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(remote) : "memory");
  return value;
}
)cuda";

}  // namespace

std::string PackText(int vec) { return vec == 4 ? kPack4 : kPack1; }

std::string ReductionText(int cluster) { return absl::StrCat(kReduction, cluster > 1 ? kCluster : "", "\n"); }

OnChip PlanOnChip(int64_t columns, int vec, int threads, int elements, int max_cluster) {
  OnChip plan;
  while (threads > 32 && static_cast<int64_t>(threads / 2) * vec >= columns) threads /= 2;
  const int most = threads >= 1024 ? 32 : 64;
  elements = std::max(vec, std::min(elements, most) / vec * vec);
  int cluster = 1;
  while (cluster < max_cluster && static_cast<int64_t>(cluster) * threads * elements < columns) cluster *= 2;
  const int64_t packs = CeilDiv(columns, static_cast<int64_t>(cluster) * threads * vec);
  plan = {threads, static_cast<int>(std::min<int64_t>(packs, 1 << 20)), cluster, packs * vec <= most};
  return plan;
}

}  // namespace grove::generate::catalogue::cuda
