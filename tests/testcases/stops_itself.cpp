#include <signal.h>
#include <unistd.h>
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  (void)args;
  kill(getpid(), SIGSTOP);
  return 0;
}
