// The branching search: ideas per parent, variants per idea, survivors per round, without a barrier between rounds.
//
// Theory of operation. A round has parents; round 0 has one, the reference. Each parent gives one request for ideas,
// each idea a slot per variant, each slot a chain of kernels: the first writing and its repairs. A slot is settled when
// its last kernel has a verdict and needs no repair, or when nothing could be written. A round is closed when its
// parents are final and all its slots are settled.
//
// Survivors are picked as soon as the outcome allows it, by two rules that look at told outcomes alone:
//   early  once half of the slots that the round can still have are settled and one kernel is correct, the best so far
//          is a parent of the next round at once, if another place is left for what may come faster;
//   close  when the round is closed, the other places are filled: some by novelty, the rest by speed.
// So while the slow half of a round is still measured, the next round already thinks about the best of the fast half.
//
// Speed is taken over all rounds, and a kernel that was a parent before counts a little less each time, so that a round
// which brought nothing goes back to the best kernels there are without starting from the very same one for ever.
// No order is finer than what the device tells apart (BaselineTiming.resolution): of kernels within that of the
// fastest, the earliest is taken, and an idea gained only when it beat its parent by more.
//
// A kernel may be told a second result: it was measured again because it would lead. The less favourable one counts
// from then on; who survived by the first stays a survivor.
//
// Novelty is taken within the round: another category of idea than the survivors', and a lineage that does not pass
// through the best kernel. Such a kernel may well be slower than its parent.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "coordinator/search/policy.h"

namespace grove::search {
namespace {

// What a kernel's speed counts each time it was a parent already: with 0.9, ten per cent faster is worth one more
// visit. A judgement and no measurement; it only orders parents, never results.
constexpr double kRevisitFactor = 0.9;

// Repairs may take this share of the evaluations at most, so that a generator which never gets it right leaves room for
// other ideas.
constexpr double kRepairShare = 0.25;

uint64_t Mix(uint64_t seed, const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325ull ^ (seed * 0x9e3779b97f4a7c15ull);  // FNV-1a, then a finaliser (splitmix64)
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3ull;
  hash ^= hash >> 30;
  hash *= 0xbf58476d1ce4e5b9ull;
  hash ^= hash >> 27;
  hash *= 0x94d049bb133111ebull;
  return hash ^ (hash >> 31);
}

double Unit(uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1.0p-53; }

bool WorthRepair(v1::Verdict verdict) {
  return verdict == v1::VERDICT_BUILD_FAILED || verdict == v1::VERDICT_WRONG || verdict == v1::VERDICT_CRASHED;
}

// The speed that is certain: the lower end of the interval where there is one. A result without timing counts as 1.
double CertainSpeedup(const v1::EvaluationResult& result) {
  if (result.timing().baselines().empty()) return 1;
  const v1::BaselineTiming& timing = result.timing().baselines(0);
  if (timing.speedup_low() > 0) return timing.speedup_low();
  return timing.speedup() > 0 ? timing.speedup() : 1;
}

double Resolution(const v1::EvaluationResult& result) {
  return result.timing().baselines().empty() ? 0 : std::max(0.0, result.timing().baselines(0).resolution());
}

double Speedup(const v1::EvaluationResult& result) {
  if (result.timing().baselines().empty() || result.timing().baselines(0).speedup() <= 0) return 1;
  return result.timing().baselines(0).speedup();
}

class BranchingPolicy final : public Policy {
 public:
  explicit BranchingPolicy(const v1::SearchPolicy& spec) : spec_(spec) {
    rounds_.resize(spec_.rounds());
    AddParent(0, "");
  }

  std::vector<Action> Ask(int max) override {
    std::vector<Action> actions;
    auto room = [&] { return static_cast<int>(actions.size()) < max; };
    // Each list is walked once: what lies before its cursor was told or given out.
    for (; room() && next_selection_ < selections_.size(); ++next_selection_) {
      const Selection& selection = selections_[next_selection_];
      if (!selection.told) actions.push_back(selection.action);
    }
    for (; room() && next_kernel_ < kernel_order_.size(); ++next_kernel_) {
      const Kernel& kernel = kernels_.at(kernel_order_[next_kernel_]);
      if (kernel.admitted && !kernel.has_result) actions.push_back(EvaluateKernel{kernel_order_[next_kernel_]});
    }
    // Repairs first: they finish something. Then the oldest idea first. A write that is given out has a place in the
    // budget, so that its kernel can be evaluated.
    for (size_t list : {kRepairs, kFirstWritings}) {
      for (size_t& next = next_write_[list]; room() && next < write_order_[list].size(); ++next) {
        Write& write = writes_[write_order_[list][next]];
        if (write.told) continue;
        if (admitted_ + writes_given_ >= spec_.max_evaluations()) break;
        write.given = true;
        ++writes_given_;
        --writes_open_;
        actions.push_back(write.action);
      }
    }
    for (; room() && next_proposal_ < proposals_.size(); ++next_proposal_) {
      Proposal& proposal = proposals_[next_proposal_];
      if (proposal.told) continue;
      if (admitted_ + writes_given_ + writes_open_ >= spec_.max_evaluations()) break;
      proposal.given = true;
      ++proposals_given_;
      actions.push_back(proposal.action);
    }
    return actions;
  }

  void TellIdeas(const std::string& request, const std::vector<v1::IdeaNode>& ideas) override {
    Proposal* proposal = FindProposal(request);
    if (proposal == nullptr) return;
    Close(proposal);
    int taken = 0;
    for (const v1::IdeaNode& node : ideas) {
      if (taken == proposal->action.count || node.id().empty() || ideas_.count(node.id()) > 0) continue;
      ++taken;
      Idea& idea = ideas_[node.id()];
      idea.round = proposal->action.round;
      idea.parent = proposal->action.parent;
      idea.category = node.category();
      idea.open_slots = spec_.variants();
      for (int variant = 0; variant < spec_.variants(); ++variant) {
        AddWrite(WriteKernel{absl::StrCat(node.id(), "/v", variant), node.id(), variant, 0, ""});
      }
    }
    // Places that no idea filled will never have a kernel.
    rounds_[proposal->action.round].settled_without += (proposal->action.count - taken) * spec_.variants();
    Advance();
  }

  void TellIdeasFailed(const std::string& request) override { TellIdeas(request, {}); }

  void TellKernel(const std::string& request, const v1::KernelNode& node) override {
    Write* write = FindWrite(request);
    if (write == nullptr || node.id().empty() || kernels_.count(node.id()) > 0) return;
    Close(write);
    const WriteKernel action = write->action;
    Idea& idea = ideas_.at(action.idea);
    Kernel& kernel = kernels_[node.id()];
    kernel.idea = action.idea;
    kernel.round = idea.round;
    kernel.variant = action.variant;
    kernel.repair = action.repair;
    kernel.order = static_cast<int>(kernel_order_.size());
    kernel.duplicate_of = node.duplicate_of();
    kernel_order_.push_back(node.id());
    idea.kernels.push_back(node.id());
    if (!kernel.duplicate_of.empty()) {
      // Its result is another kernel's; nothing runs, and only one of the two may be a parent.
      Settle(kernel, /*verdict=*/action.repair > 0);
    } else if (admitted_ < spec_.max_evaluations()) {
      kernel.admitted = true;
      ++admitted_;
      ++evaluations_open_;
    } else {
      Settle(kernel, action.repair > 0);
    }
    Advance();
  }

  void TellKernelFailed(const std::string& request) override {
    Write* write = FindWrite(request);
    if (write == nullptr) return;
    Close(write);
    Idea& idea = ideas_.at(write->action.idea);
    if (write->action.repair > 0) {
      ++rounds_[idea.round].settled_with;  // the kernel that it was to repair has its verdict
    } else {
      ++rounds_[idea.round].settled_without;
    }
    --idea.open_slots;
    Advance();
  }

  void TellEvaluated(const std::string& id, const v1::EvaluationResult& result) override {
    auto it = kernels_.find(id);
    if (it == kernels_.end() || result.verdict() == v1::VERDICT_UNSPECIFIED) return;
    Kernel& kernel = it->second;
    if (kernel.has_result) return MeasuredAgain(&kernel, result);
    kernel.has_result = true;
    kernel.verdict = result.verdict();
    kernel.certain = CertainSpeedup(result);
    kernel.speedup = Speedup(result);
    kernel.resolution = Resolution(result);
    if (kernel.admitted) {
      --evaluations_open_;
      const bool repair = WorthRepair(kernel.verdict) && kernel.repair < spec_.repairs() &&
                          repairs_asked_ < std::max(1.0, kRepairShare * spec_.max_evaluations());
      if (repair) {
        ++repairs_asked_;
        const int attempt = kernel.repair + 1;
        AddWrite(WriteKernel{absl::StrCat(kernel.idea, "/v", kernel.variant, "/fix", attempt), kernel.idea,
                             kernel.variant, attempt, id});
      } else {
        Settle(kernel, true);
      }
    }
    Advance();
  }

  void TellSelected(const std::string& id, int round, bool explored) override {
    if (round < 0 || round + 1 >= static_cast<int>(rounds_.size()) || kernels_.count(id) == 0) return;
    for (Selection& selection : selections_) {
      if (selection.action.kernel == id && selection.action.round == round) {
        if (!selection.told) --selections_open_;
        selection.told = true;
        return;
      }
    }
    // The journal knows a survivor that this policy would not have picked yet: the journal is right.
    Round& from = rounds_[round];
    if (!kernels_.at(id).Correct() || static_cast<int>(from.survivors.size()) >= spec_.keep()) return;
    Select(round, id, explored);
    selections_.back().told = true;
    --selections_open_;
    Advance();
  }

  void Extend(int extra_rounds, int extra_evaluations) override {
    spec_.set_rounds(spec_.rounds() + std::max(0, extra_rounds));
    spec_.set_max_evaluations(spec_.max_evaluations() + std::max(0, extra_evaluations));
    rounds_.resize(spec_.rounds());
    Advance();
  }

  bool Finished() const override {
    if (selections_open_ > 0 || evaluations_open_ > 0) return false;
    if (writes_given_ > 0 || proposals_given_ > 0) return false;
    if (admitted_ >= spec_.max_evaluations()) return true;
    return writes_open_ == 0 && proposals_open_ == 0;
  }

  v1::NodeState IdeaState(const std::string& id) const override {
    auto it = ideas_.find(id);
    if (it == ideas_.end()) return v1::NODE_STATE_UNSPECIFIED;
    const Idea& idea = it->second;
    if (idea.open_slots > 0) return v1::NODE_STATE_OPEN;
    if (idea.kernels.empty()) return v1::NODE_STATE_ABANDONED;
    int correct = 0, gained = 0, failed = 0;
    std::set<int> reasons;
    for (const std::string& each : idea.kernels) {
      const Kernel* kernel = ResultOf(each);
      if (kernel == nullptr) continue;
      if (kernel->verdict == v1::VERDICT_CORRECT) {
        ++correct;
        if (kernel->speedup > SpeedupOf(idea.parent) * (1 + kernel->resolution)) ++gained;
      } else if (kernel->verdict != v1::VERDICT_UNMEASURABLE) {
        ++failed;
        reasons.insert(kernel->verdict);
      }
    }
    if (gained > 0) return v1::NODE_STATE_DONE;
    if (correct > 0) return correct >= std::min(2, spec_.variants()) ? v1::NODE_STATE_REFUTED : v1::NODE_STATE_DONE;
    return failed >= 2 && reasons.size() >= 2 ? v1::NODE_STATE_REFUTED : v1::NODE_STATE_DONE;
  }

  double IdeaCredit(const std::string& id) const override {
    auto it = ideas_.find(id);
    if (it == ideas_.end()) return 0;
    double best = 0;
    for (const std::string& each : it->second.kernels) {
      const Kernel* kernel = ResultOf(each);
      if (kernel != nullptr && kernel->verdict == v1::VERDICT_CORRECT) best = std::max(best, kernel->speedup);
    }
    return best / SpeedupOf(it->second.parent);
  }

 private:
  struct Proposal {
    ProposeIdeas action;
    bool told = false, given = false;
  };
  struct Write {
    WriteKernel action;
    bool told = false, given = false;
  };
  struct Selection {
    SelectKernel action;
    bool told = false;
  };
  struct Idea {
    int round = 0;
    std::string parent, category;
    int open_slots = 0;
    std::vector<std::string> kernels;
  };
  struct Kernel {
    std::string idea, duplicate_of;
    int round = 0, variant = 0, repair = 0, order = 0;
    bool admitted = false;  // counts against the budget, is to be evaluated
    bool has_result = false;
    int parent_times = 0;
    v1::Verdict verdict = v1::VERDICT_UNSPECIFIED;
    double certain = 0, speedup = 0, resolution = 0;

    bool Correct() const { return has_result && verdict == v1::VERDICT_CORRECT && duplicate_of.empty(); }
  };
  struct Round {
    std::vector<std::string> parents;    // "" = the reference
    std::vector<std::string> survivors;  // parents of the next round
    int settled_with = 0;                // slots whose last kernel has a verdict
    int settled_without = 0;             // slots that never will have one
    bool selected = false;               // all survivors are picked
  };

  // ------------------------------------------------------------------------------------------------- bookkeeping
  void AddParent(int round, const std::string& parent) {
    rounds_[round].parents.push_back(parent);
    std::string key = absl::StrCat("r", round, "/p", parent, "/ideas");
    proposal_index_[key] = proposals_.size();
    const int first = static_cast<int>(rounds_[round].parents.size() - 1) * spec_.ideas();
    proposals_.push_back(Proposal{ProposeIdeas{key, parent, round, spec_.ideas(), first}});
    ++proposals_open_;
  }

  void AddWrite(WriteKernel action) {
    write_index_[action.request] = writes_.size();
    write_order_[action.repair > 0 ? kRepairs : kFirstWritings].push_back(writes_.size());
    writes_.push_back(Write{std::move(action)});
    ++writes_open_;
  }

  Proposal* FindProposal(const std::string& request) {
    auto it = proposal_index_.find(request);
    return it == proposal_index_.end() || proposals_[it->second].told ? nullptr : &proposals_[it->second];
  }

  Write* FindWrite(const std::string& request) {
    auto it = write_index_.find(request);
    return it == write_index_.end() || writes_[it->second].told ? nullptr : &writes_[it->second];
  }

  void Close(Proposal* proposal) {
    proposal->told = true;
    --proposals_open_;
    if (proposal->given) --proposals_given_;
  }

  void Close(Write* write) {
    write->told = true;
    if (write->given) {
      --writes_given_;
    } else {
      --writes_open_;
    }
  }

  // Telling the same result twice changes nothing.
  void MeasuredAgain(Kernel* kernel, const v1::EvaluationResult& result) {
    if (kernel->verdict != v1::VERDICT_CORRECT || result.verdict() == v1::VERDICT_UNMEASURABLE) return;
    if (result.verdict() != v1::VERDICT_CORRECT) {
      kernel->verdict = result.verdict();
      kernel->certain = kernel->speedup = 0;
    } else if (!result.timing().baselines().empty() && Speedup(result) < kernel->speedup) {
      kernel->certain = CertainSpeedup(result);
      kernel->speedup = Speedup(result);
      kernel->resolution = Resolution(result);
    }
    Advance();
  }

  void Settle(const Kernel& kernel, bool verdict) {
    Round& round = rounds_[kernel.round];
    ++(verdict ? round.settled_with : round.settled_without);
    --ideas_.at(kernel.idea).open_slots;
  }

  const Kernel* ResultOf(const std::string& id) const {
    // A duplicate has the other's result. One step: the engine names the kernel that ran.
    auto it = kernels_.find(id);
    if (it == kernels_.end()) return nullptr;
    if (!it->second.has_result && !it->second.duplicate_of.empty()) {
      it = kernels_.find(it->second.duplicate_of);
      if (it == kernels_.end()) return nullptr;
    }
    return it->second.has_result ? &it->second : nullptr;
  }

  double SpeedupOf(const std::string& kernel) const {
    if (kernel.empty()) return 1;
    const Kernel* result = ResultOf(kernel);
    return result == nullptr || result->speedup <= 0 ? 1 : result->speedup;
  }

  // ------------------------------------------------------------------------------------------------- survivors
  bool Closed(int round) const {
    if (round > 0 && !rounds_[round - 1].selected) return false;
    const Round& r = rounds_[round];
    const int slots = static_cast<int>(r.parents.size()) * spec_.ideas() * spec_.variants();
    return r.settled_with + r.settled_without >= slots;
  }

  bool HalfKnown(int round) const {
    const Round& r = rounds_[round];
    const bool final_parents = round == 0 || rounds_[round - 1].selected;
    const int parents = final_parents ? static_cast<int>(r.parents.size()) : spec_.keep();
    const int64_t slots = static_cast<int64_t>(parents) * spec_.ideas() * spec_.variants() - r.settled_without;
    return r.settled_with > 0 && 2 * static_cast<int64_t>(r.settled_with) >= slots;
  }

  void Select(int round, const std::string& kernel, bool explored) {
    rounds_[round].survivors.push_back(kernel);
    if (!kernel.empty()) {
      ++kernels_.at(kernel).parent_times;
      selections_.push_back(Selection{SelectKernel{kernel, round, explored}});
      ++selections_open_;
    }
    AddParent(round + 1, kernel);
  }

  bool IsSurvivor(int round, const std::string& id) const {
    const std::vector<std::string>& survivors = rounds_[round].survivors;
    return std::find(survivors.begin(), survivors.end(), id) != survivors.end();
  }

  // Of the correct kernels of rounds up to `round` that `taken` does not exclude, the earliest of those that the device
  // does not tell from the fastest; empty = none.
  template <typename Taken>
  std::string Earliest(int round, const Taken& taken, double revisit_factor) const {
    const auto score = [&](const Kernel& kernel) {
      return kernel.certain * std::pow(revisit_factor, kernel.parent_times);
    };
    const auto fits = [&](const std::string& id) {
      const Kernel& kernel = kernels_.at(id);
      return kernel.Correct() && kernel.round <= round && !taken(id);
    };
    double fastest = 0;
    for (const std::string& id : kernel_order_) {
      if (fits(id)) fastest = std::max(fastest, score(kernels_.at(id)));
    }
    for (const std::string& id : kernel_order_) {
      if (fits(id) && score(kernels_.at(id)) * (1 + kernels_.at(id).resolution) >= fastest) return id;
    }
    return "";
  }

  // The fastest correct kernel of rounds up to `round` that is not taken yet, revisits discounted; empty = none.
  std::string Fastest(int round) const {
    return Earliest(
        round, [&](const std::string& id) { return IsSurvivor(round, id); }, kRevisitFactor);
  }

  // Whether `ancestor` is the kernel or stands above it.
  bool DescendsFrom(std::string id, const std::string& ancestor) const {
    while (!id.empty()) {
      if (id == ancestor) return true;
      auto it = kernels_.find(id);
      if (it == kernels_.end()) return false;
      id = ideas_.at(it->second.idea).parent;
    }
    return false;
  }

  // The most novel correct kernel of the round: another category than the survivors', not of the best one's line. Among
  // equals the draw is weighted by nothing but the seed. Empty = none.
  std::string MostNovel(int round) const {
    std::set<std::string> categories;
    for (const std::string& id : rounds_[round].survivors) {
      if (!id.empty()) categories.insert(ideas_.at(kernels_.at(id).idea).category);
    }
    const std::string leader = Earliest(
        round, [](const std::string&) { return false; }, 1);
    std::string best;
    std::pair<int, uint64_t> best_score;
    for (const std::string& id : kernel_order_) {
      const Kernel& kernel = kernels_.at(id);
      if (!kernel.Correct() || kernel.round != round || IsSurvivor(round, id)) continue;
      const Idea& idea = ideas_.at(kernel.idea);
      int novelty = 0;
      if (categories.count(idea.category) == 0) novelty += 2;
      if (!DescendsFrom(id, leader)) novelty += 1;
      if (kernel.parent_times == 0) novelty += 1;
      std::pair<int, uint64_t> score{novelty, Mix(spec_.seed(), absl::StrCat(round, "#", kernel.order))};
      if (best.empty() || score > best_score) {
        best = id;
        best_score = score;
      }
    }
    return best;
  }

  int ExploredPlaces(int round) const {
    if (spec_.explore_ratio() <= 0) return 0;
    const double share = spec_.explore_ratio() * spec_.keep();
    int places = static_cast<int>(share);
    // The fraction is drawn per round, so that the share holds over many rounds also where keep is small.
    if (Unit(Mix(spec_.seed(), absl::StrCat("explore", round))) < share - places) ++places;
    return std::min(places, spec_.keep());
  }

  void Advance() {
    while (first_open_round_ < static_cast<int>(rounds_.size()) && rounds_[first_open_round_].selected)
      ++first_open_round_;
    for (int round = first_open_round_; round + 1 < static_cast<int>(rounds_.size()); ++round) {
      Round& r = rounds_[round];
      if (r.parents.empty()) return;
      const bool closed = Closed(round);
      const int explored = ExploredPlaces(round);
      if (!closed) {
        if (r.survivors.empty() && spec_.keep() - explored >= 2 && HalfKnown(round)) {
          std::string best = Fastest(round);
          if (!best.empty()) Select(round, best, false);
        }
        continue;  // the next round may have parents already, and those may be half known too
      }
      const int places = spec_.keep();
      while (static_cast<int>(r.survivors.size()) < places - explored) {
        std::string best = Fastest(round);
        if (best.empty()) break;
        Select(round, best, false);
      }
      while (static_cast<int>(r.survivors.size()) < places) {
        std::string novel = MostNovel(round);
        const bool is_novel = !novel.empty();
        if (!is_novel) novel = Fastest(round);
        if (novel.empty()) break;
        Select(round, novel, is_novel);
      }
      // Nothing correct yet: think again about the reference, knowing what failed.
      if (r.survivors.empty()) Select(round, "", false);
      r.selected = true;
    }
  }

  v1::SearchPolicy spec_;
  std::vector<Round> rounds_;
  std::vector<Proposal> proposals_;
  std::vector<Write> writes_;
  std::vector<Selection> selections_;
  std::unordered_map<std::string, size_t> proposal_index_, write_index_;
  std::unordered_map<std::string, Idea> ideas_;
  std::unordered_map<std::string, Kernel> kernels_;
  std::vector<std::string> kernel_order_;
  static constexpr size_t kRepairs = 0, kFirstWritings = 1;
  std::vector<size_t> write_order_[2];  // indices of writes_
  size_t next_selection_ = 0, next_kernel_ = 0, next_proposal_ = 0, next_write_[2] = {0, 0};
  int first_open_round_ = 0;
  int selections_open_ = 0;   // not told
  int evaluations_open_ = 0;  // admitted, without a result
  int admitted_ = 0;          // kernels that are or were to be evaluated
  int repairs_asked_ = 0;
  int writes_open_ = 0;      // neither told nor given out
  int writes_given_ = 0;     // given out, not told
  int proposals_open_ = 0;   // not told
  int proposals_given_ = 0;  // given out, not told
};

}  // namespace

std::unique_ptr<Policy> MakeBranchingPolicy(const v1::SearchPolicy& spec) {
  return std::make_unique<BranchingPolicy>(spec);
}

}  // namespace grove::search
