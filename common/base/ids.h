// Random names. Unpredictable (getrandom), lower-case letters and digits that cannot be mistaken for one another.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace grove {

// prefix + `length` characters of a 32-letter alphabet: 8 characters are 40 bits.
std::string RandomId(absl::string_view prefix, int length);

// 64 bits from the kernel's generator.
uint64_t RandomSeed();

}  // namespace grove
