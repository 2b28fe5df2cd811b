// Remainder and quotient towards minus infinity of numbers of both signs.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int64_t* x = static_cast<const int64_t*>(args->inputs[0].data);
  int64_t* m = static_cast<int64_t*>(args->outputs[0].data);
  int64_t* q = static_cast<int64_t*>(args->outputs[1].data);
  for (int i = 0; i < 3000; ++i) {
    const int64_t r = (x[i] % 7 + 7) % 7;
    m[i] = r;
    q[i] = (x[i] - r) / 7;
  }
  return 0;
}
