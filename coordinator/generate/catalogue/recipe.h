// A recipe: which optimisations a kernel of the catalogue has, and their parameters. Kept as JSON in the tree's nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grove::generate::catalogue {

// settings: "<optimisation>" -> 1 when it is on, "<optimisation>.<parameter>" -> value. Absent = off.
struct Recipe {
  std::string operation;
  std::string device;  // "cpu", "cuda"
  std::map<std::string, int64_t> settings;

  bool Has(absl::string_view optimisation) const;
  // The parameter's value; `fallback` when the optimisation is off or the parameter is not set.
  int64_t Get(absl::string_view optimisation, absl::string_view parameter, int64_t fallback) const;

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

// {"device":"cpu","operation":"softmax","settings":{...}}, keys sorted: equal recipes have equal text.
std::string ToJson(const Recipe& recipe);
// INVALID_ARGUMENT for text that is no recipe.
absl::StatusOr<Recipe> ParseRecipe(absl::string_view json);

}  // namespace grove::generate::catalogue
