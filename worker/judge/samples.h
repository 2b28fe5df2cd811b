// What was measured of both sides in whole runs, and what it says that one call takes, without what asking costs. All
// times are seconds. docs/timing.md derives every constant.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "worker/judge/side.h"
#include "worker/judge/verdict.h"

namespace grove::judge {

class Check;

inline constexpr std::size_t kShorts = 5;  // runs of half as many calls at least, for a slope

// Of the candidate, whoever it is compared with.
struct CandidateRuns {
  std::size_t calls = 1;                       // of one timed run
  std::vector<double> empty;                   // runs of no calls, the latest
  std::vector<double> runs, claims;            // whole and claimed, of the runs of `calls`
  std::vector<double> shorts;                  // of runs of half as many
  std::vector<double> runs_late, shorts_late;  // what of each came too late (Side::Collect)
  double apart = 0;  // what a call by itself, or one in steps, takes more than one of a run, where that is far more

  void BeginAnew();  // forgets all but the empty runs
};

// One baseline: who stands in the reference's place, and the pairs.
struct Series {
  std::string baseline;
  std::unique_ptr<ReferenceSide> reference;  // null where a rival stands
  CandidateSide* rival = nullptr;
  Check* rival_check = nullptr;
  std::function<void(const Verdict& verdict)> on_failure;
  std::string unavailable;
  std::size_t calls = 1;                 // of one timed run of the other side
  std::vector<double> other, candidate;  // whole runs, asking included
  std::vector<double> other_late, late;  // what handing over the same runs' outputs took beyond what copies take
  std::vector<double> other_empty;       // runs of no calls on the other side, the latest
  std::vector<double> waited;            // of the reference's runs on a CPU: share of the time without a processor
  std::vector<nlohmann::json> states;    // SampleState of the first of them, where they are kept and a GPU is watched
  double first = 0;                      // of a reference's run beyond that, which does not grow with its calls
  double first_error = 0;                // its standard error; what is below two of them is not taken off
  double apart = 0;                      // of a rival: CandidateRuns::apart
  Side& side() const { return reference != nullptr ? static_cast<Side&>(*reference) : *rival; }

  void BeginAnew();  // forgets the pairs
  // Does `work`. False when a rival's side failed: its verdict is its own.
  template <typename Work>
  bool Guarded(const Work& work) {
    if (rival == nullptr) {
      work();
      return true;
    }
    try {
      work();
      return true;
    } catch (const Verdict& verdict) {
      unavailable = Bounded("the rival failed: " + verdict.reason, 500);
      if (on_failure) on_failure(verdict);
      return false;
    }
  }
};

// Of a call on the other side and on the candidate's, of the pairs that the clock resolves.
struct CallTimes {
  std::vector<double> other, candidate;
  std::vector<std::size_t> pairs;  // which of the series' they are
  int unresolved = 0;              // pairs in which asking took longer than the run
};

class Reckoning {
 public:
  // `runs_tell`: the candidate's runs of two lengths may show that asking is dearer than was learnt before its program
  // was loaded; `least_accused`: by fewer runs nothing is said of it. References outlive this.
  Reckoning(const CandidateSide& candidate, const CandidateRuns& runs, bool runs_tell, int least_accused)
      : candidate_(candidate),
        runs_(runs),
        runs_tell_(runs_tell),
        least_accused_(static_cast<std::size_t>(least_accused)) {}

  double Asking() const;  // of the candidate's runs, as it is known now
  // What the candidate's runs of K and of K/2 calls say that asking costs, with its standard error. Too few runs: an
  // infinite error.
  struct Implied {
    double seconds = 0, error = std::numeric_limits<double>::infinity();
  };
  Implied ImpliedAsking() const;
  CallTimes Calls(const Series& series, double asking) const;
  // The standard error of what was taken off for asking, as a share of what is left of the runs, of both sides: all
  // pairs lean the same way by it, so that they do not show it.
  double AskingShare(const Series& series, double asking) const;

  double EmptyOf(const Series& series) const;  // what is taken off the runs of the other side

 private:
  double PlainAsking() const;  // by empty runs alone
  // The same where it is used: beyond `plain`, what was learnt before the load.
  std::optional<Implied> DearerThan(double plain) const;

  const CandidateSide& candidate_;
  const CandidateRuns& runs_;
  const bool runs_tell_;
  const std::size_t least_accused_;
};

}  // namespace grove::judge
