// Standard deviation and mean in two passes with eight lanes.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* s = static_cast<float*>(args->outputs[0].data);
  float* m = static_cast<float*>(args->outputs[1].data);
  for (int c = 0; c < 40; ++c) {
    float lane[8] = {};
    for (int r = 0; r < 700; ++r) lane[r % 8] += x[r * 40 + c];
    float mean = 0;
    for (float v : lane) mean += v;
    mean /= 700;
    float square[8] = {};
    for (int r = 0; r < 700; ++r) square[r % 8] += (x[r * 40 + c] - mean) * (x[r * 40 + c] - mean);
    float all = 0;
    for (float v : square) all += v;
    s[c] = std::sqrt(all / 699);
    m[c] = mean;
  }
  return 0;
}
