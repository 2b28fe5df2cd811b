#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "coordinator/search/policy.h"

namespace grove::search {
namespace {

v1::IdeaNode Idea(const std::string& id, const std::string& category) {
  v1::IdeaNode idea;
  idea.set_id(id);
  idea.set_category(category);
  return idea;
}

v1::KernelNode Kernel(const std::string& id, const std::string& duplicate_of = "") {
  v1::KernelNode kernel;
  kernel.set_id(id);
  kernel.set_duplicate_of(duplicate_of);
  return kernel;
}

v1::EvaluationResult Result(v1::Verdict verdict, double speedup = 0, double resolution = 0) {
  v1::EvaluationResult result;
  result.set_verdict(verdict);
  if (verdict == v1::VERDICT_CORRECT) {
    v1::BaselineTiming* timing = result.mutable_timing()->add_baselines();
    timing->set_speedup(speedup);
    timing->set_speedup_low(speedup * 0.99);
    timing->set_speedup_high(speedup * 1.01);
    timing->set_resolution(resolution);
  }
  return result;
}

std::string Text(const Action& action) {
  std::ostringstream out;
  if (auto* ideas = std::get_if<ProposeIdeas>(&action)) {
    out << "ideas " << ideas->request << " x" << ideas->count
        << " from=" << (ideas->parent.empty() ? "reference" : ideas->parent);
  } else if (auto* write = std::get_if<WriteKernel>(&action)) {
    out << "write " << write->request;
    if (write->repair > 0) out << " repairs=" << write->repaired_from;
  } else if (auto* evaluate = std::get_if<EvaluateKernel>(&action)) {
    out << "evaluate " << evaluate->kernel;
  } else if (auto* select = std::get_if<SelectKernel>(&action)) {
    out << "select " << select->kernel << " round=" << select->round << (select->explored ? " explored" : "");
  }
  return out.str();
}

// The key under which an action is told.
std::string Key(const Action& action) {
  if (auto* ideas = std::get_if<ProposeIdeas>(&action)) return ideas->request;
  if (auto* write = std::get_if<WriteKernel>(&action)) return write->request;
  if (auto* evaluate = std::get_if<EvaluateKernel>(&action)) return "evaluate " + evaluate->kernel;
  auto& select = std::get<SelectKernel>(action);
  return "select " + std::to_string(select.round) + " " + select.kernel;
}

std::string StateName(v1::NodeState state) {
  return v1::NodeState_Name(state).substr(std::string("NODE_STATE_").size());
}

// One command of a transcript; what it prints are the lines that follow it in the file, each after "> ".
std::vector<std::string> Run(const std::string& line, std::unique_ptr<Policy>* policy) {
  std::istringstream in(line);
  std::string command;
  in >> command;
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<std::string> out;
  if (command == "policy") {
    v1::SearchPolicy spec;
    for (const std::string& word : words) {
      const std::string name = word.substr(0, word.find('=')), value = word.substr(word.find('=') + 1);
      if (name == "rounds") spec.set_rounds(std::stoi(value));
      if (name == "ideas") spec.set_ideas(std::stoi(value));
      if (name == "variants") spec.set_variants(std::stoi(value));
      if (name == "keep") spec.set_keep(std::stoi(value));
      if (name == "evaluations") spec.set_max_evaluations(std::stoi(value));
      if (name == "explore") spec.set_explore_ratio(std::stod(value));
      if (name == "repairs") spec.set_repairs(std::stoi(value));
    }
    REQUIRE(!Validate(spec).has_value());
    *policy = MakeBranchingPolicy(WithDefaults(spec));
  } else if (command == "ask") {
    for (const Action& action : (*policy)->Ask(words.empty() ? 100 : std::stoi(words[0]))) out.push_back(Text(action));
  } else if (command == "ideas") {  // request id:category ...
    std::vector<v1::IdeaNode> ideas;
    for (size_t i = 1; i < words.size(); ++i) {
      ideas.push_back(Idea(words[i].substr(0, words[i].find(':')), words[i].substr(words[i].find(':') + 1)));
    }
    (*policy)->TellIdeas(words.at(0), ideas);
  } else if (command == "no-ideas") {
    (*policy)->TellIdeasFailed(words.at(0));
  } else if (command == "kernel") {  // request id [duplicate-of]
    (*policy)->TellKernel(words.at(0), Kernel(words.at(1), words.size() > 2 ? words[2] : ""));
  } else if (command == "no-kernel") {
    (*policy)->TellKernelFailed(words.at(0));
  } else if (command == "result") {  // kernel speedup [resolution] | verdict
    v1::Verdict verdict;
    if (v1::Verdict_Parse("VERDICT_" + words.at(1), &verdict)) {
      (*policy)->TellEvaluated(words.at(0), Result(verdict));
    } else {
      const double resolution = words.size() > 2 ? std::stod(words[2]) : 0;
      (*policy)->TellEvaluated(words.at(0), Result(v1::VERDICT_CORRECT, std::stod(words.at(1)), resolution));
    }
  } else if (command == "selected") {
    (*policy)->TellSelected(words.at(0), std::stoi(words.at(1)), words.size() > 2);
  } else if (command == "extend") {
    (*policy)->Extend(std::stoi(words.at(0)), std::stoi(words.at(1)));
  } else if (command == "finished") {
    out.push_back((*policy)->Finished() ? "yes" : "no");
  } else if (command == "idea") {
    std::ostringstream text;
    text << StateName((*policy)->IdeaState(words.at(0))) << " " << (*policy)->IdeaCredit(words.at(0));
    out.push_back(text.str());
  } else {
    FAIL("unknown command: " << line);
  }
  return out;
}

TEST_CASE("The branching policy follows its transcripts", "[search]") {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(GROVE_TESTDATA "/policy")) files.insert(entry.path());
  REQUIRE(files.size() >= 5);
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path);
    std::string expected, actual;
    std::unique_ptr<Policy> policy;
    for (std::string line; std::getline(file, line);) {
      expected += line + "\n";
      if (line.rfind("> ", 0) == 0) continue;
      actual += line + "\n";
      if (line.empty() || line[0] == '#') continue;
      for (const std::string& each : Run(line, &policy)) actual += "> " + each + "\n";
    }
    INFO(path.filename().string() << "\n" << actual);
    CHECK(actual == expected);
    if (std::getenv("GROVE_UPDATE_TRANSCRIPTS") != nullptr) std::ofstream(path) << actual;
  }
}

// ---------------------------------------------------------------------------------------------------- properties

// A world that answers every action in its own way, and keeps the journal of what was told.
class World {
 public:
  World(uint64_t seed, double trouble) : random_(seed), trouble_(trouble) {}

  // Tells the policy one outcome of `action`, and journals it.
  void Answer(const Action& action, Policy* policy) {
    const std::string key = Key(action);
    if (auto* ideas = std::get_if<ProposeIdeas>(&action)) {
      if (Chance(trouble_ * 0.3)) return Tell(policy, [key](Policy* p) { p->TellIdeasFailed(key); });
      std::vector<v1::IdeaNode> nodes;
      const int count = Chance(trouble_ * 0.3) ? ideas->count / 2 : ideas->count + (Chance(0.1) ? 3 : 0);
      static const char* const kCategories[] = {"memory", "latency", "compute", "parallelism"};
      for (int i = 0; i < count; ++i)
        nodes.push_back(Idea("j/i" + std::to_string(ideas_++), kCategories[random_() % 4]));
      return Tell(policy, [key, nodes](Policy* p) { p->TellIdeas(key, nodes); });
    }
    if (std::get_if<WriteKernel>(&action)) {
      if (Chance(trouble_ * 0.4)) return Tell(policy, [key](Policy* p) { p->TellKernelFailed(key); });
      const std::string id = "j/k" + std::to_string(kernels_++);
      v1::KernelNode kernel = Kernel(id, kernels_ > 3 && Chance(0.1) ? "j/k0" : "");
      return Tell(policy, [key, kernel](Policy* p) { p->TellKernel(key, kernel); });
    }
    if (auto* evaluate = std::get_if<EvaluateKernel>(&action)) {
      const std::string id = evaluate->kernel;
      ++evaluated;
      v1::EvaluationResult result;
      if (Chance(trouble_)) {
        result = Result(static_cast<v1::Verdict>(2 + random_() % 7));
      } else {
        result = Result(v1::VERDICT_CORRECT, 0.2 + 0.001 * static_cast<double>(random_() % 3000));
        correct.insert(id);
      }
      Tell(policy, [id, result](Policy* p) { p->TellEvaluated(id, result); });
      if (result.verdict() != v1::VERDICT_CORRECT || !Chance(0.2)) return;
      // Measured again, because it would lead.
      const v1::EvaluationResult again =
          Chance(0.2) ? Result(v1::VERDICT_UNMEASURABLE) : Result(v1::VERDICT_CORRECT, 0.1 + 0.001 * (Next() % 3000));
      return Tell(policy, [id, again](Policy* p) { p->TellEvaluated(id, again); });
    }
    const SelectKernel select = std::get<SelectKernel>(action);
    Tell(policy, [select](Policy* p) { p->TellSelected(select.kernel, select.round, select.explored); });
  }

  std::vector<std::function<void(Policy*)>> journal;
  std::set<std::string> correct;
  int evaluated = 0;

  bool Chance(double share) { return static_cast<double>(random_() >> 11) * 0x1.0p-53 < share; }
  uint64_t Next() { return random_(); }

 private:
  void Tell(Policy* policy, std::function<void(Policy*)> what) {
    what(policy);
    journal.push_back(std::move(what));
  }

  std::mt19937_64 random_;
  double trouble_;
  int ideas_ = 0, kernels_ = 0;
};

v1::SearchPolicy RandomSpec(World* world) {
  v1::SearchPolicy spec;
  spec.set_rounds(1 + static_cast<int>(world->Next() % 4));
  spec.set_ideas(1 + static_cast<int>(world->Next() % 4));
  spec.set_variants(1 + static_cast<int>(world->Next() % 3));
  spec.set_keep(1 + static_cast<int>(world->Next() % 3));
  spec.set_max_evaluations(1 + static_cast<int>(world->Next() % 80));
  static const double kShares[] = {-1, 0.2, 0.5, 1};
  spec.set_explore_ratio(kShares[world->Next() % 4]);
  spec.set_repairs(static_cast<int>(world->Next() % 4) - 1);
  spec.set_seed(world->Next());
  return WithDefaults(spec);
}

TEST_CASE("Whatever the outcomes are, a search ends within its budgets and never asks the same twice", "[search]") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    World world(seed, seed % 5 == 0 ? 1.0 : 0.1 * static_cast<double>(seed % 9));
    const v1::SearchPolicy spec = RandomSpec(&world);
    auto policy = MakeBranchingPolicy(spec);
    std::set<std::string> keys;
    std::map<int, int> survivors;
    std::vector<Action> pending;
    int writes = 0, repairs = 0, steps = 0;
    while (true) {
      REQUIRE(++steps < 100'000);
      for (Action& action : policy->Ask(1 + static_cast<int>(world.Next() % 8))) {
        INFO(Text(action));
        REQUIRE(keys.insert(Key(action)).second);
        if (auto* write = std::get_if<WriteKernel>(&action)) {
          ++writes;
          if (write->repair > 0) ++repairs;
          REQUIRE(write->repair <= std::max(0, spec.repairs()));
          REQUIRE(write->variant < spec.variants());
        }
        if (auto* ideas = std::get_if<ProposeIdeas>(&action)) {
          REQUIRE(ideas->round < spec.rounds());
          REQUIRE((ideas->parent.empty() || world.correct.count(ideas->parent) > 0));
        }
        if (auto* select = std::get_if<SelectKernel>(&action)) {
          REQUIRE(world.correct.count(select->kernel) > 0);
          REQUIRE(++survivors[select->round] <= spec.keep());
          REQUIRE(select->round + 1 < spec.rounds());
        }
        pending.push_back(std::move(action));
      }
      if (pending.empty()) break;
      REQUIRE(!policy->Finished());
      // Answers come in any order.
      const size_t chosen = world.Next() % pending.size();
      const Action action = pending[chosen];
      pending.erase(pending.begin() + static_cast<int64_t>(chosen));
      world.Answer(action, policy.get());
    }
    CHECK(policy->Finished());
    CHECK(world.evaluated <= spec.max_evaluations());
    CHECK(repairs <= std::max(1, spec.max_evaluations() / 4 + 1));
    if (spec.repairs() < 0) CHECK(repairs == 0);
  }
}

TEST_CASE("A policy told the same outcomes again is in the same state and asks only for what was not told",
          "[search]") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    World world(seed, 0.1 * static_cast<double>(seed % 8));
    v1::SearchPolicy spec = RandomSpec(&world);
    // With the budget nearly spent a successor may give the last places to other writes, repairs first.
    spec.set_max_evaluations(10'000);
    auto policy = MakeBranchingPolicy(spec);
    std::vector<Action> pending;
    std::set<std::string> outstanding;
    while (true) {
      for (Action& action : policy->Ask(3)) {
        outstanding.insert(Key(action));
        pending.push_back(std::move(action));
      }
      if (pending.empty()) break;
      const size_t chosen = world.Next() % pending.size();
      const Action action = pending[chosen];
      pending.erase(pending.begin() + static_cast<int64_t>(chosen));
      outstanding.erase(Key(action));
      world.Answer(action, policy.get());
      if (!world.Chance(0.15)) continue;
      // The process dies here. Its successor reads the journal; some outcomes are told twice.
      auto next = MakeBranchingPolicy(spec);
      for (const auto& tell : world.journal) {
        tell(next.get());
        if (world.Chance(0.2)) tell(next.get());
      }
      std::set<std::string> asked, known = outstanding;
      std::vector<Action> again = next->Ask(100'000);
      for (const Action& each : again) asked.insert(Key(each));
      // It asks for everything that was asked and not told, and the same things beyond that as the one before it would.
      for (const Action& each : policy->Ask(100'000)) known.insert(Key(each));
      CHECK(asked == known);
      CHECK(next->Finished() == policy->Finished());
      policy = std::move(next);
      pending = std::move(again);
      outstanding = asked;
    }
    CHECK(policy->Finished());
  }
}

TEST_CASE("A slower kernel survives by the exploration share", "[search]") {
  int explored = 0, slower = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    v1::SearchPolicy spec;
    spec.set_rounds(2);
    spec.set_ideas(6);
    spec.set_variants(1);
    spec.set_keep(3);
    spec.set_explore_ratio(0.34);
    spec.set_seed(seed);
    auto policy = MakeBranchingPolicy(WithDefaults(spec));
    World world(seed, 0);
    std::map<std::string, double> speedups;
    for (std::vector<Action> actions = policy->Ask(1000); !actions.empty(); actions = policy->Ask(1000)) {
      for (const Action& action : actions) {
        if (auto* evaluate = std::get_if<EvaluateKernel>(&action)) {
          const double speedup = 0.5 + 0.1 * static_cast<double>(world.Next() % 20);
          speedups[evaluate->kernel] = speedup;
          policy->TellEvaluated(evaluate->kernel, Result(v1::VERDICT_CORRECT, speedup));
          continue;
        }
        if (auto* select = std::get_if<SelectKernel>(&action); select != nullptr && select->explored) {
          ++explored;
          if (speedups[select->kernel] < 1) ++slower;
        }
        world.Answer(action, policy.get());
      }
    }
  }
  CHECK(explored >= 30);
  CHECK(slower > 0);
}

TEST_CASE("Policy flags that make no sense are refused by name", "[search]") {
  v1::SearchPolicy spec;
  CHECK(!Validate(spec).has_value());
  CHECK(WithDefaults(spec).rounds() == 3);
  CHECK(WithDefaults(spec).explore_ratio() == 0.2);
  spec.set_rounds(-1);
  CHECK_THAT(Validate(spec).value_or(""), Catch::Contains("rounds"));
  spec.Clear();
  spec.set_explore_ratio(1.5);
  CHECK_THAT(Validate(spec).value_or(""), Catch::Contains("explore_ratio"));
  spec.Clear();
  spec.set_max_seconds(-3);
  CHECK_THAT(Validate(spec).value_or(""), Catch::Contains("max_seconds"));
  spec.Clear();
  spec.set_keep(100'000);
  CHECK_THAT(Validate(spec).value_or(""), Catch::Contains("keep"));
}

}  // namespace
}  // namespace grove::search
