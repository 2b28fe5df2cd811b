#include <unistd.h>
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  (void)args;
  close(3);
  for (;;) pause();
}
