// The CPU families, one function per file.
#pragma once

#include "coordinator/generate/catalogue/family.h"

namespace grove::generate::catalogue::cpu {

const KernelFamily* ElementwiseFamily();  // elementwise.cc
const KernelFamily* SoftmaxFamily();      // softmax.cc
const KernelFamily* NormFamily();         // norm.cc
const KernelFamily* ReduceFamily();       // reduce.cc
const KernelFamily* MatmulFamily();       // matmul.cc
const KernelFamily* Conv2dFamily();       // conv2d.cc
const KernelFamily* PoolFamily();         // pool.cc

}  // namespace grove::generate::catalogue::cpu
