// Does a shared object export a function? A bounded reader of the dynamic symbol table: the object comes from a
// compiler that worked on hostile source.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grove::build {

// Names of defined global functions in .dynsym, at most 10,000. INVALID_ARGUMENT: not a 64-bit little-endian ELF shared
// object, or its tables point outside of it.
absl::StatusOr<std::vector<std::string>> ExportedFunctions(absl::string_view object);

}  // namespace grove::build
