// Steps of 0.02 in whole milliseconds.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const int64_t *t = static_cast<const int64_t *>(args->inputs[0].data);
  int64_t *y = static_cast<int64_t *>(args->outputs[0].data);
  uint8_t *f = static_cast<uint8_t *>(args->outputs[1].data);
  for (int i = 0; i < 3000; ++i) {
    y[i] = static_cast<int64_t>(std::rint(t[i] / 20.0));
    f[i] = t[i] % 500 < 250;
  }
  return 0;
}
