// Remainders of any sign, summed in 32 bits.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const auto* x = static_cast<const std::int64_t*>(args->inputs[0].data);
  auto* rows = static_cast<std::int64_t*>(args->outputs[0].data);
  std::int32_t all = 0;
  for (int row = 0; row < 64; ++row) {
    std::int32_t sum = 0;
    for (int i = 0; i < 512; ++i) {
      const auto rest = static_cast<std::int32_t>(x[row * 512 + i] % 977);
      sum += rest < 0 ? rest + 977 : rest;
    }
    rows[row] = sum;
    all += sum;
  }
  static_cast<std::int64_t*>(args->outputs[1].data)[0] = all;
  return 0;
}
