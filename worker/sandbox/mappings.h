// What code the processes of a sandbox have in memory, from the kernel's own books (/proc/PID/maps): nothing that runs
// inside can forge it.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace grove::sandbox {

// Files with executable mappings, as the kernel names them: a path, "/memfd:name (deleted)" or "[anonymous]" for code
// that belongs to no file (a compiler's output, or a library mapped by hand). Processes that are gone are left out.
std::set<std::string> ExecutableMappings(const std::vector<pid_t>& pids);

// The parser of one maps file, into `files`.
void ParseMappings(std::string_view text, std::set<std::string>* files);

}  // namespace grove::sandbox
