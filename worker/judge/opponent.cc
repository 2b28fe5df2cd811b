#include "worker/judge/opponent.h"

#include <algorithm>
#include <string>
#include <utility>

#include "worker/judge/memory_watch.h"
#include "worker/judge/problem_error.h"
#include "worker/judge/run_size.h"

namespace grove::judge {
namespace {

EvaluationSettings ItsOwn(EvaluationSettings settings) {
  settings.python_candidate = settings.rival_python;
  settings.hold = settings.hold_rival;
  settings.memory = settings.rival_memory;
  settings.observe = false;  // the work policy is the candidate's
  settings.watch = nullptr;
  return settings;
}

}  // namespace

Opponent::Opponent(LoadedProblem& problem, DeviceOps& ops, wire::Channel channel, const EvaluationSettings& settings,
                   Random& random, const Progress& progress)
    : problem_(problem),
      ops_(ops),
      settings_(ItsOwn(settings)),
      random_(random),
      progress_(progress),
      conversation_(std::move(channel), {settings_.call_wall, settings_.run_wall, ops.Spin()}, settings_.hold),
      arena_(ops, random) {}

bool Opponent::Prepare(Values& values, std::size_t timed_slots, bool high_fits) {
  const MemoryWatch watch(ops_, ops_.cuda() ? settings_.device_memory : 0);
  try {
    progress_("check", "the rival");
    conversation_.Hello();
    conversation_.SetStage("open");
    arena_.SetParameters(problem_.reference->Parameters());
    check_ = std::make_unique<Check>(problem_, ops_, settings_, high_fits);
    side_ = std::make_unique<CandidateSide>(conversation_, arena_, values, ops_, settings_.python_candidate,
                                            settings_.Warm(), settings_.memory);
    nlohmann::json open{{"seed", 42}};
    if (settings_.python_candidate) {
      open["init"] = problem_.reference->InitPickle();
      open["structure"] = problem_.reference->Structure();
    }
    side_->SharePlaces(timed_slots);
    side_->ShareSteps();
    arena_.Map(&conversation_);
    if (side_->steps() != nullptr) side_->steps()->Map();
    progress_("open", "what asking the rival costs");
    side_->LearnAsking(LengthsOfRuns(ops_, problem_, settings_, timed_slots), PracticeRuns(ops_, settings_),
                       Between(problem_, ops_));
    arena_.Open(&conversation_, open);
    conversation_.SetStage("check");
    check_->Run(
        &conversation_, &arena_, timed_slots, &random_,
        [this](const std::string& stage, const std::string& detail) { progress_(stage, "the rival: " + detail); });
    conversation_.SetStage("time");
    conversation_.HoldBetweenRuns(true);
  } catch (const Verdict& verdict) {
    Failed(verdict);
  } catch (const std::exception& error) {  // of the reference, too, beside what the rival holds
    if (!ops_.cuda() || !TellsOfDeviceMemory(error)) throw;
    const bool filled = conversation_.stage() != "open" && watch.Filled();
    Failed({filled ? "VERDICT_LIMIT_EXCEEDED" : "VERDICT_UNMEASURABLE",
            filled ? "it left no device memory for checking its outputs"
                   : "the judge, the candidate and it do not fit on this device together",
            {{"stage", conversation_.stage()}, {"limit", "device_memory_bytes"}}});
  }
  if (failed_) problem_.reference->SelectShapeSet(0);
  if (watch.limit() > 0) held_ = std::max(watch.Held(), 0.0);
  return !failed_;
}

void Opponent::Failed(const Verdict& verdict) {
  if (failed_) return;
  failed_ = true;
  gone_ = verdict.gone;
  verdict_ = verdict;
  if (gone_) return;
  // It may have been let go for the run in which it failed, and is not to go on beside the others' runs.
  try {
    conversation_.HoldBetweenRuns(true);
  } catch (const Verdict&) {
    // It cannot be held any more; what is in the way of the others' runs is seen there.
  }
}

nlohmann::json Opponent::Report() const {
  if (!failed_) return {{"verdict", "VERDICT_CORRECT"}};
  nlohmann::json report{{"verdict", verdict_.verdict}, {"reason", verdict_.reason}};
  if (!verdict_.fault.is_null()) report["fault"] = verdict_.fault;
  return report;
}

}  // namespace grove::judge
