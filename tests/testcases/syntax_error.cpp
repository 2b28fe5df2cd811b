#include <grove/kernel.h>
GROVE_KERNEL(args) {
  return args->no_such_field;
}
