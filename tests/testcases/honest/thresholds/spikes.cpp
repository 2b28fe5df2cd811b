// A leaky integrate-and-fire neuron: spikes of a recurrence with a reset.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 300; ++i) {
    float v = 0;
    for (int t = 0; t < 24; ++t) {
      v = std::fma(0.9f, v, x[t * 300 + i]);
      y[t * 300 + i] = v > 1 ? 1 : 0;
      if (v > 1) v = 0;
    }
  }
  return 0;
}
