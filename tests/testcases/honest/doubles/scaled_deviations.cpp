// Means and deviations as Welford's method gives them.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const auto* x = static_cast<const double*>(args->inputs[0].data);
  const auto* weight = static_cast<const float*>(args->inputs[1].data);
  auto* y = static_cast<double*>(args->outputs[0].data);
  const int64_t rows = args->inputs[0].shape[0], n = args->inputs[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = x + r * n;
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double off = row[i] - mean;
      mean += off / static_cast<double>(i + 1);
      squares += off * (row[i] - mean);
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-6);
    for (int64_t i = 0; i < n; ++i) y[r * n + i] = (row[i] - mean) * scale * weight[i];
  }
  return 0;
}
