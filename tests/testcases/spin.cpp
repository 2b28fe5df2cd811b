#include <grove/kernel.h>
GROVE_KERNEL(args) {
  (void)args;
  for (;;) asm volatile("");
}
