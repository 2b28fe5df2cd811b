// hardshrink at a threshold that is tiny beside the sums, the sum in four lanes.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 2000; ++r) {
    float s[4] = {};
    for (int c = 0; c < 64; ++c) s[c % 4] += x[r * 64 + c];
    const float v = (s[0] + s[1]) + (s[2] + s[3]);
    y[r] = v > 0.01f || v < -0.01f ? v : 0;
  }
  return 0;
}
