// Each sample by itself, rows before columns.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* b = static_cast<const float*>(args->inputs[1].data);
  for (int r = 0; r < 6; ++r) {
    float x1 = b[r * 4] * 0.25f - 0.5f, y1 = b[r * 4 + 1] * 0.25f - 0.5f, x2 = b[r * 4 + 2] * 0.25f - 0.5f,
          y2 = b[r * 4 + 3] * 0.25f - 0.5f, bw = (x2 - x1) * 0.25f, bh = (y2 - y1) * 0.25f;
    for (int c = 0; c < 8; ++c)
      for (int py = 0; py < 4; ++py)
        for (int px = 0; px < 4; ++px) {
          float t = 0;
          for (int sy = 0; sy < 2; ++sy)
            for (int sx = 0; sx < 2; ++sx) {
              float Y = y1 + py * bh + (sy + 0.5f) * bh / 2, X = x1 + px * bw + (sx + 0.5f) * bw / 2;
              if (Y <= -1 || Y >= 20 || X <= -1 || X >= 24) continue;
              Y = std::fmax(Y, 0);
              X = std::fmax(X, 0);
              int yl = (int)Y, xl = (int)X;
              int yh = yl + 1, xh = xl + 1;
              if (yl >= 19) {
                yl = yh = 19;
                Y = 19;
              }
              if (xl >= 23) {
                xl = xh = 23;
                X = 23;
              }
              float fy = Y - yl, fx = X - xl;
              const float* p = x + c * 480;
              t += (p[yl * 24 + xl] * (1 - fx) + p[yl * 24 + xh] * fx) * (1 - fy) +
                   (p[yh * 24 + xl] * (1 - fx) + p[yh * 24 + xh] * fx) * fy;
            }
          y[((r * 8 + c) * 4 + py) * 4 + px] = t / 4;
        }
  }
  return 0;
}
