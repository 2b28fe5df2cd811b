// Which points lie in which of some boxes.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* p = static_cast<const float*>(args->inputs[0].data);
  const float* b = static_cast<const float*>(args->inputs[1].data);
  uint8_t* y = static_cast<uint8_t*>(args->outputs[0].data);
  for (int i = 0; i < 100; ++i)
    for (int j = 0; j < 20; ++j) {
      const float *u = p + i * 2, *v = b + j * 4;
      y[i * 20 + j] = !(u[0] < v[0] || u[1] < v[1] || u[0] > v[2] || u[1] > v[3]);
    }
  return 0;
}
