#include <pthread.h>
#include <unistd.h>
#include <grove/kernel.h>
static void* Wait(void*) {
  for (;;) pause();
}
GROVE_KERNEL(args) {
  (void)args;
  for (;;) {
    pthread_t thread;
    pthread_create(&thread, nullptr, Wait, nullptr);
  }
}
