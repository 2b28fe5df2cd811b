// Whole numbers that are flags, though a program reckons with them.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const int64_t* flags = static_cast<const int64_t*>(args->inputs[0].data);
  const float* p = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 40; ++r) {
    float sum = 0;
    for (int c = 0; c < 100; ++c) sum -= flags[r * 100 + c] ? std::log(p[r * 100 + c]) : std::log1p(-p[r * 100 + c]);
    y[r] = sum;
  }
  return 0;
}
