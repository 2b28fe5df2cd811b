// An optimisation: one thought about how a kernel could be faster, with the parameters that realise it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/generate/catalogue/recipe.h"

namespace grove::generate::catalogue {

struct Parameter {
  std::string name;
  std::vector<int64_t> values;  // all that the writer accepts for this spec and device; never empty
  int64_t usual = 0;            // one of values: tried first
  int64_t safe = 0;             // one of values: what a repair goes back to
  std::string unit;             // for titles: "rows", "columns", "bytes"
};

struct Optimisation {
  std::string id;                // [a-z0-9_]+, unique within the family
  std::string title;             // one line: "Fuse the whole chain into one pass over memory"
  std::string description;       // the mechanism: what it changes and why that should help, two or three sentences
  std::string category;          // memory, latency, precision, compute, parallelism, control
  double predicted_speedup = 1;  // over a kernel without it, a guess made from the spec and the device
  std::vector<Parameter> parameters;
  std::vector<std::string> needs;     // optimisations that must be on; switched on with it
  std::vector<std::string> excludes;  // optimisations that must be off; switched off with it (hold both ways)
};

// Null when the list has none of that id.
const Optimisation* Find(const std::vector<Optimisation>& list, absl::string_view id);

// Switches `id` on with its parameters' usual values, with what it needs, without what it excludes (and without what
// needs something switched off).
void SwitchOn(const std::vector<Optimisation>& list, absl::string_view id, Recipe* recipe);
void SwitchOff(const std::vector<Optimisation>& list, absl::string_view id, Recipe* recipe);

// Brings a recipe from elsewhere (another problem's bank, an edited file) to one that is valid for `list`: unknown
// settings are dropped, values are moved to the nearest allowed, needs and excludes hold.
Recipe Normalise(const std::vector<Optimisation>& list, const Recipe& recipe);

// Empty, or what is wrong with it.
std::string CheckRecipe(const std::vector<Optimisation>& list, const Recipe& recipe);

}  // namespace grove::generate::catalogue
