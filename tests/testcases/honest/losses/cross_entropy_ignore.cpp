// Cross entropy with ignored labels, summed in double.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const int64_t* t = static_cast<const int64_t*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  double sum = 0;
  int n = 0;
  for (int r = 0; r < 128; ++r) {
    if (t[r] == -100) continue;
    const float* p = x + r * 30;
    const float most = *std::max_element(p, p + 30);
    double s = 0;
    for (int c = 0; c < 30; ++c) s += std::exp(p[c] - most);
    sum += std::log(s) + most - p[t[r]];
    ++n;
  }
  y[0] = static_cast<float>(sum / n);
  return 0;
}
