// How a daemon that is to end with its parent knows who that is.
#pragma once

namespace grove {

// Environment variable with the pid of whoever starts a daemon with --exit-with-parent. Without it the daemon takes the
// parent that it finds, which is init or a subreaper when the one who started it is gone by then.
inline constexpr char kParentPidVariable[] = "GROVE_PARENT_PID";

}  // namespace grove
