// Theory of operation. Work enters `build_queue_` (evaluations) or `device_queue_` (descriptions). Build threads turn
// the first into the second; the one device thread takes them in order, so the device is used by one candidate at a
// time. A piece of work is owned by whoever took it off a queue; `running_` holds what Cancel and Running need to know.
// Results leave from the thread that made them, exactly one per piece of work, none once it is cancelled.
#include "worker/pipeline/pipeline.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/measure/comparison.h"
#include "common/measure/replicas.h"
#include "common/tuning/declared.h"
#include "worker/build/builder.h"
#include "worker/device/xid.h"
#include "worker/pipeline/attempts.h"
#include "worker/pipeline/calibration.h"
#include "worker/pipeline/calibrator.h"
#include "worker/pipeline/combinations.h"
#include "worker/pipeline/device_turn.h"
#include "worker/pipeline/equipment.h"
#include "worker/pipeline/floor.h"
#include "worker/pipeline/format.h"
#include "worker/pipeline/meters.h"
#include "worker/pipeline/profile.h"
#include "worker/pipeline/replicas.h"
#include "worker/pipeline/verdict.h"
#include "worker/pipeline/warm_judges.h"
#include "worker/pipeline/work.h"
#include "worker/sandbox/limits.h"

namespace grove::worker {
namespace {

// Judges kept warm, least recently used first to go: each holds a reference with its data, and torch with its device
// context beside that (1 to 2 GB of host memory, 0.5 GB of a GPU's).
constexpr size_t kWarmJudgesCpu = 2, kWarmJudgesCuda = 4;
// Share of the device's memory that waiting judges' problems may hold together; the next problem gets the rest.
constexpr int64_t kWarmJudgesMemoryShare = 8;
// Share of the host's memory that warm judges may hold together. One alone may take three quarters of it
// (sandbox/limits.cc), so that two full ones would not fit; half leaves the other half to the builds and the candidate
// beside them, each of which may have that by default.
constexpr int64_t kWarmJudgesHostShare = 2;
// A wrong result may be the device's, and so may one that could not be measured: then, too, the canary is asked, when
// it has not been for so long.
constexpr absl::Duration kWrongCanary = absl::Minutes(1);

// Editors on Windows begin a text with it; Python takes it off a file, but not off what it is handed.
void WithoutByteOrderMark(std::string* source) {
  if (absl::StartsWith(*source, "\xEF\xBB\xBF")) source->erase(0, 3);
}

std::string KeyOf(const v1::Lease& lease) { return absl::StrCat(lease.work(), "#", lease.attempt()); }

class PipelineImpl : public Pipeline {
 public:
  PipelineImpl(PipelineOptions options, OnProgress on_progress, OnResult on_result)
      : options_(std::move(options)), on_progress_(std::move(on_progress)), on_result_(std::move(on_result)) {}
  ~PipelineImpl() override;

  absl::Status Init();

  void Submit(v1::Assignment assignment) override;
  void Cancel(const v1::Lease& lease) override;
  std::vector<v1::Lease> Running() const override;
  v1::DeviceInfo Device() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return device_;
  }
  std::vector<std::string> SandboxLayers() const override { return equipment_.self_test.ActiveNames(); }
  int Capacity() const override { return 1 + options_.build_slots; }
  PipelineStats Stats() override;

 private:
  // Empty when the pipeline ends, or at `until` (civil time, as health.h has it).
  WorkPtr Take(std::deque<WorkPtr>* queue, absl::Time until = absl::InfiniteFuture());
  bool Stopping() const;
  void BuildLoop();
  void DeviceLoop();
  void BuildOne(const WorkPtr& work);
  void Describe(const WorkPtr& work);
  void Evaluate(const WorkPtr& work);
  void EvaluateReplicas(const WorkPtr& work);
  void Calibrate(const WorkPtr& work);
  void BuildCombinations(const WorkPtr& work);
  void EvaluateCombinations(const WorkPtr& work);
  void FinishCombinations(const WorkPtr& work, const Choice& choice);
  v1::Candidate CandidateOf(const WorkPtr& work, const Variant& variant) const;
  void Disassemble(const WorkPtr& work, const build::BuildOutcome& built);
  // Sends it to the device.
  void Built(const WorkPtr& work);
  // What the device has reported since the last work is no fault of the next.
  bool IsWellStill(std::string* why);
  WorkPtr OnBehalfOf(const WorkPtr& work, const v1::EvaluateWork& evaluate, std::optional<v1::WorkResult>* result);
  absl::StatusOr<v1::WorkResult> EvaluateInner(const WorkPtr& work, const v1::EvaluateWork& evaluate,
                                               const Variant* variant);
  absl::StatusOr<v1::EvaluationResult> EvaluateFor(const WorkPtr& work, const v1::EvaluateWork& evaluate);
  absl::StatusOr<v1::Calibration> MeasureRates(const WorkPtr& work, absl::Duration budget);
  // `again`: it was built for this work before, and is counted once.
  absl::StatusOr<build::BuildOutcome> Build(const WorkPtr& work, const v1::Candidate& candidate, bool again = false);
  v1::DeviceInfo DeviceOfResult() const;

  // The warm judge for this work's problem, made if needed. Null: why is in `failure`.
  WarmJudge* GetJudge(const WorkPtr& work, const v1::Problem& problem, const v1::EvaluationOptions& options,
                      v1::WorkResult* failure);
  // What only a process with the device open can know of it.
  void LearnDevice(const nlohmann::json& hello);
  // Whether another attempt is to be made.
  bool Attempt(const WorkPtr& work);
  // After a turn whose judge gave a result. The same.
  bool Conclude(const WorkPtr& work, const v1::EvaluationOptions& options, const TurnOutcome& turn, WarmJudge& judge);
  // Fills result->profile, whatever happens.
  void Profile(const WorkPtr& work, WarmJudge& judge, v1::EvaluationResult* result);

  // Whether what outlived its SIGKILL is gone after all, within options_.slow_death.
  bool Dies(sandbox::Leftover& leftover);
  // What runs on the device may be at fault, or the device: true when its verdict can be given. Otherwise the slot is
  // quarantined and `why` says so.
  bool DeviceIsWell(const sandbox::Ending& ending, const XidFindings& xids, const std::string& fault, std::string* why);
  void ShowQuarantine();

  void Finish(const WorkPtr& work, v1::WorkResult result);
  // Of work that no candidate has run for. A judge or candidate that cannot start may mean that the device is gone.
  void FinishUnjudged(const WorkPtr& work, v1::WorkResult result);
  void Fail(const WorkPtr& work, const std::string& why);
  void FinishEvaluation(const WorkPtr& work, v1::EvaluationResult evaluation);
  void Progress(const WorkPtr& work, const std::string& stage, const std::string& detail);
  void RecordStage(const WorkPtr& work, const std::string& stage, absl::Time begin);

  PipelineOptions options_;
  const OnProgress on_progress_;
  const OnResult on_result_;
  Equipment equipment_;  // its device as it was found; device_ is what is known by now
  bool cuda_ = false;
  std::unique_ptr<ProcessPool> pool_;
  Meters meters_;

  // Device thread only.
  std::unique_ptr<WarmJudges> judges_;
  std::unique_ptr<KernelProfiler> profiler_;  // CUDA

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  v1::DeviceInfo device_;
  std::deque<WorkPtr> build_queue_, device_queue_;  // bounded by the leases that the coordinator gives: Capacity()
  std::map<std::string, WorkPtr> running_;

  std::vector<std::thread> threads_running_;
};

PipelineImpl::~PipelineImpl() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    for (auto& [key, work] : running_) work->cancelled = true;
  }
  changed_.notify_all();
  for (std::thread& t : threads_running_) t.join();
}

absl::Status PipelineImpl::Init() {
  GROVE_ASSIGN_OR_RETURN(equipment_, FindEquipment(&options_));
  device_ = equipment_.device;
  cuda_ = device_.kind() == v1::DEVICE_KIND_CUDA;
  pool_ = MakePool(equipment_.candidates, equipment_.judges);
  WarmJudges::Options judges;
  judges.config = equipment_.judges;
  judges.most = cuda_ ? kWarmJudgesCuda : kWarmJudgesCpu;
  if (cuda_) judges.most_memory_bytes = device_.memory_bytes() / kWarmJudgesMemoryShare;
  judges.most_host_bytes = options_.warm_judges_memory_bytes > 0 ? options_.warm_judges_memory_bytes
                                                                 : sandbox::MachineMemoryBytes() / kWarmJudgesHostShare;
  judges.ahead = equipment_.judges_ahead;
  judges_ = std::make_unique<WarmJudges>(std::move(judges), pool_.get());
  if (cuda_) profiler_ = std::make_unique<KernelProfiler>(equipment_.candidates, options_.ncu, device_.arch());
  // Most problems are Python's, most candidates are not.
  if (equipment_.judges_ahead) pool_->Restock(JudgeKind(!equipment_.judges.python.empty()));
  pool_->Restock(Ahead::kNativeCandidate);

  std::vector<std::pair<std::string, bool>> layers;
  for (const sandbox::LayerState& layer : equipment_.self_test.layers) layers.emplace_back(layer.name, layer.active);
  meters_.SetLayers(std::move(layers));
  meters_.ShowSlot("idle");
  for (int i = 0; i < options_.build_slots; ++i) threads_running_.emplace_back([this] { BuildLoop(); });
  threads_running_.emplace_back([this] { DeviceLoop(); });
  return absl::OkStatus();
}

// ------------------------------------------------------------------------------------------------------------- queues

void PipelineImpl::Submit(v1::Assignment assignment) {
  auto work = std::make_shared<Work>();
  work->assignment = std::move(assignment);
  const v1::Assignment& a = work->assignment;
  const v1::EvaluationOptions& options = a.has_evaluate() ? a.evaluate().options() : a.describe().options();
  work->limits = sandbox::FillLimits(options.limits(), options_.default_limits, device_.kind(),
                                     cuda_ ? device_.memory_bytes() : 0);
  const v1::Problem& problem = a.has_evaluate() ? a.evaluate().problem() : a.describe().problem();
  work->problem_sha256 = Sha256Hex(problem.source());
  if (a.has_evaluate()) {
    work->candidate_sha256 = Sha256Hex(a.evaluate().candidate().source());
    v1::EvaluateWork* evaluate = work->assignment.mutable_evaluate();
    WithoutByteOrderMark(evaluate->mutable_candidate()->mutable_source());
    if (evaluate->has_rival()) WithoutByteOrderMark(evaluate->mutable_rival()->mutable_source());
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return;
    running_[KeyOf(a.lease())] = work;
    // A calibration is no evaluation: it waits for the device, as a description does.
    (a.has_evaluate() ? build_queue_ : device_queue_).push_back(work);
    meters_.SetWork(!running_.empty());
  }
  changed_.notify_all();
}

void PipelineImpl::Cancel(const v1::Lease& lease) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = running_.find(KeyOf(lease));
  if (it == running_.end()) return;
  it->second->cancelled = true;
  running_.erase(it);
  const auto drop = [](std::deque<WorkPtr>* queue) {
    queue->erase(std::remove_if(queue->begin(), queue->end(), [](const WorkPtr& w) { return w->cancelled.load(); }),
                 queue->end());
  };
  drop(&build_queue_);
  drop(&device_queue_);
  meters_.SetWork(!running_.empty());
}

std::vector<v1::Lease> PipelineImpl::Running() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<v1::Lease> leases;
  for (const auto& [key, work] : running_) leases.push_back(work->assignment.lease());
  return leases;
}

WorkPtr PipelineImpl::Take(std::deque<WorkPtr>* queue, absl::Time until) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto ready = [&] { return stopping_ || !queue->empty(); };
  if (until == absl::InfiniteFuture()) {
    changed_.wait(lock, ready);
  } else {
    changed_.wait_for(lock, absl::ToChronoNanoseconds(std::max(until - absl::Now(), absl::ZeroDuration())), ready);
  }
  if (stopping_ || queue->empty()) return nullptr;
  WorkPtr work = queue->front();
  queue->pop_front();
  return work;
}

void PipelineImpl::Finish(const WorkPtr& work, v1::WorkResult result) {
  *result.mutable_lease() = work->assignment.lease();
  if (work->sink) return work->sink(std::move(result));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (work->cancelled) return;
    running_.erase(KeyOf(work->assignment.lease()));
    meters_.SetWork(!running_.empty());
    if (result.has_evaluation()) meters_.Verdict(result.evaluation().verdict());
    if (result.outcome_case() == v1::WorkResult::kInfrastructureFailure) meters_.InfrastructureFailure();
  }
  on_result_(std::move(result));
}

void PipelineImpl::FinishUnjudged(const WorkPtr& work, v1::WorkResult result) {
  std::string why;
  if (result.outcome_case() == v1::WorkResult::kInfrastructureFailure && !work->cancelled && !Stopping() &&
      !DeviceIsWell({}, equipment_.health->TakeXids(true), "a failure to start", &why)) {
    result.set_infrastructure_failure(RepairUtf8(why, 64 << 10));
  }
  Finish(work, std::move(result));
}

void PipelineImpl::Fail(const WorkPtr& work, const std::string& why) {
  LogWarning("worker", work->assignment.lease().work(), ": infrastructure failure: ", why.substr(0, 500));
  v1::WorkResult result;
  result.set_infrastructure_failure(RepairUtf8(why, 64 << 10));
  Finish(work, std::move(result));
}

void PipelineImpl::FinishEvaluation(const WorkPtr& work, v1::EvaluationResult evaluation) {
  *evaluation.mutable_device() = DeviceOfResult();
  const v1::EvaluateWork& evaluate = work->assignment.evaluate();
  const bool script = IsPython(evaluate.candidate()) || (evaluate.has_rival() && IsPython(evaluate.rival()));
  measure::FillComparisons(&evaluation, script);
  // Once: what is done on behalf of other work becomes its result.
  if (!work->sink) {
    WidenIntervals(script, &evaluation);
    if (evaluate.has_rival()) FinishRival(evaluate.rival(), &evaluation);
  }
  evaluation.set_grove_version(kVersion);
  evaluation.set_problem_sha256(work->problem_sha256);
  evaluation.set_candidate_sha256(work->candidate_sha256);
  evaluation.set_attempt(work->assignment.lease().attempt());
  if (work->built.has_value() && !evaluation.has_build()) *evaluation.mutable_build() = work->built->report;
  // The worker's stages first, then what the judge measured of its own.
  google::protobuf::RepeatedPtrField<v1::StageTime> judged;
  judged.Swap(evaluation.mutable_stages());
  for (const auto& [stage, seconds] : work->stages) {
    v1::StageTime* time = evaluation.add_stages();
    time->set_stage(stage);
    time->set_seconds(seconds);
  }
  for (v1::StageTime& time : judged) *evaluation.add_stages() = std::move(time);
  Sanitise(&evaluation);
  v1::WorkResult result;
  *result.mutable_evaluation() = std::move(evaluation);
  Finish(work, std::move(result));
}

void PipelineImpl::Progress(const WorkPtr& work, const std::string& stage, const std::string& detail) {
  if (work->whole != nullptr) {
    return Progress(work->whole, stage, absl::StrCat(work->part, detail.empty() ? "" : ": ", detail));
  }
  if (work->cancelled || work->sink || !on_progress_) return;
  v1::WorkerProgress progress;
  *progress.mutable_lease() = work->assignment.lease();
  progress.set_stage(stage);
  progress.set_detail(detail);
  on_progress_(progress);
}

void PipelineImpl::RecordStage(const WorkPtr& work, const std::string& stage, absl::Time begin) {
  const double seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
  work->stages.emplace_back(stage, seconds);
  if ((work->whole != nullptr ? work->whole : work)->sink) return;
  meters_.Stage(stage, seconds);
}

PipelineStats PipelineImpl::Stats() {
  PipelineStats stats = meters_.Take();
  stats.health = RepairUtf8(equipment_.health->Text(), 1000);
  stats.health_counts = equipment_.health->Snapshot();
  return stats;
}

// -------------------------------------------------------------------------------------------------------------- build

void PipelineImpl::BuildLoop() {
  while (WorkPtr work = Take(&build_queue_)) BuildOne(work);
}

void PipelineImpl::BuildOne(const WorkPtr& work) {
  if (work->cancelled) return;
  RecordStage(work, "build_wait", work->submitted);
  Progress(work, "build", "");
  const absl::Time begin = SteadyNow();
  auto declared = tuning::FindDeclared(work->assignment.evaluate().candidate().source());
  if (!declared.ok()) {
    build::BuildOutcome refused;
    refused.verdict = v1::VERDICT_BUILD_FAILED;
    refused.reason = absl::StrCat("its declared parameters cannot be followed: ", declared.status().message());
    refused.report.set_log(refused.reason);
    return FinishEvaluation(work, ResultOfFailedBuild(refused));
  }
  work->declared = *std::move(declared);
  if (!work->declared.empty()) return BuildCombinations(work);
  absl::StatusOr<build::BuildOutcome> outcome = Build(work, work->assignment.evaluate().candidate());
  absl::StatusOr<build::BuildOutcome> rival = absl::NotFoundError("there is none");
  if (outcome.ok() && outcome->report.ok() && work->assignment.evaluate().has_rival() && !work->cancelled) {
    rival = Build(work, work->assignment.evaluate().rival());
    if (!rival.ok()) outcome = rival.status();
  }
  RecordStage(work, "build", begin);
  if (outcome.ok()) Disassemble(work, *outcome);
  if (work->cancelled) return;
  if (!outcome.ok()) return Fail(work, absl::StrCat("build: ", outcome.status().message()));
  if (!outcome->report.ok()) return FinishEvaluation(work, ResultOfFailedBuild(*outcome));
  work->built = *std::move(outcome);
  if (rival.ok()) work->rival_built = *std::move(rival);
  Built(work);
}

// Where somebody asks for the instruction mix, or for whose work it is.
void PipelineImpl::Disassemble(const WorkPtr& work, const build::BuildOutcome& built) {
  const v1::EvaluationOptions& wanted = work->assignment.evaluate().options();
  const bool whose = wanted.work() > v1::WORK_POLICY_ANYTHING && IsPython(work->assignment.evaluate().candidate());
  if (!cuda_ || !(wanted.profile() || whose) || !built.report.ok() || built.objects.empty() || work->cancelled) {
    return;
  }
  const absl::Time begin = SteadyNow();
  auto mix = equipment_.builder->Instructions(built.objects, [&] { return work->cancelled.load(); });
  if (mix.ok()) {
    work->instructions = *std::move(mix);
  } else {
    work->no_instructions = std::string(mix.status().message());
    LogWarning("worker", "no instruction mix: ", work->no_instructions);
  }
  RecordStage(work, "disassemble", begin);
}

void PipelineImpl::Built(const WorkPtr& work) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_ || work->cancelled) return;
    work->ready = SteadyNow();
    device_queue_.push_back(work);
  }
  changed_.notify_all();
}

absl::StatusOr<build::BuildOutcome> PipelineImpl::Build(const WorkPtr& work, const v1::Candidate& candidate,
                                                        bool again) {
  absl::StatusOr<build::BuildOutcome> outcome = equipment_.builder->Build(
      candidate, work->limits, [&] { return work->cancelled.load(); },
      [&](const std::string& what) { Progress(work, "build", what); });
  if (!outcome.ok() || again) return outcome;
  meters_.Build(outcome->report.cached());
  return outcome;
}

// ------------------------------------------------------------------------------------------------------------- device

// Small enough for every result.
v1::DeviceInfo PipelineImpl::DeviceOfResult() const {
  std::lock_guard<std::mutex> lock(mutex_);
  v1::DeviceInfo device = device_;
  if (device.has_calibration()) *device.mutable_calibration() = Compact(device_.calibration());
  return device;
}

void PipelineImpl::DeviceLoop() {
  for (;;) {
    // Wakes for the canary of a quarantined device, work or not: the coordinator gives none until it has passed.
    WorkPtr work = Take(&device_queue_, equipment_.health->NextTry());
    if (work == nullptr && Stopping()) break;
    if (equipment_.health->Quarantined() && equipment_.health->Retry()) {
      meters_.ShowSlot("idle");
      meters_.EnterSlot("no_work");
      meters_.SetIdle(true);
    }
    if (work == nullptr || work->cancelled) continue;
    if (std::string why; !IsWellStill(&why)) {
      Fail(work, why);
      continue;
    }
    meters_.SetIdle(false);
    RecordStage(work, "device_wait", work->ready);
    if (work->assignment.has_evaluate()) {
      Evaluate(work);
    } else if (work->assignment.has_calibrate()) {
      Calibrate(work);
    } else {
      Describe(work);
    }
    if (equipment_.health->Quarantined()) {
      meters_.EnterSlot("quarantined");
    } else {
      meters_.ShowSlot("idle");
    }
    meters_.SetIdle(true);
  }
  pool_->Clear();
}

bool PipelineImpl::IsWellStill(std::string* why) {
  if (XidFindings since = equipment_.health->TakeXids(false);
      !since.device.empty() && !equipment_.health->Quarantined()) {
    equipment_.health->Quarantine(absl::StrCat("it reported ", since.Text(), " while nothing ran"));
    ShowQuarantine();
  }
  if (!equipment_.health->Quarantined()) return true;
  *why = absl::StrCat("device ", device_.name(), " is ", equipment_.health->Text());
  return false;
}

bool PipelineImpl::Stopping() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stopping_;
}

void PipelineImpl::LearnDevice(const nlohmann::json& hello) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!hello.contains("device") || !hello["device"].is_object()) return;
  const nlohmann::json& d = hello["device"];
  if (device_.multiprocessors() == 0 && d.contains("multiprocessors") && d["multiprocessors"].is_number_integer()) {
    device_.set_multiprocessors(d["multiprocessors"].get<int>());
  }
  if (device_.l2_bytes() == 0 && d.contains("l2_bytes") && d["l2_bytes"].is_number_integer()) {
    device_.set_l2_bytes(d["l2_bytes"].get<int64_t>());
  }
  if (hello.contains("torch") && hello["torch"].is_string()) device_.set_torch(hello["torch"].get<std::string>());
}

WarmJudge* PipelineImpl::GetJudge(const WorkPtr& work, const v1::Problem& problem, const v1::EvaluationOptions& options,
                                  v1::WorkResult* failure) {
  // A problem that is itself judged gets a judge of its own.
  const bool check = work->assignment.describe().check();
  if (WarmJudge* known = check ? nullptr : judges_->Find(problem); known != nullptr) return known;
  meters_.EnterSlot("loading");
  Progress(work, "load", "the reference");
  const absl::Time begin = SteadyNow();
  WarmJudge* judge = judges_->Load(
      problem, options, check,
      [&](const std::string& stage, const std::string& detail) { Progress(work, stage, detail); },
      [&] { return work->cancelled.load(); }, failure);
  if (judge == nullptr) return nullptr;
  LearnDevice(judge->judge->hello());
  judge->description.set_sha256(work->problem_sha256);
  *judge->description.mutable_device() = device_;
  RecordStage(work, "load", begin);
  return judge;
}

void PipelineImpl::Describe(const WorkPtr& work) {
  meters_.ShowSlot("checking");
  const v1::DescribeWork& describe = work->assignment.describe();
  v1::EvaluationOptions options = describe.options();
  *options.mutable_limits() = work->limits;
  v1::WorkResult result;
  if (WarmJudge* judge = GetJudge(work, describe.problem(), options, &result); judge != nullptr) {
    judges_->Answered(judge->problem);
    *result.mutable_description() = judge->description;
    if (describe.check()) judges_->Drop(judge->problem);
  }
  FinishUnjudged(work, std::move(result));
}

v1::Candidate PipelineImpl::CandidateOf(const WorkPtr& work, const Variant& variant) const {
  v1::Candidate candidate = work->assignment.evaluate().candidate();
  // They fit: they are those that the source declares.
  candidate.set_source(*tuning::WithValues(candidate.source(), work->declared, variant.values));
  return candidate;
}

// All of them before the device is asked for, which finds their objects in the cache.
void PipelineImpl::BuildCombinations(const WorkPtr& work) {
  const absl::Time begin = SteadyNow();
  const v1::Limits limits = sandbox::BuildLimits(work->limits, work->assignment.evaluate().candidate().format());
  SweepBudget budget(kMostOfLimit * absl::Seconds(limits.build_wall_seconds()));
  bool any = false;
  for (std::vector<std::string>& values : tuning::Combinations(work->declared)) {
    if (work->cancelled) return;
    Progress(work, "build", CombinationText(work->declared, values));
    Variant variant;
    variant.values = std::move(values);
    if (const std::string why = budget.WhyNoMore(SteadyNow() - begin); !why.empty()) {
      variant.unbuilt = NotTried(why);
      work->variants.push_back(std::move(variant));
      continue;
    }
    absl::StatusOr<build::BuildOutcome> outcome = Build(work, CandidateOf(work, variant));
    if (work->cancelled) return;
    if (!outcome.ok()) return Fail(work, absl::StrCat("build: ", outcome.status().message()));
    if (outcome->report.ok()) {
      any = true;
      Disassemble(work, *outcome);
      variant.report = std::move(outcome->report);
      variant.instructions = std::exchange(work->instructions, std::nullopt);
      variant.no_instructions = std::exchange(work->no_instructions, {});
    } else {
      variant.unbuilt = ResultOfFailedBuild(*outcome);
      budget.Tried(*variant.unbuilt);
    }
    work->variants.push_back(std::move(variant));
  }
  if (any && work->assignment.evaluate().has_rival()) {
    absl::StatusOr<build::BuildOutcome> rival = Build(work, work->assignment.evaluate().rival());
    if (work->cancelled) return;
    if (!rival.ok()) return Fail(work, absl::StrCat("build: ", rival.status().message()));
    work->rival_built = *std::move(rival);
  }
  RecordStage(work, "build", begin);
  if (any) return Built(work);
  std::vector<v1::EvaluationResult> results;
  for (const Variant& variant : work->variants) results.push_back(*variant.unbuilt);
  FinishCombinations(work, Choice(std::move(results), /*evaluated=*/0, /*always_again=*/false));
}

void PipelineImpl::FinishCombinations(const WorkPtr& work, const Choice& choice) {
  std::vector<std::vector<std::string>> values;
  for (const Variant& variant : work->variants) values.push_back(variant.values);
  FinishEvaluation(work, choice.Result(work->declared, values));
}

// One after the other, each as a candidate of its own; then what leads once more (Choice).
void PipelineImpl::EvaluateCombinations(const WorkPtr& work) {
  const absl::Time begin = SteadyNow();
  // A rival runs by a limit of its own, and each pair of processes by its own.
  const v1::EvaluateWork& wanted = work->assignment.evaluate();
  const int kernels = wanted.has_rival() ? 2 * measure::ReplicasOf(wanted.options()) : 1;
  SweepBudget budget(kMostOfLimit * kernels * absl::Seconds(work->limits.run_wall_seconds()));
  const auto evaluate = [&](size_t i, const std::string& which, bool profile) -> std::optional<v1::EvaluationResult> {
    std::string why;
    if (!IsWellStill(&why)) {
      Fail(work, why);
      return std::nullopt;
    }
    const Variant& variant = work->variants[i];
    Progress(work, "combination", absl::StrCat(CombinationText(work->declared, variant.values), " (", which, ")"));
    v1::EvaluateWork one = work->assignment.evaluate();
    *one.mutable_candidate() = CandidateOf(work, variant);
    one.mutable_options()->set_profile(profile);
    absl::StatusOr<v1::WorkResult> got = EvaluateInner(work, one, &variant);
    if (work->cancelled) return std::nullopt;
    if (!got.ok()) {
      Fail(work, std::string(got.status().message()));
    } else if (got->has_evaluation()) {
      budget.Tried(got->evaluation());
      return std::move(*got->mutable_evaluation());
    } else {
      Finish(work, *std::move(got));
    }
    return std::nullopt;
  };
  std::vector<v1::EvaluationResult> results;
  int evaluated = 0;
  for (size_t i = 0; i < work->variants.size(); ++i) {
    if (work->variants[i].unbuilt.has_value()) {
      results.push_back(*work->variants[i].unbuilt);
    } else if (const std::string why = budget.WhyNoMore(SteadyNow() - begin); !why.empty()) {
      results.push_back(NotTried(why));
    } else {
      auto result = evaluate(i, absl::StrCat(i + 1, " of ", work->variants.size()), /*profile=*/false);
      if (!result.has_value()) return;
      results.push_back(*std::move(result));
      ++evaluated;
    }
  }
  const bool profile = work->assignment.evaluate().options().profile();
  Choice choice(std::move(results), evaluated, profile);
  for (int repeats = 0; repeats < kMostRepeats && budget.WhyNoMore(absl::ZeroDuration()).empty(); ++repeats) {
    const std::optional<size_t> wanted = choice.Wanted();
    if (!wanted.has_value()) break;
    auto again = evaluate(*wanted, "once more", profile);
    if (!again.has_value()) return;
    choice.Again(*wanted, *std::move(again));
  }
  FinishCombinations(work, choice);
}

// Fresh processes of both sides each time; built once, judged by one judge.
void PipelineImpl::EvaluateReplicas(const WorkPtr& work) {
  const int wanted = measure::ReplicasOf(work->assignment.evaluate().options());
  std::optional<v1::WorkResult> all = RunReplicas(
      work->assignment.evaluate(), [&](int replica, const v1::EvaluateWork& one) -> std::optional<v1::WorkResult> {
        std::optional<v1::WorkResult> result;
        if (std::string why; !IsWellStill(&why)) {
          result.emplace();
          result->set_infrastructure_failure(RepairUtf8(std::move(why), 64 << 10));
          return result;
        }
        const WorkPtr inner = OnBehalfOf(work, one, &result);
        inner->whole = work;
        inner->part = absl::StrCat("replica ", replica + 1, " of ", wanted);
        inner->built = work->built;
        inner->rival_built = work->rival_built;
        inner->instructions = work->instructions;
        inner->no_instructions = work->no_instructions;
        Evaluate(inner);
        if (work->cancelled) return std::nullopt;
        return result;
      });
  if (!all.has_value()) return;
  if (all->has_evaluation()) return FinishEvaluation(work, std::move(*all->mutable_evaluation()));
  Finish(work, *std::move(all));
}

void PipelineImpl::Evaluate(const WorkPtr& work) {
  if (!work->variants.empty()) return EvaluateCombinations(work);
  const v1::EvaluateWork& evaluate = work->assignment.evaluate();
  const bool compared = work->rival_built.has_value() && work->rival_built->report.ok();
  if (compared && work->whole == nullptr && measure::ReplicasOf(evaluate.options()) > 1) return EvaluateReplicas(work);
  while (Attempt(work)) {
  }
}

bool PipelineImpl::Attempt(const WorkPtr& work) {
  const v1::EvaluateWork& evaluate = work->assignment.evaluate();
  meters_.ShowSlot("checking");
  v1::EvaluationOptions options = evaluate.options();
  *options.mutable_limits() = work->limits;
  // Who has nobody to be compared with has all the time for itself.
  if (work->whole == nullptr) options.clear_replicas();

  v1::WorkResult failure;
  WarmJudge* judge = GetJudge(work, evaluate.problem(), options, &failure);
  if (judge == nullptr) {
    FinishUnjudged(work, std::move(failure));
    return false;
  }

  DeviceTurn turn({*pool_, equipment_.candidates, *equipment_.health, meters_,
                   [&](const std::string& stage, const std::string& detail) { Progress(work, stage, detail); },
                   [&](const std::string& stage, absl::Time begin) { RecordStage(work, stage, begin); }, cuda_},
                  *work, options);
  if (const absl::Status begun = turn.Begin(); absl::IsUnavailable(begun)) {
    failure.set_infrastructure_failure(RepairUtf8(std::string(begun.message()), 64 << 10));
    FinishUnjudged(work, std::move(failure));
    return false;
  } else if (!begun.ok()) {
    Fail(work, std::string(begun.message()));
    return false;
  }
  const TurnOutcome outcome = turn.Run(*judge->judge);
  std::string why;
  bool again = false;
  if (work->cancelled) {
    if (!judge->judge->Alive()) judges_->Drop(judge->problem);
    // Killed in the middle of whatever it did: the device must be well for the next one.
    if (!Stopping()) {
      DeviceIsWell(outcome.ending, equipment_.health->TakeXids(false), "a cancelled evaluation", &why);
    }
  } else if (outcome.answer.kind == JudgeAnswer::Kind::kDied) {
    v1::WorkResult result;
    judges_->Died(judge->problem, outcome.answer.message, &result);
    if (!DeviceIsWell(outcome.ending, equipment_.health->TakeXids(true), "the death of a judge", &why)) {
      result.set_infrastructure_failure(why);
    }
    Finish(work, std::move(result));
  } else if (outcome.answer.kind != JudgeAnswer::Kind::kDone) {
    // It may still hold a device error: a fresh one costs seconds, a wrong verdict more.
    judges_->Drop(judge->problem);
    const bool well = DeviceIsWell(outcome.ending, equipment_.health->TakeXids(true), "a judge's failure", &why);
    if (well && outcome.answer.kind == JudgeAnswer::Kind::kProblem) {
      v1::WorkResult result;
      result.set_problem_error(outcome.answer.message);
      Finish(work, std::move(result));
    } else {
      Fail(work, well ? outcome.answer.message : why);
    }
  } else {
    again = Conclude(work, options, outcome, *judge);
  }
  if (!Stopping() && !equipment_.health->Quarantined()) {
    pool_->Restock(CandidateKind(IsPython(evaluate.candidate())));
  }
  return again;
}

bool PipelineImpl::Conclude(const WorkPtr& work, const v1::EvaluationOptions& options, const TurnOutcome& turn,
                            WarmJudge& judge) {
  auto result = ResultOf(turn, *work, options, cuda_);
  if (!result.ok()) {
    v1::WorkResult died;
    judges_->Died(judge.problem, std::string(result.status().message()), &died);
    Finish(work, std::move(died));
    return false;
  }
  judges_->Answered(judge.problem);
  if (turn.foreign.value_or(0) > 0 && result->has_timing()) meters_.SharedTiming();
  *result->mutable_device() = DeviceOfResult();
  const bool native = !IsPython(work->assignment.evaluate().candidate());
  const bool again = WorthTimingAgain(*result) && !work->first.has_value();
  AddFloor(judge.description, options, native, &*result);
  const v1::Verdict verdict = result->verdict();
  const bool rival_ran = work->rival_built.has_value() && work->rival_built->report.ok();
  const bool faulted = IsFault(verdict) || (rival_ran && IsFault(result->rival().verdict()));
  const bool doubtful = IsDoubtful(verdict) && !again && absl::Now() - equipment_.health->LastPass() > kWrongCanary;
  const XidFindings xids = equipment_.health->TakeXids(faulted);
  std::string why;
  if (!DeviceIsWell(turn.ending, xids, faulted || doubtful ? v1::Verdict_Name(verdict) : "", &why)) {
    Fail(work, why);  // no verdict comes from a device that is not well
    return false;
  }
  if (again && !work->cancelled) {
    Progress(work, "time", absl::StrCat("once more, in new processes: ", result->reason()));
    work->first = *std::move(result);
    return true;
  }
  MergeXids(xids, &*result);
  if (work->first.has_value()) MergeFirstAttempt(*work->first, &*result);
  if (options.profile() && verdict == v1::VERDICT_CORRECT) Profile(work, judge, &*result);
  FinishEvaluation(work, *std::move(result));
  return false;
}

void PipelineImpl::Profile(const WorkPtr& work, WarmJudge& judge, v1::EvaluationResult* result) {
  v1::ProfileReport& report = *result->mutable_profile();
  if (work->instructions.has_value()) {
    for (const auto& [opcode, count] : work->instructions->counts) {
      v1::Rate* rate = report.add_instructions();
      rate->set_precision(opcode);
      rate->set_operations_per_second(static_cast<double>(count));
    }
    report.set_sass_sha256(work->instructions->sha256);
  }
  if (profiler_ == nullptr) {
    report.set_unavailable("there is no profiler for the CPU device: Nsight Compute counts what a GPU does");
    return;
  }
  meters_.ShowSlot("checking");
  meters_.EnterSlot("profiling");
  Progress(work, "profile", "Nsight Compute");
  const absl::Time begin = SteadyNow();
  // Nothing else starts while counters are read.
  pool_->Quiet(true);
  const v1::Candidate& candidate = work->assignment.evaluate().candidate();
  const bool python = IsPython(candidate);
  sandbox::SandboxedProcess* process = nullptr;
  bool judge_failed = false;
  absl::Time cancelled_at = absl::InfiniteFuture();
  const auto cancelled = [&] {
    if (!work->cancelled) return false;
    if (cancelled_at == absl::InfiniteFuture()) {
      cancelled_at = SteadyNow();
      if (process != nullptr) process->Kill();
    }
    return SteadyNow() - cancelled_at > kCancelGrace;
  };
  const auto send = [&](StartedProcess* started) {
    process = started->process.get();
    std::set<sandbox::FileIdentity> own;
    return SendProgram(candidate, *work->built, started, &own);
  };
  const auto drive = [&](JudgeProcess::Contestant contestant, double seconds) -> absl::Status {
    const JudgeAnswer answer = judge.judge->Profile(std::move(contestant), seconds,
                                                    SteadyNow() + absl::Seconds(seconds) + kJudgeGrace, cancelled);
    if (work->cancelled) return absl::CancelledError("it was cancelled");
    judge_failed = answer.kind != JudgeAnswer::Kind::kDone;
    if (judge_failed) return absl::InternalError(answer.message);
    const auto failure = answer.body.find("failure");
    if (failure == answer.body.end() || !failure->is_string()) return absl::InternalError("the judge did not say how");
    const std::string why = failure->get<std::string>();
    return why.empty() ? absl::OkStatus() : absl::AbortedError(why);
  };
  KernelProfiler::Outcome outcome =
      profiler_->Run(python, work->limits, send, drive, [&] { return work->cancelled.load(); });
  pool_->Quiet(false);
  AddBuildFacts(work->built->report,
                work->instructions.has_value() ? work->instructions->functions : std::vector<std::string>(),
                &outcome.kernels);
  for (v1::KernelProfile& kernel : outcome.kernels) *report.add_kernels() = std::move(kernel);
  std::string missing = outcome.unavailable;
  if (!work->no_instructions.empty()) {
    absl::StrAppend(&missing, missing.empty() ? "" : "; ", "no instruction mix: ", work->no_instructions);
  }
  report.set_unavailable(RepairUtf8(std::move(missing), 2000));
  if (!outcome.unavailable.empty()) LogWarning("worker", "no profile: ", outcome.unavailable);
  RecordStage(work, "profile", begin);
  meters_.EnterSlot("ending");
  // It may still hold a device error.
  if (judge_failed || !judge.judge->Alive()) judges_->Drop(judge.problem);
  // What it left on the device is for the next one; this verdict was given before.
  if (outcome.ending.has_value() && !Stopping()) {
    std::string why;
    const bool doubtful = !outcome.unavailable.empty() && !work->cancelled;
    DeviceIsWell(*outcome.ending, equipment_.health->TakeXids(doubtful), doubtful ? "a profile that failed" : "", &why);
  }
}

// Its result goes to `result`, which must outlive it.
WorkPtr PipelineImpl::OnBehalfOf(const WorkPtr& work, const v1::EvaluateWork& evaluate,
                                 std::optional<v1::WorkResult>* result) {
  auto inner = std::make_shared<Work>();
  *inner->assignment.mutable_lease() = work->assignment.lease();
  *inner->assignment.mutable_evaluate() = evaluate;
  inner->cancelled.Follow(work->cancelled);
  inner->limits = sandbox::FillLimits(evaluate.options().limits(), options_.default_limits, device_.kind(),
                                      cuda_ ? device_.memory_bytes() : 0);
  inner->problem_sha256 = Sha256Hex(evaluate.problem().source());
  inner->candidate_sha256 = Sha256Hex(evaluate.candidate().source());
  inner->sink = [result](v1::WorkResult got) { *result = std::move(got); };
  return inner;
}

// What `work` is made of is evaluated on this thread and comes back here; to the outside it is still `work`.
// `variant`: whose candidate it is, built before; null where it is a candidate of the worker's own.
absl::StatusOr<v1::WorkResult> PipelineImpl::EvaluateInner(const WorkPtr& work, const v1::EvaluateWork& evaluate,
                                                           const Variant* variant) {
  std::optional<v1::WorkResult> result;
  const WorkPtr inner = OnBehalfOf(work, evaluate, &result);
  GROVE_ASSIGN_OR_RETURN(inner->built, Build(inner, evaluate.candidate(), /*again=*/variant != nullptr));
  if (!inner->built->report.ok()) {
    result.emplace();
    *result->mutable_evaluation() = ResultOfFailedBuild(*inner->built);
    return *std::move(result);
  }
  if (evaluate.has_rival()) {
    inner->rival_built = work->rival_built;
    if (!inner->rival_built.has_value()) {
      GROVE_ASSIGN_OR_RETURN(inner->rival_built, Build(inner, evaluate.rival()));
    }
  }
  if (variant != nullptr) {
    inner->built->report = variant->report;
    inner->instructions = variant->instructions;
    inner->no_instructions = variant->no_instructions;
  }
  Evaluate(inner);
  if (!result.has_value() || work->cancelled) return absl::CancelledError("cancelled");
  return *std::move(result);
}

absl::StatusOr<v1::EvaluationResult> PipelineImpl::EvaluateFor(const WorkPtr& work, const v1::EvaluateWork& evaluate) {
  GROVE_ASSIGN_OR_RETURN(v1::WorkResult result, EvaluateInner(work, evaluate, nullptr));
  if (result.has_evaluation()) return std::move(*result.mutable_evaluation());
  return absl::UnavailableError(result.infrastructure_failure().empty() ? result.problem_error()
                                                                        : result.infrastructure_failure());
}

absl::StatusOr<v1::Calibration> PipelineImpl::MeasureRates(const WorkPtr& work, absl::Duration budget) {
  // With the device to itself.
  judges_->Clear();
  pool_->Clear();
  auto judge = judges_->StartOne();
  if (!judge.ok()) return judge.status();
  JudgeAnswer answer = (*judge)->Rates(
      absl::ToDoubleSeconds(budget), SteadyNow() + budget + kJudgeGrace,
      [&](const std::string& stage, const std::string& detail) { Progress(work, stage, detail); },
      [&] { return work->cancelled.load(); });
  if (work->cancelled) return absl::CancelledError("cancelled");
  if (answer.kind != JudgeAnswer::Kind::kDone) return absl::UnavailableError(answer.message);
  return ParseCalibration(answer.body.contains("calibration") ? answer.body["calibration"] : nlohmann::json::object());
}

void PipelineImpl::Calibrate(const WorkPtr& work) {
  meters_.ShowSlot("timing");
  CalibrationHost host;
  host.evaluate = [&](const v1::EvaluateWork& evaluate) { return EvaluateFor(work, evaluate); };
  host.rates = [&](absl::Duration budget) { return MeasureRates(work, budget); };
  host.progress = [&](const std::string& stage, const std::string& detail) { Progress(work, stage, detail); };
  host.cancelled = [&] { return work->cancelled.load(); };
  host.now = [] { return absl::Now(); };
  absl::StatusOr<v1::Calibration> calibration =
      grove::worker::Calibrate(device_.kind(), work->assignment.calibrate(), host);
  if (work->cancelled) return;
  v1::WorkResult result;
  if (calibration.ok()) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      *device_.mutable_calibration() = *calibration;
    }
    if (absl::Status saved = SaveCalibration(options_.paths.state_dir, equipment_.calibration_key, *calibration);
        !saved.ok()) {
      LogWarning("worker", "the calibration holds until this worker ends: ", std::string(saved.message()));
    }
    *result.mutable_calibration() = *std::move(calibration);
  } else if (absl::IsFailedPrecondition(calibration.status()) || absl::IsDeadlineExceeded(calibration.status())) {
    result.set_problem_error(RepairUtf8(std::string(calibration.status().message()), 64 << 10));
  } else {
    result.set_infrastructure_failure(RepairUtf8(std::string(calibration.status().message()), 64 << 10));
  }
  Finish(work, std::move(result));
}

bool PipelineImpl::Dies(sandbox::Leftover& leftover) {
  const absl::Time deadline = SteadyNow() + options_.slow_death;
  while (!leftover.Gone()) {
    if (SteadyNow() > deadline || Stopping()) return false;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return true;
}

bool PipelineImpl::DeviceIsWell(const sandbox::Ending& ending, const XidFindings& xids, const std::string& fault,
                                std::string* why) {
  // Tens of thousands of open files take the kernel seconds to close: slow is not stuck, and the verdict stands.
  if (ending.leftover != nullptr && !Dies(*ending.leftover)) {
    equipment_.health->QuarantineFor(
        ending.leftover, absl::StrCat("process ", ending.leftover->pid(), " of a candidate did not die after SIGKILL"));
  } else if (!xids.device.empty()) {
    equipment_.health->Quarantine(
        absl::StrCat("it reported ", xids.Text(), "; what to do: ", device::MeaningOf(xids.device.front()).action));
  } else if (fault.empty()) {
    return true;
  } else {
    // A waiting candidate may share the fault with the one that caused it. The judge has a context of its own, and its
    // next answer shows whether that still works.
    if (cuda_) pool_->Clear();
    if (equipment_.health->PassesAfter(fault)) return true;
  }
  *why = absl::StrCat("device ", device_.name(), " is ", equipment_.health->Text());
  ShowQuarantine();
  return false;
}

void PipelineImpl::ShowQuarantine() {
  // First of all, so that the heartbeat ahead of the result says it.
  meters_.ShowSlot("quarantined");
  meters_.EnterSlot("quarantined");
  pool_->Clear();
  judges_->Clear();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Start(PipelineOptions options, OnProgress on_progress,
                                                          OnResult on_result) {
  auto pipeline = std::make_unique<PipelineImpl>(std::move(options), std::move(on_progress), std::move(on_result));
  GROVE_RETURN_IF_ERROR(pipeline->Init());
  return std::unique_ptr<Pipeline>(std::move(pipeline));
}

}  // namespace grove::worker
