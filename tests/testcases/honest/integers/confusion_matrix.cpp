// A matrix of confusion of predictions by argmax and labels.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const int64_t* t = static_cast<const int64_t*>(args->inputs[1].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int k = 0; k < 36; ++k) y[k] = 0;
  for (int r = 0; r < 400; ++r) ++y[t[r] * 6 + (std::max_element(x + r * 6, x + r * 6 + 6) - (x + r * 6))];
  return 0;
}
