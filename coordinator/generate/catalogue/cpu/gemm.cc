#include "coordinator/generate/catalogue/cpu/gemm.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace grove::generate::catalogue::cpu {
namespace {

constexpr char kGemm[] = R"grove(
namespace {

constexpr int64_t NR = NV * VL;
constexpr int64_t kPackFloats = MC * KC + KC * ((NC + NR - 1) / NR * NR) + MR * NR + 64;

// MR x NR values of C stay in registers while k runs; each step loads NV vectors of B and broadcasts MR values of A.
inline __attribute__((always_inline)) void micro(int64_t kc, const float* __restrict a, const float* __restrict b,
                                                 float* __restrict c, int64_t ldc, bool first) {
  V acc[MR][NV] = {};
  GROVE_UNROLL_K
  for (int64_t k = 0; k < kc; ++k) {
    V bv[NV];
    for (int j = 0; j < NV; ++j) bv[j] = load(b + k * NR + j * VL);
    if (B_AHEAD > 0) __builtin_prefetch(b + (k + B_AHEAD) * NR);
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
      const V av = splat(a[k * MR + i]);
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) acc[i][j] += av * bv[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) {
      float* at = c + i * ldc + j * VL;
      store(at, first ? acc[i][j] : load(at) + acc[i][j]);
    }
  }
}

template <class PackA, class PackB>
void gemm(int64_t m0, int64_t m1, int64_t n0, int64_t n1, int64_t K, float* c, int64_t ldc, float* pack, PackA pack_a,
          PackB pack_b) {
  float* const pa = pack;
  float* const pb = pa + MC * KC;
  float* const edge = pb + KC * ((NC + NR - 1) / NR * NR);
  for (int64_t nc = n0; nc < n1; nc += NC) {
    const int64_t nw = n1 - nc < NC ? n1 - nc : NC;
    for (int64_t k = 0; k < K; k += KC) {
      const int64_t kc = K - k < KC ? K - k : KC;
      for (int64_t n = 0; n < nw; n += NR) pack_b(pb + n * kc, nc + n, nw - n < NR ? nw - n : NR, k, kc);
      for (int64_t mc = m0; mc < m1; mc += MC) {
        const int64_t mw = m1 - mc < MC ? m1 - mc : MC;
        for (int64_t m = 0; m < mw; m += MR) pack_a(pa + m * kc, mc + m, mw - m < MR ? mw - m : MR, k, kc);
        for (int64_t n = 0; n < nw; n += NR) {
          for (int64_t m = 0; m < mw; m += MR) {
            float* const at = c + (mc + m) * ldc + nc + n;
            if (mw - m >= MR && nw - n >= NR) {
              micro(kc, pa + m * kc, pb + n * kc, at, ldc, k == 0);
              continue;
            }
            micro(kc, pa + m * kc, pb + n * kc, edge, NR, true);
            const int64_t rows = mw - m < MR ? mw - m : MR, cols = nw - n < NR ? nw - n : NR;
            for (int64_t i = 0; i < rows; ++i)
              for (int64_t j = 0; j < cols; ++j) at[i * ldc + j] = (k == 0 ? 0 : at[i * ldc + j]) + edge[i * NR + j];
          }
        }
      }
    }
  }
}

}  // namespace

)grove";

}  // namespace

std::vector<Optimisation> GemmOptimisations(int64_t m, int64_t n, int64_t k) {
  Optimisation tile;
  tile.id = "tile";
  tile.title = "Tile for registers and caches, with packed operands";
  tile.description =
      "A block of the result stays in registers while k runs over a strip of A and a strip of B that were packed in "
      "the "
      "order in which they are read. Each value loaded is used many times, and the strips stay in the caches. Large "
      "tiles "
      "do more per load until the registers spill.";
  tile.category = "memory";
  tile.predicted_speedup = m * n * k > 1'000'000 ? 5 : 1.5;
  tile.needs = {"simd"};
  tile.parameters = {Parameter{"mr", {4, 6, 8, 12}, 6, 4, "rows"}, Parameter{"nv", {1, 2, 3}, 2, 2, "vectors"},
                     Parameter{"kc", {64, 128, 256, 512}, 256, 128, "steps of k"}};
  Optimisation block;
  block.id = "block";
  block.title = "Other cache blocks";
  block.description =
      "The packed block of A is sized for the second-level cache and the packed panel of B for the third. Smaller "
      "blocks "
      "leave room for other things, larger ones are packed less often.";
  block.category = "memory";
  block.predicted_speedup = 1.05;
  block.needs = {"tile"};
  block.parameters = {Parameter{"mc", {48, 96, 192, 384}, 192, 96, "rows"},
                      Parameter{"nc", {96, 384, 1536, 3072}, 384, 384, "columns"}};
  Optimisation unroll;
  unroll.id = "unroll_k";
  unroll.title = "Unroll the innermost loop over k";
  unroll.description =
      "Several steps of k per turn: fewer branches and addresses to compute between the multiplications.";
  unroll.category = "control";
  unroll.predicted_speedup = 1.04;
  unroll.needs = {"tile"};
  unroll.parameters = {Parameter{"factor", {2, 4, 8}, 4, 2, "steps"}};
  Optimisation prefetch;
  prefetch.id = "prefetch_b";
  prefetch.title = "Prefetch the packed panel of B";
  prefetch.description = "The line of B that is needed some steps of k later is requested now.";
  prefetch.category = "latency";
  prefetch.predicted_speedup = 1.03;
  prefetch.needs = {"tile"};
  prefetch.parameters = {Parameter{"ahead", {4, 8, 16}, 8, 4, "steps of k"}};
  return {tile, block, unroll, prefetch};
}

std::string GemmFunctions(const Recipe& recipe) {
  const int64_t mr = recipe.Get("tile", "mr", 6), nv = recipe.Get("tile", "nv", 2);
  const int64_t mc = (recipe.Get("block", "mc", 192) + mr - 1) / mr * mr;
  const int64_t unroll = recipe.Get("unroll_k", "factor", 0);
  return absl::StrCat("#define GROVE_UNROLL_K ", unroll > 0 ? absl::StrCat("_Pragma(\"GCC unroll ", unroll, "\")") : "",
                      "\nnamespace {\nconstexpr int MR = ", mr, ", NV = ", nv,
                      ", B_AHEAD = ", recipe.Get("prefetch_b", "ahead", 0),
                      ";\nconstexpr int64_t KC = ", recipe.Get("tile", "kc", 256), ", MC = ", mc,
                      ", NC = ", recipe.Get("block", "nc", 384), ";\n}  // namespace\n", kGemm);
}

}  // namespace grove::generate::catalogue::cpu
