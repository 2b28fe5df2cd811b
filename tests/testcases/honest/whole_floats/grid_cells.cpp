// Cells of a grid of width 0.1 of whole millimetres.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float *x = static_cast<const float *>(args->inputs[0].data);
  int64_t *y = static_cast<int64_t *>(args->outputs[0].data);
  for (int i = 0; i < 3000; ++i)
    y[i] = static_cast<int64_t>(x[i]) / 100;
  return 0;
}
