// Theory of operation. Work enters `build_queue_` (evaluations) or `device_queue_` (descriptions). Build threads turn
// the first into the second; the one device thread takes them in order, so the device is used by one candidate at a
// time. A piece of work is owned by whoever took it off a queue; `running_` holds what Cancel and Running need to know.
// Results leave from the thread that made them, exactly one per piece of work, none once it is cancelled.
#include "worker/pipeline/pipeline.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
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
#include "common/base/files.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/measure/comparison.h"
#include "common/measure/replicas.h"
#include "common/tuning/declared.h"
#include "worker/build/builder.h"
#include "worker/device/device.h"
#include "worker/device/toolchain.h"
#include "worker/device/xid.h"
#include "worker/device/xid_watch.h"
#include "worker/pipeline/calibration.h"
#include "worker/pipeline/calibrator.h"
#include "worker/pipeline/candidate_pool.h"
#include "worker/pipeline/combinations.h"
#include "worker/pipeline/floor.h"
#include "worker/pipeline/judge_process.h"
#include "worker/pipeline/profile.h"
#include "worker/pipeline/programs.h"
#include "worker/pipeline/replicas.h"
#include "worker/pipeline/slot_clock.h"
#include "worker/pipeline/verdict.h"
#include "worker/pipeline/work_policy.h"
#include "worker/pipeline/work_watch.h"
#include "worker/sandbox/limits.h"
#include "worker/sandbox/mappings.h"
#include "worker/sandbox/self_test.h"

namespace grove::worker {
namespace {

// Judges kept warm, least recently used first to go: each holds a reference with its data, and torch with its device
// context beside that (1 to 2 GB of host memory, 0.5 GB of a GPU's).
constexpr size_t kWarmJudgesCpu = 2, kWarmJudgesCuda = 4;
// Share of the device's memory that waiting judges' problems may hold together; the next problem gets the rest.
constexpr int64_t kWarmJudgesMemoryShare = 8;
// A GPU with less memory than this has one candidate's context waiting, a larger one two.
constexpr int64_t kSmallDevice = int64_t{32} << 30;
// A judge that dies so often in a row on one problem is the problem's doing.
constexpr int kMaxJudgeDeaths = 3;
// After a candidate's own time is up the judge has only statistics left to do; past this it hangs.
constexpr absl::Duration kJudgeGrace = absl::Seconds(60);
// A candidate that closed its channel is given this long to end by itself, so that its signal is known.
constexpr absl::Duration kEndGrace = absl::Milliseconds(500);
// After Cancel the judge is given this long to notice that the candidate is gone.
constexpr absl::Duration kCancelGrace = absl::Seconds(5);
// What a candidate holds may take long to take down. Past this its process is taken for stuck, and the device for sick.
constexpr absl::Duration kSlowDeath = absl::Seconds(30);
// A wrong result may be the device's: then, too, the canary is asked, when it has not been for so long.
constexpr absl::Duration kWrongCanary = absl::Minutes(1);
// Between two looks at a timed candidate's code: each reads a few files of /proc while it is held.
constexpr absl::Duration kLookInterval = absl::Milliseconds(250);
constexpr size_t kMaxStageSamples = 10000;  // between two Stats calls

// Editors on Windows begin a text with it; Python takes it off a file, but not off what it is handed.
void WithoutByteOrderMark(std::string* source) {
  if (absl::StartsWith(*source, "\xEF\xBB\xBF")) source->erase(0, 3);
}

std::string KeyOf(const v1::Lease& lease) { return absl::StrCat(lease.work(), "#", lease.attempt()); }

// Shared by a piece of work and those that are done on its behalf.
class Flag {
 public:
  operator bool() const { return *value_; }
  bool load() const { return *value_; }
  Flag& operator=(bool value) {
    *value_ = value;
    return *this;
  }
  void Follow(const Flag& other) { value_ = other.value_; }

 private:
  std::shared_ptr<std::atomic<bool>> value_ = std::make_shared<std::atomic<bool>>(false);
};

// One combination of the values of declared parameters. The objects are in the build cache: together they may be large.
struct Variant {
  std::vector<std::string> values;
  std::optional<v1::EvaluationResult> unbuilt;  // the result of one that was not built
  v1::BuildReport report;
  std::optional<build::InstructionMix> instructions;
  std::string no_instructions;
};

struct Work {
  v1::Assignment assignment;
  Flag cancelled;
  // Done on behalf of a calibration, of a candidate with declared parameters or of a comparison in several pairs of
  // processes: the result goes here, and nobody else hears of it.
  std::function<void(v1::WorkResult)> sink;
  // One pair of processes of this comparison, and which: its progress and the times of its stages are told as the
  // whole's.
  std::shared_ptr<Work> whole;
  std::string part;
  v1::Limits limits;  // every field set
  std::string problem_sha256, candidate_sha256;
  std::optional<build::BuildOutcome> built, rival_built;
  std::optional<build::InstructionMix> instructions;  // with options.profile
  std::string no_instructions;                        // why there are none
  // Of a candidate that declares parameters: all combinations of their values.
  std::vector<tuning::Declared> declared;
  std::vector<Variant> variants;
  std::vector<std::pair<std::string, double>> stages;
  absl::Time submitted = SteadyNow(), ready = SteadyNow();  // for the device
};

absl::StatusOr<wire::UniqueFd> SealedMemfd(const std::string& content) {
  wire::UniqueFd fd(memfd_create("grove-object", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a memfd");
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = write(fd.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ErrnoStatus(errno, "cannot fill a memfd");
    done += static_cast<size_t>(n);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return ErrnoStatus(errno, "cannot seal a memfd");
  }
  return fd;
}

// The program goes ahead of the judge's first word, through the same socket.
// `own`: also gets which files the candidate's own objects are.
absl::Status SendProgram(const v1::Candidate& candidate, const build::BuildOutcome& built, PreparedCandidate* prepared,
                         std::set<sandbox::FileIdentity>* own) {
  const bool python = candidate.format() == v1::CANDIDATE_FORMAT_KERNELBENCH;
  std::vector<wire::UniqueFd> objects;
  std::vector<int> fds;
  nlohmann::json program;
  if (python) {
    program = {{"type", "program"},
               {"kind", "python"},
               {"source", candidate.source()},
               {"extensions", nlohmann::json::array()}};
  } else {
    program = {{"type", "program"}, {"kind", "native"}, {"entry", "grove_kernel"}};
  }
  for (const build::BuiltObject& object : built.objects) {
    GROVE_ASSIGN_OR_RETURN(wire::UniqueFd fd, SealedMemfd(object.content));
    if (python) program["extensions"].push_back({{"key", object.key}, {"name", object.name}});
    fds.push_back(fd.get());
    own->insert(sandbox::IdentityOf(fd.get()));
    objects.push_back(std::move(fd));
  }
  if (auto error = prepared->judge_end.Send(program, fds)) {
    return absl::InternalError(absl::StrCat("the candidate program took no work: ", *error));
  }
  return absl::OkStatus();
}

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
  std::vector<std::string> SandboxLayers() const override { return self_test_.ActiveNames(); }
  int Capacity() const override { return 1 + options_.build_slots; }
  PipelineStats Stats() override;

 private:
  using WorkPtr = std::shared_ptr<Work>;

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

  // The warm judge for this work's problem, made if needed. Otherwise a problem error or an infrastructure failure is
  // in `result`.
  struct WarmJudge {
    std::string problem;  // key
    std::unique_ptr<JudgeProcess> judge;
    v1::ProblemDescription description;
  };
  WarmJudge* GetJudge(const WorkPtr& work, const v1::Problem& problem, const v1::EvaluationOptions& options,
                      v1::WorkResult* result);
  // Fills result->profile, whatever happens.
  void Profile(const WorkPtr& work, WarmJudge& judge, v1::EvaluationResult* result);
  void DropJudge(const std::string& problem);
  // A death of the judge: an infrastructure failure, or the problem's own fault once it repeats.
  void JudgeDied(const std::string& problem, const std::string& message, v1::WorkResult* result);

  // Whether what outlived its SIGKILL is gone after all, within kSlowDeath.
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
  void SetSlot(const std::string& state);
  // What the slot does, for SlotClock: finer than what SetSlot tells the coordinator.
  void EnterSlot(const std::string& state);
  // Why a slot that has nothing to do has nothing to do.
  void ShowIdleLocked();
  void RecordStage(const WorkPtr& work, const std::string& stage, absl::Time begin);

  PipelineOptions options_;
  const OnProgress on_progress_;
  const OnResult on_result_;
  v1::DeviceInfo device_;
  std::shared_ptr<sandbox::SandboxHost> host_;
  sandbox::SelfTestReport self_test_;
  std::unique_ptr<DeviceHealth> health_;
  std::unique_ptr<build::Builder> builder_;
  std::unique_ptr<CandidatePool> pool_;
  std::unique_ptr<KernelProfiler> profiler_;  // CUDA; device thread only
  JudgeConfig judge_config_;
  std::string candidate_program_;
  int threads_ = 1;
  std::string calibration_key_;

  // Device thread only.
  std::list<WarmJudge> judges_;  // most recently used first
  std::map<std::string, int> judge_deaths_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::deque<WorkPtr> build_queue_, device_queue_;  // bounded by the leases that the coordinator gives: Capacity()
  std::map<std::string, WorkPtr> running_;
  PipelineStats stats_;
  std::map<std::string, int64_t> verdicts_;
  std::map<std::string, std::vector<double>> stage_seconds_;
  SlotClock slot_clock_{SteadyNow()};
  bool slot_idle_ = true;

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
  judges_.clear();
}

absl::Status PipelineImpl::Init() {
  GROVE_ASSIGN_OR_RETURN(device_, device::Detect(options_.device));
  const bool cuda = device_.kind() == v1::DEVICE_KIND_CUDA;
  threads_ = sandbox::UsableThreads();
  if (options_.build_slots <= 0) options_.build_slots = std::clamp(threads_ / 2, 1, 8);
  if (options_.paths.state_dir.empty()) return absl::InvalidArgumentError("a worker needs a state folder");
  GROVE_RETURN_IF_ERROR(MakeDirs(options_.paths.state_dir));
  GROVE_ASSIGN_OR_RETURN(candidate_program_, FindProgram(options_.paths, "grove-candidate"));
  GROVE_ASSIGN_OR_RETURN(judge_config_.program, FindProgram(options_.paths, "grove-judge"));
  GROVE_ASSIGN_OR_RETURN(const std::string probe, FindProgram(options_.paths, "grove-sandbox-probe"));

  sandbox::SandboxHost::Options host_options;
  host_options.libexec_dir = options_.paths.libexec_dir;
  host_options.allow_weak = options_.allow_weak_sandbox;
  GROVE_ASSIGN_OR_RETURN(host_, sandbox::SandboxHost::Create(host_options));
  self_test_ = sandbox::RunSelfTest(host_, probe);
  const std::vector<std::string> nodes = device::CudaNodes(device_);
  std::shared_ptr<device::XidWatch> watch;
  if (cuda) watch = device::XidWatch::Start(device_.uuid());
  HealthProbes probes =
      options_.health_probes.has_value()
          ? *options_.health_probes
          : RealProbes(host_, candidate_program_, device::DeviceArgument(device_), nodes, watch, device_.uuid());
  const sandbox::CanaryOutcome first = probes.canary();
  health_ = std::make_unique<DeviceHealth>(std::move(probes));
  if (cuda) self_test_.layers.push_back(sandbox::CudaLayer(first, nodes));
  GROVE_RETURN_IF_ERROR(health_->Begin(first));
  // The canary took longer than NVML does to begin listening.
  if (watch != nullptr) (void)watch->Status(absl::Seconds(1));
  health_->CheckListening();
  if (absl::Status status = self_test_.Required(); !status.ok()) {
    if (!options_.allow_weak_sandbox) return status;
    LogWarning("worker", "WEAK SANDBOX, for trusted kernels only: ", std::string(status.message()));
  }

  build::BuilderOptions builder;
  builder.host = host_;
  builder.include_dir = options_.paths.include_dir;
  builder.libexec_dir = options_.paths.libexec_dir;
  builder.cache_dir = absl::StrCat(options_.paths.state_dir, "/build-cache");
  builder.glue_folders = {absl::StrCat(RuntimeFolder(), "/torch-glue"),
                          absl::StrCat(options_.paths.state_dir, "/torch-glue")};
  if (auto cxx = device::FindCxx(options_.cxx); cxx.ok()) {
    builder.cxx = *cxx;
  } else {
    builder.cxx_missing = std::string(cxx.status().message());
    if (!cuda) return cxx.status();
  }
  if (cuda) {
    auto nvcc = device::FindNvcc(options_.nvcc);
    if (!nvcc.ok()) return nvcc.status();
    builder.nvcc = *nvcc;
  }
  std::string python_script;
  auto python = device::FindPython(options_.python, absl::StrCat(options_.paths.state_dir, "/cache"));
  if (python.ok()) {
    builder.python = *python;
    device_.set_torch(python->torch_version);
    if (auto script = FindProgram(options_.paths, "grove-candidate-python"); script.ok()) python_script = *script;
  } else {
    builder.python_missing = std::string(python.status().message());
    LogWarning("worker", "no .py problems or candidates here: ", builder.python_missing);
  }
  builder.device = device_;
  const v1::Limits defaults = sandbox::FillLimits({}, options_.default_limits, device_.kind());

  CandidateConfig candidates;
  candidates.native_ahead = candidates.python_ahead = cuda && device_.memory_bytes() >= kSmallDevice ? 2 : 1;
  candidates.host = host_;
  candidates.native_program = candidate_program_;
  candidates.python_script = python_script;
  candidates.device_nodes = nodes;
  candidates.device_argument = device::DeviceArgument(device_);
  candidates.threads = threads_;
  candidates.default_limits = defaults;

  judge_config_.host = host_;
  judge_config_.device_nodes = nodes;
  judge_config_.device_argument = candidates.device_argument;
  judge_config_.threads = threads_;
  judge_config_.memory_bytes =
      options_.judge_memory_bytes > 0 ? options_.judge_memory_bytes : sandbox::DefaultJudgeMemoryBytes();
  judge_config_.read_only = {judge_config_.program.substr(0, judge_config_.program.rfind('/'))};
  if (python.ok()) {
    candidates.python = python->path;
    candidates.python_folders = python->folders;
    judge_config_.python = python->path;
    judge_config_.read_only.insert(judge_config_.read_only.end(), python->folders.begin(), python->folders.end());
  }
  judge_config_.tools = candidates.tools = {builder.cxx, builder.nvcc};
  if (builder.cxx.has_value()) {
    // torch.compile and Triton build what they generate; the judge's baselines and Python candidates need a compiler.
    judge_config_.read_only.insert(judge_config_.read_only.end(), builder.cxx->folders.begin(),
                                   builder.cxx->folders.end());
    candidates.python_folders.insert(candidates.python_folders.end(), builder.cxx->folders.begin(),
                                     builder.cxx->folders.end());
  }
  if (builder.nvcc.has_value()) {
    judge_config_.read_only.insert(judge_config_.read_only.end(), builder.nvcc->folders.begin(),
                                   builder.nvcc->folders.end());
    candidates.python_folders.insert(candidates.python_folders.end(), builder.nvcc->folders.begin(),
                                     builder.nvcc->folders.end());
  }
  GROVE_ASSIGN_OR_RETURN(builder_, build::Builder::Create(builder));
  device_.set_toolkit(builder_->Toolkit());
  calibration_key_ = CalibrationKey(device_);
  std::string void_because;
  if (auto calibration = LoadCalibration(options_.paths.state_dir, calibration_key_, &void_because)) {
    *device_.mutable_calibration() = *std::move(calibration);
  } else if (!void_because.empty()) {
    LogWarning("worker", "the device's calibration is not used: ", void_because);
  }
  if (cuda) profiler_ = std::make_unique<KernelProfiler>(candidates, options_.ncu, device_.arch());
  pool_ = std::make_unique<CandidatePool>(std::move(candidates));
  pool_->Restock(false);

  stats_.slot_state = "idle";
  for (const sandbox::LayerState& layer : self_test_.layers)
    stats_.sandbox_layers.emplace_back(layer.name, layer.active);
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
                                     device_.kind() == v1::DEVICE_KIND_CUDA ? device_.memory_bytes() : 0);
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
    ShowIdleLocked();
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
  ShowIdleLocked();
}

std::vector<v1::Lease> PipelineImpl::Running() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<v1::Lease> leases;
  for (const auto& [key, work] : running_) leases.push_back(work->assignment.lease());
  return leases;
}

PipelineImpl::WorkPtr PipelineImpl::Take(std::deque<WorkPtr>* queue, absl::Time until) {
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
    ShowIdleLocked();
    if (result.has_evaluation()) ++verdicts_[v1::Verdict_Name(result.evaluation().verdict())];
    if (result.outcome_case() == v1::WorkResult::kInfrastructureFailure) ++stats_.infrastructure_failures_total;
  }
  on_result_(std::move(result));
}

void PipelineImpl::FinishUnjudged(const WorkPtr& work, v1::WorkResult result) {
  std::string why;
  if (result.outcome_case() == v1::WorkResult::kInfrastructureFailure && !work->cancelled && !Stopping() &&
      !DeviceIsWell({}, health_->TakeXids(true), "a failure to start", &why)) {
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
  measure::FillComparisons(&evaluation);
  // Once: what is done on behalf of other work becomes its result.
  if (!work->sink) {
    WidenIntervals(&evaluation);
    if (work->assignment.evaluate().has_rival()) FinishRival(work->assignment.evaluate().rival(), &evaluation);
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

void PipelineImpl::SetSlot(const std::string& state) {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.slot_state = state;
}

void PipelineImpl::EnterSlot(const std::string& state) {
  std::lock_guard<std::mutex> lock(mutex_);
  slot_clock_.Enter(state, SteadyNow());
}

void PipelineImpl::ShowIdleLocked() {
  if (!slot_idle_ || slot_clock_.state() == "quarantined") return;
  const char* state = running_.empty() ? "no_work" : "awaiting_build";
  if (slot_clock_.state() != state) slot_clock_.Enter(state, SteadyNow());
}

void PipelineImpl::RecordStage(const WorkPtr& work, const std::string& stage, absl::Time begin) {
  const double seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
  work->stages.emplace_back(stage, seconds);
  if ((work->whole != nullptr ? work->whole : work)->sink) return;
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<double>& samples = stage_seconds_[stage];
  if (samples.size() < kMaxStageSamples) samples.push_back(seconds);
}

PipelineStats PipelineImpl::Stats() {
  std::lock_guard<std::mutex> lock(mutex_);
  PipelineStats stats = stats_;
  for (const auto& [verdict, count] : verdicts_) stats.verdicts_total.emplace_back(verdict, count);
  for (auto& [stage, seconds] : stage_seconds_) stats.stage_seconds.emplace_back(stage, std::move(seconds));
  stage_seconds_.clear();
  for (const auto& [state, seconds] : slot_clock_.Seconds(SteadyNow())) {
    stats.slot_seconds.emplace_back(state, seconds);
    if (state == "checking" || state == "timing") stats.busy_seconds_total += seconds;
  }
  stats.health = RepairUtf8(health_->Text(), 1000);
  stats.health_counts = health_->Snapshot();
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
  const bool whose = wanted.work() > v1::WORK_POLICY_ANYTHING &&
                     work->assignment.evaluate().candidate().format() == v1::CANDIDATE_FORMAT_KERNELBENCH;
  if (device_.kind() != v1::DEVICE_KIND_CUDA || !(wanted.profile() || whose) || !built.report.ok() ||
      built.objects.empty() || work->cancelled) {
    return;
  }
  const absl::Time begin = SteadyNow();
  auto mix = builder_->Instructions(built.objects, [&] { return work->cancelled.load(); });
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
  absl::StatusOr<build::BuildOutcome> outcome = builder_->Build(
      candidate, work->limits, [&] { return work->cancelled.load(); },
      [&](const std::string& what) { Progress(work, "build", what); });
  if (!outcome.ok() || again) return outcome;
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.builds_total;
  ++(outcome->report.cached() ? stats_.build_cache_hits_total : stats_.build_cache_misses_total);
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
    WorkPtr work = Take(&device_queue_, health_->NextTry());
    if (work == nullptr && Stopping()) break;
    if (health_->Quarantined() && health_->Retry()) {
      SetSlot("idle");
      EnterSlot("no_work");
      std::lock_guard<std::mutex> lock(mutex_);
      ShowIdleLocked();
    }
    if (work == nullptr || work->cancelled) continue;
    if (std::string why; !IsWellStill(&why)) {
      Fail(work, why);
      continue;
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      slot_idle_ = false;
    }
    RecordStage(work, "device_wait", work->ready);
    if (work->assignment.has_evaluate()) {
      Evaluate(work);
    } else if (work->assignment.has_calibrate()) {
      Calibrate(work);
    } else {
      Describe(work);
    }
    std::lock_guard<std::mutex> lock(mutex_);
    slot_idle_ = true;
    if (health_->Quarantined()) {
      slot_clock_.Enter("quarantined", SteadyNow());
    } else {
      stats_.slot_state = "idle";
      slot_clock_.Enter(running_.empty() ? "no_work" : "awaiting_build", SteadyNow());
    }
  }
  pool_->Clear();
}

bool PipelineImpl::IsWellStill(std::string* why) {
  if (XidFindings since = health_->TakeXids(false); !since.device.empty() && !health_->Quarantined()) {
    health_->Quarantine(absl::StrCat("it reported ", since.Text(), " while nothing ran"));
    ShowQuarantine();
  }
  if (!health_->Quarantined()) return true;
  *why = absl::StrCat("device ", device_.name(), " is ", health_->Text());
  return false;
}

bool PipelineImpl::Stopping() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stopping_;
}

void PipelineImpl::DropJudge(const std::string& problem) {
  judges_.remove_if([&](const WarmJudge& j) { return j.problem == problem; });
}

void PipelineImpl::JudgeDied(const std::string& problem, const std::string& message, v1::WorkResult* result) {
  DropJudge(problem);
  if (judge_deaths_.size() > 1000) judge_deaths_.clear();
  const int deaths = ++judge_deaths_[problem];
  LogWarning("worker", "judge: ", message.substr(0, 500));
  if (deaths >= kMaxJudgeDeaths) {
    judge_deaths_.erase(problem);
    result->set_problem_error(RepairUtf8(
        absl::StrCat("the process that runs this problem's reference died ", deaths,
                     " times in a row; the last time: ", message,
                     "; its code ends the process, or crashes it: run the file by itself with the python3 of "
                     "the worker, and correct it (`grove doctor` says whether the worker is at fault)"),
        64 << 10));
  } else {
    result->set_infrastructure_failure(RepairUtf8(message, 64 << 10));
  }
}

PipelineImpl::WarmJudge* PipelineImpl::GetJudge(const WorkPtr& work, const v1::Problem& problem,
                                                const v1::EvaluationOptions& options, v1::WorkResult* result) {
  // A problem that is itself judged gets a judge of its own, which is good for nothing else.
  const bool check = work->assignment.describe().check();
  const std::string key = Sha256HexOfParts({absl::StrCat(problem.format()), problem.name(), problem.source()});
  for (auto it = judges_.begin(); it != judges_.end(); ++it) {
    if (it->problem != key || check) continue;
    if (!it->judge->Alive()) {
      judges_.erase(it);
      break;
    }
    judges_.splice(judges_.begin(), judges_, it);
    return &judges_.front();
  }
  EnterSlot("loading");
  // Room for one more, and for its problem beside those of the judges that stay.
  const bool cuda = device_.kind() == v1::DEVICE_KIND_CUDA;
  while (judges_.size() >= (cuda ? kWarmJudgesCuda : kWarmJudgesCpu)) judges_.pop_back();
  int64_t held = 0;
  judges_.remove_if([&](const WarmJudge& j) {  // most recently used first
    held += j.description.memory_bytes();
    return cuda && held > device_.memory_bytes() / kWarmJudgesMemoryShare;
  });
  Progress(work, "load", "the reference");
  const absl::Time begin = SteadyNow();
  auto judge = JudgeProcess::Start(judge_config_);
  if (!judge.ok()) {
    result->set_infrastructure_failure(RepairUtf8(std::string(judge.status().message()), 64 << 10));
    return nullptr;
  }
  JudgeAnswer answer = (*judge)->Load(
      problem, options, check,
      [&](const std::string& stage, const std::string& detail) { Progress(work, stage, detail); },
      [&] { return work->cancelled.load(); });
  switch (answer.kind) {
    case JudgeAnswer::Kind::kDone:
      break;
    case JudgeAnswer::Kind::kProblem:
      result->set_problem_error(answer.message);
      return nullptr;
    case JudgeAnswer::Kind::kInfrastructure:
      result->set_infrastructure_failure(answer.message);
      return nullptr;
    case JudgeAnswer::Kind::kDied: {
      const sandbox::Ending& ending = (*judge)->process().Wait();
      if (ending.kind == sandbox::Ending::Kind::kLimit) {
        result->set_problem_error(absl::StrCat("the problem needs more than the judge may have: ", answer.message));
      } else {
        JudgeDied(key, answer.message, result);
      }
      return nullptr;
    }
  }
  WarmJudge warm;
  warm.problem = key;
  const nlohmann::json empty = nlohmann::json::object();
  auto description = ParseDescription(answer.body.contains("description") ? answer.body["description"] : empty);
  if (!description.ok()) {
    result->set_infrastructure_failure(std::string(description.status().message()));
    return nullptr;
  }
  warm.description = *std::move(description);
  warm.judge = *std::move(judge);
  // What only a process with the device open can know.
  const nlohmann::json& hello = warm.judge->hello();
  if (hello.contains("device") && hello["device"].is_object()) {
    const nlohmann::json& d = hello["device"];
    std::lock_guard<std::mutex> lock(mutex_);
    if (device_.multiprocessors() == 0 && d.contains("multiprocessors") && d["multiprocessors"].is_number_integer()) {
      device_.set_multiprocessors(d["multiprocessors"].get<int>());
    }
    if (device_.l2_bytes() == 0 && d.contains("l2_bytes") && d["l2_bytes"].is_number_integer()) {
      device_.set_l2_bytes(d["l2_bytes"].get<int64_t>());
    }
    if (hello.contains("torch") && hello["torch"].is_string()) device_.set_torch(hello["torch"].get<std::string>());
  }
  warm.description.set_sha256(work->problem_sha256);
  *warm.description.mutable_device() = device_;
  judges_.push_front(std::move(warm));
  RecordStage(work, "load", begin);
  return &judges_.front();
}

void PipelineImpl::Describe(const WorkPtr& work) {
  SetSlot("checking");
  const v1::DescribeWork& describe = work->assignment.describe();
  v1::EvaluationOptions options = describe.options();
  *options.mutable_limits() = work->limits;
  v1::WorkResult result;
  WarmJudge* judge = GetJudge(work, describe.problem(), options, &result);
  if (judge != nullptr) {
    judge_deaths_.erase(judge->problem);
    *result.mutable_description() = judge->description;
    if (describe.check()) judges_.pop_front();
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
  SetSlot("checking");
  const bool python = evaluate.candidate().format() == v1::CANDIDATE_FORMAT_KERNELBENCH;
  v1::EvaluationOptions options = evaluate.options();
  *options.mutable_limits() = work->limits;
  // Who has nobody to be compared with has all the time for itself.
  if (work->whole == nullptr) options.clear_replicas();

  v1::WorkResult failure;
  WarmJudge* judge = GetJudge(work, evaluate.problem(), options, &failure);
  if (judge == nullptr) return FinishUnjudged(work, std::move(failure));

  EnterSlot("starting");
  const absl::Time begin = SteadyNow();
  auto candidate = pool_->Take(python, work->limits);
  if (!candidate.ok()) {
    failure.set_infrastructure_failure(RepairUtf8(std::string(candidate.status().message()), 64 << 10));
    return FinishUnjudged(work, std::move(failure));
  }
  SeenCode code;
  if (absl::Status sent = SendProgram(evaluate.candidate(), *work->built, &*candidate, &code.objects); !sent.ok()) {
    return Fail(work, std::string(sent.message()));
  }
  std::optional<PreparedCandidate> rival;
  const bool rival_python = evaluate.rival().format() == v1::CANDIDATE_FORMAT_KERNELBENCH;
  if (compared) {
    auto started = pool_->Take(rival_python, work->limits);
    if (!started.ok()) {
      failure.set_infrastructure_failure(RepairUtf8(std::string(started.status().message()), 64 << 10));
      return FinishUnjudged(work, std::move(failure));
    }
    rival = *std::move(started);
    std::set<sandbox::FileIdentity> its;
    if (absl::Status sent = SendProgram(evaluate.rival(), *work->rival_built, &*rival, &its); !sent.ok()) {
      return Fail(work, std::string(sent.message()));
    }
  }
  RecordStage(work, "start", begin);
  EnterSlot("checking");
  // The next one gets ready while this one is checked, and stands still while it is timed.
  pool_->Restock(python);

  absl::Time cancelled_at = absl::InfiniteFuture();
  const auto cancelled = [&] {
    if (!work->cancelled) return false;
    if (cancelled_at == absl::InfiniteFuture()) {
      // The candidate dies at once, the judge notices and stays warm.
      cancelled_at = SteadyNow();
      candidate->process->Kill();
      if (rival.has_value()) rival->process->Kill();
    }
    return SteadyNow() - cancelled_at > kCancelGrace;
  };
  std::string stage;
  absl::Time stage_begin = SteadyNow();
  // What code it has in memory, seen while it works: at the start of every draw, and now and then while it is timed.
  // Whether it was written over is asked where a policy rests on it: on a CPU, of a script (whose torch makes it slow)
  // once.
  const bool policy = (options.work() == v1::WORK_POLICY_LIBRARIES || options.work() == v1::WORK_POLICY_OWN_KERNELS) &&
                      Device().kind() != v1::DEVICE_KIND_CUDA;
  code.before = sandbox::ExecutableMappings(candidate->process->Pids(), policy && !python);
  code.after = code.before;
  absl::Time next_look = absl::InfinitePast();
  const auto look = [&](bool timing, bool changes) {
    if (timing && SteadyNow() < next_look) return;
    next_look = SteadyNow() + kLookInterval;
    code.after.merge(sandbox::ExecutableMappings(candidate->process->Pids(), changes));
  };
  std::atomic<bool> candidate_held{false};
  std::optional<WorkWatch> watch;
  const auto end_watch = [&] {
    if (!watch.has_value()) return;
    const WatchedWork seen = watch->Finish();
    watch.reset();
    // What was in memory only for the time of a call is seen where it ran.
    for (const auto& [mapped, seconds] : seen.seconds) code.after.insert(mapped);
    if (code.watched.has_value()) {
      code.watched->Add(seen);
    } else {
      code.watched = seen;
    }
  };
  // The judge waits for the answer, so that the candidate still runs when it is looked at, however late that is.
  const auto on_watch = [&](bool on) {
    end_watch();
    // (Of a script the pages are gone through once: its torch makes that long.)
    look(/*timing=*/false, /*changes=*/!python || !code.watched.has_value());
    if (on) {
      watch.emplace([process = candidate->process.get()] { return process->Pids(); },
                    [&candidate_held] { return candidate_held.load(); });
    }
    return code.watched.has_value() && SeenEnough(*code.watched);
  };
  // At the beginning and at the end, while the judge and the candidate hold the device; also where nothing was timed,
  // for others may be why.
  bool looked = false;
  std::optional<int> foreign;
  const auto look_for_others = [&] {
    if (const std::optional<int> now = health_->ForeignProcesses()) foreign = std::max(foreign.value_or(0), *now);
  };
  const auto on_progress = [&](const std::string& name, const std::string& detail) {
    // Long before timing: NVML takes a moment.
    if (!options.skip_timing() && !std::exchange(looked, true)) look_for_others();
    if (name != stage) {
      stage = name;
      stage_begin = SteadyNow();
      SetSlot(name == "time" ? "timing" : "checking");
      EnterSlot(name == "time" ? "timing" : "checking");
      pool_->Quiet(name == "time");
    }
    look(name == "time", policy && !python);
    Progress(work, name, detail);
  };
  const absl::Time judged_from = SteadyNow();
  // Both have their own clock for what they do; the judge asks them one after the other.
  const absl::Time deadline =
      judged_from + (rival.has_value() ? 2 : 1) * absl::Seconds(work->limits.run_wall_seconds()) + kJudgeGrace;
  const auto contestant = [](bool is_python, PreparedCandidate* prepared) {
    JudgeProcess::Contestant one;
    one.python = is_python;
    one.channel = std::move(prepared->judge_end);
    if (prepared->process->CanHold()) {
      one.hold = [process = prepared->process.get()](bool held) { return process->Hold(held).ok(); };
    }
    return one;
  };
  std::optional<JudgeProcess::Contestant> against;
  if (rival.has_value()) against = contestant(rival_python, &*rival);
  JudgeProcess::Contestant judged = contestant(python, &*candidate);
  if (judged.hold) {
    judged.hold = [hold = std::move(judged.hold), &candidate_held](bool held) {
      candidate_held = held;
      return hold(held);
    };
  }
  if (policy) judged.watch = on_watch;
  JudgeAnswer answer =
      judge->judge->Evaluate(std::move(judged), std::move(against), options, deadline, on_progress, cancelled);
  end_watch();
  if (!options.skip_timing()) look_for_others();
  RecordStage(work, "judge", judged_from);
  EnterSlot("ending");
  pool_->Quiet(false);
  const absl::Time ending_from = SteadyNow();

  std::string ended;
  if (answer.kind == JudgeAnswer::Kind::kDone && answer.body.contains("ended") && answer.body["ended"].is_string()) {
    ended = answer.body["ended"].get<std::string>();
  }
  const bool gone = ended == "candidate_gone";
  // Whatever it is doing; a process that is already on its way out may name its own end first.
  if (gone) candidate->process->WaitFor(kEndGrace);
  candidate->process->Kill();
  sandbox::Ending ending = candidate->process->Wait();
  candidate->process.reset();
  std::optional<sandbox::Ending> rival_ending;
  const bool rival_gone =
      answer.kind == JudgeAnswer::Kind::kDone && answer.body.value("rival_ended", "") == "candidate_gone";
  if (rival.has_value()) {
    if (rival_gone) rival->process->WaitFor(kEndGrace);
    rival->process->Kill();
    rival_ending = rival->process->Wait();
    rival.reset();
    // A process that does not die disturbs whatever comes next, whosever it is.
    if (ending.leftover == nullptr) ending.leftover = rival_ending->leftover;
  }
  RecordStage(work, "end", ending_from);

  if (work->cancelled) {
    if (!judge->judge->Alive()) DropJudge(judge->problem);
    // Killed in the middle of whatever it did: the device must be well for the next one.
    std::string why;
    if (!Stopping()) DeviceIsWell(ending, health_->TakeXids(false), "a cancelled evaluation", &why);
  } else if (answer.kind == JudgeAnswer::Kind::kDied) {
    v1::WorkResult result;
    JudgeDied(judge->problem, answer.message, &result);
    std::string why;
    if (!DeviceIsWell(ending, health_->TakeXids(true), "the death of a judge", &why)) {
      result.set_infrastructure_failure(why);
    }
    Finish(work, std::move(result));
  } else if (answer.kind != JudgeAnswer::Kind::kDone) {
    // It may still hold a device error: a fresh one costs seconds, a wrong verdict more.
    DropJudge(judge->problem);
    std::string why;
    const bool well = DeviceIsWell(ending, health_->TakeXids(true), "a judge's failure", &why);
    if (well && answer.kind == JudgeAnswer::Kind::kProblem) {
      v1::WorkResult result;
      result.set_problem_error(answer.message);
      Finish(work, std::move(result));
    } else {
      Fail(work, well ? answer.message : why);
    }
  } else {
    auto result = answer.body.contains("result") ? ParseResult(answer.body["result"])
                                                 : absl::InternalError("the judge gave no result");
    if (!result.ok()) {
      v1::WorkResult died;
      JudgeDied(judge->problem, std::string(result.status().message()), &died);
      Finish(work, std::move(died));
    } else {
      judge_deaths_.erase(judge->problem);
      MergeEnding(ending, gone, &*result);
      if (evaluate.has_rival()) {
        MergeRival(work->rival_built.has_value() ? &*work->rival_built : nullptr,
                   rival_ending.has_value() ? &*rival_ending : nullptr, rival_gone, &*result);
      }
      if (foreign.has_value()) {
        MergeForeign(*foreign, &*result);
        std::lock_guard<std::mutex> lock(mutex_);
        stats_.shared_timings_total += *foreign > 0 && result->has_timing() ? 1 : 0;
      }
      *result->mutable_device() = DeviceOfResult();
      *result->mutable_build() = work->built->report;
      if (work->instructions.has_value()) code.functions = work->instructions->functions;
      auto breach = JudgeWork(evaluate.candidate(), options, code, &*result);
      if (breach.has_value() && result->verdict() == v1::VERDICT_CORRECT && !work->no_instructions.empty()) {
        result->set_verdict(v1::VERDICT_UNMEASURABLE);
        result->set_reason(
            absl::StrCat("whose work it is, as the job requires, could not be told: ", *breach,
                         ", and the functions of its extensions are not known: ", work->no_instructions));
        result->clear_timing();
      } else if (breach.has_value() && result->verdict() == v1::VERDICT_CORRECT) {
        result->set_verdict(v1::VERDICT_CHEATED);
        result->set_reason(absl::StrCat("the work is not the candidate's own, as the job requires: ", *breach));
        result->mutable_fault()->set_stage("check");
        result->mutable_fault()->set_evidence(absl::StrCat(*breach, " (", result->work().how(), ")"));
      } else if (policy && result->verdict() == v1::VERDICT_CORRECT) {
        if (const auto unseen = WorkUnseen(evaluate.candidate(), code); unseen.has_value()) {
          result->set_verdict(v1::VERDICT_UNMEASURABLE);
          result->set_reason(absl::StrCat("whose work it is, as the job requires, could not be told: ", *unseen));
          result->clear_timing();
        }
      }
      AddFloor(judge->description, options, /*native=*/!python, &*result);
      const v1::Verdict verdict = result->verdict();
      const auto is_fault = [](v1::Verdict one) {
        return one == v1::VERDICT_CRASHED || one == v1::VERDICT_TIMED_OUT || one == v1::VERDICT_LIMIT_EXCEEDED;
      };
      const bool faulted = is_fault(verdict) || is_fault(result->rival().verdict());
      const bool doubtful = verdict == v1::VERDICT_WRONG && absl::Now() - health_->LastPass() > kWrongCanary;
      const XidFindings xids = health_->TakeXids(faulted);
      std::string why;
      if (DeviceIsWell(ending, xids, faulted || doubtful ? v1::Verdict_Name(verdict) : "", &why)) {
        MergeXids(xids, &*result);
        if (options.profile() && verdict == v1::VERDICT_CORRECT) Profile(work, *judge, &*result);
        FinishEvaluation(work, *std::move(result));
      } else {
        // No verdict comes from a device that is not well.
        Fail(work, why);
      }
    }
  }
  if (!Stopping() && !health_->Quarantined()) pool_->Restock(python);
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
  SetSlot("checking");
  EnterSlot("profiling");
  Progress(work, "profile", "Nsight Compute");
  const absl::Time begin = SteadyNow();
  // Nothing else starts while counters are read.
  pool_->Quiet(true);
  const v1::Candidate& candidate = work->assignment.evaluate().candidate();
  const bool python = candidate.format() == v1::CANDIDATE_FORMAT_KERNELBENCH;
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
  const auto send = [&](PreparedCandidate* prepared) {
    process = prepared->process.get();
    std::set<sandbox::FileIdentity> own;
    return SendProgram(candidate, *work->built, prepared, &own);
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
  EnterSlot("ending");
  // It may still hold a device error.
  if (judge_failed || !judge.judge->Alive()) DropJudge(judge.problem);
  // What it left on the device is for the next one; this verdict was given before.
  if (outcome.ending.has_value() && !Stopping()) {
    std::string why;
    const bool doubtful = !outcome.unavailable.empty() && !work->cancelled;
    DeviceIsWell(*outcome.ending, health_->TakeXids(doubtful), doubtful ? "a profile that failed" : "", &why);
  }
}

// Its result goes to `result`, which must outlive it.
PipelineImpl::WorkPtr PipelineImpl::OnBehalfOf(const WorkPtr& work, const v1::EvaluateWork& evaluate,
                                               std::optional<v1::WorkResult>* result) {
  auto inner = std::make_shared<Work>();
  *inner->assignment.mutable_lease() = work->assignment.lease();
  *inner->assignment.mutable_evaluate() = evaluate;
  inner->cancelled.Follow(work->cancelled);
  inner->limits = sandbox::FillLimits(evaluate.options().limits(), options_.default_limits, device_.kind(),
                                      device_.kind() == v1::DEVICE_KIND_CUDA ? device_.memory_bytes() : 0);
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
  judges_.clear();
  auto judge = JudgeProcess::Start(judge_config_);
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
  SetSlot("timing");
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
    if (absl::Status saved = SaveCalibration(options_.paths.state_dir, calibration_key_, *calibration); !saved.ok()) {
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
  const absl::Time deadline = SteadyNow() + kSlowDeath;
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
    health_->QuarantineFor(
        ending.leftover, absl::StrCat("process ", ending.leftover->pid(), " of a candidate did not die after SIGKILL"));
  } else if (!xids.device.empty()) {
    health_->Quarantine(
        absl::StrCat("it reported ", xids.Text(), "; what to do: ", device::MeaningOf(xids.device.front()).action));
  } else if (fault.empty()) {
    return true;
  } else {
    // A waiting candidate may share the fault with the one that caused it. The judge has a context of its own, and its
    // next answer shows whether that still works.
    if (device_.kind() == v1::DEVICE_KIND_CUDA) pool_->Clear();
    if (health_->PassesAfter(fault)) return true;
  }
  *why = absl::StrCat("device ", device_.name(), " is ", health_->Text());
  ShowQuarantine();
  return false;
}

void PipelineImpl::ShowQuarantine() {
  // First of all, so that the heartbeat ahead of the result says it.
  SetSlot("quarantined");
  EnterSlot("quarantined");
  pool_->Clear();
  judges_.clear();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Start(PipelineOptions options, OnProgress on_progress,
                                                          OnResult on_result) {
  auto pipeline = std::make_unique<PipelineImpl>(std::move(options), std::move(on_progress), std::move(on_result));
  GROVE_RETURN_IF_ERROR(pipeline->Init());
  return std::unique_ptr<Pipeline>(std::move(pipeline));
}

}  // namespace grove::worker
