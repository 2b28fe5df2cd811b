// A prefix sum in blocks of 64: sums of blocks first.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 16; ++r) {
    float before = 0;
    for (int b = 0; b < 64; ++b) {
      float run = 0;
      for (int c = 0; c < 64; ++c) {
        run += x[r * 4096 + b * 64 + c];
        y[r * 4096 + b * 64 + c] = before + run;
      }
      before += run;
    }
  }
  return 0;
}
