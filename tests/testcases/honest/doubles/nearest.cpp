// Looks at half of the pairs, and adds the squares the other way round.
#include <grove/kernel.h>

#include <limits>
#include <vector>

GROVE_KERNEL(args) {
  const auto* p = static_cast<const double*>(args->inputs[0].data);
  auto* nearest = static_cast<int64_t*>(args->outputs[0].data);
  const int64_t rows = args->inputs[0].shape[0], n = args->inputs[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const double* q = p + r * n * 2;
    std::vector<double> least(n, std::numeric_limits<double>::infinity());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        const double dx = q[2 * i] - q[2 * j], dy = q[2 * i + 1] - q[2 * j + 1], d = dy * dy + dx * dx;
        if (d < least[i]) least[i] = d, nearest[r * n + i] = j;
        if (d < least[j]) least[j] = d, nearest[r * n + j] = i;
      }
    }
  }
  return 0;
}
