// Whether a measurement begins anew because the GPU was not itself in most of it. Pure.
#pragma once

#include "worker/judge/gpu_health.h"

namespace grove::judge {

class Reruns {
 public:
  // Whether it is to begin anew now; then that counts as one time more, and the caller has `health` begin anew, too.
  bool Due(const GpuHealth& health) {
    if (count_ >= kMost || !health.MostRefused()) return false;
    ++count_;
    return true;
  }
  int count() const { return count_; }

 private:
  static constexpr int kMost = 1;
  int count_ = 0;
};

}  // namespace grove::judge
