#include "coordinator/generate/catalogue/catalogue.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "coordinator/generate/catalogue/family.h"
#include "coordinator/generate/operation.h"

namespace grove::generate {
namespace {

using catalogue::FindFamily;
using catalogue::KernelFamily;
using catalogue::Optimisation;
using catalogue::Parameter;
using catalogue::Recipe;

// Variants of an idea are drawn from at most so many choices of parameters; more would only cost time here.
constexpr size_t kMaxChoices = 512;

// What an idea is, as JSON in IdeaNode.recipe.
struct Plan {
  std::string action;  // "start", "bank", "on", "off", "tune"
  std::string focus;   // the optimisation; for "on" of two at once "a+b"
  std::string bank;    // bank entry
  Recipe recipe;       // of variant 0
};

std::string ToJson(const Plan& plan) {
  nlohmann::json json = {{"action", plan.action}, {"recipe", nlohmann::json::parse(catalogue::ToJson(plan.recipe))}};
  if (!plan.focus.empty()) json["focus"] = plan.focus;
  if (!plan.bank.empty()) json["bank"] = plan.bank;
  return json.dump();
}

absl::StatusOr<Plan> ParsePlan(const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("recipe") || !json["recipe"].is_object()) {
    return absl::InvalidArgumentError("the idea is not one of the catalogue's: it has no recipe");
  }
  auto text_of = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  Plan plan{text_of("action"), text_of("focus"), text_of("bank"), {}};
  GROVE_ASSIGN_OR_RETURN(plan.recipe, catalogue::ParseRecipe(json["recipe"].dump()));
  return plan;
}

// A recipe written by a kernel node (recipe text) or an idea node (plan text).
absl::StatusOr<Recipe> AnyRecipe(const std::string& text) {
  absl::StatusOr<Plan> plan = ParsePlan(text);
  if (plan.ok()) return plan->recipe;
  return catalogue::ParseRecipe(text);
}

uint64_t Mix(uint64_t seed, const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325ull ^ (seed * 0x9e3779b97f4a7c15ull);  // FNV-1a over a scrambled seed
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3ull;
  return hash;
}

// A draw in [0, 1) that is the same with every standard library, which std::uniform_real_distribution is not.
double Draw(std::mt19937_64* random) { return static_cast<double>((*random)() >> 11) * 0x1.0p-53; }

template <typename T>
void Shuffle(std::vector<T>* list, std::mt19937_64* random) {
  for (size_t i = list->size(); i > 1; --i) std::swap((*list)[i - 1], (*list)[(*random)() % i]);
}

struct Proposal {
  v1::IdeaNode node;
  Plan plan;
  double weight = 1;
};

std::string SettingText(const Parameter& parameter, int64_t value) {
  return absl::StrCat(parameter.name, " ", value, parameter.unit.empty() ? "" : " ", parameter.unit);
}

// What is on, in words.
std::string Describe(const std::vector<Optimisation>& list, const Recipe& recipe) {
  std::vector<std::string> parts;
  for (const Optimisation& each : list) {
    if (!recipe.Has(each.id)) continue;
    std::vector<std::string> values;
    for (const Parameter& parameter : each.parameters) {
      values.push_back(SettingText(parameter, recipe.Get(each.id, parameter.name, parameter.usual)));
    }
    parts.push_back(values.empty() ? each.id : absl::StrCat(each.id, " (", absl::StrJoin(values, ", "), ")"));
  }
  return parts.empty() ? "nothing switched on" : absl::StrJoin(parts, ", ");
}

class CatalogueGenerator final : public Generator {
 public:
  absl::Status Supports(const Context& context) override { return Open(context).status(); }

  absl::StatusOr<IdeasAnswer> ProposeIdeas(const Context& context, const IdeaRequest& request) override {
    GROVE_ASSIGN_OR_RETURN(Problem problem, Open(context));
    std::vector<Proposal> proposals =
        request.parent.id().empty() ? FromReference(problem, context) : FromParent(problem, request.parent);
    DropTried(context, &proposals);
    if (static_cast<int>(proposals.size()) < request.count) {
      // Single steps are exhausted: two at once from the same parent.
      std::vector<Proposal> pairs = Pairs(problem, request.parent);
      DropTried(context, &pairs);
      for (Proposal& pair : pairs) proposals.push_back(std::move(pair));
    }
    Learn(context, &proposals);
    std::mt19937_64 random(Mix(context.seed, request.request));
    IdeasAnswer answer;
    std::map<std::string, int> categories;
    std::set<std::string> recipes;
    while (static_cast<int>(answer.ideas.size()) < request.count && !proposals.empty()) {
      // The more ideas of a category are taken, the less likely is another one.
      double total = 0;
      std::vector<double> weights;
      for (const Proposal& proposal : proposals) {
        weights.push_back(proposal.weight / (1 + categories[proposal.node.category()]));
        total += weights.back();
      }
      double at = Draw(&random) * total;
      size_t chosen = 0;
      while (chosen + 1 < proposals.size() && at >= weights[chosen]) at -= weights[chosen++];
      if (recipes.insert(catalogue::ToJson(proposals[chosen].plan.recipe)).second) {
        ++categories[proposals[chosen].node.category()];
        answer.ideas.push_back(proposals[chosen].node);
      }
      proposals.erase(proposals.begin() + chosen);
    }
    if (answer.ideas.empty()) {
      return absl::NotFoundError(absl::StrCat("the catalogue has no further idea for this ", problem.spec.operation,
                                              " kernel: everything that it knows was tried"));
    }
    return answer;
  }

  absl::StatusOr<KernelAnswer> WriteKernel(const Context& context, const KernelRequest& request) override {
    GROVE_ASSIGN_OR_RETURN(Problem problem, Open(context));
    GROVE_ASSIGN_OR_RETURN(Plan plan, ParsePlan(request.idea.recipe()));
    plan.recipe = Fit(problem, plan.recipe);
    Recipe recipe;
    if (request.repair > 0) {
      GROVE_ASSIGN_OR_RETURN(recipe, Repaired(problem, plan, request));
    } else {
      GROVE_ASSIGN_OR_RETURN(recipe, Variant(problem, plan, request.variant, context.seed));
    }
    GROVE_ASSIGN_OR_RETURN(catalogue::Source source, problem.family->Write(problem.spec, context.device, recipe));
    KernelAnswer answer;
    v1::Candidate* candidate = answer.kernel.mutable_candidate();
    const bool cuda = problem.family->device() == v1::DEVICE_KIND_CUDA;
    candidate->set_name(absl::StrCat(problem.spec.operation, cuda ? ".cu" : ".cpp"));
    candidate->set_format(cuda ? v1::CANDIDATE_FORMAT_CUDA : v1::CANDIDATE_FORMAT_CPP);
    candidate->set_source(source.text);
    for (const std::string& flag : source.build_flags) candidate->add_build_flags(flag);
    answer.kernel.set_recipe(catalogue::ToJson(recipe));
    answer.kernel.set_notes(Describe(problem.optimisations, recipe));
    if (!plan.bank.empty()) answer.kernel.set_bank_origin(plan.bank);
    return answer;
  }

 private:
  struct Problem {
    OpSpec spec;
    const KernelFamily* family = nullptr;
    v1::DeviceInfo device;
    std::vector<Optimisation> optimisations;
  };

  static absl::StatusOr<Problem> Open(const Context& context) {
    Problem problem;
    GROVE_ASSIGN_OR_RETURN(problem.spec, Recognise(context.description));
    problem.device = context.device;
    GROVE_ASSIGN_OR_RETURN(problem.family, FindFamily(problem.spec, context.device));
    problem.optimisations = problem.family->Optimisations(problem.spec, context.device);
    return problem;
  }

  // A recipe from anywhere, made valid for this problem.
  static Recipe Fit(const Problem& problem, const Recipe& recipe) {
    Recipe result = catalogue::Normalise(problem.optimisations, recipe);
    result.operation = problem.spec.operation;
    result.device = problem.family->device() == v1::DEVICE_KIND_CUDA ? "cuda" : "cpu";
    return result;
  }

  static Proposal Make(const Problem& problem, Plan plan, const std::string& title, const std::string& description,
                       const std::string& category, double predicted) {
    Proposal proposal;
    plan.recipe = Fit(problem, plan.recipe);
    proposal.node.set_title(title);
    proposal.node.set_description(description);
    proposal.node.set_category(category);
    proposal.node.set_predicted_speedup(predicted);
    proposal.node.set_recipe(ToJson(plan));
    proposal.plan = std::move(plan);
    // A promise of twice the speed is drawn four times as often as none.
    proposal.weight = std::clamp(predicted * predicted, 0.05, 16.0);
    return proposal;
  }

  static std::vector<Proposal> FromReference(const Problem& problem, const Context& context) {
    std::vector<Proposal> proposals;
    for (const v1::BankEntry& entry : context.bank) {
      absl::StatusOr<Recipe> recipe = AnyRecipe(entry.recipe());
      if (!recipe.ok() || !problem.family->Matches(recipe->operation)) continue;
      Proposal proposal =
          Make(problem, Plan{"bank", "", entry.id(), *recipe},
               absl::StrCat("Start from banked kernel ", entry.id(), " (", entry.problem_name(), ")"),
               absl::StrCat("A kernel that was good for ", entry.problem_name(),
                            " is written anew for these shapes, with the nearest parameters that they allow."),
               "seed", entry.speedup() > 0 ? entry.speedup() : 1);
      proposal.weight = 1e6;  // always taken
      proposals.push_back(std::move(proposal));
    }
    bool first = true;
    for (const KernelFamily::Start& start : problem.family->Starts(problem.spec, problem.device)) {
      Proposal proposal = Make(problem, Plan{"start", "", "", start.recipe}, start.title, start.description, "seed",
                               start.predicted_speedup);
      // The plain kernel is always among the first: everything else is understood against it.
      if (first) proposal.weight = 1e6;
      first = false;
      proposals.push_back(std::move(proposal));
    }
    return proposals;
  }

  static Recipe ParentRecipe(const Problem& problem, const v1::KernelNode& parent) {
    absl::StatusOr<Recipe> recipe = AnyRecipe(parent.recipe());
    if (!recipe.ok()) return Fit(problem, problem.family->Starts(problem.spec, problem.device).front().recipe);
    return Fit(problem, *recipe);
  }

  static std::vector<Proposal> FromParent(const Problem& problem, const v1::KernelNode& parent) {
    const Recipe base = ParentRecipe(problem, parent);
    std::vector<Proposal> proposals;
    for (const Optimisation& each : problem.optimisations) {
      if (!base.Has(each.id)) {
        Recipe recipe = base;
        catalogue::SwitchOn(problem.optimisations, each.id, &recipe);
        proposals.push_back(Make(problem, Plan{"on", each.id, "", recipe}, each.title, each.description, each.category,
                                 each.predicted_speedup));
        continue;
      }
      Recipe without = base;
      catalogue::SwitchOff(problem.optimisations, each.id, &without);
      Proposal off =
          Make(problem, Plan{"off", each.id, "", without}, absl::StrCat("Do without: ", each.title),
               absl::StrCat("The parent has this, and it may cost more than it brings here: ", each.description),
               each.category, std::clamp(1 / each.predicted_speedup, 0.3, 0.97));
      off.weight *= 0.5;  // most of what is on is on for a reason
      proposals.push_back(std::move(off));
      for (const Parameter& parameter : each.parameters) {
        const std::string key = absl::StrCat(each.id, ".", parameter.name);
        const int64_t now = base.settings.at(key);
        for (int64_t value : parameter.values) {
          if (value == now) continue;
          Recipe recipe = base;
          recipe.settings[key] = value;
          Proposal tune = Make(problem, Plan{"tune", each.id, "", recipe},
                               absl::StrCat("Retune: ", each.title, " with ", SettingText(parameter, value)),
                               absl::StrCat("The same mechanism with ", SettingText(parameter, value), " and not ",
                                            SettingText(parameter, now), ". ", each.description),
                               each.category, 1.05);
          // All values of one parameter together weigh as much as one idea.
          tune.weight = 1.2 / static_cast<double>(parameter.values.size());
          proposals.push_back(std::move(tune));
        }
      }
    }
    return proposals;
  }

  static std::vector<Proposal> Pairs(const Problem& problem, const v1::KernelNode& parent) {
    const Recipe base = ParentRecipe(problem, parent);
    std::vector<Proposal> proposals;
    for (const Optimisation& a : problem.optimisations) {
      for (const Optimisation& b : problem.optimisations) {
        if (a.id >= b.id || base.Has(a.id) || base.Has(b.id)) continue;
        Recipe recipe = base;
        catalogue::SwitchOn(problem.optimisations, a.id, &recipe);
        catalogue::SwitchOn(problem.optimisations, b.id, &recipe);
        if (!recipe.Has(a.id)) continue;
        proposals.push_back(Make(problem, Plan{"on", absl::StrCat(a.id, "+", b.id), "", recipe},
                                 absl::StrCat(a.title, "; and ", b.title),
                                 absl::StrCat(a.description, " Together with: ", b.description), a.category,
                                 std::sqrt(a.predicted_speedup * b.predicted_speedup)));
      }
    }
    return proposals;
  }

  static void DropTried(const Context& context, std::vector<Proposal>* proposals) {
    std::set<std::string> tried;
    for (const v1::IdeaNode& idea : context.tried) {
      absl::StatusOr<Recipe> recipe = AnyRecipe(idea.recipe());
      if (recipe.ok()) tried.insert(catalogue::ToJson(*recipe));
    }
    proposals->erase(std::remove_if(proposals->begin(), proposals->end(),
                                    [&](const Proposal& proposal) {
                                      return tried.count(catalogue::ToJson(proposal.plan.recipe)) > 0;
                                    }),
                     proposals->end());
  }

  // What came of the same thought elsewhere in the tree: its credit weighs the next attempt, a refutation halves it.
  static void Learn(const Context& context, std::vector<Proposal>* proposals) {
    struct Record {
      double log_credit = 0;
      int count = 0, refuted = 0;
    };
    std::map<std::string, Record> records;
    for (const v1::IdeaNode& idea : context.tried) {
      absl::StatusOr<Plan> plan = ParsePlan(idea.recipe());
      if (!plan.ok() || plan->focus.empty() || idea.state() == v1::NODE_STATE_OPEN) continue;
      Record& record = records[absl::StrCat(plan->action, ":", plan->focus)];
      if (idea.credit() > 0) {
        record.log_credit += std::log(idea.credit());
        ++record.count;
      }
      if (idea.state() == v1::NODE_STATE_REFUTED) ++record.refuted;
    }
    for (Proposal& proposal : *proposals) {
      auto it = records.find(absl::StrCat(proposal.plan.action, ":", proposal.plan.focus));
      if (it == records.end()) continue;
      const Record& record = it->second;
      if (record.count > 0) proposal.weight *= std::clamp(std::exp(record.log_credit / record.count), 0.25, 4.0);
      proposal.weight *= std::pow(0.5, std::min(record.refuted, 4));
    }
  }

  // Variant 0 is the idea's own recipe; the others are other choices of its parameters, then of its neighbours'.
  static absl::StatusOr<Recipe> Variant(const Problem& problem, const Plan& plan, int variant, uint64_t seed) {
    if (variant == 0) return plan.recipe;
    std::mt19937_64 random(Mix(seed, ToJson(plan)));
    std::vector<Recipe> own, others;
    std::set<std::string> focus;
    for (const Optimisation& each : problem.optimisations) {
      if (plan.focus == each.id ||
          absl::StrContains(absl::StrCat("+", plan.focus, "+"), absl::StrCat("+", each.id, "+"))) {
        focus.insert(each.id);
      }
    }
    std::vector<std::pair<std::string, std::vector<int64_t>>> axes;
    for (const Optimisation& each : problem.optimisations) {
      if (!plan.recipe.Has(each.id)) continue;
      for (const Parameter& parameter : each.parameters) {
        const std::string key = absl::StrCat(each.id, ".", parameter.name);
        if (focus.count(each.id) > 0) {
          axes.push_back({key, parameter.values});
          continue;
        }
        for (int64_t value : parameter.values) {
          Recipe recipe = plan.recipe;
          recipe.settings[key] = value;
          if (!(recipe == plan.recipe)) others.push_back(std::move(recipe));
        }
      }
    }
    if (!axes.empty()) {
      own.push_back(plan.recipe);
      for (const auto& [key, values] : axes) {
        std::vector<Recipe> next;
        for (const Recipe& recipe : own) {
          for (int64_t value : values) {
            if (next.size() >= kMaxChoices) break;
            next.push_back(recipe);
            next.back().settings[key] = value;
          }
        }
        own = std::move(next);
      }
      own.erase(std::remove(own.begin(), own.end(), plan.recipe), own.end());
    }
    Shuffle(&own, &random);
    Shuffle(&others, &random);
    own.insert(own.end(), others.begin(), others.end());
    if (variant - 1 >= static_cast<int>(own.size())) {
      return absl::NotFoundError(own.empty() ? std::string("the idea has only one variant")
                                             : absl::StrCat("the idea has only ", own.size() + 1, " variants"));
    }
    return own[variant - 1];
  }

  // Back towards safety: first the safe parameters, then without what the idea brought, then the plain kernel.
  static absl::StatusOr<Recipe> Repaired(const Problem& problem, const Plan& plan, const KernelRequest& request) {
    absl::StatusOr<Recipe> parsed = AnyRecipe(request.failed.recipe());
    const Recipe failed = parsed.ok() ? Fit(problem, *parsed) : plan.recipe;
    std::vector<Recipe> ladder;
    Recipe safe = failed;
    for (const Optimisation& each : problem.optimisations) {
      if (!safe.Has(each.id)) continue;
      for (const Parameter& parameter : each.parameters) {
        safe.settings[absl::StrCat(each.id, ".", parameter.name)] = parameter.safe;
      }
    }
    ladder.push_back(safe);
    for (const Optimisation& each : problem.optimisations) {
      if (absl::StrContains(absl::StrCat("+", plan.focus, "+"), absl::StrCat("+", each.id, "+"))) {
        Recipe without = failed;
        catalogue::SwitchOff(problem.optimisations, each.id, &without);
        ladder.push_back(without);
      }
    }
    ladder.push_back(Fit(problem, problem.family->Starts(problem.spec, problem.device).front().recipe));
    std::set<std::string> seen = {catalogue::ToJson(failed)};
    int attempt = 0;
    for (const Recipe& recipe : ladder) {
      if (!seen.insert(catalogue::ToJson(recipe)).second) continue;
      if (++attempt == request.repair) return recipe;
    }
    return absl::NotFoundError("there is no safer form of this kernel");
  }
};

}  // namespace

std::unique_ptr<Generator> MakeCatalogueGenerator() { return std::make_unique<CatalogueGenerator>(); }

}  // namespace grove::generate
