// Random valid recipes.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/generate/catalogue/optimisation.h"

namespace grove::generate::catalogue {

// Some optimisations switched on, with random values of their parameters. A function of list and seed.
inline Recipe RandomRecipe(const std::vector<Optimisation>& list, uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  auto next = [&state](uint64_t bound) {  // splitmix64
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
  };
  Recipe recipe;
  for (size_t i = 0; i < 2 * list.size(); ++i) {
    const Optimisation& o = list[next(list.size())];
    if (next(3) == 0) continue;
    SwitchOn(list, o.id, &recipe);
    for (const Parameter& p : o.parameters) {
      if (recipe.Has(o.id)) recipe.settings[o.id + "." + p.name] = p.values[next(p.values.size())];
    }
  }
  return recipe;
}

}  // namespace grove::generate::catalogue
