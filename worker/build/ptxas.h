// Reads what `ptxas -v` says of each kernel: registers, spills, shared memory, stack.
#pragma once

#include <string>
#include <vector>

#include "grove/v1/types.pb.h"

namespace grove::build {

// In the order of the log, names demangled where they can be; at most 256 kernels. Lines that it does not know are
// skipped.
std::vector<v1::KernelResources> ParsePtxas(const std::string& log);

// A kernel's name as people write it, where it is a mangled one; at most 1,024 bytes.
std::string Demangle(const std::string& name);

// The log without ptxas' resource lines, which the parsed figures replace.
std::string WithoutPtxasLines(const std::string& log);

}  // namespace grove::build
