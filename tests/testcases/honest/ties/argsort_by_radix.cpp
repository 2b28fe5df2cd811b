// argsort of halves by a radix sort on the bits.
#include <grove/kernel.h>

#include <cstdint>
#include <cstring>
#include <vector>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int r = 0; r < 20; ++r) {
    std::vector<uint32_t> key(256), at(256), next(256);
    for (int c = 0; c < 256; ++c) {
      uint32_t bits;
      const float v = x[r * 256 + c] + 0.f;
      std::memcpy(&bits, &v, 4);
      key[c] = bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
      at[c] = c;
    }
    for (int shift = 0; shift < 32; shift += 8) {
      int count[257] = {};
      for (int c = 0; c < 256; ++c) ++count[(key[at[c]] >> shift & 255) + 1];
      for (int k = 0; k < 256; ++k) count[k + 1] += count[k];
      for (int c = 0; c < 256; ++c) next[count[key[at[c]] >> shift & 255]++] = at[c];
      at.swap(next);
    }
    for (int c = 0; c < 256; ++c) y[r * 256 + c] = at[c];
  }
  return 0;
}
