// A quantised product: codes are multiplied and summed in 32 bits, and both scales come last.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int32_t* a = static_cast<const int32_t*>(args->inputs[0].data);
  const int32_t* b = static_cast<const int32_t*>(args->inputs[1].data);
  const float* sa = static_cast<const float*>(args->inputs[2].data);
  const float* sb = static_cast<const float*>(args->inputs[3].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 48; ++j) {
      int32_t sum = 0;
      for (int k = 0; k < 256; ++k) sum += (a[i * 256 + k] - 8) * (b[k * 48 + j] - 8);
      y[i * 48 + j] = static_cast<float>(sum) * (sa[i] * sb[j]);
    }
  }
  return 0;
}
