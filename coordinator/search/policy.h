// A search policy: which ideas to ask for, which kernels to have written, which to evaluate, and who survives.
//
// A policy is a pure state machine with ask and tell: no clock, no threads, no I/O, seeded. Its state is a function of
// the sequence of Tell calls alone, so a search is replayed from its journal by telling the same outcomes again, and
// requests that were asked but never told are simply asked again after a restart under the same key.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "grove/v1/tree.pb.h"

namespace grove::search {

// Have the generator think of `count` ideas that start from `parent`.
struct ProposeIdeas {
  std::string request;  // stable key, "r<round>/p<parent>/ideas"
  std::string parent;   // kernel node id; empty = the reference
  int round = 0;
  int count = 0;
  int first_index = 0;  // ideas of this request are numbered from here
};

// Have variant `variant` of idea `idea` written out; or, with repaired_from, have that failed kernel repaired.
struct WriteKernel {
  std::string request;  // stable key, "<idea>/v<variant>" or "<idea>/v<variant>/fix<n>"
  std::string idea;
  int variant = 0;
  int repair = 0;             // 0 = first writing
  std::string repaired_from;  // kernel node id
};

// Have this kernel evaluated.
struct EvaluateKernel {
  std::string kernel;
};

// This kernel survives `round` and so is a parent of round + 1; recorded so that the journal shows it.
struct SelectKernel {
  std::string kernel;
  int round = 0;
  bool explored = false;
};

using Action = std::variant<ProposeIdeas, WriteKernel, EvaluateKernel, SelectKernel>;

class Policy {
 public:
  virtual ~Policy() = default;

  // Actions that can start now, at most `max`, most urgent first. An action is given out once; a policy rebuilt from
  // Tell calls gives out again whatever was not told.
  virtual std::vector<Action> Ask(int max) = 0;

  // Outcomes. Unknown or repeated keys are ignored, so that a replay after a crash is harmless.
  virtual void TellIdeas(const std::string& request, const std::vector<v1::IdeaNode>& ideas) = 0;
  virtual void TellIdeasFailed(const std::string& request) = 0;
  virtual void TellKernel(const std::string& request, const v1::KernelNode& kernel) = 0;
  virtual void TellKernelFailed(const std::string& request) = 0;
  virtual void TellEvaluated(const std::string& kernel, const v1::EvaluationResult& result) = 0;
  virtual void TellSelected(const std::string& kernel, int round, bool explored) = 0;

  // The budget was enlarged (ResumeJob).
  virtual void Extend(int extra_rounds, int extra_evaluations) = 0;

  // Nothing is outstanding and Ask will never give anything again.
  virtual bool Finished() const = 0;

  // The state an idea has now (OPEN, DONE, REFUTED) and its credit; the journal does not store these, they are derived.
  virtual v1::NodeState IdeaState(const std::string& idea) const = 0;
  virtual double IdeaCredit(const std::string& idea) const = 0;
};

// The CRFM method: R rounds, I ideas per parent, V variants per idea, K survivors; no barrier between rounds.
// `spec` has its defaults filled in by WithDefaults.
std::unique_ptr<Policy> MakeBranchingPolicy(const v1::SearchPolicy& spec);

// Zero fields replaced by the defaults that tree.proto states; an error text for values that make no sense.
v1::SearchPolicy WithDefaults(const v1::SearchPolicy& spec);
std::optional<std::string> Validate(const v1::SearchPolicy& spec);

}  // namespace grove::search
