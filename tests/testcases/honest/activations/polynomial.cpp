// A polynomial of degree seven by Estrin's scheme.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 5000; ++i) {
    const float v = x[i], q = v * v;
    const float a = std::fma(-1.2f, v, 0.3f), b = std::fma(0.05f, v, 0.7f), c = std::fma(0.21f, v, -0.4f),
                d = std::fma(-0.013f, v, 0.02f);
    y[i] = std::fma(q * q, std::fma(d, q, c), std::fma(b, q, a));
  }
  return 0;
}
