// The largest eigenvalue by ten steps, the length taken once per step.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  double v[20], u[20];
  for (double& e : v) e = 1;
  double top = 0, q = 20;
  for (int step = 0; step < 11; ++step) {
    double n = 0, dot = 0;
    for (int i = 0; i < 20; ++i) {
      u[i] = 0;
      for (int k = 0; k < 20; ++k) u[i] += a[i * 20 + k] * v[k];
      dot += u[i] * v[i];
      n += u[i] * u[i];
    }
    top = dot / q;
    q = 1;
    for (int i = 0; i < 20; ++i) v[i] = u[i] / std::sqrt(n);
  }
  y[0] = static_cast<float>(top);
  return 0;
}
