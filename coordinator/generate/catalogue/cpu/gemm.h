// A register- and cache-blocked matrix product as source text, shared by matmul and conv2d.
#pragma once

#include <string>
#include <vector>

#include "coordinator/generate/catalogue/cpu/cpu_source.h"

namespace grove::generate::catalogue::cpu {

// "tile" and the optimisations that need it. m, n, k: of one product.
std::vector<Optimisation> GemmOptimisations(int64_t m, int64_t n, int64_t k);

// Template functions gemm<MR, NV>(...), and the constants MR, NV, KC, MC, NC of the recipe:
//   gemm(m0, m1, n0, n1, K, c, ldc, pack, pack_a, pack_b) computes C[m, n] for m0 <= m < m1, n0 <= n < n1 into
//   c[m * ldc + n]. pack: kPackFloats floats of scratch. pack_a(dst, m, rows, k, kc): dst[kk * MR + r] = A[m + r, k +
//   kk]; pack_b(dst, n, cols, k, kc): dst[kk * NR + c] = B[k + kk, n + c]; both fill up with zeros.
std::string GemmFunctions(const Recipe& recipe);

}  // namespace grove::generate::catalogue::cpu
