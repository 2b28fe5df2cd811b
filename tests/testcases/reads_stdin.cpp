#include "/dev/stdin"
#include "/dev/zero"
