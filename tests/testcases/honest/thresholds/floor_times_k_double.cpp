// Places in a table with the product in double, which rounds once less.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int i = 0; i < 2800; ++i) y[i] = static_cast<int64_t>(std::floor(static_cast<double>(x[i]) * 3.0));
  return 0;
}
