// Source text of matrix products C[m,n] = sum_k A[m,k] B[k,n], used by matmul and, through its own loaders, by conv2d.
#pragma once

#include <cstdint>
#include <string>

namespace grove::generate::catalogue::cuda {

// The texts expect in the file before them:
//   kBatch, kM, kN, kK       extents
//   PtrA(ops, b, m, k)       address of A's element; PtrB(ops, b, k, n) likewise, null where the element is a padding 0
//   kAlongK_A, kAlongN_B     1 when neighbouring k (of A) and neighbouring n (of B) are neighbours in memory
//   kVecA, kVecB             4 when groups of four along that direction are 16-byte aligned and inside, else 1
//   Store(ops, out, b, m, n, value), Store2(...) for two neighbouring n
// and define  __global__ Gemm(Operands ops, float* out)  with grid dim3(GemmBlocks(), 1, kBatch).

// One thread per element of C, no shared memory. 16 x 16 threads.
std::string GemmNaiveText();

// Shared-memory tiles kBM x kBK and kBK x kBN, each thread kTM x kTN accumulators, kBuffers 1 or 2.
struct SimtTile {
  int bm = 64, bn = 64, bk = 16, tm = 4, tn = 4, buffers = 1, group = 1;
};
std::string GemmSimtText(const SimtTile& tile);

// Tensor cores through mma.sync m16n8k8 on TF32, operands staged by cp.async; products 1 (plain TF32) or 3 (each
// operand split in two TF32 parts: errors near float32's). Needs compute capability 8.0. Dynamic shared memory.
struct MmaTile {
  int bm = 128, bn = 128, bk = 32, stages = 3, products = 3, group = 8;
};
std::string GemmMmaText(const MmaTile& tile, bool a_along_k, bool b_along_n, int64_t shared_limit);
// Bytes of shared memory of such a kernel.
int64_t MmaSharedBytes(const MmaTile& tile, bool a_along_k, bool b_along_n);

// Host statements that launch Gemm on `stream` and return nonzero when that fails.
std::string GemmLaunchText();

}  // namespace grove::generate::catalogue::cuda
