#include <stdexcept>
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  (void)args;
  throw std::runtime_error("thrown by the kernel");
}
