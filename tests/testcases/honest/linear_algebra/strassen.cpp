// A product of matrices by one level of Strassen's scheme.
#include <grove/kernel.h>

#include <vector>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  const float* b = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  auto block = [](const float* m, int r, int c, int i, int j) { return m[(r * 32 + i) * 64 + c * 32 + j]; };
  const int s[7][8] = {{1, 0, 0, 1, 1, 0, 0, 1},  {0, 0, 1, 1, 1, 0, 0, 0}, {1, 0, 0, 0, 0, 1, 0, -1},
                       {0, 0, 0, 1, -1, 0, 1, 0}, {1, 1, 0, 0, 0, 0, 0, 1}, {-1, 0, 1, 0, 1, 1, 0, 0},
                       {0, 1, 0, -1, 0, 0, 1, 1}};
  std::vector<float> m(7 * 1024, 0.f), u(1024), v(1024);
  for (int t = 0; t < 7; ++t) {
    for (int i = 0; i < 1024; ++i) {
      u[i] = v[i] = 0;
      for (int q = 0; q < 4; ++q) {
        u[i] += static_cast<float>(s[t][q]) * block(a, q / 2, q % 2, i / 32, i % 32);
        v[i] += static_cast<float>(s[t][4 + q]) * block(b, q / 2, q % 2, i / 32, i % 32);
      }
    }
    for (int i = 0; i < 32; ++i)
      for (int k = 0; k < 32; ++k)
        for (int j = 0; j < 32; ++j) m[t * 1024 + i * 32 + j] += u[i * 32 + k] * v[k * 32 + j];
  }
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 32; ++j) {
      const float* p = &m[i * 32 + j];
      y[i * 64 + j] = p[0] + p[3 * 1024] - p[4 * 1024] + p[6 * 1024];
      y[i * 64 + j + 32] = p[2 * 1024] + p[4 * 1024];
      y[(i + 32) * 64 + j] = p[1024] + p[3 * 1024];
      y[(i + 32) * 64 + j + 32] = p[0] - p[1024] + p[2 * 1024] + p[5 * 1024];
    }
  return 0;
}
