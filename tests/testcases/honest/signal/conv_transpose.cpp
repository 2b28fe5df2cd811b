// A transposed convolution as a scatter.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  const float* b = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int s = 0; s < 2; ++s) {
    for (int o = 0; o < 4; ++o)
      for (int p = 0; p < 225; ++p) y[(s * 4 + o) * 225 + p] = b[o];
    for (int ch = 0; ch < 5; ++ch)
      for (int p = 0; p < 49; ++p)
        for (int o = 0; o < 4; ++o)
          for (int k = 0; k < 9; ++k)
            y[((s * 4 + o) * 15 + p / 7 * 2 + k / 3) * 15 + p % 7 * 2 + k % 3] +=
                x[(s * 5 + ch) * 49 + p] * w[(ch * 4 + o) * 9 + k];
  }
  return 0;
}
