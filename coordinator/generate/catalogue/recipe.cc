#include "coordinator/generate/catalogue/recipe.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace grove::generate::catalogue {

bool Recipe::Has(absl::string_view optimisation) const {
  auto it = settings.find(std::string(optimisation));
  return it != settings.end() && it->second != 0;
}

int64_t Recipe::Get(absl::string_view optimisation, absl::string_view parameter, int64_t fallback) const {
  if (!Has(optimisation)) return fallback;
  auto it = settings.find(absl::StrCat(optimisation, ".", parameter));
  return it == settings.end() ? fallback : it->second;
}

std::string ToJson(const Recipe& recipe) {
  nlohmann::json settings = nlohmann::json::object();
  for (const auto& [key, value] : recipe.settings) settings[key] = value;
  return nlohmann::json{{"operation", recipe.operation}, {"device", recipe.device}, {"settings", settings}}.dump();
}

absl::StatusOr<Recipe> ParseRecipe(absl::string_view text) {
  nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("operation") || !json["operation"].is_string() ||
      !json.contains("settings") || !json["settings"].is_object()) {
    return absl::InvalidArgumentError("not a recipe of the catalogue: needs \"operation\" and \"settings\"");
  }
  Recipe recipe;
  recipe.operation = json["operation"].get<std::string>();
  if (json.contains("device") && json["device"].is_string()) recipe.device = json["device"].get<std::string>();
  for (const auto& [key, value] : json["settings"].items()) {
    if (!value.is_number_integer()) {
      return absl::InvalidArgumentError(absl::StrCat("recipe: setting \"", key, "\" is not a whole number"));
    }
    recipe.settings[key] = value.get<int64_t>();
  }
  return recipe;
}

}  // namespace grove::generate::catalogue
