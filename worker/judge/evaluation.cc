#include "worker/judge/evaluation.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "common/wire/dtype.h"
#include "worker/judge/check.h"
#include "worker/judge/compare_tensors.h"
#include "worker/judge/conversation.h"
#include "worker/judge/findings.h"
#include "worker/judge/memory_watch.h"
#include "worker/judge/opponent.h"
#include "worker/judge/problem_error.h"
#include "worker/judge/random.h"
#include "worker/judge/run_size.h"
#include "worker/judge/set.h"
#include "worker/judge/side.h"
#include "worker/judge/slots.h"
#include "worker/judge/tensor_type.h"
#include "worker/judge/timing.h"
#include "worker/judge/values.h"
#include "worker/judge/verdict.h"

namespace grove::judge {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Parameters of more bytes stay as built: they are kept twice while they are varied.
constexpr std::int64_t kMostVaried = std::int64_t{512} << 20;
constexpr double kDrawing = 0.25;  // of run_wall_seconds, for drawing the values of timed runs
// Of watching whose work it is: seconds and runs at least, seconds at most; where nothing was timed, also seconds,
// calls and bytes of results of a run.
constexpr double kWatch = 0.6, kWatchMost = 6, kWatchRun = 20e-3, kWatchCalls = 1000;
constexpr int kWatchRuns = 30;
constexpr double kMostUnseen = 0.2;  // of a run, behind its answer
constexpr std::size_t kWatchBytes = std::size_t{64} << 20;

// The order of things.
class Evaluator {
 public:
  Evaluator(LoadedProblem& problem, DeviceOps& ops, wire::Channel candidate, std::optional<wire::Channel> rival,
            const EvaluationSettings& settings, const Progress& progress)
      : problem_(problem),
        reference_(*problem.reference),
        ops_(ops),
        settings_(settings),
        progress_(progress),
        random_(Random::Secret()),
        conversation_(std::move(candidate), {settings.call_wall, settings.run_wall, ops.Spin()}, settings.hold),
        arena_(ops, random_) {
    if (rival.has_value()) {
      opponent_ = std::make_unique<Opponent>(problem, ops, *std::move(rival), settings, random_, progress);
    }
  }

  EvaluationOutcome Run() {
    EvaluationOutcome outcome;
    json& result = outcome.result;
    begin_ = Clock::now();
    try {
      Prepare();
      StageDone("open");
      conversation_.SetStage("check");
      check_->Run(&conversation_, &arena_, timed_slots_, &random_, progress_);
      StageDone("check");
      std::vector<Rival> rivals;
      if (opponent_ != nullptr && !settings_.skip_timing) {
        // While the rival is checked the candidate stands still.
        conversation_.HoldBetweenRuns(true);
        if (opponent_->Prepare(*values_, timed_slots_, high_fits_)) {
          rivals.push_back({"BASELINE_RIVAL", &opponent_->side(), &opponent_->check(),
                            [this](const Verdict& verdict) { opponent_->Failed(verdict); }});
        }
        if (memory_ != nullptr) memory_->LeaveOut(opponent_->held());
        result["rival"] = opponent_->Report();
        StageDone("rival");
      }
      if (!settings_.skip_timing) {
        conversation_.SetStage("time");
        if (problem_.large()) ops_.ReleaseCache();  // the check's
        timing_ = std::make_unique<Timing>(problem_, ops_, settings_, progress_, *candidate_, *values_, timed_slots_,
                                           *check_, random_, std::move(rivals));
        if (settings_.watch) {
          timing_->SetBetween([this] {
            settings_.watch(true);
            timing_->RunUntimed();
            settings_.watch(false);
          });
        }
        timing_->Run();
        if (memory_ != nullptr) memory_->Look("time");
        StageDone("time");
      }
      if (settings_.watch) {
        MustBeSeen();
        LetWatch();
        StageDone("work");
      }
      conversation_.HoldBetweenRuns(false);
      result["verdict"] = "VERDICT_CORRECT";
      result["reason"] =
          timing_ != nullptr ? timing_->Reason() : "correct on " + std::to_string(check_->trials()) + " draws";
      result["correctness"] = check_->Report();
      if (timing_ != nullptr) result["timing"] = timing_->report();
      if (!check_->work().is_null()) result["work"] = check_->work();
      conversation_.Close();
      if (opponent_ != nullptr) {
        opponent_->Close();
        result["rival"] = opponent_->Report();
        outcome.rival_gone = opponent_->gone();
      }
    } catch (const Verdict& verdict) {
      StageDone(conversation_.stage());
      result["verdict"] = verdict.verdict;
      result["reason"] = verdict.reason;
      if (!verdict.fault.is_null()) result["fault"] = verdict.fault;
      if (check_ != nullptr && check_->trials() > 0) result["correctness"] = check_->Report();
      if (verdict.verdict == "VERDICT_CHEATED" && timing_ != nullptr && !timing_->report().is_null()) {
        result["timing"] = timing_->report();
      }
      outcome.candidate_gone = verdict.gone;
      if (LeftNoRoom(verdict)) {
        result["verdict"] = "VERDICT_UNMEASURABLE";
        result["reason"] = "the judge and the candidate do not fit on this device together: " + verdict.reason;
      }
    } catch (const std::exception& error) {
      // The problem fitted when it was loaded. When the judge now finds the device full, though it be the reference
      // that finds it so, the candidate has filled it, or both together are too much for this device though the
      // candidate has no more than it may.
      const bool candidates = conversation_.stage() != "load" && conversation_.stage() != "open";
      if (!ops_.cuda() || !candidates || !TellsOfDeviceMemory(error)) throw;
      const auto total = ops_.Info()["memory_bytes"].get<double>();
      const auto left = static_cast<double>(ops_.free_bytes());
      const bool filled = memory_ == nullptr || memory_->Filled();
      result["verdict"] = filled ? "VERDICT_LIMIT_EXCEEDED" : "VERDICT_UNMEASURABLE";
      result["reason"] = filled ? "the candidate left no device memory for checking its outputs"
                                : "the judge and the candidate do not fit on this device together: the judge found "
                                  "no memory for checking the outputs";
      result["fault"] = {{"stage", conversation_.stage()},
                         {"limit", "device_memory_bytes"},
                         {"limit_set", memory_ != nullptr && memory_->limit() > 0 ? memory_->limit() : total},
                         {"limit_reached", memory_ != nullptr ? memory_->Held() : total - left},
                         {"message", HoldsOut() ? kHidden : Bounded(error.what(), 500)}};
    }
    outcome.candidate_quiet = conversation_.quiet();
    outcome.rival_quiet = opponent_ != nullptr && opponent_->quiet();
    result["stages"] = stages_;
    return outcome;
  }

 private:
  void StageDone(const std::string& stage) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    stages_.push_back({{"stage", stage}, {"seconds", seconds}});
    begin_ = Clock::now();
  }

  // Whether there are shapes that nobody is to hear of; how much could not be allocated says something of them.
  bool HoldsOut() const {
    for (std::size_t set = 0; set < reference_.ShapeSets(); ++set) {
      if (reference_.HeldOut(set)) return true;
    }
    return false;
  }

  // Whether the candidate broke down for want of memory that it was allowed and the judge had. What it says may be
  // untrue: saying so gains it nothing.
  bool LeftNoRoom(const Verdict& verdict) const {
    if (verdict.verdict != "VERDICT_CRASHED" || memory_ == nullptr || memory_->limit() <= 0) return false;
    if (!verdict.memory) return false;
    try {
      return static_cast<double>(ops_.free_bytes()) + memory_->Held() < memory_->limit();
    } catch (const std::exception&) {  // the device does not answer: as it was found
      return false;
    }
  }

  void Prepare() {
    conversation_.Hello();
    if (ops_.cuda()) {
      memory_ = std::make_unique<MemoryWatch>(ops_, settings_.device_memory);
      conversation_.SetLook([this] { memory_->Look(conversation_.stage()); });
    }
    StageDone("hello");
    conversation_.SetStage("open");
    // What fits is decided with nothing of the last evaluation in the way.
    if (problem_.large()) ops_.ReleaseCache();
    // Float64 takes twice the bytes, for inputs, outputs and what is in between; the rest of the evaluation holds some
    // four times the problem's bytes (shared, pristine, expected, copied out). Without room for both the reference as
    // written is compared with.
    high_fits_ = ops_.free_bytes() / (opponent_ != nullptr ? 12 : 8) > problem_.bytes;
    VaryParameters();
    arena_.SetParameters(reference_.Parameters());
    // The first draw of every shape set says how large slots are.
    for (std::size_t set = 0; set < reference_.ShapeSets(); ++set) {
      reference_.SelectShapeSet(set);
      std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
      if (set == 0) MustBeAsDescribed(leaves);
      std::vector<at::Tensor> outputs = OutputsOf(leaves);
      if (set == 0) {
        timed_slots_ = settings_.skip_timing
                           ? 1
                           : TimedSlots(ops_, problem_, settings_, LayoutOf(leaves).bytes, LayoutOf(outputs).bytes);
        arena_.Add(timed_slots_, 0, leaves, outputs);
        if (opponent_ != nullptr) opponent_->arena().Add(timed_slots_, 0, leaves, outputs);
        if (!settings_.skip_timing) {
          values_ =
              std::make_unique<Values>(problem_, ops_, random_, leaves, timed_slots_, kDrawing * settings_.run_wall);
        }
        check_ = std::make_unique<Check>(problem_, ops_, settings_, high_fits_);
        if (varied_.reference != nullptr) check_->ParametersVaried();
      } else {
        arena_.Add(1, set, leaves, outputs);
        if (opponent_ != nullptr) opponent_->arena().Add(1, set, leaves, outputs);
      }
    }
    reference_.SelectShapeSet(0);
    json open{{"seed", 42}};
    if (settings_.python_candidate) {
      open["init"] = reference_.InitPickle();
      open["structure"] = reference_.Structure();
    }
    if (!settings_.skip_timing) {
      candidate_ = std::make_unique<CandidateSide>(conversation_, arena_, *values_, ops_, settings_.python_candidate,
                                                   settings_.Warm(), settings_.memory);
      candidate_->SharePlaces(timed_slots_);
      candidate_->ShareSteps();
    }
    StageDone("inputs");
    arena_.Map(&conversation_);
    if (candidate_ != nullptr) {
      if (candidate_->steps() != nullptr) candidate_->steps()->Map();
      progress_("open", "what asking it costs");
      candidate_->LearnAsking(LengthsOfRuns(ops_, problem_, settings_, timed_slots_), PracticeRuns(ops_, settings_),
                              Between(problem_, ops_));
    }
    arena_.Open(&conversation_, open);
  }

  // Who wrote the candidate was told these shapes.
  void MustBeAsDescribed(const std::vector<Leaf>& leaves) const {
    std::size_t next = 0;
    bool same = true;
    for (const Leaf& leaf : leaves) {
      if (leaf.scalar) continue;
      same = same && next < problem_.input_shapes.size() &&
             leaf.tensor.sizes() == at::IntArrayRef(problem_.input_shapes[next]);
      ++next;
    }
    if (same && next == problem_.input_shapes.size()) return;
    throw ProblemError(
        "get_inputs() gives tensors of other sizes than when the problem was loaded, so a candidate cannot be given "
        "memory for them; make their shapes the same each time");
  }

  std::vector<at::Tensor> OutputsOf(const std::vector<Leaf>& leaves) {
    auto call = reference_.Prepare(leaves, Mode::kEager);
    call->Run();
    return call->Outputs();
  }

  // A kernel that ignores its parameters, because they are ones and zeros as built, or that has them in its text, is
  // wrong for a trained module. Native kernels get the parameters from the judge, so that they can have other values in
  // each evaluation; a ModelNew makes its own, and may make more of them while it does.
  void VaryParameters() {
    if (settings_.python_candidate || (opponent_ != nullptr && settings_.rival_python)) return;
    std::int64_t bytes = 0;
    for (const auto& [name, tensor] : reference_.Parameters()) bytes += static_cast<std::int64_t>(tensor.nbytes());
    if (bytes == 0 || bytes > kMostVaried) return;
    const std::uint64_t seed = SecretSeed();
    if (!reference_.VaryParameters(seed)) return;
    varied_.reference = &reference_;
    // Not where they make no sense: a root of what is negative now. (Some outputs have infinities by nature.)
    try {
      const std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
      const std::vector<at::Tensor> outputs = OutputsOf(leaves);
      if (AllFinite(outputs)) return;
      const std::vector<at::Tensor> finite = Finite(outputs);
      varied_.Restore();
      if (FiniteThere(OutputsOf(leaves), finite) && reference_.VaryParameters(seed)) varied_.reference = &reference_;
      return;
    } catch (const ProblemError&) {
    }
    varied_.Restore();
  }

  // Varied parameters are the reference's until the evaluation ends, however it does.
  struct Varied {
    Reference* reference = nullptr;
    void Restore() {
      if (reference != nullptr) std::exchange(reference, nullptr)->RestoreParameters();
    }
    ~Varied() { Restore(); }  // a judge that cannot restore them is of no use: it ends
  };

  // Whose work it is is looked for in what runs until the answer.
  void MustBeSeen() const {
    const double late = timing_ != nullptr ? timing_->LateShare() : 0;
    if (late <= kMostUnseen) return;
    char text[200];
    std::snprintf(text, sizeof text,
                  "whose work it is cannot be told: %.0f %% of the time of its runs passes behind their answers, where "
                  "results should only be copied",
                  100 * late);
    throw Verdict{"VERDICT_UNMEASURABLE", text, {}};
  }

  // Runs calls for a while, so that the worker can see from outside in whose code they spend their time
  // (worker/pipeline/work_watch.h). After timing, and in runs like those that were timed: nobody knows when timing
  // ends.
  void LetWatch() {
    std::vector<std::size_t> run;
    if (timing_ == nullptr) {
      const std::size_t index = random_.Below(timed_slots_);
      Slot* slot = &arena_.at(index);
      reference_.SelectShapeSet(0);
      arena_.Fill(slot, reference_.Draw(SecretSeed()));
      arena_.Poison(slot);
      ops_.Synchronize();
      // Long runs, so that they and not the asking are seen, of results that fit in memory all at once.
      const std::vector<double>& claims = check_->claims();
      const double call = std::max(*std::min_element(claims.begin(), claims.end()), 1e-6);
      const double fit =
          static_cast<double>(kWatchBytes) / static_cast<double>(std::max<std::size_t>(slot->out.bytes, 1));
      run.assign(static_cast<std::size_t>(std::clamp(std::min(kWatchRun / call, fit), 1.0, kWatchCalls)), index);
    }
    progress_("work", "whose it is");
    const auto begin = Clock::now();
    const auto since = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    // On a busy machine it takes longer to do as much, and to be seen as often.
    for (bool enough = false; !enough && since() < kWatchMost;) {
      settings_.watch(true);
      double ran = 0;
      for (int runs = 0; (runs < kWatchRuns || ran < kWatch) && since() < kWatchMost; ++runs) {
        ran += timing_ != nullptr ? timing_->RunUntimed() : conversation_.Run(run, "later").wall;
      }
      enough = settings_.watch(false);
    }
    progress_("check", "whose work it is was seen");
  }

  LoadedProblem& problem_;
  Reference& reference_;
  Varied varied_;
  DeviceOps& ops_;
  const EvaluationSettings& settings_;
  const Progress& progress_;
  Random random_;
  Conversation conversation_;
  Arena arena_;
  std::size_t timed_slots_ = 0;
  std::unique_ptr<Check> check_;
  std::unique_ptr<Values> values_;
  std::unique_ptr<CandidateSide> candidate_;
  std::unique_ptr<Opponent> opponent_;
  bool high_fits_ = false;
  std::unique_ptr<Timing> timing_;
  std::unique_ptr<MemoryWatch> memory_;  // CUDA
  json stages_ = json::array();
  Clock::time_point begin_;
};

}  // namespace

EvaluationOutcome Evaluate(LoadedProblem& problem, DeviceOps& ops, wire::Channel candidate,
                           std::optional<wire::Channel> rival, const EvaluationSettings& settings,
                           const Progress& progress) {
  c10::NoGradGuard no_grad;
  // A native kernel is given row-major inputs, and all that it is compared with the same ones.
  problem.reference->KeepStrides(settings.python_candidate && (!rival.has_value() || settings.rival_python));
  // What could not be evaluated in double beside this candidate may be beside the next one.
  const Set<double> double_seconds(&problem.double_seconds, problem.double_seconds);
  // Another problem's judge may need the memory next, however this ends.
  struct Released {
    const LoadedProblem& problem;
    DeviceOps& ops;
    ~Released() {
      try {
        if (problem.large()) ops.ReleaseCache();
      } catch (const std::exception&) {  // the device is lost; whoever asks it next says so
      }
    }
  } const released{problem, ops};
  return Evaluator(problem, ops, std::move(candidate), std::move(rival), settings, progress).Run();
}

}  // namespace grove::judge
