// Which processes hold a GPU beside this one and its descendants.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace grove::device {

// How many others NVML lists on the GPU: with compute or graphics contexts, or through MPS. Nothing where it gives no
// list within half a second, or one without any of ours: in some containers it names processes as another PID namespace
// does. The caller's descendants must hold the GPU then, or nothing is known.
std::optional<int> ForeignProcesses(const std::string& gpu_uuid);

// The rule of it. Those of `pids` that are neither `self` nor descend from it; those that have ended do not count.
std::optional<int> ForeignAmong(const std::vector<int>& pids, int self, const std::function<int(int)>& parent_of);

// By /proc; 0 of the first process of all, -1 where there is no such process any more.
int ParentOf(int pid);

}  // namespace grove::device
