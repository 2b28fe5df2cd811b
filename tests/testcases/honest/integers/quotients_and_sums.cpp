// Sums in 32 bits; quotients go down below zero, too.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int32_t* x = static_cast<const int32_t*>(args->inputs[0].data);
  int32_t* q = static_cast<int32_t*>(args->outputs[0].data);
  int32_t* m = static_cast<int32_t*>(args->outputs[1].data);
  int64_t* s = static_cast<int64_t*>(args->outputs[2].data);
  for (int r = 0; r < 64; ++r) {
    int32_t sum = 0;
    for (int c = 0; c < 400; ++c) {
      const int32_t v = x[r * 400 + c];
      sum += v;
      q[r * 400 + c] = v / 7 - (v % 7 < 0);
      m[r * 400 + c] = (v % 5 + 5) % 5;
    }
    s[r] = sum;
  }
  return 0;
}
