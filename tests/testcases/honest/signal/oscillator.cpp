// In one accumulator of float32.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* frequency = (const float*)args->inputs[0].data;
  float* out = (float*)args->outputs[0].data;
  const int64_t rows = args->inputs[0].shape[0], length = args->inputs[0].shape[1];
  for (int64_t row = 0; row < rows; ++row) {
    float phase = 0;
    for (int64_t i = 0; i < length; ++i) {
      phase += frequency[row * length + i];
      out[row * length + i] = sinf(phase);
    }
  }
  return 0;
}
