// Places in a table: floor(x * k) as int64, by truncation, one less below zero.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int i = 0; i < 2100; ++i) {
    const float at = x[i] * 17.f;
    const auto whole = static_cast<int64_t>(at);
    y[i] = whole - (static_cast<float>(whole) > at);
  }
  return 0;
}
