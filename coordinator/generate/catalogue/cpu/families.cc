#include "coordinator/generate/catalogue/cpu/families.h"

namespace grove::generate::catalogue {

std::vector<const KernelFamily*> CpuFamilies() {
  return {cpu::ElementwiseFamily(), cpu::SoftmaxFamily(), cpu::NormFamily(), cpu::ReduceFamily(),
          cpu::MatmulFamily(),      cpu::Conv2dFamily(),  cpu::PoolFamily()};
}

}  // namespace grove::generate::catalogue
