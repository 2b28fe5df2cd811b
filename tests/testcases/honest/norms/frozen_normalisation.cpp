// Folds weight, bias and statistics into one factor and one summand for each channel.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  const float* weight = (const float*)args->inputs[1].data;
  const float* bias = (const float*)args->inputs[2].data;
  const float* mean = (const float*)args->inputs[3].data;
  const float* variance = (const float*)args->inputs[4].data;
  float* y = (float*)args->outputs[0].data;
  const int64_t* shape = args->inputs[0].shape;
  const int64_t plane = shape[2] * shape[3];
  for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
    const int64_t c = i % shape[1];
    const float scale = weight[c] / sqrtf(variance[c] + 1e-5f), shift = bias[c] - mean[c] * scale;
    for (int64_t j = 0; j < plane; ++j) {
      const float v = x[i * plane + j] * scale + shift;
      y[i * plane + j] = v > 0 ? v : 0;
    }
  }
  return 0;
}
