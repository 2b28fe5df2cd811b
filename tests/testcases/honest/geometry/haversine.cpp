// Distances on a globe by the chord, as against the haversine.
#include <grove/kernel.h>

#include <cmath>

namespace {
double Rad(double v) { return v * 0.017453292519943295; }
}  // namespace

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  const float* b = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 300; ++i) {
    const double p = Rad(a[i * 2]), q = Rad(b[i * 2]), l = Rad(static_cast<double>(b[i * 2 + 1]) - a[i * 2 + 1]);
    const double dx = std::cos(q) * std::cos(l) - std::cos(p), dy = std::cos(q) * std::sin(l),
                 dz = std::sin(q) - std::sin(p);
    const double c = std::sqrt(dx * dx + dy * dy + dz * dz) / 2;
    y[i] = static_cast<float>(2 * 6371.0 * std::atan2(c, std::sqrt(1 - c * c)));
  }
  return 0;
}
