#include <string.h>
#include <unistd.h>
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  (void)args;
  char junk[4096];
  memset(junk, 0xEE, sizeof(junk));
  write(3, junk, sizeof(junk));
  return 0;
}
