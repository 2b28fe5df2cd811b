// One accumulator from the end, in float64.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const auto* x = static_cast<const double*>(args->inputs[0].data);
  const auto* weight = static_cast<const float*>(args->inputs[1].data);
  auto* y = static_cast<double*>(args->outputs[0].data);
  const int64_t n = args->inputs[0].shape[1];
  for (int64_t begin = 0; begin < args->inputs[0].shape[0] * n; begin += n) {
    double sum = 0;
    for (int64_t i = n; i-- > 0;) sum += x[begin + i];
    for (int64_t i = 0; i < n; ++i) y[begin + i] = (x[begin + i] - sum / static_cast<double>(n)) * weight[i];
  }
  return 0;
}
