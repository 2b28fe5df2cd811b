// Histogram of a uint8 image with four tables.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t* x = static_cast<const uint8_t*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  int64_t table[4][256] = {};
  for (int i = 0; i < 9216; ++i) ++table[i % 4][x[i]];
  for (int v = 0; v < 256; ++v) y[v] = table[0][v] + table[1][v] + table[2][v] + table[3][v];
  return 0;
}
