// Fractions that become integers which cannot hold them: what that gives is the processor's affair, and it differs
// between its instructions, so that honest programs give others.
#pragma once

#include <functional>

namespace grove::judge {

// Runs `work` and says whether an operation of it did that.
bool Overflows(const std::function<void()>& work);

}  // namespace grove::judge
