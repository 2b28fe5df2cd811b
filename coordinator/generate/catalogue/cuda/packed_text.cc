#include "coordinator/generate/catalogue/cuda/packed_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/text.h"

namespace grove::generate::catalogue::cuda {
namespace {

constexpr char kPack[] = R"cuda(
#include <$header$>
using Half = $half$;
constexpr int kBM = 128;
constexpr int kTilesM = (kM + kBM - 1) / kBM;
constexpr int kTilesN = (kN + kBN - 1) / kBN;
constexpr int kChunks = (kK + 63) / 64;
constexpr int kBytesA = kBM * 128;  // one part of one tile: 64 numbers of 2 bytes per row
constexpr int kBytesB = kBN * 128;
constexpr int kMaxBlocks = 256;

// Packed operands: [batch][tile][chunk][part][row][64], allocated once with the module and rewritten by every call.
$packed_a$__device__ __align__(1024) unsigned char packed_b[static_cast<size_t>(kBatch) * kTilesN * kChunks * kParts * kBytesB];
__device__ float inverse_scale[2];
$absmax$
struct Packed16 {  // sixteen neighbouring k of one row, in two 16-byte pieces
  uint4 piece[2];
};

// Stores part after part of x[0..15]; each part is what the parts before it left over.
__device__ __forceinline__ void Split(float (&x)[16], float scale, unsigned char* to, int part_bytes, int row, int group) {
#pragma unroll
  for (int i = 0; i < 16; ++i) x[i] *= scale;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    union {
      Half half[16];
      Packed16 packed;
    } u;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      u.half[i] = $to_half$(x[i]);
      x[i] -= $to_float$(u.half[i]);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      // The 128-byte swizzle: 16-byte piece p of row r lies at piece p ^ (r % 8).
      const int piece = (group * 2 + i) ^ (row % 8);
      *reinterpret_cast<uint4*>(to + static_cast<size_t>(part) * part_bytes + row * 128 + piece * 16) = u.packed.piece[i];
    }
  }
}

// Grid: x = blocks of 128 rows, y = chunks of 64 k x $pack_y$, z = batch; 128 threads.
$pack_a$__global__ void __launch_bounds__(128) PackB(Operands ops) {
  $scale_b$
  const int b = blockIdx.z, chunk = blockIdx.y / 4;
  const int group = $group_b$;
  for (int row = $row_b$; row < kBN; row += $row_step_b$) {
    const int n = blockIdx.x * kBN + row, k0 = chunk * 64 + group * 16;
    float x[16];
    $load_b$
    const size_t tile = (static_cast<size_t>(b) * kTilesN + blockIdx.x) * kChunks + chunk;
    Split(x, scale, packed_b + tile * kParts * kBytesB, kBytesB, row, group);
  }
}

// Blocks walk the tiles in groups of kGroup tile rows: those that run together share rows and columns in the L2 cache.
__device__ __forceinline__ void TileOf(int block, int& tile_m, int& tile_n) {
  const int first = block / (kGroup * kTilesN) * kGroup;
  const int rows = kTilesM - first < kGroup ? kTilesM - first : kGroup;
  const int inside = block % (kGroup * kTilesN);
  tile_m = first + inside % rows;
  tile_n = inside / rows;
}
constexpr int kStageBytes = kParts * (kBytesA + kBytesB);
constexpr int kShared = kStages * kStageBytes + 1024;  // and room to align
)cuda";

constexpr char kPackA[] = R"cuda(__global__ void __launch_bounds__(128) PackA(Operands ops) {
  $scale_a$
  const int b = blockIdx.z, chunk = blockIdx.y / 4;
  const int group = $group_a$, row = $row_a$;
  const int m = blockIdx.x * kBM + row, k0 = chunk * 64 + group * 16;
  float x[16];
  $load_a$
  const size_t tile = (static_cast<size_t>(b) * kTilesM + blockIdx.x) * kChunks + chunk;
  Split(x, scale, packed_a + tile * kParts * kBytesA, kBytesA, row, group);
}
)cuda";

constexpr char kAbsMax[] = R"cuda(
__device__ float largest[2][kMaxBlocks];

// The largest magnitude of both operands, one value per block: fp16 has only 5 exponent bits.
__global__ void __launch_bounds__(512) AbsMax(Operands ops) {
  const float* const p = blockIdx.y == 0 ? BaseA(ops) : BaseB(ops);
  const long long count = blockIdx.y == 0 ? $a_numel$LL : $b_numel$LL;
  const long long step = static_cast<long long>(gridDim.x) * 512;
  float top = 0.0f;
  long long i = static_cast<long long>(blockIdx.x) * 512 + threadIdx.x;
  for (; i + 3 * step < count / 4; i += 4 * step) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float4 v = __ldg(reinterpret_cast<const float4*>(p) + i + j * step);
      top = fmaxf(top, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
    }
  }
  for (; i < count / 4; i += step) {
    const float4 v = __ldg(reinterpret_cast<const float4*>(p) + i);
    top = fmaxf(top, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
  }
  if (blockIdx.x == 0 && threadIdx.x < count % 4) top = fmaxf(top, fabsf(p[count / 4 * 4 + threadIdx.x]));
  __shared__ float tops[16];
  for (int lane = 16; lane > 0; lane /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, lane));
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < 16; ++warp) top = fmaxf(top, tops[warp]);
    largest[blockIdx.y][blockIdx.x] = top;
  }
}

// The power of two that brings the largest magnitude into [2^14, 2^15). Called by whole blocks of 128 threads.
__device__ __forceinline__ float ScaleOf(int which) {
  __shared__ float tops[4];
  float top = fmaxf(largest[which][threadIdx.x], largest[which][threadIdx.x + 128]);
  for (int lane = 16; lane > 0; lane /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, lane));
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  top = fmaxf(fmaxf(tops[0], tops[1]), fmaxf(tops[2], tops[3]));
  int exponent = 0;
  if (top > 0.0f && top < INFINITY) exponent = 15 - (ilogbf(top) + 1);
  exponent = exponent > 100 ? 100 : (exponent < -100 ? -100 : exponent);
  if (blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0 && threadIdx.x == 0) inverse_scale[which] = ldexpf(1.0f, -exponent);
  return ldexpf(1.0f, exponent);
}
)cuda";

// ------------------------------------------------------------------------------------------------------ mma.sync
constexpr char kMmaKernel[] = R"cuda(
constexpr int kWN = kBN / $warps_n$;
constexpr int kWarpsN = kBN / kWN;
constexpr int kWM = 64;
constexpr int kThreads = (kBM / kWM) * kWarpsN * 32;
constexpr int kMT = kWM / 16;
constexpr int kNT = kWN / 8;

__device__ __forceinline__ void LoadMatrices(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void Mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.$type$.$type$.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__global__ void __launch_bounds__(kThreads) Gemm(Operands ops, float* out) {
  extern __shared__ __align__(1024) unsigned char raw[];
  const unsigned shared = (static_cast<unsigned>(__cvta_generic_to_shared(raw)) + 1023) / 1024 * 1024;
  const int b = blockIdx.z;
  int tile_m, tile_n;
  TileOf(blockIdx.x, tile_m, tile_n);
  const unsigned char* const ga = packed_a + (static_cast<size_t>(b) * kTilesM + tile_m) * kChunks * (kParts * kBytesA);
  const unsigned char* const gb = packed_b + (static_cast<size_t>(b) * kTilesN + tile_n) * kChunks * (kParts * kBytesB);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int wm = warp / kWarpsN * kWM, wn = warp % kWarpsN * kWN;

  auto copy = [&](unsigned to, const unsigned char* from, int bytes) {
    for (int i = threadIdx.x * 16; i < bytes; i += kThreads * 16) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + i), "l"(from + i) : "memory");
    }
  };
  auto load = [&](int chunk, int stage) {
    copy(shared + stage * kStageBytes, ga + static_cast<size_t>(chunk) * kParts * kBytesA, kParts * kBytesA);
    copy(shared + stage * kStageBytes + kParts * kBytesA, gb + static_cast<size_t>(chunk) * kParts * kBytesB, kParts * kBytesB);
  };

  float acc[kMT][kNT][4] = {};
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < kChunks) load(stage, stage);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  // Rows and pieces that this lane addresses for ldmatrix.
  const int row_a = wm + lane % 16, piece_a = lane / 16;
  const int row_b = wn + lane % 8 + lane / 16 * 8, piece_b = lane / 8 % 2;
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    const int next = chunk + kStages - 1;
    if (next < kChunks) load(next, next % kStages);
    asm volatile("cp.async.commit_group;" ::: "memory");
    const unsigned as = shared + chunk % kStages * kStageBytes, bs = as + kParts * kBytesA;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      unsigned fb[kParts][kNT / 2][4];
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int j = 0; j < kNT / 2; ++j) {
          const int row = row_b + j * 16;
          LoadMatrices(fb[part][j], bs + part * kBytesB + row * 128 + (((k * 2 + piece_b) ^ (row % 8)) * 16));
        }
      }
#pragma unroll
      for (int i = 0; i < kMT; ++i) {
        unsigned fa[kParts][4];
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          const int row = row_a + i * 16;
          LoadMatrices(fa[part], as + part * kBytesA + row * 128 + (((k * 2 + piece_a) ^ (row % 8)) * 16));
        }
#pragma unroll
        for (int pa = kParts - 1; pa >= 0; --pa) {
#pragma unroll
          for (int pb = kParts - 1; pb >= 0; --pb) {
            if (pa + pb >= kParts) continue;  // below the last bit that counts
#pragma unroll
            for (int j = 0; j < kNT; ++j) Mma(acc[i][j], fa[pa], fb[pb][j / 2][j % 2 * 2], fb[pb][j / 2][j % 2 * 2 + 1]);
          }
        }
      }
    }
  }
  const float scale_a = $inverse_a$, scale_b = $inverse_b$;
  const int m0 = tile_m * kBM + wm + lane / 4, n0 = tile_n * kBN + wn + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < kMT; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int m = m0 + i * 16 + half * 8;
#pragma unroll
      for (int j = 0; j < kNT; ++j) {
        const int n = n0 + j * 8;
        if (m < kM && n < kN) {
          Store2(ops, out, b, m, n, acc[i][j][half * 2] * scale_a * scale_b, acc[i][j][half * 2 + 1] * scale_a * scale_b);
        }
      }
    }
  }
}
)cuda";

// --------------------------------------------------------------------------------------------------------- wgmma
constexpr char kWgmmaHelpers[] = R"cuda(
constexpr int kAcc = kBN / 2;

__device__ __forceinline__ void BarrierInit(unsigned barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void BarrierWait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra.uni finished;\n"
      "bra.uni again;\nfinished:\n}" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void BarrierArrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void BarrierExpect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void BulkCopy(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
               "r"(bytes), "r"(barrier)
               : "memory");
}
// Shared-memory matrix descriptor: K-major, 128-byte swizzle, eight rows of 128 bytes per core matrix group.
__device__ __forceinline__ unsigned long long Descriptor(unsigned address) {
  return static_cast<unsigned long long>((address & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}
// acc (+)= A[64 x 16] B[16 x kBN]; keep = 0 forgets the old accumulator.
__device__ __forceinline__ void Wgmma(float (&acc)[kAcc], unsigned long long a, unsigned long long b, int keep) {
  asm volatile(
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %$keep_index$, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n$bn$k16.f32.$type$.$type$ {"
$registers$      "}, %$a_index$, %$b_index$, keep, 1, 1, 0, 0;\n}"
      : $outputs$
      : "l"(a), "l"(b), "r"(keep));
}

)cuda";

constexpr char kTiledWgmma[] = R"cuda(
constexpr int kThreads = 384;  // two warpgroups multiply 64 rows each, one thread of the third brings tiles in
__global__ void __launch_bounds__(kThreads, 1) Gemm(Operands ops, float* out) {
  extern __shared__ __align__(1024) unsigned char raw[];
  __shared__ __align__(8) unsigned long long barriers[2 * kStages];
  const unsigned shared = (static_cast<unsigned>(__cvta_generic_to_shared(raw)) + 1023) / 1024 * 1024;
  const unsigned full = static_cast<unsigned>(__cvta_generic_to_shared(barriers)), empty = full + kStages * 8;
  const int b = blockIdx.z, warpgroup = threadIdx.x / 128;
  int tile_m, tile_n;
  TileOf(blockIdx.x, tile_m, tile_n);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      BarrierInit(full + stage * 8, 1);
      BarrierInit(empty + stage * 8, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (warpgroup == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 256) {
      const unsigned char* const ga = packed_a + (static_cast<size_t>(b) * kTilesM + tile_m) * kChunks * (kParts * kBytesA);
      const unsigned char* const gb = packed_b + (static_cast<size_t>(b) * kTilesN + tile_n) * kChunks * (kParts * kBytesB);
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        const int stage = chunk % kStages;
        BarrierWait(empty + stage * 8, (chunk / kStages & 1) ^ 1);
        const unsigned to = shared + stage * kStageBytes, barrier = full + stage * 8;
        BarrierExpect(barrier, kStageBytes);
        BulkCopy(to, ga + static_cast<size_t>(chunk) * kParts * kBytesA, kParts * kBytesA, barrier);
        BulkCopy(to + kParts * kBytesA, gb + static_cast<size_t>(chunk) * kParts * kBytesB, kParts * kBytesB, barrier);
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float acc[kAcc];
#pragma unroll
    for (int i = 0; i < kAcc; ++i) acc[i] = 0.0f;
$loop$
    const float scale_a = $inverse_a$, scale_b = $inverse_b$;
    const int lane = threadIdx.x % 32;
    const int m0 = tile_m * kBM + static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4, n0 = tile_n * kBN + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int m = m0 + half * 8;
#pragma unroll
      for (int j = 0; j < kBN / 8; ++j) {
        const int n = n0 + j * 8;
        if (m < kM && n < kN) {
          Store2(ops, out, b, m, n, acc[j * 4 + half * 2] * scale_a * scale_b, acc[j * 4 + half * 2 + 1] * scale_a * scale_b);
        }
      }
    }
  }
}
)cuda";

constexpr char kGatherWgmma[] = R"cuda(
constexpr int kThreads = 512;  // two warpgroups multiply 64 rows each, two gather rows of A
constexpr int kBytesAllB = kChunks * kParts * kBytesB;
constexpr int kGatherShared = kBytesAllB + kStages * kParts * kBytesA + 1024;

__global__ void __launch_bounds__(kThreads, 1) Gemm(Operands ops, float* out) {
  extern __shared__ __align__(1024) unsigned char raw[];
  __shared__ __align__(8) unsigned long long barriers[2 * kStages + 1];
  __shared__ int2 entries[kChunks * 64];
  unsigned char* const aligned = raw + (1024 - static_cast<unsigned>(__cvta_generic_to_shared(raw)) % 1024) % 1024;
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(aligned));  // all of B, then the stages of A
  const unsigned full = static_cast<unsigned>(__cvta_generic_to_shared(barriers)), empty = full + kStages * 8;
  const unsigned full_b = empty + kStages * 8;
  const int b = blockIdx.z, warpgroup = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      BarrierInit(full + stage * 8, 256);
      BarrierInit(empty + stage * 8, 2);
    }
    BarrierInit(full_b, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  for (int k = threadIdx.x; k < kChunks * 64; k += kThreads) entries[k] = EntryOf(k);
  __syncthreads();
  int step = 0;  // chunks so far, over all tiles of this block
  if (warpgroup >= 2) {
    if (threadIdx.x == 256) {
      BarrierExpect(full_b, kBytesAllB);
      BulkCopy(shared, packed_b + static_cast<size_t>(b) * kBytesAllB, kBytesAllB, full_b);
    }
    const float scale = $gather_scale$;
    const int row = threadIdx.x % 128, part_of_k = (warpgroup - 2) * 32;
    for (int tile = blockIdx.x; tile < kTilesM; tile += gridDim.x) {
      const Place place = PlaceOf(ops, b, tile * kBM + row);
      for (int chunk = 0; chunk < kChunks; ++chunk, ++step) {
        float x[2][16];
#pragma unroll
        for (int g = 0; g < 2; ++g) {
#pragma unroll
          for (int i = 0; i < 16; ++i) x[g][i] = Gather(place, entries[chunk * 64 + part_of_k + g * 16 + i]);
        }
        const int stage = step % kStages;
        BarrierWait(empty + stage * 8, (step / kStages & 1) ^ 1);
        unsigned char* const to = aligned + kBytesAllB + stage * kParts * kBytesA;
#pragma unroll
        for (int g = 0; g < 2; ++g) Split(x[g], scale, to, kBytesA, row, part_of_k / 16 + g);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads what ordinary stores wrote
        BarrierArrive(full + stage * 8);
      }
    }
  } else {
    const float scale_a = $inverse_a$, scale_b = $inverse_b$;
    const int lane = threadIdx.x % 32;
    BarrierWait(full_b, 0);
    for (int tile = blockIdx.x; tile < kTilesM; tile += gridDim.x) {
      float acc[kAcc];
#pragma unroll
      for (int i = 0; i < kAcc; ++i) acc[i] = 0.0f;
      for (int chunk = 0; chunk < kChunks; ++chunk, ++step) {
        const int stage = step % kStages;
        BarrierWait(full + stage * 8, step / kStages & 1);
        const unsigned as = shared + kBytesAllB + stage * kParts * kBytesA + warpgroup * 64 * 128;
        const unsigned bs = shared + chunk * kParts * kBytesB;
$issue$        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (chunk > 0 && threadIdx.x % 128 == 0) BarrierArrive(empty + (step - 1) % kStages * 8);
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (threadIdx.x % 128 == 0) BarrierArrive(empty + (step - 1) % kStages * 8);
      const int m0 = tile * kBM + static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4, n0 = lane % 4 * 2;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int m = m0 + half * 8;
#pragma unroll
        for (int j = 0; j < kBN / 8; ++j) {
          const int n = n0 + j * 8;
          if (m < kM && n < kN) {
            Store2(ops, out, b, m, n, acc[j * 4 + half * 2] * scale_a * scale_b, acc[j * 4 + half * 2 + 1] * scale_a * scale_b);
          }
        }
      }
    }
  }
}
)cuda";

constexpr char kIssue[] = R"cuda(      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int pa = kParts - 1; pa >= 0; --pa) {
#pragma unroll
          for (int pb = kParts - 1; pb >= 0; --pb) {
            if (pa + pb >= kParts) continue;  // below the last bit that counts
            Wgmma($acc$, Descriptor(as + pa * kBytesA + k * 32), Descriptor(bs + pb * kBytesB + k * 32), $keep$);
          }
        }
      }
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
)cuda";

constexpr char kLoop[] = R"cuda(    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const int stage = chunk % kStages;
      BarrierWait(full + stage * 8, chunk / kStages & 1);
      const unsigned as = shared + stage * kStageBytes + warpgroup * 64 * 128;
      const unsigned bs = shared + stage * kStageBytes + kParts * kBytesA;
$issue$      // The chunk before this one is done when at most one group is in flight; its stage can be filled again.
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (chunk > 0 && threadIdx.x % 128 == 0) BarrierArrive(empty + (chunk - 1) % kStages * 8);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
)cuda";

constexpr char kPromoteLoop[] =
    R"cuda(    // The tensor core's accumulator cuts bits off at every step; adding each chunk's sum here rounds properly.
    float part[kAcc];
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const int stage = chunk % kStages;
      BarrierWait(full + stage * 8, chunk / kStages & 1);
      const unsigned as = shared + stage * kStageBytes + warpgroup * 64 * 128;
      const unsigned bs = shared + stage * kStageBytes + kParts * kBytesA;
$issue$      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (threadIdx.x % 128 == 0) BarrierArrive(empty + stage * 8);
#pragma unroll
      for (int i = 0; i < kAcc; ++i) acc[i] += part[i];
    }
)cuda";

constexpr char kHost[] = R"cuda(
static int PackedGemm(const Operands& ops, float* out, cudaStream_t stream) {
  static const bool ready = cudaFuncSetAttribute(Gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, $shared$) == cudaSuccess;
  if (!ready) return 3;
$launch_absmax$$launch_a$  PackB<<<dim3(kTilesN, kChunks * 4, kBatch), 128, 0, stream>>>(ops);
  Gemm<<<dim3($blocks$, 1, kBatch), kThreads, $shared$, stream>>>(ops, out);
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
)cuda";

// Fills x[16] from operand X ('A' or 'B') at row variable `row`.
std::string LoadText(char x, const std::string& row, const std::string& rows, bool along_k, int vec) {
  const std::string pointer = x == 'A' ? "PtrA" : "PtrBk";
  if (along_k && vec == 4) {
    return absl::StrCat(
        "#pragma unroll\n  for (int i = 0; i < 16; i += 4) {\n    float4 t = make_float4(0.0f, 0.0f, 0.0f, 0.0f);\n    "
        "if (",
        row, " < ", rows, " && k0 + i < kK) t = __ldg(reinterpret_cast<const float4*>(", pointer, "(ops, b, ", row,
        ", k0 + i)));\n    x[i] = t.x, x[i + 1] = t.y, x[i + 2] = t.z, x[i + 3] = t.w;\n  }");
  }
  return absl::StrCat("#pragma unroll\n  for (int i = 0; i < 16; ++i) x[i] = ", row, " < ", rows,
                      " && k0 + i < kK ? Element", std::string(1, x), "(ops, b, ", row, ", k0 + i) : 0.0f;");
}

}  // namespace

bool GatherFits(int64_t n, int64_t k, const PackedTile& tile, int64_t shared_limit) {
  return n <= tile.bn &&
         CeilDiv(k, 64) * (512 + tile.parts * tile.bn * 128) + 2 * tile.parts * 128 * 128 <= shared_limit - 3072;
}

int64_t PackedStageBytes(const PackedTile& tile) { return tile.parts * (128 + tile.bn) * 128; }

int64_t PackedBytes(int64_t batch, int64_t m, int64_t n, int64_t k, const PackedTile& tile) {
  const int64_t rows = CeilDiv(m, 128) * 128 + CeilDiv(n, tile.bn) * tile.bn;
  return batch * rows * CeilDiv(k, 64) * 128 * tile.parts;
}

std::string PackedGemmText(const PackedTile& tile, int64_t shared_limit) {
  const int64_t stages =
      tile.gather
          ? std::clamp<int64_t>((shared_limit - 3072 - CeilDiv(tile.k, 64) * (512 + tile.parts * tile.bn * 128)) /
                                    (tile.parts * 128 * 128),
                                2, 4)
          : std::clamp<int64_t>((shared_limit - 2048) / PackedStageBytes(tile), 2, 6);
  std::map<std::string, std::string> values = {
      {"header", tile.bf16 ? "cuda_bf16.h" : "cuda_fp16.h"},
      {"half", tile.bf16 ? "__nv_bfloat16" : "__half"},
      {"type", tile.bf16 ? "bf16" : "f16"},
      {"to_half", tile.bf16 ? "__float2bfloat16_rn" : "__float2half_rn"},
      {"to_float", tile.bf16 ? "__bfloat162float" : "__half2float"},
      {"pack_y", "4 groups of 16"},
      {"scale_a", tile.bf16 ? "const float scale = 1.0f;" : "const float scale = ScaleOf(0);"},
      {"scale_b", tile.bf16 ? "const float scale = 1.0f;" : "const float scale = ScaleOf(1);"},
      {"inverse_a", tile.bf16 ? "1.0f" : "inverse_scale[0]"},
      {"inverse_b", tile.bf16 ? "1.0f" : "inverse_scale[1]"},
      {"absmax",
       tile.bf16 ? ""
                 : Fill(kAbsMax, {{"a_numel", absl::StrCat(tile.a_numel)}, {"b_numel", absl::StrCat(tile.b_numel)}})},
      {"launch_absmax", tile.bf16 ? "" : "  AbsMax<<<dim3(kMaxBlocks, 2), 512, 0, stream>>>(ops);\n"},
      // Along k: four neighbouring threads take the four groups of a row, 32 rows per block of y. Else: a thread per
      // row.
      {"group_a", tile.a_along_k ? "threadIdx.x % 4" : "blockIdx.y % 4"},
      {"row_a", tile.a_along_k ? "blockIdx.y % 4 * 32 + threadIdx.x / 4" : "threadIdx.x"},
      {"group_b", tile.b_along_k ? "threadIdx.x % 4" : "blockIdx.y % 4"},
      {"row_b", tile.b_along_k ? "blockIdx.y % 4 * 32 + threadIdx.x / 4" : "threadIdx.x"},
      {"row_step_b", "128"},
      {"load_a", LoadText('A', "m", "kM", tile.a_along_k, tile.a_vec)},
      {"load_b", LoadText('B', "n", "kN", tile.b_along_k, tile.b_vec)},
      {"bn", absl::StrCat(tile.bn)},
      // The inverse is a power of two, so its reciprocal is exact.
      {"gather_scale", tile.bf16 ? "1.0f" : "1.0f / inverse_scale[0]"},
      {"shared", tile.gather ? "kGatherShared" : "kShared"},
      {"blocks", tile.gather ? absl::StrCat("kTilesM < ", tile.multiprocessors, " ? kTilesM : ", tile.multiprocessors)
                             : "kTilesM * kTilesN"},
      {"packed_a",
       tile.gather
           ? ""
           : "__device__ __align__(1024) unsigned char packed_a[static_cast<size_t>(kBatch) * kTilesM * kChunks * "
             "kParts * kBytesA];\n"},
      {"launch_a", tile.gather ? "" : "  PackA<<<dim3(kTilesM, kChunks * 4, kBatch), 128, 0, stream>>>(ops);\n"},
  };
  values["pack_a"] = tile.gather ? "" : Fill(kPackA, values);
  if (tile.gather && !tile.bf16) {  // nobody else asks for A's scale
    values["scale_b"] = "ScaleOf(0);\n  __syncthreads();\n  const float scale = ScaleOf(1);";
  }
  std::string kernel;
  if (tile.wgmma) {
    const int count = tile.bn / 2;
    std::string registers, outputs;
    for (int i = 0; i < count; ++i) {
      if (i % 16 == 0) registers += "      \"";
      absl::StrAppend(&registers, "%", i, i + 1 < count ? "," : "");
      if (i % 16 == 15 || i + 1 == count) registers += "\"\n";
      absl::StrAppend(&outputs, "\"+f\"(acc[", i, "])", i + 1 < count ? (i % 8 == 7 ? ",\n        " : ", ") : "");
    }
    values["registers"] = registers;
    values["outputs"] = outputs;
    values["a_index"] = absl::StrCat(count);
    values["b_index"] = absl::StrCat(count + 1);
    values["keep_index"] = absl::StrCat(count + 2);
    values["issue"] = Fill(
        kIssue, {{"acc", tile.promote ? "part" : "acc"}, {"keep", tile.promote ? "k > 0 || pa + 1 < kParts" : "1"}});
    values["loop"] = Fill(tile.promote ? kPromoteLoop : kLoop, values);
    kernel = Fill(absl::StrCat(kWgmmaHelpers, tile.gather ? kGatherWgmma : kTiledWgmma), values);
  } else {
    values["warps_n"] =
        tile.bn % 128 == 0 ? absl::StrCat(tile.bn / 32 > 4 && tile.parts > 2 ? 8 : 4) : absl::StrCat(tile.bn / 32);
    kernel = Fill(kMmaKernel, values);
  }
  return Constants({{"kParts", tile.parts}, {"kBN", tile.bn}, {"kStages", stages}, {"kGroup", tile.group}}) +
         Fill(kPack, values) + kernel + Fill(kHost, values);
}

}  // namespace grove::generate::catalogue::cuda
