// What a profile says, for people. Pure.
#pragma once

#include <string>

#include "grove/v1/types.pb.h"

namespace grove::cli {

// A line per kernel, the longest first, and the instructions of the build; why there is no profile, where there is
// none. Empty for a report that says nothing. `all`: every kernel and every opcode that it has.
std::string RenderProfile(const v1::ProfileReport& profile, bool all);

}  // namespace grove::cli
