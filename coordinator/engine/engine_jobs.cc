// Jobs from submission to end, those who watch them, and the views of their nodes.
#include <google/protobuf/arena.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "coordinator/engine/engine_loop.h"
#include "coordinator/engine/validate.h"

namespace grove::coordinator {
namespace engine_internal {

// ---------------------------------------------------------------------------------------------------- jobs

absl::StatusOr<Job*> EngineImpl::FindJob(const std::string& id) {
  auto it = jobs_.lower_bound(id);
  if (it != jobs_.end() && it->first == id) {
    if (it->second->stored) return it->second.get();
  } else if (id.size() >= 3 && it != jobs_.end() && absl::StartsWith(it->first, id)) {
    auto next = std::next(it);
    if (next != jobs_.end() && absl::StartsWith(next->first, id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("several jobs start with '", id, "', such as ", it->first, " and ", next->first));
    }
    if (it->second->stored) return it->second.get();
  }
  return absl::NotFoundError(absl::StrCat("there is no job '", Utf8Prefix(id, 64), "'",
                                          id.size() < 3 ? " (a prefix needs at least 3 characters)" : "",
                                          "; `grove jobs` lists them"));
}

absl::Status EngineImpl::LoadTree(Job& job) {
  job.used = ++uses_;
  if (job.tree != nullptr) return absl::OkStatus();
  auto tree = std::make_unique<JobTree>(job.id, deps_.make_policy);
  absl::Status folded;
  std::vector<char> block(64 << 10);
  google::protobuf::ArenaOptions arena_options;
  arena_options.initial_block = block.data();
  arena_options.initial_block_size = block.size();
  google::protobuf::Arena arena(arena_options);
  int since_reset = 0;
  GROVE_RETURN_IF_ERROR(store_.ReadEvents(job.id, 0, 0, [&](uint64_t seq, absl::string_view payload) {
    auto* event = google::protobuf::Arena::CreateMessage<v1::Event>(&arena);
    if (!event->ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      folded = absl::DataLossError(absl::StrCat("event ", seq, " of job ", job.id, " cannot be understood"));
      return false;
    }
    event->set_seq(seq);
    folded = tree->Apply(*event);
    if (++since_reset == 16) {
      arena.Reset();
      since_reset = 0;
    }
    return folded.ok();
  }));
  GROVE_RETURN_IF_ERROR(folded);
  if (tree->last_seq() == 0) {
    return absl::DataLossError(absl::StrCat("job ", job.id, " has no events; the journal is damaged"));
  }
  job.tree = std::move(tree);
  if (job.tree->ended()) loaded_.insert(&job);
  return absl::OkStatus();
}

void EngineImpl::ForgetTrees() {
  if (loaded_.size() <= kLoadedTrees || !dirty_.empty()) return;
  std::vector<Job*> loaded;
  for (Job* job : loaded_) {
    if (job->tree != nullptr && job->tree->ended()) loaded.push_back(job);
  }
  std::sort(loaded.begin(), loaded.end(), [](const Job* a, const Job* b) { return a->used > b->used; });
  while (loaded.size() > kLoadedTrees) {
    loaded.back()->tree.reset();
    loaded.pop_back();
  }
  loaded_ = absl::flat_hash_set<Job*>(loaded.begin(), loaded.end());
}

absl::Status EngineImpl::Restore() {
  now_ = clock_.Monotonic();
  GROVE_ASSIGN_OR_RETURN(committed_seq_, store_.LastSeq());
  next_seq_ = committed_seq_ + 1;
  GROVE_ASSIGN_OR_RETURN(const std::vector<store::BankRow> bank_rows, store_.ReadBank());
  GROVE_RETURN_IF_ERROR(bank_.Load(bank_rows));
  GROVE_ASSIGN_OR_RETURN(std::vector<store::JobRow> rows, store_.ReadJobs());
  std::vector<Job*> live;
  for (store::JobRow& row : rows) {
    auto job = std::make_unique<Job>();
    job->id = row.id;
    job->key = row.idempotency_key;
    job->created = row.created_unix_nanos;
    job->stored = true;
    keys_[job->key] = job->id;
    order_.push_back(job.get());
    Job* raw = jobs_.emplace(job->id, std::move(job)).first->second.get();
    if (row.ended) {
      v1::Job summary;
      if (!summary.ParseFromString(row.summary)) {
        return absl::DataLossError(absl::StrCat("the summary of job ", row.id, " cannot be understood"));
      }
      raw->summary = std::move(row.summary);
      raw->state = summary.state();
      raw->last_seq = summary.last_seq();
      continue;
    }
    GROVE_RETURN_IF_ERROR(LoadTree(*raw));
    RefreshView(*raw);
    live.push_back(raw);
    open_kernels_ += raw->tree->open_kernels();
  }
  std::sort(live.begin(), live.end(), [](const Job* a, const Job* b) { return a->id < b->id; });
  for (Job* job : live) {
    if (job->tree->put_to_work_unix_nanos() < absl::ToUnixNanos(options_.hold_before)) {
      Hold(*job);
    } else {
      BeginRun(*job);
    }
  }
  changed_ = true;
  Advance();
  Commit();
  return absl::OkStatus();
}

void EngineImpl::Hold(Job& job) {
  job.held = true;
  const std::string reason = absl::StrCat(kInterrupted, "; `grove resume ", job.id, "` goes on with it");
  if (job.tree->state() != v1::JOB_STATE_PAUSED || job.tree->state_reason() != reason) {
    Emit(job, StateEvent(v1::JOB_STATE_PAUSED, reason));
  }
}

void EngineImpl::Release(Job& job) {
  Emit(job, StateEvent(v1::JOB_STATE_RUNNING, ""));
  BeginRun(job);
}

// Puts a job that has not ended to work: after its submission, a restart or ResumeJob.
void EngineImpl::BeginRun(Job& job) {
  live_[job.id] = &job;
  job.held = false;
  // Nothing holds up here what was held elsewhere.
  if (job.tree->state() == v1::JOB_STATE_PAUSED && absl::StartsWith(job.tree->state_reason(), kInterrupted)) {
    Emit(job, StateEvent(v1::JOB_STATE_RUNNING, ""));
  }
  job.duplicates.clear();
  JobTree& tree = *job.tree;
  job.device = tree.options().device();
  // A job that was paused for want of a worker stays so until one comes.
  job.unfit = tree.state() == v1::JOB_STATE_PAUSED;
  job.unfit_since = job.unfit ? now_ : absl::InfiniteDuration();
  if (tree.is_search()) {
    auto search = std::make_unique<Search>();
    search->number = next_search_++;
    const double seconds = tree.spec().search().policy().max_seconds();
    if (seconds > 0) {
      const int64_t used = absl::ToUnixNanos(clock_.Now()) - tree.started_unix_nanos();
      search->deadline = now_ + absl::Seconds(seconds) - absl::Nanoseconds(used);
    }
    v1::JobSpec whole;
    absl::StatusOr<std::string> text = ReadBlob(tree.spec_sha256());
    if (!text.ok() || !whole.ParseFromString(*text)) {
      return EndJob(job, v1::JOB_STATE_FAILED,
                    text.ok() ? "its specification cannot be understood" : std::string(text.status().message()));
    }
    auto generator = deps_.make_generator(whole.search().generator());
    if (!generator.ok()) {
      return EndJob(job, v1::JOB_STATE_FAILED, absl::StrCat("generator: ", generator.status().message()));
    }
    search->generator = *std::move(generator);
    job.search = std::move(search);
  }
  if (tree.calibrates()) job.device = tree.spec().calibrate().device();
  if (tree.wants_description() || (tree.calibrates() && !tree.calibrated())) {
    if (tree.description().has_value()) {
      if (job.device == v1::DEVICE_KIND_UNSPECIFIED) job.device = tree.description()->device().kind();
    } else {
      scheduler::Work work;
      work.id = tree.OwnWorkId();
      work.job = job.id;
      work.device = job.device;
      work.worker = tree.spec().calibrate().worker();
      work.attempts = tree.own_lease().attempt;
      work.attempts_base = tree.own_lease().attempt_base;
      work.last_worker = tree.own_lease().worker;
      work.reasons = tree.own_lease().reasons;
      if (tree.own_lease().leased) {
        const std::string worker = work.last_worker;
        scheduler_.AddLeased(std::move(work), worker, now_);
      } else {
        scheduler_.Add(std::move(work), now_);
      }
    }
  } else if (job.device == v1::DEVICE_KIND_UNSPECIFIED && !tree.kernels().empty()) {
    job.device = DeviceOfFormat(tree.kernels()[0].format);
    for (const KernelRecord& kernel : tree.kernels()) {
      if (DeviceOfFormat(kernel.format) != job.device) job.device = v1::DEVICE_KIND_UNSPECIFIED;
    }
  }
  // Leases of the journal first: work that a duplicate or the policy asks for again is then here already.
  for (int k = 0; k < static_cast<int>(tree.kernels().size()); ++k) {
    if (tree.kernels()[k].leased) AddKernelWork(job, k);
  }
  if (!tree.is_search()) {
    for (int k = 0; k < static_cast<int>(tree.kernels().size()); ++k) Evaluate(job, k);
  }
}

void EngineImpl::EndJob(Job& job, v1::JobState state, const std::string& reason) {
  const int open = job.tree->open_kernels();
  Emit(job, StateEvent(state, reason));
  open_kernels_ -= open;
  for (const scheduler::Held& held : scheduler_.RemoveJob(job.id)) {
    Revoke(held.session, held.lease, absl::StrCat("job ", job.id, " has ended"));
  }
  if (job.search != nullptr) job.search->generator->Cancel();
  job.search.reset();
  job.duplicates.clear();
  job.unfit = false;
  job.unfit_since = absl::InfiniteDuration();
  job.used = ++uses_;
  loaded_.insert(&job);
  live_.erase(job.id);
  if (auto it = problems_.find(job.id); it != problems_.end()) {
    problem_bytes_ -= it->second.problem->source().size();
    problems_.erase(it);
  }
  LogInfo("engine", "job ", job.id, " ", LowerJobState(state), reason.empty() ? "" : ": ", reason);
}

v1::Job EngineImpl::View(const Job& job) const {
  v1::Job view;
  view.ParseFromString(job.summary);
  return view;
}

namespace {

// A specification as the journal keeps it: with every default spelt out, its candidates taken out.
struct StoredSpec {
  v1::JobSpec spec;
  std::vector<v1::Candidate> candidates;
};
StoredSpec ForJournal(const v1::JobSpec& asked,
                      const std::function<v1::SearchPolicy(const v1::SearchPolicy&)>& with_defaults) {
  StoredSpec stored{asked, {}};
  v1::JobSpec& spec = stored.spec;
  if (spec.has_search()) *spec.mutable_search()->mutable_policy() = with_defaults(spec.search().policy());
  if (spec.has_eval()) {
    for (v1::Candidate& candidate : *spec.mutable_eval()->mutable_candidates()) {
      stored.candidates.push_back(std::move(candidate));
    }
    spec.mutable_eval()->clear_candidates();
  }
  if (spec.name().empty()) {
    spec.set_name(spec.has_search()          ? spec.search().problem().name()
                  : spec.has_check_problem() ? spec.check_problem().problem().name()
                  : spec.has_calibrate()     ? std::string("calibration")
                                             : spec.eval().problem().name());
  }
  return stored;
}

}  // namespace

absl::Status EngineImpl::CheckSameWork(Job& job, const v1::JobSpec& asked) {
  const StoredSpec stored = ForJournal(asked, deps_.with_defaults);
  GROVE_RETURN_IF_ERROR(LoadTree(job));
  const JobTree& tree = *job.tree;
  bool same = tree.spec_sha256() == Sha256Hex(stored.spec.SerializeAsString());
  if (same && asked.has_eval()) {
    same = tree.kernels().size() == stored.candidates.size();
    for (size_t i = 0; same && i < stored.candidates.size(); ++i) {
      const int first = tree.FindProgram(ProgramSha256(stored.candidates[i]));
      same = first == static_cast<int>(i) || (first >= 0 && tree.kernels()[i].duplicate_of == first);
    }
  }
  if (same) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the idempotency key was used already for job ", job.id,
      ", which is other work than this: the same key repeats a submission, and a new one needs a new key"));
}

void EngineImpl::DoSubmit(const v1::SubmitJobRequest& request, Reply<v1::SubmitJobResponse> reply) {
  const auto answer = [this](Job* job, bool existed) {
    return [this, job, existed]() -> absl::StatusOr<v1::SubmitJobResponse> {
      v1::SubmitJobResponse response;
      *response.mutable_job() = View(*job);
      response.set_existed(existed);
      return response;
    };
  };
  if (auto known = keys_.find(request.idempotency_key()); known != keys_.end()) {
    Job* job = jobs_.at(known->second).get();
    if (absl::Status status = CheckSameWork(*job, request.spec()); !status.ok()) return reply(status);
    if (job->held && job->live() && !draining_) Release(*job);
    return AfterCommit<v1::SubmitJobResponse>(reply, answer(job, true));
  }
  if (draining_) {
    return reply(absl::UnavailableError("the coordinator is draining and takes no new jobs; submit later"));
  }
  if (absl::Status status = ValidateSubmit(request, deps_.validate_policy); !status.ok()) return reply(status);
  if (static_cast<int>(live_.size()) >= kMaxLiveJobs ||
      open_kernels_ + request.spec().eval().candidates_size() > kMaxOpenKernels) {
    return reply(absl::ResourceExhaustedError(
        absl::StrCat(live_.size(), " jobs with ", open_kernels_, " evaluations wait already; submit again later")));
  }
  if (request.spec().has_search()) {
    auto generator = deps_.make_generator(request.spec().search().generator());
    if (!generator.ok()) return reply(generator.status());
  }
  auto [spec, candidates] = ForJournal(request.spec(), deps_.with_defaults);

  auto owned = std::make_unique<Job>();
  Job& job = *owned;
  do {
    job.id = RandomId("j-", 8);
  } while (jobs_.contains(job.id));
  job.key = request.idempotency_key();
  job.created = absl::ToUnixNanos(clock_.Now());
  job.tree = std::make_unique<JobTree>(job.id, deps_.make_policy);
  jobs_[job.id] = std::move(owned);
  order_.push_back(&job);
  keys_[job.key] = job.id;

  v1::Event event;
  v1::JobCreated* created = event.mutable_job_created();
  created->set_idempotency_key(job.key);
  created->set_spec_sha256(PutBlob(spec.SerializeAsString()));
  if (spec.has_search()) {
    spec.mutable_search()->mutable_problem()->clear_source();
    spec.mutable_search()->mutable_generator()->clear_recording();
  }
  if (spec.has_check_problem()) spec.mutable_check_problem()->mutable_problem()->clear_source();
  if (spec.has_eval()) {
    spec.mutable_eval()->mutable_problem()->clear_source();
    if (spec.eval().has_rival()) spec.mutable_eval()->mutable_rival()->clear_source();
  }
  *created->mutable_spec() = spec;
  Emit(job, std::move(event));

  for (v1::Candidate& candidate : candidates) {
    v1::Event written;
    v1::KernelNode* kernel = written.mutable_kernel_written()->mutable_kernel();
    const int index = static_cast<int>(job.tree->kernels().size());
    kernel->set_id(job.tree->KernelId(index));
    kernel->set_state(v1::NODE_STATE_OPEN);
    kernel->set_program_sha256(ProgramSha256(candidate));
    if (const int same = job.tree->FindProgram(kernel->program_sha256()); same >= 0) {
      kernel->set_duplicate_of(job.tree->KernelId(same));
    }
    kernel->set_source_sha256(PutBlob(std::move(*candidate.mutable_source())));
    candidate.clear_source();
    *kernel->mutable_candidate() = std::move(candidate);
    Emit(job, std::move(written));
  }
  BeginRun(job);
  AfterCommit<v1::SubmitJobResponse>(std::move(reply), answer(&job, false));
}

absl::StatusOr<v1::Job> EngineImpl::DoGetJob(const std::string& id) {
  GROVE_ASSIGN_OR_RETURN(Job * job, FindJob(id));
  v1::Job view = View(*job);
  std::string sha256;
  if (job->tree != nullptr) {
    sha256 = job->tree->spec_sha256();
  } else {
    // The first event names the blob; folding the whole tree for it would be a waste.
    absl::Status parsed;
    GROVE_RETURN_IF_ERROR(store_.ReadEvents(job->id, 0, 1, [&](uint64_t, absl::string_view payload) {
      v1::Event event;
      if (event.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
        sha256 = event.job_created().spec_sha256();
      }
      return false;
    }));
  }
  GROVE_ASSIGN_OR_RETURN(const std::string text, ReadBlob(sha256));
  if (!view.mutable_spec()->ParseFromString(text)) {
    return absl::DataLossError(absl::StrCat("the specification of job ", job->id, " cannot be understood"));
  }
  return view;
}

v1::ListJobsResponse EngineImpl::DoListJobs(const v1::ListJobsRequest& request) {
  v1::ListJobsResponse response;
  const int limit = request.limit() <= 0 ? 50 : std::min(request.limit(), 1000);
  for (auto it = order_.rbegin(); it != order_.rend() && response.jobs_size() < limit; ++it) {
    const Job& job = **it;
    if (!job.stored) continue;
    if (request.state() != v1::JOB_STATE_UNSPECIFIED && job.state != request.state()) continue;
    *response.add_jobs() = View(job);
  }
  return response;
}

void EngineImpl::DoCancel(const v1::CancelJobRequest& request, Reply<v1::Job> reply) {
  absl::StatusOr<Job*> found = FindJob(request.id());
  if (!found.ok()) return reply(found.status());
  Job* job = *found;
  if (!job->live()) {
    if (job->state == v1::JOB_STATE_CANCELLED) return reply(View(*job));
    return reply(absl::FailedPreconditionError(
        absl::StrCat("job ", job->id, " has ended already (", LowerJobState(job->state), ")")));
  }
  EndJob(*job, v1::JOB_STATE_CANCELLED, request.reason());
  AfterCommit<v1::Job>(std::move(reply), [this, job]() -> absl::StatusOr<v1::Job> { return View(*job); });
}

void EngineImpl::DoResume(const v1::ResumeJobRequest& request, Reply<v1::Job> reply) {
  absl::StatusOr<Job*> found = FindJob(request.id());
  if (!found.ok()) return reply(found.status());
  Job* job = *found;
  if (request.extra_rounds() < 0 || request.extra_evaluations() < 0 || request.extra_rounds() > 1000 ||
      request.extra_evaluations() > 1'000'000) {
    return reply(
        absl::InvalidArgumentError("extra_rounds must be between 0 and 1000, extra_evaluations between 0 and 1000000"));
  }
  const bool more = request.extra_rounds() > 0 || request.extra_evaluations() > 0;
  if (absl::Status status = LoadTree(*job); !status.ok()) return reply(status);
  if (more && !job->tree->is_search()) {
    return reply(absl::InvalidArgumentError(absl::StrCat("job ", job->id,
                                                         job->tree->calibrates()       ? " calibrates a device"
                                                         : job->tree->checks_problem() ? " checks a problem"
                                                                                       : " evaluates given candidates",
                                                         "; only a search has rounds to add")));
  }
  v1::Event event = StateEvent(v1::JOB_STATE_RUNNING, "");
  event.mutable_job_state()->set_extra_rounds(request.extra_rounds());
  event.mutable_job_state()->set_extra_evaluations(request.extra_evaluations());
  const auto answer = [this, job]() -> absl::StatusOr<v1::Job> { return View(*job); };
  if (job->live() && !job->held) {
    if (job->search != nullptr) {
      job->search->retry_at = now_;  // an outage is tried again at once
      if (job->search->outages > 1) job->search->outages = 1;
    }
    if (more) {
      event.mutable_job_state()->set_state(job->tree->state());
      event.mutable_job_state()->set_reason(job->tree->state_reason());
      Emit(*job, std::move(event));
    }
    return AfterCommit<v1::Job>(std::move(reply), answer);
  }
  if (draining_) {
    return reply(absl::UnavailableError("the coordinator is draining and takes no more work; resume later"));
  }
  if (job->live()) {
    if (more) {
      event.mutable_job_state()->set_state(job->tree->state());
      event.mutable_job_state()->set_reason(job->tree->state_reason());
      Emit(*job, std::move(event));
    }
    Release(*job);
    return AfterCommit<v1::Job>(std::move(reply), answer);
  }
  const JobTree& tree = *job->tree;
  const bool unfinished = tree.is_search()        ? !tree.policy()->Finished() || tree.WantedAgain() >= 0
                          : tree.calibrates()     ? !tree.calibrated()
                          : tree.checks_problem() ? !tree.description().has_value()
                                                  : tree.open_kernels() > 0;
  if (!more && !unfinished) {
    return reply(absl::FailedPreconditionError(
        tree.is_search()        ? absl::StrCat("search ", job->id,
                                               " has used its budget: say how many extra rounds or evaluations it gets "
                                                      "(--extra-rounds N, --extra-evaluations N)")
        : tree.checks_problem() ? absl::StrCat("job ", job->id, " has checked its problem")
        : tree.calibrates()     ? absl::StrCat("job ", job->id, " has calibrated its device; submit a new one")
                                : absl::StrCat("every candidate of job ", job->id, " has its verdict")));
  }
  // What the policy gave out before the job ended is forgotten with it; a policy told the journal gives it out again.
  job->tree.reset();
  if (absl::Status status = LoadTree(*job); !status.ok()) return reply(status);
  open_kernels_ += job->tree->open_kernels();
  Emit(*job, std::move(event));
  BeginRun(*job);
  AfterCommit<v1::Job>(std::move(reply), answer);
}

// ---------------------------------------------------------------------------------------------------- watching

bool EngineImpl::Serve(Job& job, Waiter& waiter) {
  EventBatch batch;
  batch.next_after_seq = waiter.after_seq;
  batch.next_progress = waiter.progress_cursor < 0 ? 0 : static_cast<uint64_t>(waiter.progress_cursor);
  bool broken = false;
  if (job.last_seq > waiter.after_seq) {
    absl::Status status =
        store_.ReadEvents(job.id, waiter.after_seq, waiter.max, [&](uint64_t seq, absl::string_view payload) {
          if (seq > job.last_seq) return false;
          v1::Event& event = batch.events.emplace_back();
          broken = !event.ParseFromArray(payload.data(), static_cast<int>(payload.size()));
          event.set_seq(seq);
          batch.next_after_seq = seq;
          return !broken;
        });
    if (broken) status = absl::DataLossError(absl::StrCat("an event of job ", job.id, " cannot be understood"));
    if (!status.ok()) {
      waiter.reply(status);
      return true;
    }
  }
  if (waiter.progress_cursor >= 0) {
    const uint64_t oldest = job.progress_next - job.progress.size();
    uint64_t at = std::max(batch.next_progress, oldest);
    for (; at < job.progress_next && static_cast<int>(batch.events.size()) < waiter.max; ++at) {
      batch.events.push_back(job.progress[at - oldest]);
    }
    batch.next_progress = std::min(at, job.progress_next);
  }
  batch.ended = IsEnded(job.state) && batch.next_after_seq >= job.last_seq;
  if (batch.events.empty() && !batch.ended) return false;
  waiter.reply(std::move(batch));
  return true;
}

void EngineImpl::DoNextEvents(const std::string& id, Waiter waiter) {
  absl::StatusOr<Job*> job = FindJob(id);
  if (!job.ok()) return waiter.reply(job.status());
  if (Serve(**job, waiter)) return;
  if (waiters_ >= kMaxWaiters) {
    return waiter.reply(absl::ResourceExhaustedError("too many watchers; try again later"));
  }
  ++waiters_;
  tickets_[waiter.ticket] = (*job)->id;
  (*job)->waiters.push_back(std::move(waiter));
}

void EngineImpl::ServeWaiters(Job& job) {
  std::vector<Waiter> waiting;
  waiting.swap(job.waiters);
  for (Waiter& waiter : waiting) {
    if (Serve(job, waiter)) {
      --waiters_;
      tickets_.erase(waiter.ticket);
    } else {
      job.waiters.push_back(std::move(waiter));
    }
  }
}

void EngineImpl::DoCancelWait(uint64_t ticket) {
  auto it = tickets_.find(ticket);
  if (it == tickets_.end()) return;
  std::vector<Waiter>& waiters = jobs_.at(it->second)->waiters;
  tickets_.erase(it);
  auto waiter = std::find_if(waiters.begin(), waiters.end(), [&](const Waiter& one) { return one.ticket == ticket; });
  if (waiter == waiters.end()) return;
  Reply<EventBatch> reply = std::move(waiter->reply);
  waiters.erase(waiter);
  --waiters_;
  reply(absl::CancelledError("the wait was cancelled"));
}

// ---------------------------------------------------------------------------------------------------- nodes

v1::IdeaNode EngineImpl::IdeaView(const Job& job, int index) const {
  const JobTree& tree = *job.tree;
  v1::IdeaNode idea = tree.ideas()[index];
  if (tree.policy() != nullptr) {
    idea.set_state(tree.policy()->IdeaState(idea.id()));
    idea.set_credit(tree.policy()->IdeaCredit(idea.id()));
  }
  if (tree.ended() && idea.state() == v1::NODE_STATE_OPEN) idea.set_state(v1::NODE_STATE_ABANDONED);
  return idea;
}

// `whole`: with source and the whole result, uncommitted events included (for generators); else as committed.
absl::StatusOr<v1::KernelNode> EngineImpl::KernelView(const Job& job, int index, bool whole) {
  const JobTree& tree = *job.tree;
  const KernelRecord& record = tree.kernels()[index];
  GROVE_ASSIGN_OR_RETURN(v1::Event written, ReadEvent(record.written_seq));
  v1::KernelNode kernel = std::move(*written.mutable_kernel_written()->mutable_kernel());
  kernel.set_attempt(record.attempt);
  kernel.set_survivor(record.survivor);
  kernel.set_explored(record.explored);
  kernel.set_state(tree.ended() ? v1::NODE_STATE_ABANDONED : v1::NODE_STATE_OPEN);
  std::string chosen_sha256;  // of the source with the parameters that were chosen
  if (record.finished_seq != 0 && (whole || record.finished_seq <= committed_seq_)) {
    const bool again = record.again_seq != 0 && (whole || record.again_seq <= committed_seq_);
    for (const uint64_t seq : {record.finished_seq, record.again_seq}) {
      if (seq == 0 || (seq == record.again_seq && !again)) continue;
      GROVE_ASSIGN_OR_RETURN(v1::Event finished, ReadEvent(seq));
      v1::EvaluationFinished& end = *finished.mutable_evaluation_finished();
      if (tree.is_search() && !end.result().timing().baselines().empty()) {
        *kernel.add_measured() = end.result().timing().baselines(0);
      }
      if (seq == record.finished_seq) chosen_sha256 = end.chosen_source_sha256();
      if (seq != (again ? record.result_seq() : record.finished_seq)) continue;
      *kernel.mutable_result() = std::move(*end.mutable_result());
      kernel.set_result_sha256(end.result_sha256());
    }
    kernel.set_state(v1::NODE_STATE_DONE);
  }
  if (!whole) return kernel;
  GROVE_ASSIGN_OR_RETURN(*kernel.mutable_candidate()->mutable_source(),
                         ReadBlob(chosen_sha256.empty() ? kernel.source_sha256() : chosen_sha256));
  if (!kernel.result_sha256().empty()) {
    GROVE_ASSIGN_OR_RETURN(v1::EvaluationResult result, ReadResult(kernel.result_sha256()));
    // The attempt is this kernel's own even where the result is shared with an equal one.
    result.set_attempt(kernel.result().attempt());
    *kernel.mutable_result() = std::move(result);
  }
  return kernel;
}

absl::StatusOr<std::vector<v1::TreeNode>> EngineImpl::DoGetTree(const std::string& id, int64_t offset, int max) {
  GROVE_ASSIGN_OR_RETURN(Job * job, FindJob(id));
  GROVE_RETURN_IF_ERROR(LoadTree(*job));
  const std::vector<int32_t>& order = job->tree->order();
  std::vector<v1::TreeNode> nodes;
  const int64_t end = std::min<int64_t>(static_cast<int64_t>(order.size()), offset + std::clamp(max, 1, 10'000));
  for (int64_t at = std::max<int64_t>(offset, 0); at < end; ++at) {
    if (order[at] < 0) {
      const int idea = -1 - order[at];
      if (job->tree->idea_seq(idea) > committed_seq_) break;
      *nodes.emplace_back().mutable_idea() = IdeaView(*job, idea);
    } else {
      if (job->tree->kernels()[order[at]].written_seq > committed_seq_) break;
      GROVE_ASSIGN_OR_RETURN(v1::KernelNode kernel, KernelView(*job, order[at], /*whole=*/false));
      if (kernel.result().has_build()) kernel.mutable_result()->mutable_build()->clear_log();
      *nodes.emplace_back().mutable_kernel() = std::move(kernel);
    }
  }
  return nodes;
}

absl::StatusOr<v1::TreeNode> EngineImpl::DoGetNode(const std::string& id) {
  const size_t slash = id.find('/');
  if (slash == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Utf8Prefix(id, 64), "' is no node: a node is named like j-2345abcd/k7 or j-2345abcd/i3"));
  }
  GROVE_ASSIGN_OR_RETURN(Job * job, FindJob(id.substr(0, slash)));
  GROVE_RETURN_IF_ERROR(LoadTree(*job));
  const std::string full = absl::StrCat(job->id, id.substr(slash));
  v1::TreeNode node;
  if (const int idea = job->tree->IdeaIndex(full); idea >= 0 && job->tree->idea_seq(idea) <= committed_seq_) {
    *node.mutable_idea() = IdeaView(*job, idea);
    return node;
  }
  const int kernel = job->tree->KernelIndex(full);
  if (kernel < 0 || job->tree->kernels()[kernel].written_seq > committed_seq_) {
    return absl::NotFoundError(absl::StrCat("job ", job->id, " has no node ", Utf8Prefix(id.substr(slash + 1), 64),
                                            "; `grove tree ", job->id, "` shows what there is"));
  }
  if (job->tree->kernels()[kernel].finished_seq > committed_seq_) {
    // Its verdict is not durable yet: the kernel as it stands in the journal.
    GROVE_ASSIGN_OR_RETURN(*node.mutable_kernel(), KernelView(*job, kernel, /*whole=*/false));
    GROVE_ASSIGN_OR_RETURN(*node.mutable_kernel()->mutable_candidate()->mutable_source(),
                           ReadBlob(node.kernel().source_sha256()));
    return node;
  }
  GROVE_ASSIGN_OR_RETURN(*node.mutable_kernel(), KernelView(*job, kernel, /*whole=*/true));
  return node;
}

absl::StatusOr<std::shared_ptr<const v1::Problem>> EngineImpl::ProblemOf(const Job& job) {
  auto it = problems_.find(job.id);
  if (it != problems_.end()) {
    it->second.used = ++uses_;
    return it->second.problem;
  }
  GROVE_ASSIGN_OR_RETURN(const std::string text, ReadBlob(job.tree->spec_sha256()));
  v1::JobSpec spec;
  if (!spec.ParseFromString(text)) return absl::DataLossError("a job's specification cannot be understood");
  auto problem = std::make_shared<v1::Problem>(spec.has_search()          ? spec.search().problem()
                                               : spec.has_check_problem() ? spec.check_problem().problem()
                                                                          : spec.eval().problem());
  problem_bytes_ += problem->source().size();
  std::shared_ptr<const v1::Candidate> rival;
  if (spec.eval().has_rival()) rival = std::make_shared<v1::Candidate>(spec.eval().rival());
  problems_[job.id] = {problem, rival, ++uses_};
  while (problem_bytes_ > kProblemCacheBytes && problems_.size() > 1) {
    auto oldest = std::min_element(problems_.begin(), problems_.end(),
                                   [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    problem_bytes_ -= oldest->second.problem->source().size();
    problems_.erase(oldest);
  }
  return problem;
}

}  // namespace engine_internal

}  // namespace grove::coordinator
