// A 3 by 3 convolution by Winograd's F(2x2, 3x3).
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int o = 0; o < 6; ++o)
    for (int r = 0; r < 16; r += 2)
      for (int c = 0; c < 16; c += 2) {
        float m[4][4] = {};
        for (int ch = 0; ch < 8; ++ch) {
          float d[4][4], t[4][4], u[4][3], v[4][4];
          for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) d[i][j] = x[(ch * 18 + r + i) * 18 + c + j];
          for (int j = 0; j < 4; ++j) {
            t[0][j] = d[0][j] - d[2][j];
            t[1][j] = d[1][j] + d[2][j];
            t[2][j] = d[2][j] - d[1][j];
            t[3][j] = d[1][j] - d[3][j];
          }
          const float* g = w + (o * 8 + ch) * 9;
          for (int j = 0; j < 3; ++j) {
            u[0][j] = g[j];
            u[1][j] = 0.5f * (g[j] + g[3 + j] + g[6 + j]);
            u[2][j] = 0.5f * (g[j] - g[3 + j] + g[6 + j]);
            u[3][j] = g[6 + j];
          }
          for (int i = 0; i < 4; ++i) {
            v[i][0] = u[i][0];
            v[i][1] = 0.5f * (u[i][0] + u[i][1] + u[i][2]);
            v[i][2] = 0.5f * (u[i][0] - u[i][1] + u[i][2]);
            v[i][3] = u[i][2];
            m[i][0] += v[i][0] * (t[i][0] - t[i][2]);
            m[i][1] += v[i][1] * (t[i][1] + t[i][2]);
            m[i][2] += v[i][2] * (t[i][2] - t[i][1]);
            m[i][3] += v[i][3] * (t[i][1] - t[i][3]);
          }
        }
        float n[2][4];
        for (int j = 0; j < 4; ++j) {
          n[0][j] = m[0][j] + m[1][j] + m[2][j];
          n[1][j] = m[1][j] - m[2][j] - m[3][j];
        }
        for (int i = 0; i < 2; ++i) {
          y[(o * 16 + r + i) * 16 + c] = n[i][0] + n[i][1] + n[i][2];
          y[(o * 16 + r + i) * 16 + c + 1] = n[i][1] - n[i][2] - n[i][3];
        }
      }
  return 0;
}
