// Which kernel of a search leads, and which must be measured again before it may.
//
// The fastest of many measurements is too fast: among equal kernels the luckiest measurement wins. So a kernel whose
// first measurement would make it the leader is evaluated a second time, in a process of its own with inputs of its
// own, and the less favourable of the two figures decides. And no lead is finer than the device's resolution: a
// challenger must be faster than the leader by more than that, else the leader stays, who came first.
//
// A fold of results in the order of the journal: the same results give the same leader. Kernels are known by index.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "grove/v1/types.pb.h"

namespace grove::measure {

struct Figures {
  double speedup = 0, low = 0, high = 0;
  double resolution = 0;
};

// What the second measurement of a kernel that was CORRECT at first says of it.
enum class Second {
  kLower,   // CORRECT and no faster than the first: its figures count
  kHigher,  // CORRECT and faster: the first figures count
  kNone,    // not measured (UNMEASURABLE, untimed): the first result stands, and the kernel may not lead
  kFailed,  // not correct after all: this result stands
};
Second Weigh(const v1::EvaluationResult& first, const v1::EvaluationResult& second);
// The same where of the first only the figures are at hand.
Second Weigh(const Figures& first, const v1::EvaluationResult& second);

class Lead {
 public:
  // The first result of a kernel. Only what is CORRECT and timed counts.
  void First(int kernel, const v1::EvaluationResult& result);
  // The second one; nothing when the first did not count.
  Second Again(int kernel, const v1::EvaluationResult& result);

  // The kernel that is to be measured again now, -1 = none: the fastest of those measured once, when it would lead.
  int Wanted() const;
  // The leader: the fastest that was measured twice; while there is none, the fastest that was measured once. -1 =
  // none.
  int Leader() const;
  bool LeaderConfirmed() const { return leader_ >= 0; }
  Figures LeaderFigures() const;

  // Whether `challenger` is faster than `leader` by more than the device can err.
  static bool Beats(const Figures& challenger, const Figures& leader);

 private:
  void Drop(int kernel);

  std::map<int, Figures> once_;                // measured once, not failed
  std::set<std::pair<double, int>> by_speed_;  // of those: (-speedup, kernel), the fastest first, then the earliest
  std::set<int> barred_;                       // of those: could not be measured again
  int leader_ = -1;
  Figures leading_;
};

}  // namespace grove::measure
