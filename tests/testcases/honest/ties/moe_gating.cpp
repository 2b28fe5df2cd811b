// Two experts of eight by gate, weights renormalised over them; choice by one scan.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* g = static_cast<const float*>(args->inputs[1].data);
  float* w = static_cast<float*>(args->outputs[0].data);
  int64_t* i = static_cast<int64_t*>(args->outputs[1].data);
  for (int r = 0; r < 128; ++r) {
    float s[8] = {};
    for (int k = 0; k < 32; ++k)
      for (int e = 0; e < 8; ++e) s[e] = std::fma(x[r * 32 + k], g[k * 8 + e], s[e]);
    int a = 0, b = -1;
    for (int e = 1; e < 8; ++e) {
      if (s[e] > s[a]) {
        b = a;
        a = e;
      } else if (b < 0 || s[e] > s[b]) {
        b = e;
      }
    }
    const float t = std::exp(s[b] - s[a]);
    w[r * 2] = 1 / (1 + t);
    w[r * 2 + 1] = t / (1 + t);
    i[r * 2] = a;
    i[r * 2 + 1] = b;
  }
  return 0;
}
