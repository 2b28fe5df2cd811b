// SHA-256 as lower-case hex, the name of every blob and cache entry.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace grove {

std::string Sha256Hex(absl::string_view data);

// Feeds length-prefixed parts, so that ("ab","c") and ("a","bc") differ.
std::string Sha256HexOfParts(std::initializer_list<absl::string_view> parts);

// True for 64 lower-case hex digits: checked before a name from outside becomes part of a path.
bool IsSha256Hex(absl::string_view text);

}  // namespace grove
