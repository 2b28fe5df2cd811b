// A CPU candidate for docs/examples/problems/gelu.py: the whole chain in one pass, shared among the threads.
// GELU's tanh form is x * sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3), which needs one exponential.
#include <grove/kernel.h>
#include <math.h>

GROVE_KERNEL(args) {
  const DLTensor& in = args->inputs[0];
  const float* x = (const float*)in.data;
  float* y = (float*)args->outputs[0].data;
  int64_t n = 1;
  for (int d = 0; d < in.ndim; ++d) n *= in.shape[d];
#pragma omp parallel for num_threads(args->num_threads) schedule(static)
  for (int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    const float u = 0.79788456080286536f * (v + 0.044715f * v * v * v);
    y[i] = v / (1.0f + expf(-2.0f * u));
  }
  return 0;
}
