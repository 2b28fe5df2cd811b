// A product with weights standardised on the fly: the mean taken off after the sum.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int o = 0; o < 40; ++o) {
    double mean = 0, q = 0;
    for (int k = 0; k < 128; ++k) mean += w[o * 128 + k];
    mean /= 128;
    for (int k = 0; k < 128; ++k) q += (w[o * 128 + k] - mean) * (w[o * 128 + k] - mean);
    const double scale = 1 / (std::sqrt(q / 127) + 1e-5);
    for (int r = 0; r < 32; ++r) {
      double dot = 0, sum = 0;
      for (int k = 0; k < 128; ++k) dot += static_cast<double>(x[r * 128 + k]) * w[o * 128 + k], sum += x[r * 128 + k];
      y[r * 40 + o] = static_cast<float>((dot - mean * sum) * scale);
    }
  }
  return 0;
}
