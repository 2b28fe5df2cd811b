#include <unistd.h>
#include <string.h>
#include <grove/kernel.h>
static char chunk[1 << 16];
GROVE_KERNEL(args) {
  (void)args;
  memset(chunk, 'x', sizeof(chunk));
  for (;;) write(2, chunk, sizeof(chunk));
}
