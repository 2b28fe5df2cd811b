// A context as the engine makes it, with an output, an input and a device.
#pragma once

#include "coordinator/generate/generator.h"

namespace grove::generate {

inline Context SmallContext(v1::DeviceKind device = v1::DEVICE_KIND_CPU) {
  Context context;
  context.problem.set_name("row_softmax");
  context.problem.set_format(v1::PROBLEM_FORMAT_KERNELBENCH);
  context.problem.set_source("class Model:\n  def forward(self, x):\n    return torch.softmax(x, dim=1)\n");
  v1::TensorType* input = context.description.add_inputs();
  input->set_dtype("float32");
  input->set_name("x");
  input->add_shape(128);
  input->add_shape(4096);
  *context.description.add_outputs() = *input;
  v1::TensorType* weight = context.description.add_parameters();
  weight->set_dtype("float32");
  weight->set_name("ln.weight");
  weight->add_shape(4096);
  context.description.set_reference_seconds(0.00123);
  context.device.set_kind(device);
  context.device.set_name(device == v1::DEVICE_KIND_CUDA ? "NVIDIA L40S" : "Test CPU");
  context.device.set_arch(device == v1::DEVICE_KIND_CUDA ? "sm_89" : "x86-64/avx2");
  context.device.set_multiprocessors(142);
  context.device.set_uuid("GPU-do-not-show");
  context.options.set_device(device);
  context.seed = 918273645;
  return context;
}

inline constexpr char kKernelAnswer[] =
    "Two rows at a time.\n\n```cpp\n#include <grove/kernel.h>\nGROVE_KERNEL(args) { return 0; }\n```\n";
inline constexpr char kIdeasAnswer[] =
    "```json\n[{\"title\":\"Vectorise\",\"description\":\"Use wide "
    "loads.\",\"category\":\"memory\",\"predicted_speedup\":1.8},"
    "{\"title\":\"Fuse\",\"description\":\"One "
    "pass.\",\"category\":\"compute\",\"predicted_speedup\":\"2.5x\"}]\n```\n";

}  // namespace grove::generate
