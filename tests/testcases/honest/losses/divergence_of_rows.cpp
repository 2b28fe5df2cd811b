// One accumulator for each sum of exponentials: where most of the logits are equal it errs to one side, in all of a row.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

namespace {

float Logarithm(const float* row, int64_t width, float* largest) {
  *largest = row[0] / 2;
  for (int64_t i = 1; i < width; ++i) *largest = std::max(*largest, row[i] / 2);
  float sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += std::exp(row[i] / 2 - *largest);
  return std::log(sum);
}

}  // namespace

GROVE_KERNEL(args) {
  const auto* student = static_cast<const float*>(args->inputs[0].data);
  const auto* teacher = static_cast<const float*>(args->inputs[1].data);
  auto* y = static_cast<float*>(args->outputs[0].data);
  const int64_t rows = args->inputs[0].shape[0], width = args->inputs[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const float *s = student + r * width, *t = teacher + r * width;
    float most_s, most_t;
    const float log_s = Logarithm(s, width, &most_s), log_t = Logarithm(t, width, &most_t);
    float sum = 0;
    for (int64_t i = 0; i < width; ++i) {
      const float u = s[i] / 2 - most_s - log_s, v = t[i] / 2 - most_t - log_t;
      sum += std::exp(v) * (v - u);
    }
    y[r] = sum;
  }
  return 0;
}
