// Bits of 32-bit numbers counted by the processor's instruction.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int32_t* x = static_cast<const int32_t*>(args->inputs[0].data);
  int32_t* y = static_cast<int32_t*>(args->outputs[0].data);
  for (int i = 0; i < 2000; ++i) y[i] = __builtin_popcount(static_cast<uint32_t>(x[i]));
  return 0;
}
