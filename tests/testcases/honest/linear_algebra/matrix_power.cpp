// The fifth power of matrices, in another order of the products.
#include <grove/kernel.h>

namespace {
void Times(const float* a, const float* b, float* y) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      float s = 0;
      for (int k = 15; k >= 0; --k) s += a[i * 16 + k] * b[k * 16 + j];
      y[i * 16 + j] = s;
    }
}
}  // namespace

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int s = 0; s < 6; ++s) {
    float p[256], q[256], r[256];
    const float* m = a + s * 256;
    Times(m, m, p);
    Times(m, p, q);
    Times(p, q, r);
    for (int i = 0; i < 256; ++i) y[s * 256 + i] = r[i];
  }
  return 0;
}
