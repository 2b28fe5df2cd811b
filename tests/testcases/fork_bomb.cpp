#include <unistd.h>
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  (void)args;
  for (;;) fork();
}
