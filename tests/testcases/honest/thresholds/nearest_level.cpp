// Quantisation to the nearest of sixteen levels of a code book, by halving.
#include <grove/kernel.h>

#include <algorithm>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* b = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 2000; ++i) {
    const long k = std::lower_bound(b, b + 16, x[i]) - b;
    y[i] = k == 0 ? b[0] : k == 16 ? b[15] : x[i] - b[k - 1] <= b[k] - x[i] ? b[k - 1] : b[k];
  }
  return 0;
}
