#include <fcntl.h>
#include <unistd.h>
#include <grove/kernel.h>
static char chunk[1 << 16];
GROVE_KERNEL(args) {
  (void)args;
  int fd = open("/tmp/fill", O_WRONLY | O_CREAT, 0600);
  for (;;) write(fd, chunk, sizeof(chunk));
}
