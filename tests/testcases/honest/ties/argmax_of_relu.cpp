// argmax after a ReLU, of which the first counts where all are zero.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int r = 0; r < 200; ++r) {
    float best = 0;
    y[r] = 0;
    for (int c = 0; c < 5; ++c)
      if (x[r * 5 + c] > best) best = x[r * 5 + c], y[r] = c;
  }
  return 0;
}
