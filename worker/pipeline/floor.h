// How fast a device could do a problem at all: the bytes that must move and the operations that must run, over what the
// device was measured to do (Calibration). Pure.
//
// The figure is a floor for programs that read what the outputs depend on and compute it by the direct formula. What
// computes less (Winograd, FFT, a product that a clever kernel never forms) can pass it: `FloorReport.source` says
// which operations were counted so.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "grove/v1/types.pb.h"

namespace grove::worker {

struct WorkCount {
  double bytes = 0;                          // inputs and parameters that outputs depend on, and outputs: once each
  double input_bytes = 0;                    // of these, what is read
  std::map<std::string, double> operations;  // by precision ("float32", "bfloat16", ...), multiply and add as two
  std::map<std::string, double> matrix_operations;  // of these, in products and convolutions
  std::vector<std::string> uncounted;               // kinds of operation whose work is not known, bounded to 8
  std::string error;                                // why nothing could be counted
};

// Counts one call of the reference from its graph. Operations: products and convolutions by their formula (2 per
// multiply-add), anything else one per element of the larger of its operands and results. A tensor that is only
// gathered or sliced from counts with what is taken from it.
WorkCount CountWork(const v1::ProblemDescription& problem);

// Seconds by the device's calibration; without one `seconds` is 0 and `source` says so. With a `warm` cache a call
// finds there what fits of its data, and may leave there what it writes: only what the last-level cache cannot hold
// must move, and where its size is not known no memory bound is stated. float32 products may run as three products of
// TF32 (a split that keeps float32's precision), so the faster of float32's rate and a third of TF32's counts; with
// `reduced` precision the fastest rate of TF32, bfloat16 and float16.
v1::FloorReport FloorOf(const WorkCount& count, const v1::DeviceInfo& device, bool reduced, bool warm);

// The floor of a finished evaluation and the fraction of it that the candidate reaches; nothing where there is none.
// A time of a native candidate in which its outputs alone could not be written makes the result UNMEASURABLE. Of one
// that is CHEATED because its claims contradict the clock, the evidence says where the claim is below the floor, too.
// (Claims of what is CORRECT agree with the clock, whose time is held against the floor.)
void AddFloor(const v1::ProblemDescription& problem, const v1::EvaluationOptions& options, bool native,
              v1::EvaluationResult* result);

}  // namespace grove::worker
