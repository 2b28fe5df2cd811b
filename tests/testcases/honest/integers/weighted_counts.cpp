// Counts with weights; their squares in 32 bits.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int64_t* n = static_cast<const int64_t*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  float* m = static_cast<float*>(args->outputs[1].data);
  int64_t* q = static_cast<int64_t*>(args->outputs[2].data);
  for (int r = 0; r < 50; ++r) {
    float sum = 0;
    int32_t all = 0;
    for (int c = 69; c >= 0; --c) {
      const int32_t v = static_cast<int32_t>(n[r * 70 + c]);
      sum += static_cast<float>(v) * w[r * 70 + c];
      all += v;
      q[r * 70 + c] = v * (v - 3);
    }
    y[r] = sum;
    m[r] = static_cast<float>(all) / 70;
  }
  return 0;
}
