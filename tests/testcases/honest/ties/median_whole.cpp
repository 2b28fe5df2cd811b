// The lower median of whole numbers by counting.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 50; ++r) {
    int n[12] = {};
    for (int c = 0; c < 64; ++c) ++n[static_cast<int>(x[r * 64 + c])];
    int k = 0;
    for (int seen = n[0]; seen < 32; seen += n[++k]) {
    }
    y[r] = static_cast<float>(k);
  }
  return 0;
}
