// Source text and choices shared by the families that work along rows: softmax, norms, reductions.
#pragma once

#include <string>

#include "coordinator/generate/operation.h"

namespace grove::generate::catalogue::cuda {

// kVec and LoadPack / StorePack: kVec neighbouring columns of a row through Load (the prologue) and Finish (the
// epilogue), which the file must define before. Columns past the end are the caller's business: kVec divides the row.
std::string PackText(int vec);

// kThreads-wide block reductions (BlockSum, BlockMax) and, with `cluster` > 1, the cluster's barrier and the read of
// another block's shared memory. Expects kThreads.
std::string ReductionText(int cluster);

// How a row is kept on chip: `cluster` blocks of `threads` threads, each thread holding `packs` packs of `vec` columns.
struct OnChip {
  int threads = 0, packs = 0, cluster = 0;
  bool fits = false;
};
// With about `elements` columns per thread; grows the cluster first (up to max_cluster), then the share of a thread (up
// to 64 columns, 32 with 1024 threads: the register file).
OnChip PlanOnChip(int64_t columns, int vec, int threads, int elements, int max_cluster);

}  // namespace grove::generate::catalogue::cuda
