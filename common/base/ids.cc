#include "common/base/ids.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace grove {

uint64_t RandomSeed() {
  uint64_t value = 0;
  char* out = reinterpret_cast<char*>(&value);
  size_t have = 0;
  while (have < sizeof(value)) {
    ssize_t got = getrandom(out + have, sizeof(value) - have, 0);
    if (got < 0 && errno != EINTR) abort();  // no kernel since 3.17 fails here
    if (got > 0) have += static_cast<size_t>(got);
  }
  return value;
}

std::string RandomId(absl::string_view prefix, int length) {
  static constexpr char kAlphabet[] = "23456789abcdefghijkmnpqrstuvwxyz";  // 32 symbols: no 0, 1, l, o
  std::string id(prefix);
  uint64_t bits = 0;
  int left = 0;
  for (int i = 0; i < length; ++i) {
    if (left < 5) {
      bits = RandomSeed();
      left = 60;
    }
    id.push_back(kAlphabet[bits & 31]);
    bits >>= 5;
    left -= 5;
  }
  return id;
}

}  // namespace grove
