// Kills all it can see, then itself.
#include <signal.h>
#include <unistd.h>
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  (void)args;
  kill(-1, SIGKILL);
  kill(getppid(), SIGKILL);
  kill(getpid(), SIGKILL);
  return 0;
}
