// "Did you mean": the name nearest to a mistyped one. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace grove::cli {

// Edits (insert, delete, replace, swap of neighbours) that turn one into the other.
int EditDistance(absl::string_view a, absl::string_view b);

// The closest of `names`, when it is close enough to be meant: at most a third of the longer one's letters wrong, and
// not more than three. A name that the word is the beginning of counts as near. Empty: none.
std::string ClosestName(absl::string_view word, const std::vector<std::string>& names);

}  // namespace grove::cli
