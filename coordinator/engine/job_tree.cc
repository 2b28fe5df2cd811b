#include "coordinator/engine/job_tree.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"

namespace grove::coordinator {
namespace {

constexpr size_t kMaxReasons = 8;  // as the scheduler keeps

bool IsEnd(v1::JobState state) {
  return state == v1::JOB_STATE_DONE || state == v1::JOB_STATE_CANCELLED || state == v1::JOB_STATE_FAILED;
}

// The first 128 bits of a SHA-256 in hex.
absl::uint128 Key(absl::string_view sha256) {
  const auto half = [](absl::string_view hex) {
    uint64_t value = 0;
    for (char c : hex) value = value << 4 | static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    return value;
  };
  return absl::MakeUint128(half(sha256.substr(0, 16)), half(sha256.substr(16, 16)));
}

int IndexOf(absl::string_view id, absl::string_view job, char kind, size_t count) {
  if (!absl::StartsWith(id, job)) return -1;
  id.remove_prefix(job.size());
  int number = 0;
  if (id.size() < 3 || id[0] != '/' || id[1] != kind || id[2] == '0' || id[2] == '+' || id[2] == '-' ||
      !absl::SimpleAtoi(id.substr(2), &number)) {
    return -1;
  }
  return number >= 1 && static_cast<size_t>(number) <= count ? number - 1 : -1;
}

}  // namespace

bool JobTree::ended() const { return IsEnd(state_); }

std::string JobTree::KernelId(int index) const { return absl::StrCat(id_, "/k", index + 1); }
std::string JobTree::IdeaId(int index) const { return absl::StrCat(id_, "/i", index + 1); }
int JobTree::KernelIndex(absl::string_view id) const { return IndexOf(id, id_, 'k', kernels_.size()); }
int JobTree::IdeaIndex(absl::string_view id) const { return IndexOf(id, id_, 'i', ideas_.size()); }

int JobTree::FindProgram(const std::string& sha256) const {
  auto it = by_program_.find(Key(sha256));
  return it == by_program_.end() ? -1 : it->second;
}

std::string ProgramSha256(const v1::Candidate& candidate) {
  return Sha256HexOfParts({absl::StrCat(static_cast<int>(candidate.format())),
                           absl::StrJoin(candidate.build_flags(), "\n"), candidate.source()});
}

const LeaseRecord& JobTree::lease(int kernel) const {
  static const LeaseRecord* const none = new LeaseRecord;
  auto it = leases_.find(kernel);
  return it == leases_.end() ? *none : it->second;
}

absl::Status JobTree::Bad(const v1::Event& event, absl::string_view what) const {
  return absl::DataLossError(absl::StrCat("event ", event.seq(), " of job ", id_, ": ", what,
                                          "; the journal is damaged: restore the data folder from a copy"));
}

LeaseRecord* JobTree::LeaseOf(const std::string& work, int* kernel) {
  *kernel = KernelIndex(work);
  if (*kernel >= 0) {
    const KernelRecord& record = kernels_[*kernel];
    // A kernel is evaluated once, and one that would lead a search once more.
    const bool again = is_search() && record.verdict == v1::VERDICT_CORRECT && record.again_seq == 0;
    return record.finished_seq == 0 || again ? &leases_[*kernel] : nullptr;
  }
  return work == OwnWorkId() ? &own_lease_ : nullptr;
}

std::string JobTree::OwnWorkId() const { return absl::StrCat(id_, calibrates() ? "/calibrate" : "/describe"); }

absl::Status JobTree::Apply(const v1::Event& event) {
  if (event.body_case() != v1::Event::kJobCreated && spec_.kind_case() == v1::JobSpec::KIND_NOT_SET) {
    return Bad(event, "comes before the job was created");
  }
  switch (event.body_case()) {
    case v1::Event::kJobCreated:
      spec_ = event.job_created().spec();
      spec_sha256_ = event.job_created().spec_sha256();
      key_ = event.job_created().idempotency_key();
      state_ = v1::JOB_STATE_RUNNING;
      created_ = started_ = put_to_work_ = event.time_unix_nanos();
      if (spec_.kind_case() == v1::JobSpec::KIND_NOT_SET) return Bad(event, "creates a job of no kind");
      if (is_search()) policy_ = make_policy_(spec_.search().policy());
      break;
    case v1::Event::kJobState:
      ApplyState(event.job_state(), event.time_unix_nanos());
      break;
    case v1::Event::kProblemDescribed:
      own_lease_.leased = false;
      if (event.problem_described().error().empty()) description_ = event.problem_described().description();
      break;
    case v1::Event::kDeviceCalibrated:
      own_lease_.leased = false;
      calibrated_ = event.device_calibrated().error().empty();
      break;
    case v1::Event::kIdeasProposed:
      if (absl::Status status = ApplyIdeas(event); !status.ok()) return status;
      break;
    case v1::Event::kKernelWritten:
      if (absl::Status status = ApplyKernel(event); !status.ok()) return status;
      break;
    case v1::Event::kEvaluationLeased: {
      int kernel = -1;
      LeaseRecord* lease = LeaseOf(event.evaluation_leased().kernel(), &kernel);
      if (lease == nullptr) return Bad(event, "leases what is not there or has ended");
      lease->worker = event.evaluation_leased().worker();
      lease->attempt = event.evaluation_leased().attempt();
      if (!lease->leased && kernel >= 0) ++Leased(kernel);
      lease->leased = true;
      if (kernel >= 0) {
        kernels_[kernel].leased = true;
        kernels_[kernel].attempt = lease->attempt;
      }
      break;
    }
    case v1::Event::kEvaluationRequeued: {
      int kernel = -1;
      LeaseRecord* lease = LeaseOf(event.evaluation_requeued().kernel(), &kernel);
      if (lease == nullptr) return Bad(event, "requeues what is not there or has ended");
      if (lease->leased && kernel >= 0) --Leased(kernel);
      lease->leased = false;
      if (lease->reasons.size() < kMaxReasons) lease->reasons.push_back(event.evaluation_requeued().reason());
      if (kernel >= 0) kernels_[kernel].leased = false;
      break;
    }
    case v1::Event::kEvaluationFinished:
      if (absl::Status status = ApplyFinished(event); !status.ok()) return status;
      break;
    case v1::Event::kKernelSelected: {
      const v1::KernelSelected& selected = event.kernel_selected();
      const int kernel = KernelIndex(selected.kernel());
      if (kernel < 0) return Bad(event, "selects a kernel that is not there");
      kernels_[kernel].survivor = true;
      kernels_[kernel].explored = selected.explored();
      if (policy_) policy_->TellSelected(selected.kernel(), selected.round(), selected.explored());
      break;
    }
    case v1::Event::kModelCalled:
      counts_.set_model_calls(counts_.model_calls() + 1);
      counts_.set_prompt_tokens(counts_.prompt_tokens() + event.model_called().prompt_tokens());
      counts_.set_completion_tokens(counts_.completion_tokens() + event.model_called().completion_tokens());
      break;
    default:
      return Bad(event, absl::StrCat("is of unknown kind ", static_cast<int>(event.body_case())));
  }
  last_seq_ = event.seq();
  return absl::OkStatus();
}

void JobTree::ApplyState(const v1::JobStateChanged& change, int64_t time) {
  const bool resumed = ended() && !IsEnd(change.state());
  state_ = change.state();
  reason_ = change.reason();
  if (state_ == v1::JOB_STATE_RUNNING) put_to_work_ = time;
  if (ended()) {
    finished_ = time;
    leased_ = leased_again_ = 0;
    own_lease_.leased = false;
    for (auto& [kernel, lease] : leases_) {
      lease.leased = false;
      kernels_[kernel].leased = false;
    }
  }
  if (resumed) {
    finished_ = 0;
    started_ = time;
    for (auto& [kernel, lease] : leases_) {
      lease.attempt_base = lease.attempt;
      lease.reasons.clear();
    }
    own_lease_.attempt_base = own_lease_.attempt;
    own_lease_.reasons.clear();
  }
  if (policy_ && (change.extra_rounds() > 0 || change.extra_evaluations() > 0)) {
    policy_->Extend(change.extra_rounds(), change.extra_evaluations());
  }
}

absl::Status JobTree::ApplyIdeas(const v1::Event& event) {
  const v1::IdeasProposed& proposed = event.ideas_proposed();
  std::vector<v1::IdeaNode> told;
  for (const v1::IdeaNode& idea : proposed.ideas()) {
    if (idea.id() != IdeaId(static_cast<int>(ideas_.size()))) return Bad(event, "numbers ideas out of turn");
    order_.push_back(-1 - static_cast<int32_t>(ideas_.size()));
    ideas_.push_back(idea);
    idea_seqs_.push_back(event.seq());
    kernels_of_idea_.emplace_back();
    told.push_back(idea);
  }
  counts_.set_ideas(static_cast<int>(ideas_.size()));
  if (!policy_) return absl::OkStatus();
  if (told.empty()) {
    policy_->TellIdeasFailed(proposed.request());
  } else {
    policy_->TellIdeas(proposed.request(), told);
  }
  return absl::OkStatus();
}

absl::Status JobTree::ApplyKernel(const v1::Event& event) {
  const v1::KernelWritten& written = event.kernel_written();
  if (!written.has_kernel()) {
    if (policy_) policy_->TellKernelFailed(written.request());
    return absl::OkStatus();
  }
  const v1::KernelNode& kernel = written.kernel();
  const int index = static_cast<int>(kernels_.size());
  if (kernel.id() != KernelId(index)) return Bad(event, "numbers kernels out of turn");
  KernelRecord record;
  record.written_seq = event.seq();
  record.format = kernel.candidate().format();
  if (!kernel.idea().empty()) {
    record.idea = IdeaIndex(kernel.idea());
    if (record.idea < 0) return Bad(event, "writes a kernel of an idea that is not there");
    kernels_of_idea_[record.idea].push_back(index);
  }
  if (!kernel.duplicate_of().empty()) {
    record.duplicate_of = KernelIndex(kernel.duplicate_of());
    if (record.duplicate_of < 0) return Bad(event, "names a duplicate of a kernel that is not there");
  } else if (kernel.program_sha256().size() == 64) {
    by_program_.try_emplace(Key(kernel.program_sha256()), index);
  }
  order_.push_back(index);
  kernels_.push_back(record);
  ++open_;
  counts_.set_kernels(static_cast<int>(kernels_.size()));
  if (policy_) policy_->TellKernel(written.request(), kernel);
  return absl::OkStatus();
}

absl::Status JobTree::ApplyFinished(const v1::Event& event) {
  const v1::EvaluationFinished& finished = event.evaluation_finished();
  const int index = KernelIndex(finished.kernel());
  if (index < 0) return Bad(event, "finishes a kernel that is not there");
  KernelRecord& kernel = kernels_[index];
  if (kernel.finished_seq != 0) return ApplyAgain(index, event);
  if (kernel.leased) --leased_;
  kernel.leased = false;
  kernel.finished_seq = event.seq();
  kernel.finished_attempt = finished.attempt();
  kernel.verdict = finished.result().verdict();
  leases_.erase(index);
  if (finished.chosen_program_sha256().size() == 64) {
    by_program_.try_emplace(Key(finished.chosen_program_sha256()), index);
  }
  --open_;
  counts_.set_finished(counts_.finished() + 1);
  ++(*counts_.mutable_verdicts())[kernel.verdict];
  if (kernel.verdict == v1::VERDICT_CORRECT) {
    counts_.set_correct(counts_.correct() + 1);
    double speedup = 0, low = 0, high = 0;
    if (finished.result().timing().baselines_size() > 0) {
      const v1::BaselineTiming& baseline = finished.result().timing().baselines(0);
      speedup = baseline.speedup();
      low = baseline.speedup_low();
      high = baseline.speedup_high();
    }
    if (is_search() && kernel.duplicate_of < 0) lead_.First(index, finished.result());
    if (!is_search() && (best_ < 0 || speedup > best_speedup_)) {
      best_ = index;
      best_speedup_ = speedup;
      best_low_ = low;
      best_high_ = high;
    }
  }
  if (policy_) policy_->TellEvaluated(finished.kernel(), finished.result());
  return absl::OkStatus();
}

// A second result: the kernel would lead its search and was measured again.
absl::Status JobTree::ApplyAgain(int index, const v1::Event& event) {
  const v1::EvaluationFinished& finished = event.evaluation_finished();
  KernelRecord& kernel = kernels_[index];
  if (!is_search() || !finished.confirmation() || kernel.again_seq != 0 || kernel.verdict != v1::VERDICT_CORRECT) {
    return Bad(event, "finishes a kernel for the second time");
  }
  if (kernel.leased) --leased_again_;
  kernel.leased = false;
  kernel.again_seq = event.seq();
  kernel.again_attempt = finished.attempt();
  kernel.again = lead_.Again(index, finished.result());
  leases_.erase(index);
  if (kernel.again == measure::Second::kFailed) {
    auto& verdicts = *counts_.mutable_verdicts();
    if (--verdicts[kernel.verdict] == 0) verdicts.erase(kernel.verdict);
    counts_.set_correct(counts_.correct() - 1);
    kernel.verdict = finished.result().verdict();
    ++verdicts[kernel.verdict];
  }
  if (policy_) policy_->TellEvaluated(finished.kernel(), finished.result());
  return absl::OkStatus();
}

v1::Job JobTree::Summary() const {
  v1::Job job;
  job.set_id(id_);
  *job.mutable_spec() = spec_;
  job.set_state(state_);
  job.set_state_reason(reason_);
  job.set_created_unix_nanos(created_);
  job.set_finished_unix_nanos(finished_);
  *job.mutable_counts() = counts_;
  job.mutable_counts()->set_queued(ended() ? 0 : open_ - leased_);
  job.mutable_counts()->set_running(leased_ + leased_again_);
  if (is_search() && lead_.Leader() >= 0) {
    const measure::Figures figures = lead_.LeaderFigures();
    job.set_best_node(KernelId(lead_.Leader()));
    job.set_best_speedup(figures.speedup);
    job.set_best_speedup_low(figures.low);
    job.set_best_speedup_high(figures.high);
    job.set_best_confirmed(lead_.LeaderConfirmed());
  } else if (best_ >= 0) {
    job.set_best_node(KernelId(best_));
    job.set_best_speedup(best_speedup_);
    job.set_best_speedup_low(best_low_);
    job.set_best_speedup_high(best_high_);
  }
  job.set_last_seq(last_seq_);
  return job;
}

}  // namespace grove::coordinator
