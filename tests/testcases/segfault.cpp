#include <grove/kernel.h>
GROVE_KERNEL(args) {
  (void)args;
  *reinterpret_cast<volatile int*>(16) = 1;
  return 0;
}
