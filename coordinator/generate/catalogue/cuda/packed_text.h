// Source text of matrix products on 16-bit tensor cores with split operands, in two steps.
//
// Packing: every float is scaled by a power of two (fp16 only, from the largest magnitude of the tensor), split into a
// sum of 1 to 3 16-bit numbers, and stored in tiles of 64 k that are byte for byte what the multiplying kernel wants in
// shared memory (K-major, 128-byte swizzle, padded with zeros). Transposed operands, tails and the patches of a
// convolution are all dealt with here.
// Multiplying: tiles come in by plain linear copies (cp.async, or cp.async.bulk on sm_90a) and are multiplied by
// mma.sync or wgmma, one product per pair of parts that matters, accumulated in float32.
//
// Two fp16 parts hold 22 bits of a float's 24 (of elements within 2^-16 of the largest, the rest to 2^-40 of it), and
// dropping the product of both second parts costs 2^-22: as exact as three TF32 products at twice their rate.
#pragma once

#include <cstdint>
#include <string>

namespace grove::generate::catalogue::cuda {

struct PackedTile {
  bool bf16 = false;
  int parts = 2;  // fp16: 1 or 2; bf16: 1, 2 or 3
  int bn = 128;   // columns of C per block: 64, 96, 128, 192, 256; its rows are always 128
  bool wgmma = false;
  bool promote = false;  // wgmma: add each chunk's product to float32 registers outside the tensor core; bn <= 128
  int group = 8;
  bool a_along_k = true, b_along_k = true;  // which neighbours are neighbours in memory, for coalesced packing
  int a_vec = 1, b_vec = 1;                 // 4: sixteen k from a multiple of 16 are inside and 16-byte aligned
  // wgmma: A is not packed beforehand; half of each block's threads gather and split its rows into shared memory while
  // the other half multiplies. B must be one tile wide and stays in shared memory whole (GatherFits).
  bool gather = false;
  int multiprocessors = 0;           // gather: blocks to launch
  int64_t k = 0;                     // gather: kK
  int64_t a_numel = 0, b_numel = 0;  // elements of the arguments behind A and B, contiguous
};

// Expects kBatch, kM, kN, kK, ElementA(ops, b, m, k) and ElementB(ops, b, n, k) (values, inside), BaseA(ops) and
// BaseB(ops) (the arguments), with a vec of 4 also PtrA(ops, b, m, k) / PtrBk(ops, b, n, k), and Store2(ops, out, b, m,
// n, v0, v1); m and n are inside, n + 1 may not be. Defines PackedGemm(ops, out, stream), a host function: 0, or
// nonzero on failure.
std::string PackedGemmText(const PackedTile& tile, int64_t shared_limit);

// Whether a gathering kernel's shared memory holds all of B and two stages of A.
bool GatherFits(int64_t n, int64_t k, const PackedTile& tile, int64_t shared_limit);
// Bytes of scratch memory that the packed operands take.
int64_t PackedBytes(int64_t batch, int64_t m, int64_t n, int64_t k, const PackedTile& tile);
// Bytes of shared memory of one stage.
int64_t PackedStageBytes(const PackedTile& tile);

}  // namespace grove::generate::catalogue::cuda
