// A candidate for docs/examples/problems/softmax.py that is wrong: it forgets to divide by the sum. It shows what the
// verdict WRONG says.
#include <grove/kernel.h>
#include <math.h>

GROVE_KERNEL(args) {
  const DLTensor& in = args->inputs[0];
  const float* x = (const float*)in.data;
  float* y = (float*)args->outputs[0].data;
  const int64_t n = in.shape[0] * in.shape[1];
#pragma omp parallel for num_threads(args->num_threads)
  for (int64_t i = 0; i < n; ++i) y[i] = expf(x[i]);
  return 0;
}
