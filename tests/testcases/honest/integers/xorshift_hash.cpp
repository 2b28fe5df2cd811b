// A hash of int64 that wraps around.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int64_t* x = static_cast<const int64_t*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int i = 0; i < 1500; ++i) {
    auto v = static_cast<uint64_t>(x[i]);
    v ^= v << 13;
    v ^= v >> 7;
    v ^= v << 17;
    y[i] = static_cast<int64_t>(v * 2685821657736338717u);
  }
  return 0;
}
