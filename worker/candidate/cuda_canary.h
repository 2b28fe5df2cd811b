// The canary of a GPU (Device::SelfTest): what it computes is known beforehand.
#pragma once

#include <cuda_runtime.h>

#include <string>

namespace grove::candidate {

// On all multiprocessors: a sequence of integers, the same sequence in float32 and float64, products of matrices on
// tensor cores (half precision, from sm_70), and a pattern written to memory and read by other threads. What is wrong,
// or empty; `seconds`: of the integers alone, at best.
std::string RunCanary(int ordinal, cudaStream_t stream, double* seconds);

}  // namespace grove::candidate
