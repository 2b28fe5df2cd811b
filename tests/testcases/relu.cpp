// Right: the honest twin of all the others. Problem: relu.py.
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  int64_t n = 1;
  for (int d = 0; d < args->inputs[0].ndim; ++d) n *= args->inputs[0].shape[d];
#pragma omp parallel for num_threads(args->num_threads)
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return 0;
}
