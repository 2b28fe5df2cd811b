#include <stdlib.h>
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  (void)args;
  abort();
}
