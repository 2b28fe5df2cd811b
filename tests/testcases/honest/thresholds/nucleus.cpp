// The share that stands before each logit, in double.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* p = static_cast<const float*>(args->inputs[1].data);
  for (int r = 0; r < 32; ++r) {
    std::vector<int> i(500);
    std::iota(i.begin(), i.end(), 0);
    const float* v = x + r * 500;
    std::sort(i.begin(), i.end(), [&](int a, int b) { return v[a] > v[b]; });
    double t = 0, c = 0;
    for (int j = 0; j < 500; ++j) t += std::exp((double)v[j] - v[i[0]]);
    for (int j : i) {
      y[r * 500 + j] = c / t > p[r] ? -INFINITY : v[j];
      c += std::exp((double)v[j] - v[i[0]]);
    }
  }
  return 0;
}
