#include "coordinator/generate/catalogue/optimisation.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace grove::generate::catalogue {
namespace {

bool Contains(const std::vector<std::string>& list, absl::string_view id) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& each) { return each == id; });
}

bool Exclude(const Optimisation& a, const Optimisation& b) {
  return Contains(a.excludes, b.id) || Contains(b.excludes, a.id);
}

void Erase(const Optimisation& optimisation, Recipe* recipe) {
  recipe->settings.erase(optimisation.id);
  for (const Parameter& parameter : optimisation.parameters) {
    recipe->settings.erase(absl::StrCat(optimisation.id, ".", parameter.name));
  }
}

int64_t Nearest(const Parameter& parameter, int64_t value) {
  int64_t best = parameter.values.front();
  for (int64_t each : parameter.values) {
    if (std::llabs(each - value) < std::llabs(best - value)) best = each;
  }
  return best;
}

}  // namespace

const Optimisation* Find(const std::vector<Optimisation>& list, absl::string_view id) {
  for (const Optimisation& each : list) {
    if (each.id == id) return &each;
  }
  return nullptr;
}

void SwitchOff(const std::vector<Optimisation>& list, absl::string_view id, Recipe* recipe) {
  const Optimisation* optimisation = Find(list, id);
  if (optimisation == nullptr) return;
  Erase(*optimisation, recipe);
  for (const Optimisation& each : list) {
    if (recipe->Has(each.id) && Contains(each.needs, id)) SwitchOff(list, each.id, recipe);
  }
}

void SwitchOn(const std::vector<Optimisation>& list, absl::string_view id, Recipe* recipe) {
  const Optimisation* optimisation = Find(list, id);
  if (optimisation == nullptr || recipe->Has(id)) return;
  for (const Optimisation& each : list) {
    if (recipe->Has(each.id) && Exclude(each, *optimisation)) SwitchOff(list, each.id, recipe);
  }
  for (const std::string& need : optimisation->needs) SwitchOn(list, need, recipe);
  recipe->settings[optimisation->id] = 1;
  for (const Parameter& parameter : optimisation->parameters) {
    recipe->settings[absl::StrCat(id, ".", parameter.name)] = parameter.usual;
  }
}

Recipe Normalise(const std::vector<Optimisation>& list, const Recipe& recipe) {
  Recipe result{recipe.operation, recipe.device, {}};
  for (const Optimisation& each : list) {
    if (!recipe.Has(each.id) || result.Has(each.id)) continue;
    // First come, first kept: an excluded later one gives way.
    bool excluded = false;
    for (const Optimisation& other : list) excluded = excluded || (result.Has(other.id) && Exclude(each, other));
    if (!excluded) SwitchOn(list, each.id, &result);
  }
  for (const Optimisation& each : list) {
    if (!result.Has(each.id)) continue;
    for (const Parameter& parameter : each.parameters) {
      std::string key = absl::StrCat(each.id, ".", parameter.name);
      auto it = recipe.settings.find(key);
      if (it != recipe.settings.end()) result.settings[key] = Nearest(parameter, it->second);
    }
  }
  return result;
}

std::string CheckRecipe(const std::vector<Optimisation>& list, const Recipe& recipe) {
  for (const auto& [key, value] : recipe.settings) {
    std::vector<std::string> parts = absl::StrSplit(key, '.');
    const Optimisation* optimisation = Find(list, parts[0]);
    if (optimisation == nullptr) return absl::StrCat("unknown optimisation \"", parts[0], "\"");
    if (parts.size() == 1) continue;
    if (!recipe.Has(parts[0])) return absl::StrCat("\"", key, "\" is set, but ", parts[0], " is off");
    bool known = false;
    for (const Parameter& parameter : optimisation->parameters) {
      if (parts.size() != 2 || parameter.name != parts[1]) continue;
      known = true;
      if (std::find(parameter.values.begin(), parameter.values.end(), value) == parameter.values.end()) {
        return absl::StrCat("\"", key, "\" = ", value, " is not one of its values");
      }
    }
    if (!known) return absl::StrCat("unknown parameter \"", key, "\"");
  }
  for (const Optimisation& each : list) {
    if (!recipe.Has(each.id)) continue;
    for (const Parameter& parameter : each.parameters) {
      if (recipe.settings.count(absl::StrCat(each.id, ".", parameter.name)) == 0) {
        return absl::StrCat("\"", each.id, ".", parameter.name, "\" is not set");
      }
    }
    for (const std::string& need : each.needs) {
      if (!recipe.Has(need)) return absl::StrCat(each.id, " needs ", need);
    }
    for (const Optimisation& other : list) {
      if (&other != &each && recipe.Has(other.id) && Exclude(each, other)) {
        return absl::StrCat(each.id, " excludes ", other.id);
      }
    }
  }
  return "";
}

}  // namespace grove::generate::catalogue
