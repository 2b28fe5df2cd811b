// About the first point first, so that the centre is a small number.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const auto* p = static_cast<const double*>(args->inputs[0].data);
  auto* y = static_cast<float*>(args->outputs[0].data);
  const int64_t rows = args->inputs[0].shape[0], n = args->inputs[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const double* q = p + r * n * 3;
    double centre[3] = {}, squares = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int k = 0; k < 3; ++k) centre[k] += q[3 * i + k] - q[k];
    for (double& c : centre) c /= n;
    for (int64_t i = 0; i < n; ++i) {
      for (int k = 0; k < 3; ++k) {
        const double d = q[3 * i + k] - q[k] - centre[k];
        squares += d * d;
      }
    }
    const double scale = 1 / std::sqrt(squares / (3 * n));
    for (int64_t i = 0; i < n; ++i)
      for (int k = 0; k < 3; ++k)
        y[(r * n + i) * 3 + k] = static_cast<float>((q[3 * i + k] - q[k] - centre[k]) * scale);
  }
  return 0;
}
