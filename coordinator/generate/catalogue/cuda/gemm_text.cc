#include "coordinator/generate/catalogue/cuda/gemm_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/text.h"

namespace grove::generate::catalogue::cuda {
namespace {

constexpr char kNaive[] = R"cuda(
constexpr int kThreads = 256;
constexpr int kShared = 0;
constexpr int GemmBlocks() { return ((kM + 15) / 16) * ((kN + 15) / 16); }

__global__ void __launch_bounds__(kThreads) Gemm(Operands ops, float* out) {
  constexpr int kTilesN = (kN + 15) / 16;
  const int b = blockIdx.z;
  const int m = static_cast<int>(blockIdx.x) / kTilesN * 16 + static_cast<int>(threadIdx.x) / 16;
  const int n = static_cast<int>(blockIdx.x) % kTilesN * 16 + static_cast<int>(threadIdx.x) % 16;
  if (m >= kM || n >= kN) return;
  float sum = 0.0f;
  for (int k = 0; k < kK; ++k) {
    const float* const pb = PtrB(ops, b, k, n);
    sum += __ldg(PtrA(ops, b, m, k)) * (pb == nullptr ? 0.0f : __ldg(pb));
  }
  Store(ops, out, b, m, n, sum);
}
)cuda";

// Blocks walk C in groups of kGroup rows of tiles, so that those running together share their rows and columns in L2.
constexpr char kRaster[] = R"cuda(
constexpr int kTilesM = (kM + kBM - 1) / kBM;
constexpr int kTilesN = (kN + kBN - 1) / kBN;
constexpr int GemmBlocks() { return kTilesM * kTilesN; }
// Blocks walk the tiles in groups of kGroup tile rows: those that run together share rows and columns in the L2 cache.
__device__ __forceinline__ void TileOf(int block, int& tile_m, int& tile_n) {
  const int first = block / (kGroup * kTilesN) * kGroup;
  const int rows = kTilesM - first < kGroup ? kTilesM - first : kGroup;
  const int inside = block % (kGroup * kTilesN);
  tile_m = first + inside % rows;
  tile_n = inside / rows;
}
)cuda";

constexpr char kSimt[] = R"cuda(
constexpr int kThreadsN = kBN / kTN;
constexpr int kThreads = (kBM / kTM) * kThreadsN;
constexpr int kShared = 0;
constexpr int kLoadsA = kBM * kBK / (kThreads * kVecA);
constexpr int kLoadsB = kBN * kBK / (kThreads * kVecB);
static_assert(kLoadsA * kThreads * kVecA == kBM * kBK && kLoadsB * kThreads * kVecB == kBN * kBK, "tiles divide evenly");

// Position of load i of this thread inside a tile: neighbouring threads take neighbours in memory.
__device__ __forceinline__ void PlaceA(int i, int& m, int& k) {
  const int e = (i * kThreads + threadIdx.x) * kVecA;
  if (kAlongK_A) m = e / kBK, k = e % kBK;
  else k = e / kBM, m = e % kBM;
}
__device__ __forceinline__ void PlaceB(int i, int& k, int& n) {
  const int e = (i * kThreads + threadIdx.x) * kVecB;
  if (kAlongN_B) k = e / kBN, n = e % kBN;
  else n = e / kBK, k = e % kBK;
}
template <int kVec>
__device__ __forceinline__ void Fetch(const float* p, bool valid, float (&v)[kVec]) {
  if (kVec == 4) {
    const float4 t = valid ? __ldg(reinterpret_cast<const float4*>(p)) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    v[0] = t.x, v[1 % kVec] = t.y, v[2 % kVec] = t.z, v[3 % kVec] = t.w;
  } else {
    v[0] = valid ? __ldg(p) : 0.0f;
  }
}

__global__ void __launch_bounds__(kThreads) Gemm(Operands ops, float* out) {
  __shared__ __align__(16) float as[kBuffers][kBK][kBM + 4];
  __shared__ __align__(16) float bs[kBuffers][kBK][kBN + 4];
  const int b = blockIdx.z;
  int tile_m, tile_n;
  TileOf(blockIdx.x, tile_m, tile_n);
  const int m0 = tile_m * kBM, n0 = tile_n * kBN;
  const int tm = static_cast<int>(threadIdx.x) / kThreadsN * 4, tn = static_cast<int>(threadIdx.x) % kThreadsN * 4;
  float ra[kLoadsA][kVecA], rb[kLoadsB][kVecB];
  float acc[kTM][kTN] = {};

  auto fetch = [&](int k0) {
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      int m, k;
      PlaceA(i, m, k);
      const bool valid = m0 + m < kM && k0 + k < kK;
      Fetch<kVecA>(valid ? PtrA(ops, b, m0 + m, k0 + k) : nullptr, valid, ra[i]);
    }
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) {
      int k, n;
      PlaceB(i, k, n);
      const float* const p = n0 + n < kN && k0 + k < kK ? PtrB(ops, b, k0 + k, n0 + n) : nullptr;
      Fetch<kVecB>(p, p != nullptr, rb[i]);
    }
  };
  auto put = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      int m, k;
      PlaceA(i, m, k);
#pragma unroll
      for (int j = 0; j < kVecA; ++j) as[buffer][kAlongK_A ? k + j : k][kAlongK_A ? m : m + j] = ra[i][j];
    }
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) {
      int k, n;
      PlaceB(i, k, n);
#pragma unroll
      for (int j = 0; j < kVecB; ++j) bs[buffer][kAlongN_B ? k : k + j][kAlongN_B ? n + j : n] = rb[i][j];
    }
  };

  fetch(0);
  put(0);
  __syncthreads();
  int buffer = 0;
  for (int k0 = 0; k0 < kK; k0 += kBK) {
    const bool more = k0 + kBK < kK;
    if (kBuffers == 2 && more) fetch(k0 + kBK);
#pragma unroll
    for (int k = 0; k < kBK; ++k) {
      float a[kTM], c[kTN];
#pragma unroll
      for (int i = 0; i < kTM; i += 4) {
        const float4 t = *reinterpret_cast<const float4*>(&as[buffer][k][tm + i / 4 * (kBM / (kTM / 4))]);
        a[i] = t.x, a[i + 1] = t.y, a[i + 2] = t.z, a[i + 3] = t.w;
      }
#pragma unroll
      for (int j = 0; j < kTN; j += 4) {
        const float4 t = *reinterpret_cast<const float4*>(&bs[buffer][k][tn + j / 4 * (kBN / (kTN / 4))]);
        c[j] = t.x, c[j + 1] = t.y, c[j + 2] = t.z, c[j + 3] = t.w;
      }
#pragma unroll
      for (int i = 0; i < kTM; ++i) {
#pragma unroll
        for (int j = 0; j < kTN; ++j) acc[i][j] += a[i] * c[j];
      }
    }
    if (!more) break;
    if (kBuffers == 2) {
      buffer ^= 1;
      put(buffer);
    } else {
      fetch(k0 + kBK);
      __syncthreads();
      put(0);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kTM; ++i) {
    const int m = m0 + tm + i / 4 * (kBM / (kTM / 4)) + i % 4;
#pragma unroll
    for (int j = 0; j < kTN; j += 2) {
      const int n = n0 + tn + j / 4 * (kBN / (kTN / 4)) + j % 4;
      if (m < kM && n < kN) Store2(ops, out, b, m, n, acc[i][j], acc[i][j + 1]);
    }
  }
}
)cuda";

constexpr char kMma[] = R"cuda(
constexpr int kWarpsM = kBM / kWM;
constexpr int kWarpsN = kBN / kWN;
constexpr int kThreads = kWarpsM * kWarpsN * 32;
// Rows of shared memory are padded so that the eight rows and four columns that a warp's fragment load touches lie in
// different banks.
constexpr int kRowA = kAlongK_A ? kBK + 4 : kBM + 8;
constexpr int kRowB = kAlongN_B ? kBN + 8 : kBK + 4;
constexpr int kSizeA = (kAlongK_A ? kBM : kBK) * kRowA;
constexpr int kSizeB = (kAlongN_B ? kBK : kBN) * kRowB;
constexpr int kShared = kStages * (kSizeA + kSizeB) * 4;
constexpr int kMT = kWM / 16;
constexpr int kNT = kWN / 8;

template <int kVec>
__device__ __forceinline__ void CopyAsync(float* shared, const float* global, bool valid) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = valid ? kVec * 4 : 0;  // the rest is filled with zeros
  if (kVec == 4) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
  }
}
// The nearest TF32 value, as bits.
__device__ __forceinline__ unsigned Round(float x) { return (__float_as_uint(x) + 0x1000u) & 0xffffe000u; }
// What is left of x; the tensor core cuts the bits below TF32 off, so half a unit is added first.
__device__ __forceinline__ unsigned Rest(float x, unsigned big) { return __float_as_uint(x - __uint_as_float(big)) + 0x1000u; }
__device__ __forceinline__ void Mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void __launch_bounds__(kThreads) Gemm(Operands ops, float* out) {
  extern __shared__ __align__(16) float shared[];
  const int b = blockIdx.z;
  int tile_m, tile_n;
  TileOf(blockIdx.x, tile_m, tile_n);
  const int m0 = tile_m * kBM, n0 = tile_n * kBN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int wm = warp / kWarpsN * kWM, wn = warp % kWarpsN * kWN;
  const int quad = lane / 4, pos = lane % 4;

  auto load = [&](int k0, int stage) {
    float* const as = shared + stage * (kSizeA + kSizeB);
    float* const bs = as + kSizeA;
    constexpr int kCopiesA = kBM * kBK / kVecA, kCopiesB = kBN * kBK / kVecB;
#pragma unroll
    for (int i = 0; i < (kCopiesA + kThreads - 1) / kThreads; ++i) {
      const int e = (i * kThreads + static_cast<int>(threadIdx.x)) * kVecA;
      if (kCopiesA % kThreads != 0 && e >= kBM * kBK) break;
      const int m = kAlongK_A ? e / kBK : e % kBM, k = kAlongK_A ? e % kBK : e / kBM;
      const bool valid = m0 + m < kM && k0 + k < kK;
      CopyAsync<kVecA>(as + (kAlongK_A ? m * kRowA + k : k * kRowA + m), valid ? PtrA(ops, b, m0 + m, k0 + k) : PtrA(ops, 0, 0, 0),
                       valid);
    }
#pragma unroll
    for (int i = 0; i < (kCopiesB + kThreads - 1) / kThreads; ++i) {
      const int e = (i * kThreads + static_cast<int>(threadIdx.x)) * kVecB;
      if (kCopiesB % kThreads != 0 && e >= kBN * kBK) break;
      const int n = kAlongN_B ? e % kBN : e / kBK, k = kAlongN_B ? e / kBN : e % kBK;
      const float* const p = n0 + n < kN && k0 + k < kK ? PtrB(ops, b, k0 + k, n0 + n) : nullptr;
      CopyAsync<kVecB>(bs + (kAlongN_B ? k * kRowB + n : n * kRowB + k), p == nullptr ? PtrA(ops, 0, 0, 0) : p, p != nullptr);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  float acc[kMT][kNT][4] = {};
  constexpr int kChunks = (kK + kBK - 1) / kBK;
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < kChunks) load(stage * kBK, stage);
    else asm volatile("cp.async.commit_group;" ::: "memory");
  }
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    const int next = chunk + kStages - 1;
    if (next < kChunks) load(next * kBK, next % kStages);
    else asm volatile("cp.async.commit_group;" ::: "memory");
    const float* const as = shared + chunk % kStages * (kSizeA + kSizeB);
    const float* const bs = as + kSizeA;
#pragma unroll
    for (int k = 0; k < kBK; k += 8) {
      unsigned a_big[kMT][4], a_rest[kMT][4], b_big[kNT][2], b_rest[kNT][2];
#pragma unroll
      for (int i = 0; i < kMT; ++i) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const int m = wm + i * 16 + quad + r % 2 * 8, kk = k + pos + r / 2 * 4;
          const float x = as[kAlongK_A ? m * kRowA + kk : kk * kRowA + m];
          a_big[i][r] = Round(x);
          if (kProducts == 3) a_rest[i][r] = Rest(x, a_big[i][r]);
        }
      }
#pragma unroll
      for (int j = 0; j < kNT; ++j) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int n = wn + j * 8 + quad, kk = k + pos + r * 4;
          const float x = bs[kAlongN_B ? kk * kRowB + n : n * kRowB + kk];
          b_big[j][r] = Round(x);
          if (kProducts == 3) b_rest[j][r] = Rest(x, b_big[j][r]);
        }
      }
#pragma unroll
      for (int i = 0; i < kMT; ++i) {
#pragma unroll
        for (int j = 0; j < kNT; ++j) {
          if (kProducts == 3) {
            Mma(acc[i][j], a_rest[i], b_big[j]);
            Mma(acc[i][j], a_big[i], b_rest[j]);
          }
          Mma(acc[i][j], a_big[i], b_big[j]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kMT; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int m = m0 + wm + i * 16 + quad + half * 8;
#pragma unroll
      for (int j = 0; j < kNT; ++j) {
        const int n = n0 + wn + j * 8 + pos * 2;
        if (m < kM && n < kN) Store2(ops, out, b, m, n, acc[i][j][half * 2], acc[i][j][half * 2 + 1]);
      }
    }
  }
}
)cuda";

constexpr char kLaunch[] = R"cuda(  static const bool ready =
      kShared <= 48 * 1024 ||
      cudaFuncSetAttribute(Gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared) == cudaSuccess;
  if (!ready) return 3;
  Gemm<<<dim3(GemmBlocks(), 1, kBatch), kThreads, kShared, stream>>>(ops, out);
  if (cudaGetLastError() != cudaSuccess) return 1;
)cuda";

}  // namespace

std::string GemmNaiveText() { return kNaive; }

std::string GemmSimtText(const SimtTile& tile) {
  return Constants({{"kBM", tile.bm},
                    {"kBN", tile.bn},
                    {"kBK", tile.bk},
                    {"kTM", tile.tm},
                    {"kTN", tile.tn},
                    {"kBuffers", tile.buffers},
                    {"kGroup", tile.group}}) +
         kRaster + kSimt;
}

int64_t MmaSharedBytes(const MmaTile& t, bool a_along_k, bool b_along_n) {
  const int64_t a = a_along_k ? t.bm * (t.bk + 4) : t.bk * (t.bm + 8);
  const int64_t b = b_along_n ? t.bk * (t.bn + 8) : t.bn * (t.bk + 4);
  return t.stages * (a + b) * 4;
}

std::string GemmMmaText(const MmaTile& wanted, bool a_along_k, bool b_along_n, int64_t shared_limit) {
  MmaTile tile = wanted;
  while (tile.stages > 2 && MmaSharedBytes(tile, a_along_k, b_along_n) > shared_limit) --tile.stages;
  while (tile.bk > 16 && MmaSharedBytes(tile, a_along_k, b_along_n) > shared_limit) tile.bk /= 2;
  // Warp tiles of at most 64 x 32 keep the split fragments and accumulators in 255 registers.
  const int wm = tile.bm % 64 == 0 ? 64 : (tile.bm % 48 == 0 ? 48 : 32);
  const int wn = 32;
  return Constants({{"kBM", tile.bm},
                    {"kBN", tile.bn},
                    {"kBK", tile.bk},
                    {"kWM", wm},
                    {"kWN", wn},
                    {"kStages", tile.stages},
                    {"kProducts", tile.products},
                    {"kGroup", tile.group}}) +
         kRaster + kMma;
}

std::string GemmLaunchText() { return kLaunch; }

}  // namespace grove::generate::catalogue::cuda
