// Uses CPU time on every thread it can get, so that the CPU limit is met before the wall limit.
#include <grove/kernel.h>
GROVE_KERNEL(args) {
#pragma omp parallel num_threads(args->num_threads)
  for (;;) asm volatile("");
  return 0;
}
