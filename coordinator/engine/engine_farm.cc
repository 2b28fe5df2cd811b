// Work, the workers who do it, and what came of it.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/tuning/declared.h"
#include "coordinator/engine/engine_loop.h"
#include "coordinator/engine/result_index.h"
#include "coordinator/engine/validate.h"

namespace grove::coordinator {
namespace engine_internal {

// ---------------------------------------------------------------------------------------------------- evaluations

Job* EngineImpl::JobOfWork(const std::string& work) {
  auto it = jobs_.find(work.substr(0, work.find('/')));
  return it == jobs_.end() || !it->second->live() ? nullptr : it->second.get();
}

void EngineImpl::AddKernelWork(Job& job, int kernel) {
  const LeaseRecord& lease = job.tree->lease(kernel);
  const KernelRecord& record = job.tree->kernels()[kernel];
  scheduler::Work work;
  work.id = job.tree->KernelId(kernel);
  if (scheduler_.Has(work.id)) return;
  work.job = job.id;
  work.device = job.tree->options().device();
  if (work.device == v1::DEVICE_KIND_UNSPECIFIED) {
    work.device = DeviceOfFormat(record.format);
    if (work.device == v1::DEVICE_KIND_UNSPECIFIED) {
      work.device = DeviceOfFormat(job.tree->spec().eval().rival().format());
    }
    if (work.device == v1::DEVICE_KIND_UNSPECIFIED) work.device = job.device;
  }
  // Tokens grow over both measurements of a kernel; the attempts of the first do not count against the second.
  work.attempts = std::max(lease.attempt, record.attempt);
  work.attempts_base = std::max(lease.attempt_base, record.finished_attempt);
  work.last_worker = lease.worker;
  work.reasons = lease.reasons;
  // Whether another kernel would lead, and is to be measured again in turn, hangs on the second measurement.
  work.front = record.finished_seq != 0;
  if (lease.leased) {
    scheduler_.AddLeased(std::move(work), lease.worker, now_);
  } else {
    scheduler_.Add(std::move(work), now_);
  }
}

// Sees to it that this kernel gets a verdict: its own, or that of an equal one.
void EngineImpl::Evaluate(Job& job, int kernel) {
  const KernelRecord& record = job.tree->kernels()[kernel];
  if (record.finished_seq != 0) return;
  const int original = record.duplicate_of;
  if (original < 0) {
    if (!FinishReused(job, kernel)) AddKernelWork(job, kernel);
    return;
  }
  if (job.tree->kernels()[original].finished_seq != 0) return FinishDuplicate(job, kernel, original);
  std::vector<int>& waiting = job.duplicates[original];
  if (std::find(waiting.begin(), waiting.end(), kernel) == waiting.end()) waiting.push_back(kernel);
  Evaluate(job, original);
}

void EngineImpl::FinishDuplicate(Job& job, int kernel, int original) {
  absl::StatusOr<v1::Event> shared = ReadEvent(job.tree->kernels()[original].result_seq());
  v1::Event event;
  v1::EvaluationFinished* finished = event.mutable_evaluation_finished();
  if (shared.ok()) {
    *finished = std::move(*shared->mutable_evaluation_finished());
  } else {
    finished->mutable_result()->set_verdict(v1::VERDICT_UNMEASURABLE);
    finished->mutable_result()->set_reason(absl::StrCat("the result of the equal kernel ", job.tree->KernelId(original),
                                                        " cannot be read: ", shared.status().message()));
  }
  finished->set_kernel(job.tree->KernelId(kernel));
  finished->set_attempt(0);  // nothing was run for it
  finished->set_confirmation(false);
  finished->mutable_result()->set_attempt(0);
  ++verdicts_[LowerVerdict(finished->result().verdict())];
  Emit(job, std::move(event));
}

bool EngineImpl::FinishReused(Job& job, int kernel) {
  // One that has been given out already may be running: its own result comes.
  if (!job.tree->options().reuse_result() || job.tree->kernels()[kernel].attempt > 0) return false;
  if (job.tree->spec().eval().has_rival()) return false;  // both must be measured in one go
  absl::StatusOr<std::shared_ptr<const v1::Problem>> problem = ProblemOf(job);
  absl::StatusOr<v1::Event> written = ReadEvent(job.tree->kernels()[kernel].written_seq);
  if (!problem.ok() || !written.ok()) return false;
  const v1::KernelNode& node = written->kernel_written().kernel();
  const uint64_t seq = results_.Get(
      ResultKey(**problem, node.candidate(), node.source_sha256(), job.tree->options(), options_.cache_salt));
  if (seq == 0) return false;
  absl::StatusOr<v1::Event> earlier = ReadEvent(seq);
  if (!earlier.ok()) return false;
  const v1::EvaluationFinished& from = earlier->evaluation_finished();
  absl::StatusOr<v1::EvaluationResult> stored = ReadResult(from.result_sha256());
  if (!stored.ok()) return false;
  v1::EvaluationResult whole = *std::move(stored);
  if (from.confirmation()) whole.clear_combinations();  // it is of the chosen source, which declares nothing
  bool same_machine = false;
  for (const scheduler::WorkerView& view : scheduler_.Workers()) {
    same_machine = same_machine || (view.session != 0 && SameMachine(whole.device(), view.hello.device()) &&
                                    view.hello.version() == whole.grove_version());
  }
  if (!same_machine) return false;
  whole.set_reused(true);
  FinishKernel(job, kernel, 0, std::move(whole));  // nothing was run for it
  return true;
}

// Has the kernel that would lead a search measured once more.
void EngineImpl::EvaluateAgain(Job& job) {
  const int kernel = job.tree->WantedAgain();
  if (kernel >= 0) AddKernelWork(job, kernel);
}

absl::StatusOr<v1::EvaluationResult> EngineImpl::ReadResult(const std::string& sha256) {
  GROVE_ASSIGN_OR_RETURN(const std::string text, ReadBlob(sha256));
  v1::EvaluationResult result;
  if (result.ParseFromString(text)) return result;
  return absl::DataLossError(absl::StrCat("the result ", sha256, " cannot be understood"));
}

// Puts the source with the values that the first result chose into a blob and names it; nothing where none were
// declared. Values that the source does not declare make the result UNMEASURABLE: nobody knows what was measured.
void EngineImpl::NameChosen(const Job& job, int kernel, v1::EvaluationResult* whole, v1::EvaluationFinished* finished) {
  const KernelRecord& record = job.tree->kernels()[kernel];
  if (record.finished_seq != 0) {
    // The chosen one alone was measured again; what was tried stands in the first result.
    whole->clear_combinations();
    absl::StatusOr<v1::Event> first = ReadEvent(record.finished_seq);
    if (!first.ok() || first->evaluation_finished().chosen_source_sha256().empty()) return;
    if (auto result = ReadResult(first->evaluation_finished().result_sha256()); result.ok()) {
      whole->mutable_combinations()->Swap(result->mutable_combinations());
    }
    finished->set_chosen_source_sha256(first->evaluation_finished().chosen_source_sha256());
    return;
  }
  const auto chosen = std::find_if(whole->combinations().begin(), whole->combinations().end(),
                                   [](const v1::Combination& one) { return one.chosen(); });
  if (chosen == whole->combinations().end()) return;
  std::vector<std::string> values;
  for (const v1::Parameter& parameter : chosen->parameters()) values.push_back(parameter.value());
  const auto with_values = [&]() -> absl::StatusOr<v1::Candidate> {
    GROVE_ASSIGN_OR_RETURN(const v1::Event written, ReadEvent(record.written_seq));
    GROVE_ASSIGN_OR_RETURN(const std::string source, ReadBlob(written.kernel_written().kernel().source_sha256()));
    GROVE_ASSIGN_OR_RETURN(const std::vector<tuning::Declared> declared, tuning::FindDeclared(source));
    v1::Candidate candidate = written.kernel_written().kernel().candidate();
    GROVE_ASSIGN_OR_RETURN(*candidate.mutable_source(), tuning::WithValues(source, declared, values));
    return candidate;
  };
  absl::StatusOr<v1::Candidate> candidate = with_values();
  if (candidate.ok()) {
    finished->set_chosen_program_sha256(ProgramSha256(*candidate));
    finished->set_chosen_source_sha256(PutBlob(std::move(*candidate->mutable_source())));
    return;
  }
  LogError("engine", "the chosen parameters of ", job.tree->KernelId(kernel),
           " do not fit: ", candidate.status().message());
  v1::EvaluationResult unfit;
  unfit.set_attempt(whole->attempt());
  unfit.set_verdict(v1::VERDICT_UNMEASURABLE);
  unfit.set_reason(absl::StrCat("the worker says that it chose parameters which the source does not declare (",
                                candidate.status().message(), "): are both of one version?"));
  *unfit.mutable_device() = whole->device();
  unfit.set_grove_version(whole->grove_version());
  *whole = std::move(unfit);
}

void EngineImpl::FinishKernel(Job& job, int kernel, int attempt, v1::EvaluationResult whole) {
  whole.set_attempt(attempt);
  v1::Event event;
  v1::EvaluationFinished* finished = event.mutable_evaluation_finished();
  NameChosen(job, kernel, &whole, finished);
  LimitWholeResult(&whole);
  finished->set_kernel(job.tree->KernelId(kernel));
  finished->set_attempt(attempt);
  finished->set_confirmation(job.tree->kernels()[kernel].finished_seq != 0);
  *finished->mutable_result() = BoundedResult(whole);
  finished->set_result_sha256(PutBlob(whole.SerializeAsString()));
  ++verdicts_[LowerVerdict(whole.verdict())];
  const uint64_t seq = next_seq_;
  Emit(job, std::move(event));
  if (auto key = job.result_keys.find(kernel); key != job.result_keys.end()) {
    // A later measurement stands for an earlier one.
    if (StandsForEqual(whole)) results_.Put(key->second, seq);
    job.result_keys.erase(key);
  }
  auto waiting = job.duplicates.find(kernel);
  if (waiting == job.duplicates.end()) return;
  const std::vector<int> equal = std::move(waiting->second);
  job.duplicates.erase(waiting);
  for (int one : equal) FinishDuplicate(job, one, kernel);
}

void EngineImpl::Lost(const scheduler::Loss& loss) {
  Job* job = JobOfWork(loss.work);
  if (job == nullptr) return;
  ++stats_.requeues_total;
  v1::Event event;
  v1::EvaluationRequeued* requeued = event.mutable_evaluation_requeued();
  requeued->set_kernel(loss.work);
  requeued->set_attempt(loss.attempt);
  requeued->set_reason(Utf8Prefix(loss.reason, 500));
  Emit(*job, std::move(event));
  if (!loss.given_up) return;
  const std::string why = absl::StrCat("given up after ", loss.reasons.size(),
                                       " attempts without a verdict: ", absl::StrJoin(loss.reasons, "; "));
  const int kernel = job->tree->KernelIndex(loss.work);
  if (kernel < 0) {
    EndJob(*job, v1::JOB_STATE_FAILED,
           absl::StrCat(job->tree->calibrates() ? "the device could not be calibrated; "
                                                : "the problem could not be described; ",
                        why));
    return;
  }
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_UNMEASURABLE);
  result.set_reason(Utf8Prefix(why, 2000));
  FinishKernel(*job, kernel, loss.attempt, std::move(result));
}

void EngineImpl::LeasedEvent(const std::string& work, int attempt, const std::string& worker) {
  Job* job = JobOfWork(work);
  if (job == nullptr) return;
  v1::Event event;
  event.mutable_evaluation_leased()->set_kernel(work);
  event.mutable_evaluation_leased()->set_attempt(attempt);
  event.mutable_evaluation_leased()->set_worker(worker);
  Emit(*job, std::move(event));
}

void EngineImpl::Assign(const scheduler::Grant& grant) {
  Job* job = JobOfWork(grant.work);
  if (job == nullptr) return;  // cannot be: a job that ends leaves the scheduler
  v1::CoordinatorMessage message;
  v1::Assignment* assignment = message.mutable_assignment();
  assignment->mutable_lease()->set_work(grant.work);
  assignment->mutable_lease()->set_attempt(grant.attempt);
  assignment->set_lease_seconds(absl::ToDoubleSeconds(options_.lease));
  LeasedEvent(grant.work, grant.attempt, grant.worker);
  ++stats_.leases_granted_total;
  std::vector<double>& waited = stages_["queue"];
  // By the clock and not by this turn's time: work that came and was given out in one turn waited as long as the turn
  // took, which on an idle farm is all of it.
  const absl::Duration in_queue = grant.waited + (clock_.Monotonic() - now_);
  if (waited.size() < kMaxStageSamples) waited.push_back(absl::ToDoubleSeconds(in_queue));

  const int kernel = job->tree->KernelIndex(grant.work);
  if (job->tree->calibrates()) {
    assignment->mutable_calibrate()->set_max_seconds(job->tree->spec().calibrate().max_seconds());
    assignment->mutable_calibrate()->set_runs(job->tree->spec().calibrate().runs());
    return SendAfterCommit(grant.session, std::move(message));
  }
  absl::StatusOr<std::shared_ptr<const v1::Problem>> problem = ProblemOf(*job);
  absl::Status status = problem.status();
  if (status.ok() && kernel < 0) {
    *assignment->mutable_describe()->mutable_problem() = **problem;
    *assignment->mutable_describe()->mutable_options() = job->tree->options();
    assignment->mutable_describe()->set_check(job->tree->checks_problem());
  } else if (status.ok()) {
    v1::EvaluateWork* work = assignment->mutable_evaluate();
    *work->mutable_problem() = **problem;
    *work->mutable_options() = job->tree->options();
    work->set_confirmation(job->tree->kernels()[kernel].finished_seq != 0);
    if (const auto& rival = problems_.at(job->id).rival; rival != nullptr) *work->mutable_rival() = *rival;
    absl::StatusOr<v1::Event> written = ReadEvent(job->tree->kernels()[kernel].written_seq);
    status = written.status();
    if (status.ok()) {
      *work->mutable_candidate() = std::move(*written->mutable_kernel_written()->mutable_kernel()->mutable_candidate());
      std::string sha256 = written->kernel_written().kernel().source_sha256();
      if (work->confirmation()) {
        // What was chosen of its parameters, and not all of them again.
        absl::StatusOr<v1::Event> first = ReadEvent(job->tree->kernels()[kernel].finished_seq);
        if (first.ok() && !first->evaluation_finished().chosen_source_sha256().empty()) {
          sha256 = first->evaluation_finished().chosen_source_sha256();
        }
      }
      absl::StatusOr<std::string> source = ReadBlob(sha256);
      status = source.status();
      if (status.ok() && !work->has_rival()) {
        job->result_keys[kernel] =
            ResultKey(**problem, work->candidate(), sha256, job->tree->options(), options_.cache_salt);
      }
      if (status.ok()) work->mutable_candidate()->set_source(*std::move(source));
    }
  }
  if (status.ok()) return SendAfterCommit(grant.session, std::move(message));
  // What is to be run cannot be read back: nothing that another attempt would mend.
  LogError("engine", "cannot assign ", grant.work, ": ", status.message());
  if (kernel < 0) return EndJob(*job, v1::JOB_STATE_FAILED, std::string(status.message()));
  scheduler_.Finish(grant.work, "");
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_UNMEASURABLE);
  result.set_reason(absl::StrCat("its source cannot be read back from the coordinator's store: ", status.message()));
  FinishKernel(*job, kernel, grant.attempt, std::move(result));
}

void EngineImpl::Revoke(uint64_t session, const v1::Lease& lease, const std::string& reason) {
  v1::CoordinatorMessage message;
  *message.mutable_revoke()->mutable_lease() = lease;
  message.mutable_revoke()->set_reason(reason);
  SendAfterCommit(session, std::move(message));
}

void EngineImpl::WorkerSaid(uint64_t session, v1::WorkerMessage message) {
  auto shared = std::make_shared<v1::WorkerMessage>(std::move(message));
  switch (shared->body_case()) {
    case v1::WorkerMessage::kHeartbeat:
      // While the store cannot be written leases stand still, and are renewed when it can be again.
      Post({Kind::kRead,
            [this, session, shared] {
              if (!store_error_.ok()) return;
              changed_ = true;
              DoHeartbeat(session, shared->heartbeat());
            },
            nullptr});
      return;
    case v1::WorkerMessage::kProgress:
      Post({Kind::kRead, [this, session, shared] { DoProgress(session, shared->progress()); }, nullptr});
      return;
    case v1::WorkerMessage::kResult:
      Post({Kind::kDefer, [this, session, shared] { DoResult(session, std::move(*shared->mutable_result())); },
            [this, session](absl::Status status) {
              // Too much waits for the store: the worker keeps its result and says it again when it has dialled in
              // anew.
              if (!absl::IsUnavailable(status)) return;  // the loop has ended, and with it all sessions
              auto it = sessions_.find(session);
              if (it != sessions_.end()) it->second.link->Close(std::move(status));
            }});
      return;
    default:
      Post({Kind::kRead,
            [this, session] {
              auto it = sessions_.find(session);
              if (it == sessions_.end()) return;
              it->second.link->Close(absl::InvalidArgumentError(
                  "after its hello a worker says heartbeat, progress or result, and nothing else"));
            },
            nullptr});
  }
}

void EngineImpl::DoHello(uint64_t session, const v1::WorkerHello& hello, const std::shared_ptr<WorkerLink>& link) {
  if (hello.protocol() != 1) {
    return link->Close(absl::FailedPreconditionError(
        absl::StrCat("the worker (version ", hello.version(), ") speaks protocol ", hello.protocol(),
                     ", this coordinator (version ", options_.version, ") protocol 1: install the same version")));
  }
  if (hello.worker_id().empty() || hello.worker_id().size() > 128) {
    return link->Close(absl::InvalidArgumentError("worker_id must have 1 to 128 characters"));
  }
  if (hello.device().kind() != v1::DEVICE_KIND_CPU && hello.device().kind() != v1::DEVICE_KIND_CUDA) {
    return link->Close(absl::InvalidArgumentError("a worker must say what device it has: CPU or CUDA"));
  }
  sessions_[session] = {link};
  scheduler::HelloOutcome outcome = scheduler_.Connect(session, hello, now_);
  if (outcome.replaced_session != 0) {
    auto old = sessions_.find(outcome.replaced_session);
    if (old != sessions_.end()) {
      old->second.link->Close(absl::AbortedError("the worker has opened a newer session"));
      sessions_.erase(old);
    }
  }
  for (const scheduler::Loss& loss : outcome.lost) Lost(loss);
  for (const scheduler::Grant& grant : outcome.taken_up) LeasedEvent(grant.work, grant.attempt, grant.worker);
  v1::CoordinatorMessage message;
  v1::Welcome* welcome = message.mutable_welcome();
  welcome->set_coordinator_version(options_.version);
  welcome->set_heartbeat_seconds(absl::ToDoubleSeconds(options_.heartbeat));
  welcome->set_lease_seconds(absl::ToDoubleSeconds(options_.lease));
  for (const v1::Lease& lease : outcome.revoked) *welcome->add_revoked() = lease;
  SendAfterCommit(session, std::move(message));
  LogInfo("engine", "worker ", hello.name().empty() ? hello.worker_id() : hello.name(),
          " connected: ", DeviceName(hello.device().kind()), ", ", hello.device().name(), ", capacity ",
          hello.capacity());
}

void EngineImpl::DoHeartbeat(uint64_t session, const v1::WorkerHeartbeat& heartbeat) {
  scheduler::HeartbeatOutcome outcome = scheduler_.Heartbeat(session, heartbeat, now_);
  for (const scheduler::Grant& grant : outcome.taken_up) LeasedEvent(grant.work, grant.attempt, grant.worker);
  for (const v1::Lease& lease : outcome.revoked) Revoke(session, lease, "the lease is no longer this worker's");
}

void EngineImpl::DoProgress(uint64_t session, const v1::WorkerProgress& progress) {
  const std::string* worker = scheduler_.WorkerOf(session);
  if (worker == nullptr || !scheduler_.Holds(*worker, progress.lease())) return;
  Job* job = JobOfWork(progress.lease().work());
  if (job == nullptr) return;
  v1::Event event;
  event.set_job(job->id);
  event.set_time_unix_nanos(absl::ToUnixNanos(clock_.Now()));
  event.mutable_progress()->set_kernel(progress.lease().work());
  event.mutable_progress()->set_stage(Utf8Prefix(progress.stage(), 64));
  event.mutable_progress()->set_detail(Utf8Prefix(progress.detail(), 512));
  job->progress.push_back(std::move(event));
  ++job->progress_next;
  if (job->progress.size() > kProgressRing) job->progress.pop_front();
  if (!job->waiters.empty()) ServeWaiters(*job);
}

void EngineImpl::DoResult(uint64_t session, v1::WorkResult result) {
  const std::string* name = scheduler_.WorkerOf(session);
  if (name == nullptr) return;  // a session that was replaced: the worker will say it again
  const std::string worker = *name;
  const v1::Lease lease = result.lease();
  v1::CoordinatorMessage message;
  *message.mutable_ack()->mutable_lease() = lease;
  Job* job = JobOfWork(lease.work());
  const int kernel = job == nullptr ? -1 : job->tree->KernelIndex(lease.work());
  if (job == nullptr || !scheduler_.Holds(worker, lease)) {
    // Told again because the acknowledgement was lost, or of an old token: either way nothing changes.
    const KernelRecord* record = kernel < 0 ? nullptr : &job->tree->kernels()[kernel];
    const bool stored = record != nullptr && lease.attempt() > 0 &&
                        ((record->finished_seq != 0 && record->finished_attempt == lease.attempt()) ||
                         (record->again_seq != 0 && record->again_attempt == lease.attempt()));
    message.mutable_ack()->set_stale(!stored);
    if (!stored) ++stats_.stale_results_total;
    return SendAfterCommit(session, std::move(message));
  }
  SendAfterCommit(session, std::move(message));
  std::string failure = result.infrastructure_failure();
  if (result.outcome_case() == v1::WorkResult::OUTCOME_NOT_SET) failure = "the worker sent a result without an outcome";
  if (result.outcome_case() == v1::WorkResult::kEvaluation &&
      (result.evaluation().verdict() == v1::VERDICT_UNSPECIFIED ||
       !v1::Verdict_IsValid(result.evaluation().verdict()))) {
    failure = "the worker sent a result without a verdict";
  }
  if (result.outcome_case() == v1::WorkResult::kInfrastructureFailure && failure.empty()) failure = "no reason given";
  const auto answer = kernel >= 0               ? v1::WorkResult::kEvaluation
                      : job->tree->calibrates() ? v1::WorkResult::kCalibration
                                                : v1::WorkResult::kDescription;
  if (failure.empty() && result.outcome_case() != answer && result.outcome_case() != v1::WorkResult::kProblemError) {
    failure = "the worker answered another question than it was asked";
  }
  if (!failure.empty()) {
    LogWarning("engine", lease.work(), " failed on ", worker, " without a verdict: ", failure);
    Lost(scheduler_.Fail(worker, lease, absl::StrCat("worker ", worker, ": ", Utf8Prefix(failure, 300)), now_));
    return;
  }
  scheduler_.Finish(lease.work(), worker);
  if (result.outcome_case() == v1::WorkResult::kProblemError) {
    v1::Event event;
    if (job->tree->calibrates()) {
      event.mutable_device_calibrated()->set_worker(worker);
      event.mutable_device_calibrated()->set_error(Utf8Prefix(result.problem_error(), 16 << 10));
    } else {
      event.mutable_problem_described()->set_error(Utf8Prefix(result.problem_error(), 16 << 10));
    }
    Emit(*job, std::move(event));
    EndJob(*job, v1::JOB_STATE_FAILED, Utf8Prefix(result.problem_error(), 2000));
    return;
  }
  if (result.has_calibration()) return Calibrated(*job, worker, result.calibration());
  if (kernel < 0) return Described(*job, std::move(*result.mutable_description()));
  v1::EvaluationResult& evaluation = *result.mutable_evaluation();
  for (const v1::StageTime& stage : evaluation.stages()) {
    // Names come from the worker: few, so that they may be labels.
    if (stages_.size() >= 32 && !stages_.contains(stage.stage())) continue;
    std::vector<double>& seconds = stages_[stage.stage().substr(0, 32)];
    if (seconds.size() < kMaxStageSamples) seconds.push_back(stage.seconds());
  }
  if (evaluation.has_build()) {
    ++(evaluation.build().cached() ? stats_.build_cache_hits_total : stats_.build_cache_misses_total);
  }
  evaluation.set_worker(worker);
  FinishKernel(*job, kernel, lease.attempt(), std::move(evaluation));
}

void EngineImpl::Described(Job& job, v1::ProblemDescription description) {
  if (description.ByteSizeLong() > kMaxDescriptionBytes) {
    description.clear_graph();
    description.clear_graph_outputs();
    description.set_graph_error("the graph is too large to be kept");
  }
  v1::Event event;
  if (job.device == v1::DEVICE_KIND_UNSPECIFIED) job.device = description.device().kind();
  *event.mutable_problem_described()->mutable_description() = std::move(description);
  Emit(job, std::move(event));
}

void EngineImpl::Calibrated(Job& job, const std::string& worker, const v1::Calibration& calibration) {
  scheduler_.SetCalibration(worker, calibration);
  v1::Event event;
  v1::DeviceCalibrated* calibrated = event.mutable_device_calibrated();
  calibrated->set_worker(worker);
  *calibrated->mutable_calibration() = calibration;
  for (const scheduler::WorkerView& view : scheduler_.Workers()) {
    if (view.id == worker) *calibrated->mutable_device() = view.hello.device();
  }
  calibrated->mutable_device()->clear_calibration();
  Emit(job, std::move(event));
}

v1::ListWorkersResponse EngineImpl::DoListWorkers() {
  v1::ListWorkersResponse response;
  for (const scheduler::WorkerView& view : scheduler_.Workers()) {
    v1::WorkerStatus* worker = response.add_workers();
    worker->set_worker_id(view.id);
    worker->set_name(view.hello.name());
    worker->set_version(view.hello.version());
    *worker->mutable_device() = view.hello.device();
    worker->set_capacity(view.hello.capacity());
    for (const v1::Lease& lease : view.running) *worker->add_running() = lease;
    worker->set_slot_state(view.slot_state);
    worker->set_health(view.health);
    worker->set_draining(view.draining);
    worker->set_connected(view.session != 0);
    worker->set_last_heartbeat_seconds(absl::ToDoubleSeconds(clock_.Monotonic() - view.last_heard));
    worker->set_evaluations(view.finished);
    *worker->mutable_sandbox_layers() = view.hello.sandbox_layers();
  }
  return response;
}

EngineStats EngineImpl::DoStats() {
  EngineStats stats = stats_;
  stats.queue_depth = scheduler_.queued();
  stats.queue_oldest_age_seconds = absl::ToDoubleSeconds(scheduler_.OldestQueuedAge(clock_.Monotonic()));
  stats.leases_active = scheduler_.leased();
  for (const auto& [name, count] : verdicts_) stats.verdicts_total.emplace_back(name, count);
  std::map<std::string, int64_t> workers = {
      {"idle", 0}, {"checking", 0}, {"timing", 0}, {"quarantined", 0}, {"disconnected", 0}};
  for (const scheduler::WorkerView& view : scheduler_.Workers()) {
    auto it = workers.find(view.session == 0 ? "disconnected" : view.slot_state);
    ++(it == workers.end() ? workers["idle"] : it->second);
  }
  for (const auto& [name, count] : workers) stats.workers_by_state.emplace_back(name, count);
  std::map<std::string, int64_t> jobs;
  for (int state = v1::JOB_STATE_RUNNING; state <= v1::JOB_STATE_FAILED; ++state) {
    jobs[LowerJobState(static_cast<v1::JobState>(state))] = 0;
  }
  for (const Job* job : order_) {
    if (job->stored) ++jobs[LowerJobState(job->state)];
  }
  for (const auto& [name, count] : jobs) stats.jobs_by_state.emplace_back(name, count);
  for (auto& [name, seconds] : stages_) stats.stage_seconds.emplace_back(name, std::move(seconds));
  stages_.clear();
  stats.store_bytes = store_.SizeBytes();
  return stats;
}

}  // namespace engine_internal

}  // namespace grove::coordinator
