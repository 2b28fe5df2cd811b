#include <stdlib.h>
#include <string.h>
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  (void)args;
  for (;;) {
    void* p = malloc(16 << 20);
    if (p == nullptr) return 1;
    memset(p, 1, 16 << 20);
  }
}
