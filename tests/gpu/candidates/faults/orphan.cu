// Leaves a process behind that ignores every signal that can be ignored, has a session of its own, and keeps the GPU's
// descriptors open.
#include <grove/kernel.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

GROVE_KERNEL(args) {
  (void)args;
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      for (int s = 1; s < 65; ++s) signal(s, SIG_IGN);
      for (;;) pause();
    }
    _exit(0);
  }
  _exit(0);
}
