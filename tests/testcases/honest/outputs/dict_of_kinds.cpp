// A dict of a number, a flag per row, counts and values.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* m = static_cast<float*>(args->outputs[0].data);
  uint8_t* a = static_cast<uint8_t*>(args->outputs[1].data);
  int64_t* n = static_cast<int64_t*>(args->outputs[2].data);
  float* s = static_cast<float*>(args->outputs[3].data);
  double all = 0;
  n[0] = 0;
  for (int r = 0; r < 50; ++r) {
    double t = 0;
    for (int c = 0; c < 60; ++c) {
      t += x[r * 60 + c];
      n[0] += x[r * 60 + c] > 0;
    }
    all += t;
    m[r] = static_cast<float>(t / 60);
    a[r] = t > 0;
  }
  s[0] = static_cast<float>(all);
  return 0;
}
