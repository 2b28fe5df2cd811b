// Division and logarithm where they give infinities and NaN.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* l = static_cast<float*>(args->outputs[0].data);
  float* q = static_cast<float*>(args->outputs[1].data);
  for (int i = 0; i < 400; ++i) {
    l[i] = x[i] < 0 ? NAN : x[i] == 0 ? -INFINITY : std::log2(x[i]) * 0.6931471805599453f;
    q[i] = x[i] > 0 ? 1 / x[i] : INFINITY;
  }
  return 0;
}
