// One of the two programs that are timed against each other: the reference in the judge, or a candidate in its own
// process. Both are asked in the same way and timed by the judge's clock alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/judge/asking.h"
#include "worker/judge/candidate_steps.h"
#include "worker/judge/conversation.h"
#include "worker/judge/device_ops.h"
#include "worker/judge/glances.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/returned_memory.h"
#include "worker/judge/run_size.h"
#include "worker/judge/slots.h"
#include "worker/judge/values.h"

namespace grove::judge {

class Side {
 public:
  virtual ~Side() = default;

  // What is to be done before these sets are run (Values holds their values). Not timed; afterwards the device is idle.
  virtual void Prepare(const std::vector<std::size_t>& sets) = 0;
  // Then, immediately before a timed run of them: a pause, the inputs, and caches that hold these as far as they fit
  // there (`warm`), or not at all.
  void MakeReady(const std::vector<std::size_t>& sets);

  // Calls on these sets, each prepared and none twice, back to back in this order. Seconds from asking until the device
  // has nothing left to do. No sets: what asking costs, with one empty kernel where there are kernels.
  virtual double Run(const std::vector<std::size_t>& sets) = 0;

  // Where its process answered last; negative where it has none of its own.
  virtual int processor() const { return -1; }

  // After a run: makes its outputs ready to be compared. Seconds that belong to the run all the same.
  virtual double Collect(const std::vector<std::size_t>& sets) = 0;

 protected:
  Side(DeviceOps& ops, bool warm) : ops_(ops), warm_(warm) {}
  // Gives the inputs to whoever runs on them. Queued.
  virtual void Hand(const std::vector<std::size_t>&) {}
  // Where a set's inputs are.
  virtual std::pair<const char*, std::size_t> Inputs(std::size_t set) const = 0;
  // No cache of a CPU holds the memory that outputs will go to.
  virtual void EvictOutputs(const std::vector<std::size_t>& sets) = 0;
  DeviceOps& ops_;
  double ready_seconds_ = 0;  // of the device, in the last MakeReady after the pause; 0 on a CPU

 private:
  void Warm(const std::vector<std::size_t>& sets);
  void Cool(const std::vector<std::size_t>& sets);

  const bool warm_;
};

// For LearnAsking: one run of the reference on a draw of its own, where it is so short that asking counts beside it.
std::function<void()> Between(LoadedProblem& problem, DeviceOps& ops);

// Share of calls in a row that the host takes to issue them: near 1 where the device waits for it, near 0 where the
// host waits for the device. A few runs of the reference on these inputs. 0 on a CPU.
double HostShare(Reference& reference, DeviceOps& ops, const std::vector<Leaf>& inputs, double call_seconds);

// From this share on the host sets the pace.
inline constexpr double kHostPaced = 0.8;

// The problem's own program, in this process, on the judge's own values.
class ReferenceSide : public Side {
 public:
  ReferenceSide(LoadedProblem& problem, DeviceOps& ops, Values& values, Mode mode, bool warm)
      : Side(ops, warm), reference_(*problem.reference), values_(values), mode_(mode) {}
  void Prepare(const std::vector<std::size_t>& sets) override;
  double Run(const std::vector<std::size_t>& sets) override;
  double Collect(const std::vector<std::size_t>&) override { return 0; }
  Mode mode() const { return mode_; }
  // The outputs of its last run are given back within the next, as a script does that keeps them until then. Without:
  // on nobody's clock.
  void ForgetWithin() { forgets_within_ = true; }
  // Gives back what it holds of its last runs.
  void Forget() {
    calls_.clear();
    former_.clear();
  }

  // Of the last run; empty when this set was not in it.
  std::vector<at::Tensor> Outputs(std::size_t set);

 private:
  bool Aliases(const std::vector<at::Tensor>& outputs) const;
  std::pair<const char*, std::size_t> Inputs(std::size_t set) const override {
    return {values_.data() + set * values_.stride(), values_.stride()};
  }

  void EvictOutputs(const std::vector<std::size_t>&) override;

  Reference& reference_;
  Values& values_;
  Mode mode_;
  std::map<std::size_t, std::unique_ptr<Call>> calls_;
  std::vector<std::vector<at::Tensor>> former_;  // what the last run returned, until the next
  // Copied within the run, as candidates do: outputs that are memory of the inputs, or not contiguous.
  bool known_ = false, aliases_ = false, copies_ = false;
  bool forgets_within_ = false;
};

// A candidate in its process. Its inputs are taken away at the answer: what was not computed by then cannot be. They
// come last before it is asked, and what they take beyond what they took before its program was loaded belongs to the
// run: work that it left on a GPU, waiting for them, goes on while its process stands still.
class CandidateSide : public Side {
 public:
  // `memory`: of a script's process on a CPU, where it may be read; null otherwise.
  CandidateSide(Conversation& conversation, Arena& arena, Values& values, DeviceOps& ops, bool python, bool warm,
                std::shared_ptr<const CandidateMemory> memory)
      : Side(ops, warm),
        conversation_(conversation),
        arena_(arena),
        values_(values),
        python_(python),
        asking_(*this, arena, values, ops),
        process_(std::move(memory)),
        glances_(arena, ops, random_) {}
  ~CandidateSide() override;
  void Prepare(const std::vector<std::size_t>& sets) override;
  double Run(const std::vector<std::size_t>& sets) override;
  // Each of these sets by itself, in the state in which timed runs are asked for: what a native candidate on a GPU
  // claims that each took. Seconds. Its outputs are nobody's.
  std::vector<double> RunAlone(const std::vector<std::size_t>& sets);
  // Makes room for runs in steps where there may be any.
  void ShareSteps();
  CandidateSteps* steps() { return steps_.get(); }  // null where there are none
  // Of a run in steps: what each of these sets has given is kept. `write`: its outputs, to the judge's own memory, from
  // the first tensor on; called with the set's position in `sets`.
  void TakeGiven(const std::vector<std::size_t>& sets, const std::function<void(std::size_t, char*)>& write);
  // As a call does that writes nothing: in the judge's copy.
  void LeaveUnwritten(const Slot& slot, std::size_t output);
  // From when on nobody was at work on the device. Waits for that; UNMEASURABLE where it takes far longer than the run.
  // `ran`: sets of the run that it ends, whose outputs are glanced at when it is quiet.
  std::chrono::steady_clock::time_point WaitUntilQuiet(const std::vector<std::size_t>* ran = nullptr);
  // A Python candidate copies its outputs now, unless they are read from its memory. May take no longer for it than
  // such copies take, nor its inputs longer.
  double Collect(const std::vector<std::size_t>& sets) override;
  // Of the next run, whose outputs will be looked at: they are copied to the judge's own memory (Slot::kept) when its
  // clock stops. On a GPU before anything else happens there, because queued work goes on while a process stands; on a
  // CPU when it stands. What a script does not have where it says stays unwritten; UNMEASURABLE where one page of its
  // memory may be many. At most MostKept.
  void Keep(std::vector<std::size_t> sets);
  std::size_t MostKept();
  // Throws std::logic_error unless these were kept.
  void MustHaveKept(const std::vector<std::size_t>& sets) const;

  // Where a script's memory may be read: it gets room to say where the results of so many calls lie. Before the arena
  // is mapped.
  void SharePlaces(std::size_t calls);
  // Results are read from the candidate's memory: known after LearnAsking.
  bool reads() const { return reads_; }

  // What asking this process for so many calls costs, while no code but ours has run in it (docs/timing.md). Called
  // once, when its memory is mapped and before the program is opened: later nobody could say.
  // `between`: work of the judge's own, as there is between timed runs; caches and processors are used by it.
  // `times`: of each kind of run, on a GPU up to three times as often.
  void LearnAsking(const RunLengths& lengths, int times, const std::function<void()>& between);
  // From now on an empty run is asked for as a run of so many calls is.
  void AskLike(std::size_t calls) { like_ = calls; }
  // One run of nothing, in the state in which timed runs are asked for: after a rest, with caches as cold. Seconds.
  double AskForNothing();
  // A run of so many calls of its own program, in the same state; before the candidate's is loaded. Seconds.
  double Practise(std::size_t calls);
  const Asking& asking() const { return asking_; }         // what it costs, after LearnAsking
  double ready_seconds() const { return ready_seconds_; }  // of the last MakeReady

  bool python() const { return python_; }
  int processor() const override { return conversation_.processor(); }
  const Reply& reply() const { return reply_; }  // of the last run; with `outputs` after Collect
  Conversation& conversation() { return conversation_; }
  Arena& arena() { return arena_; }

 private:
  void TakeOutputs(const std::vector<std::size_t>& ran);
  // Where a script says that the results of its last run lie.
  void FindResults(const std::vector<std::size_t>& ran);
  std::vector<std::size_t> CallOf(const std::vector<std::size_t>& ran) const;  // ran.size() for others
  // Where the outputs lie that are glanced at.
  void FindGlances(const std::vector<std::size_t>& ran);
  // A reply's `outputs`, of outputs that are as they must be.
  nlohmann::json AsWanted() const;
  // Memory that results of several calls share was not written for each.
  void RefuseShared(const std::vector<std::size_t>& ran);
  // In so many places of what the last run returned, which nobody needs any more: who counts on what an earlier result
  // holds finds that somebody else has written to it. Queued.
  void SpoilResults(std::size_t most);
  // Whether its memory can be read, which nobody but a process without a program is asked.
  bool CanRead();
  void LearnQuick();
  void Hand(const std::vector<std::size_t>& sets) override;
  std::pair<const char*, std::size_t> Inputs(std::size_t set) const override;
  void EvictOutputs(const std::vector<std::size_t>& sets) override;

  Conversation& conversation_;
  Arena& arena_;
  Values& values_;
  bool python_;
  Asking asking_;
  double quick_ = 0;  // seconds that an empty kernel behind another takes at most where nobody else is at work
  std::size_t like_ = 0;
  std::chrono::steady_clock::time_point asked_;  // for the last run
  Reply reply_;
  const std::shared_ptr<const CandidateMemory> process_;
  std::unique_ptr<CandidateSteps> steps_;
  std::unique_ptr<ReturnedMemory> returned_;  // null where it is not read
  bool reads_ = false;                        // results are read there
  std::vector<std::uint64_t> result_places_;  // of the last run that was kept: call after call
  std::vector<std::size_t> keeping_;          // sets whose outputs were kept last, or are to be
  bool keep_ = false;                         // in the next run
  at::Tensor kept_;                           // room for them
  std::size_t most_kept_ = 0;                 // 0 = not known yet
  Random random_ = Random::Secret();
  Glances glances_;
};

}  // namespace grove::judge
