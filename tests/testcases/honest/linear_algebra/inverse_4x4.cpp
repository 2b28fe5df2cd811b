// Inverses of 4 by 4 matrices by Gauss and Jordan in double.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int s = 0; s < 100; ++s) {
    double m[4][8] = {};
    for (int i = 0; i < 16; ++i) m[i / 4][i % 4] = a[s * 16 + i];
    for (int i = 0; i < 4; ++i) m[i][4 + i] = 1;
    for (int c = 0; c < 4; ++c) {
      int p = c;
      for (int r = c + 1; r < 4; ++r)
        if (std::fabs(m[r][c]) > std::fabs(m[p][c])) p = r;
      for (int k = 0; k < 8; ++k) std::swap(m[c][k], m[p][k]);
      const double d = 1 / m[c][c];
      for (double& v : m[c]) v *= d;
      for (int r = 0; r < 4; ++r) {
        if (r == c) continue;
        const double f = m[r][c];
        for (int k = 0; k < 8; ++k) m[r][k] -= f * m[c][k];
      }
    }
    for (int i = 0; i < 16; ++i) y[s * 16 + i] = static_cast<float>(m[i / 4][4 + i % 4]);
  }
  return 0;
}
