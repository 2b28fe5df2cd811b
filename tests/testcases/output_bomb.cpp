// An object of a gigabyte from one line.
#include <grove/kernel.h>
asm(".data\n.fill 1073741824, 1, 7\n");
GROVE_KERNEL(args) {
  (void)args;
  return 0;
}
