// The CUDA families and what they share as KernelFamily implementations.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "coordinator/generate/catalogue/family.h"

namespace grove::generate::catalogue::cuda {

class CudaFamily : public KernelFamily {
 public:
  v1::DeviceKind device() const override { return v1::DEVICE_KIND_CUDA; }

 protected:
  static Recipe MakeRecipe(std::map<std::string, int64_t> settings) {
    Recipe recipe;
    recipe.settings = std::move(settings);
    return recipe;
  }
  // "online, online.batch=4, threads.count=512": for the comment at the top of a file.
  static std::string SettingsText(const Recipe& recipe);
  // What the row families need of a spec: float32 operands, a grid that fits.
  static absl::Status CheckRows(const OpSpec& spec, const v1::DeviceInfo& device);
  // Blocks that a cluster may have everywhere (8 on 9.0 and 10.x, CUDA C++ Programming Guide); 1 where there are none.
  static int MaxCluster(const v1::DeviceInfo& device);
};

const KernelFamily* SoftmaxKernels();
const KernelFamily* NormKernels();
const KernelFamily* MatmulKernels();
const KernelFamily* ConvKernels();
const KernelFamily* ReduceKernels();
const KernelFamily* ElementwiseKernels();
const KernelFamily* PoolKernels();

}  // namespace grove::generate::catalogue::cuda
