#include <grove/kernel.h>
__attribute__((constructor)) static void Spin() {
  for (;;) asm volatile("");
}
GROVE_KERNEL(args) {
  (void)args;
  return 0;
}
