// Says "done" by itself and computes nothing.
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  (void)args;
  const char text[] = "{\"type\":\"done\",\"claimed_ns\":[1]}";
  uint32_t size = sizeof(text) - 1;
  char frame[256];
  memcpy(frame, &size, 4);
  memcpy(frame + 4, text, size);
  for (int i = 0; i < 64; ++i) write(3, frame, 4 + size);
  return 0;
}
