#include "clients/cli/suggest.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"

namespace grove::cli {

int EditDistance(absl::string_view a, absl::string_view b) {
  const size_t columns = b.size() + 1;
  std::vector<int> before(columns), last(columns), row(columns);
  for (size_t j = 0; j < columns; ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j < columns; ++j) {
      const int cost = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string ClosestName(absl::string_view word, const std::vector<std::string>& names) {
  if (word.empty()) return "";
  std::string best;
  int best_distance = std::numeric_limits<int>::max();
  for (const std::string& name : names) {
    int distance = EditDistance(word, name);
    const int longer = static_cast<int>(std::max(word.size(), name.size()));
    if (word.size() >= 3 && absl::StartsWith(name, absl::string_view(word))) distance = std::min(distance, 1);
    if (distance <= std::min(3, std::max(1, longer / 3)) && distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace grove::cli
