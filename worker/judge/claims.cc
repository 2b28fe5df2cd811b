#include "worker/judge/claims.h"

#include <algorithm>
#include <cstdio>

#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

// What waking a thread takes where nobody else wants the processor, and no more: what is allowed holds it already.
constexpr double kQuietWait = 250e-6;
// A candidate's runs that say least against it are compared with a usual wait, and its process is woken as often as
// the judge's thread: so many times that is far beyond chance.
constexpr double kUsual = 0.75, kTimes = 4;
// Runs of something are late as those of nothing are, and not to the microsecond.
constexpr double kTimesDearer = 1.5;
// Parts of a call in a row between which one by itself is believed, and seconds: a row of short calls is bound by
// launching them.
constexpr double kLeastAlone = 0.5, kLeastAloneOnce = 1e-6, kMostAlone = 1.5;

}  // namespace

double Explained(const std::vector<double>& waits) {
  if (waits.empty()) return 0;
  const double usual = Quantile(waits, kUsual);
  return usual > kQuietWait ? kTimes * usual : 0;
}

Contradiction Judge(double missing, double allowed, const std::vector<double>& waits, double dearer) {
  if (!(missing > allowed)) return Contradiction::kNone;
  const double explained = std::max(Explained(waits), kTimesDearer * std::max(dearer, 0.0));
  return missing > allowed + explained ? Contradiction::kPlain : Contradiction::kUnsure;
}

double Alone(const std::vector<double>& claims, double call) {
  // The first ones find the caches as the flush left them, with nothing to be written back.
  const auto half = static_cast<std::ptrdiff_t>(claims.size() / 2);
  if (claims.empty()) return 0;
  const double alone = Median({claims.begin() + half, claims.end()});
  return alone >= kLeastAlone * call - kLeastAloneOnce && alone <= kMostAlone * call ? alone : 0;
}

std::string Busy(const std::vector<double>& waits, double dearer) {
  char text[200];
  if (Explained(waits) <= 0 && dearer > kQuietWait) {
    std::snprintf(text, sizeof text,
                  "asking it to run nothing takes %.3g s more than could be foreseen: the machine wakes who sleeps "
                  "later than it did before; ask again",
                  dearer);
    return text;
  }
  if (Explained(waits) <= 0) return "it did not show each time that it was looked for again; ask again";
  std::snprintf(text, sizeof text,
                "a thread of the judge's own that was asked in between was kept waiting for %.3g s (median; at most "
                "%.3g s): the machine has more work than processors; ask again when it has less",
                Median(waits), Quantile(waits, 1));
  return text;
}

}  // namespace grove::judge
