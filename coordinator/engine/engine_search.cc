// Searches: what the policy asks for and the generator gives, outages, and the bank.
#include <algorithm>
#include <utility>
#include <variant>

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

// ---------------------------------------------------------------------------------------------------- searching

// Asks the policy for as much as is useful now, and sees whether the job has come to its end.
void EngineImpl::Pump(Job& job) {
  JobTree& tree = *job.tree;
  if (tree.checks_problem()) {
    if (tree.description().has_value()) EndJob(job, v1::JOB_STATE_DONE, "");
    return;
  }
  if (tree.calibrates()) {
    if (tree.calibrated()) EndJob(job, v1::JOB_STATE_DONE, "");
    return;
  }
  if (!tree.is_search()) {
    if (tree.open_kernels() == 0) EndJob(job, v1::JOB_STATE_DONE, "");
    return;
  }
  Search& search = *job.search;
  if (!tree.description().has_value()) return;
  EvaluateAgain(job);
  if (!search.supported) return;
  // Ready evaluations for every slot and a few more; requests for as many generator calls as may be in flight.
  const int ready = scheduler_.FittingCapacity(job.device, now_) + kRunAhead;
  bool nothing = false;
  while (job.live() && scheduler_.QueuedOf(job.id) < ready &&
         static_cast<int>(search.held.size()) < std::max(1, options_.generator_threads)) {
    std::vector<search::Action> actions = tree.policy()->Ask(1);
    if (actions.empty()) {
      nothing = true;
      break;
    }
    for (search::Action& action : actions) Act(job, std::move(action));
  }
  if (!job.live() || !nothing || !search.held.empty() || search.in_flight > 0) return;
  if (tree.policy()->Finished()) {
    if (tree.WantedAgain() >= 0) return;  // the would-be best is being measured again
    if (tree.kernels().empty()) {
      return EndJob(
          job, v1::JOB_STATE_FAILED,
          absl::StrCat("the generator wrote no kernel", search.last_error.empty() ? "" : ": ", search.last_error));
    }
    KeepBest(job);
    return EndJob(job, v1::JOB_STATE_DONE, "");
  }
  if (scheduler_.QueuedOf(job.id) == 0 && scheduler_.LeasedOf(job.id) == 0) {
    EndJob(job, v1::JOB_STATE_FAILED, "the policy waits for something that nobody does: a bug in the policy");
  }
}

bool EngineImpl::Act(Job& job, search::Action action) {
  if (auto* evaluate = std::get_if<search::EvaluateKernel>(&action)) {
    const int kernel = job.tree->KernelIndex(evaluate->kernel);
    if (kernel >= 0) Evaluate(job, kernel);
  } else if (auto* select = std::get_if<search::SelectKernel>(&action)) {
    v1::Event event;
    event.mutable_kernel_selected()->set_kernel(select->kernel);
    event.mutable_kernel_selected()->set_round(select->round);
    event.mutable_kernel_selected()->set_explored(select->explored);
    Emit(job, std::move(event));
  } else {
    job.search->held.push_back(std::move(action));
  }
  return true;
}

bool EngineImpl::CanDispatch(const Job& job) const {
  if (job.search == nullptr || !job.live() || !job.tree->description().has_value()) return false;
  const Search& search = *job.search;
  // During an outage one call at a time probes whether it is over.
  if (search.outages > 0 && (search.retry_at > now_ || search.in_flight > 0)) return false;
  return search.supported ? !search.held.empty() : !search.support_asked;
}

// Threads go round the searches, so that one with many slow calls does not hold up the others.
void EngineImpl::DispatchGenerators() {
  while (generators_busy_ < std::max(1, options_.generator_threads)) {
    auto it = live_.upper_bound(generator_cursor_);
    Job* next = nullptr;
    for (size_t i = 0; i < live_.size() && next == nullptr; ++i, ++it) {
      if (it == live_.end()) it = live_.begin();
      if (CanDispatch(*it->second)) next = it->second;
    }
    if (next == nullptr) return;
    generator_cursor_ = next->id;
    Dispatch(*next);
  }
}

absl::StatusOr<generate::Context> EngineImpl::ContextOf(Job& job) {
  const JobTree& tree = *job.tree;
  generate::Context context;
  GROVE_ASSIGN_OR_RETURN(const std::shared_ptr<const v1::Problem> problem, ProblemOf(job));
  context.problem = *problem;
  context.description = *tree.description();
  context.device = tree.description()->device();
  if (context.device.kind() == v1::DEVICE_KIND_UNSPECIFIED) context.device.set_kind(job.device);
  context.options = tree.options();
  context.seed = tree.spec().search().policy().seed();
  const size_t ideas = tree.ideas().size();
  for (size_t i = ideas > kMaxTriedIdeas ? ideas - kMaxTriedIdeas : 0; i < ideas; ++i) {
    context.tried.push_back(IdeaView(job, static_cast<int>(i)));
  }
  if (!tree.spec().search().no_bank() && deps_.recognise_operation) {
    const std::string operation = deps_.recognise_operation(*tree.description());
    for (const bank::Entry* entry : bank_.Top(operation, context.device.kind(), context.device.arch(), 3)) {
      absl::StatusOr<v1::BankEntry> whole = WithSource(*entry);
      if (whole.ok()) context.bank.push_back(*std::move(whole));
    }
  }
  return context;
}

void EngineImpl::Dispatch(Job& job) {
  Search& search = *job.search;
  const auto made = [&]() -> absl::StatusOr<std::function<void()>> {
    GROVE_ASSIGN_OR_RETURN(generate::Context context, ContextOf(job));
    const std::shared_ptr<generate::Generator> generator = search.generator;
    const std::string id = job.id;
    const uint64_t number = search.number;
    auto shared = std::make_shared<generate::Context>(std::move(context));
    if (!search.supported) {
      return std::function<void()>([this, id, number, generator, shared] {
        absl::Status status = generator->Supports(*shared);
        Post({Kind::kDefer, [this, id, number, status] { SupportAnswered(id, number, status); }, nullptr});
      });
    }
    const auto whole = [&](const std::string& node) -> absl::StatusOr<v1::KernelNode> {
      const int kernel = node.empty() ? -1 : job.tree->KernelIndex(node);
      if (kernel < 0) return v1::KernelNode();
      GROVE_ASSIGN_OR_RETURN(v1::KernelNode found, KernelView(job, kernel, /*whole=*/true));
      LimitForPrompt(found.mutable_result());
      return found;
    };
    const search::Action action = search.held.front();
    if (const auto* propose = std::get_if<search::ProposeIdeas>(&action)) {
      auto request = std::make_shared<generate::IdeaRequest>();
      request->request = propose->request;
      request->count = propose->count;
      GROVE_ASSIGN_OR_RETURN(request->parent, whole(propose->parent));
      return std::function<void()>([this, id, number, generator, shared, request, propose = *propose] {
        auto result = std::make_shared<IdeasResult>(generator->ProposeIdeas(*shared, *request));
        Post({Kind::kDefer, [this, id, number, propose, result] { Answered(id, number, propose, std::move(*result)); },
              nullptr});
      });
    }
    const auto& write = std::get<search::WriteKernel>(action);
    auto request = std::make_shared<generate::KernelRequest>();
    request->request = write.request;
    request->variant = write.variant;
    request->repair = write.repair;
    const int idea = job.tree->IdeaIndex(write.idea);
    if (idea < 0) return absl::InternalError(absl::StrCat("the policy names an unknown idea ", write.idea));
    request->idea = IdeaView(job, idea);
    GROVE_ASSIGN_OR_RETURN(request->parent, whole(request->idea.parent()));
    GROVE_ASSIGN_OR_RETURN(request->failed, whole(write.repaired_from));
    for (int sibling : job.tree->kernels_of_idea(idea)) {
      if (request->siblings.size() >= kMaxSiblings) break;
      GROVE_ASSIGN_OR_RETURN(v1::KernelNode found, whole(job.tree->KernelId(sibling)));
      request->siblings.push_back(std::move(found));
    }
    return std::function<void()>([this, id, number, generator, shared, request, write = write] {
      auto result = std::make_shared<KernelResult>(generator->WriteKernel(*shared, *request));
      Post({Kind::kDefer, [this, id, number, write, result] { Answered(id, number, write, std::move(*result)); },
            nullptr});
    });
  };
  absl::StatusOr<std::function<void()>> call = made();
  if (!call.ok()) {
    EndJob(job, v1::JOB_STATE_FAILED, absl::StrCat("a generator call cannot be prepared: ", call.status().message()));
    return;
  }
  if (search.supported) {
    search.held.pop_front();
  } else {
    search.support_asked = true;
  }
  ++search.in_flight;
  ++generators_busy_;
  executor_->Submit(*std::move(call));
}

Job* EngineImpl::SearchOf(const std::string& id, uint64_t number) {
  --generators_busy_;
  Job* job = jobs_.at(id).get();
  if (job->search == nullptr || job->search->number != number) return nullptr;
  --job->search->in_flight;
  return job;
}

// True when the call failed because the provider is out: the search waits and asks again.
bool EngineImpl::Outage(Job& job, const absl::Status& status) {
  Search& search = *job.search;
  if (!IsOutage(status)) {
    search.outages = 0;
    search.outage.clear();
    return false;
  }
  ++stats_.model_errors_total;
  // Calls that were in flight together fail together: they are one outage.
  if (search.outages == 0 || search.retry_at <= now_) {
    const int64_t factor = int64_t{1} << std::min(search.outages, 16);
    search.retry_at = now_ + std::min(kOutageMax, kOutageFirst * factor);
    ++search.outages;
  }
  search.outage = Utf8Prefix(status.message(), 500);
  LogWarning("engine", "search ", job.id, ": the generator is out (", search.outage, "), trying again in ",
             absl::FormatDuration(search.retry_at - now_));
  return true;
}

// What a call cost, told of successes and of failures.
void EngineImpl::Usage(Job& job, const std::string& request, const absl::Status& status, const generate::Usage& usage) {
  stats_.model_calls_total += usage.calls;
  stats_.prompt_tokens_total += usage.prompt_tokens;
  stats_.completion_tokens_total += usage.completion_tokens;
  if (usage.calls == 0 && usage.exchange.empty()) return;
  v1::Event event;
  v1::ModelCalled* called = event.mutable_model_called();
  called->set_request(request);
  called->set_model(Utf8Prefix(usage.model, 256));
  called->set_prompt_tokens(usage.prompt_tokens);
  called->set_completion_tokens(usage.completion_tokens);
  called->set_seconds(usage.seconds);
  if (!status.ok()) called->set_error(Utf8Prefix(status.message(), 1000));
  if (!usage.exchange.empty() && static_cast<int64_t>(usage.exchange.size()) <= store::kMaxBlobBytes) {
    called->set_exchange_sha256(PutBlob(usage.exchange));
  }
  Emit(job, std::move(event));
}

void EngineImpl::SupportAnswered(const std::string& id, uint64_t number, absl::Status status) {
  Job* job = SearchOf(id, number);
  if (job == nullptr) return;
  if (Outage(*job, status)) {
    job->search->support_asked = false;
    return;
  }
  if (status.ok()) {
    job->search->supported = true;
    return;
  }
  EndJob(*job, v1::JOB_STATE_FAILED, std::string(status.message()));
}

void EngineImpl::Answered(const std::string& id, uint64_t number, const search::ProposeIdeas& action,
                          IdeasResult result) {
  Job* job = SearchOf(id, number);
  if (job == nullptr) return;
  Usage(*job, action.request, result);
  if (Outage(*job, result.status())) {
    job->search->held.push_front(action);
    return;
  }
  v1::Event event;
  v1::IdeasProposed* proposed = event.mutable_ideas_proposed();
  proposed->set_request(action.request);
  if (result.ok()) {
    for (const v1::IdeaNode& answer : result->ideas) {
      if (proposed->ideas_size() >= std::max(1, action.count)) break;
      v1::IdeaNode* idea = proposed->add_ideas();
      idea->set_id(job->tree->IdeaId(static_cast<int>(job->tree->ideas().size()) + proposed->ideas_size() - 1));
      idea->set_parent(action.parent);
      idea->set_round(action.round);
      idea->set_title(Utf8Prefix(answer.title(), 200));
      idea->set_description(Utf8Prefix(answer.description(), 4000));
      idea->set_category(Utf8Prefix(answer.category(), 40));
      idea->set_predicted_speedup(answer.predicted_speedup());
      idea->set_recipe(Utf8Prefix(answer.recipe(), 64 << 10));
      idea->set_state(v1::NODE_STATE_OPEN);
    }
    if (proposed->ideas_size() == 0) proposed->set_error("the generator had no idea");
  } else {
    ++stats_.model_errors_total;
    proposed->set_error(Utf8Prefix(result.status().message(), 1000));
  }
  if (!proposed->error().empty()) job->search->last_error = proposed->error();
  Emit(*job, std::move(event));
}

void EngineImpl::Answered(const std::string& id, uint64_t number, const search::WriteKernel& action,
                          KernelResult result) {
  Job* job = SearchOf(id, number);
  if (job == nullptr) return;
  Usage(*job, action.request, result);
  if (Outage(*job, result.status())) {
    job->search->held.push_front(action);
    return;
  }
  v1::Event event;
  v1::KernelWritten* written = event.mutable_kernel_written();
  written->set_request(action.request);
  written->set_idea(action.idea);
  absl::Status status = result.status();
  if (result.ok()) {
    status = ValidateCandidate(result->kernel.candidate(), job->device, "the generator's kernel");
  } else {
    ++stats_.model_errors_total;
  }
  if (!status.ok()) {
    written->set_error(Utf8Prefix(status.message(), 1000));
    job->search->last_error = written->error();
    Emit(*job, std::move(event));
    return;
  }
  const v1::IdeaNode& idea = job->tree->ideas()[job->tree->IdeaIndex(action.idea)];
  v1::KernelNode* kernel = written->mutable_kernel();
  kernel->set_id(job->tree->KernelId(static_cast<int>(job->tree->kernels().size())));
  kernel->set_idea(action.idea);
  kernel->set_parent(idea.parent());
  kernel->set_round(idea.round());
  kernel->set_variant(action.variant);
  kernel->set_repair_of_attempt(action.repair);
  kernel->set_repaired_from(action.repaired_from);
  *kernel->mutable_candidate() = std::move(*result->kernel.mutable_candidate());
  kernel->set_recipe(Utf8Prefix(result->kernel.recipe(), 64 << 10));
  kernel->set_notes(Utf8Prefix(result->kernel.notes(), 4000));
  kernel->set_bank_origin(Utf8Prefix(result->kernel.bank_origin(), 64));
  kernel->set_state(v1::NODE_STATE_OPEN);
  kernel->set_program_sha256(ProgramSha256(kernel->candidate()));
  if (const int same = job->tree->FindProgram(kernel->program_sha256()); same >= 0) {
    kernel->set_duplicate_of(job->tree->KernelId(same));
  }
  kernel->set_source_sha256(PutBlob(std::move(*kernel->mutable_candidate()->mutable_source())));
  kernel->mutable_candidate()->clear_source();
  Emit(*job, std::move(event));
}

// Whether the job is held up by something outside, and says so when that changes.
void EngineImpl::CheckPause(Job& job) {
  std::string reason;
  const Search* search = job.search.get();
  if (search != nullptr && search->outages > 0) {
    reason = absl::StrCat("the generator is out: ", search->outage, "; it is tried again by itself");
  }
  const std::string& only = job.tree->spec().calibrate().worker();
  const bool waits = scheduler_.QueuedOf(job.id) > 0 && scheduler_.LeasedOf(job.id) == 0 &&
                     scheduler_.FittingCapacity(job.device, now_, only) == 0;
  if (!waits) {
    job.unfit_since = absl::InfiniteDuration();
    job.unfit = false;
  } else if (job.unfit_since == absl::InfiniteDuration()) {
    job.unfit_since = now_;
  }
  if (waits && !job.unfit) {
    job.unfit = now_ - job.unfit_since >= kUnfitGrace;
    if (!job.unfit) next_fit_check_ = std::min(next_fit_check_, job.unfit_since + kUnfitGrace);
  }
  if (reason.empty() && job.unfit) {
    reason = !only.empty()
                 ? absl::StrCat("no worker '", Utf8Prefix(only, 64), "' takes work; `grove workers` lists them")
                 : absl::StrCat("no worker with a ",
                                DeviceName(job.device) == std::string("any") ? "" : DeviceName(job.device),
                                " device takes work; start one, or see `grove workers`");
  }
  const bool paused = job.tree->state() == v1::JOB_STATE_PAUSED;
  if (paused == !reason.empty()) return;
  Emit(job, StateEvent(reason.empty() ? v1::JOB_STATE_RUNNING : v1::JOB_STATE_PAUSED, reason));
}

// ---------------------------------------------------------------------------------------------------- bank

absl::StatusOr<v1::BankEntry> EngineImpl::WithSource(const bank::Entry& entry) {
  v1::BankEntry whole = entry.entry;
  GROVE_ASSIGN_OR_RETURN(*whole.mutable_candidate()->mutable_source(), ReadBlob(entry.source_sha256));
  return whole;
}

namespace {

// But for its source, which is a blob.
bank::Entry EntryOf(const v1::KernelNode& kernel, const v1::Job& job, const std::string& operation, int64_t now) {
  bank::Entry made;
  v1::BankEntry& entry = made.entry;
  entry.set_id(RandomId("b-", 8));
  entry.set_operation(operation);
  entry.set_device(kernel.result().device().kind());
  entry.set_arch(kernel.result().device().arch());
  *entry.mutable_candidate() = kernel.candidate();
  entry.mutable_candidate()->clear_source();
  entry.set_recipe(kernel.recipe());
  if (kernel.result().timing().baselines_size() > 0) {
    const v1::BaselineTiming& baseline = kernel.result().timing().baselines(0);
    entry.set_speedup(baseline.speedup());
    entry.set_speedup_low(baseline.speedup_low());
    entry.set_speedup_high(baseline.speedup_high());
  }
  entry.set_problem_name(job.spec().has_search() ? job.spec().search().problem().name()
                                                 : job.spec().eval().problem().name());
  entry.set_problem_sha256(kernel.result().problem_sha256());
  entry.set_origin_job(job.id());
  entry.set_origin_node(kernel.id());
  entry.set_added_unix_nanos(now);
  return made;
}

}  // namespace

// A search that has ended leaves its best kernel in the bank, if it surely gained.
void EngineImpl::KeepBest(Job& job) {
  const v1::Job summary = job.tree->Summary();
  // What was measured once may have been lucky.
  if (summary.spec().search().no_bank() || !summary.best_confirmed() || summary.best_speedup_low() <= 1 ||
      !deps_.recognise_operation || !job.tree->description().has_value()) {
    return;
  }
  const std::string operation = deps_.recognise_operation(*job.tree->description());
  if (operation.empty()) return;
  absl::StatusOr<v1::KernelNode> kernel = KernelView(job, job.tree->KernelIndex(summary.best_node()), /*whole=*/true);
  if (!kernel.ok()) {
    LogWarning("engine", "the best kernel of ", job.id, " cannot be put into the bank: ", kernel.status().message());
    return;
  }
  bank::Entry entry = EntryOf(*kernel, summary, operation, absl::ToUnixNanos(clock_.Now()));
  entry.source_sha256 = PutBlob(kernel->candidate().source());
  if (entry.entry.device() == v1::DEVICE_KIND_UNSPECIFIED) entry.entry.set_device(job.device);
  bank_.Add(std::move(entry), &batch_);
}

void EngineImpl::DoAddBank(const v1::AddBankEntryRequest& request, Reply<v1::BankEntry> reply) {
  bank::Entry made;
  if (!request.node().empty()) {
    const size_t slash = request.node().find('/');
    absl::StatusOr<v1::TreeNode> node = DoGetNode(request.node());
    if (!node.ok()) return reply(node.status());
    if (!node->has_kernel() || node->kernel().result().verdict() != v1::VERDICT_CORRECT) {
      return reply(absl::FailedPreconditionError(
          absl::StrCat(request.node(), " is not a kernel with the verdict CORRECT; only those go into the bank")));
    }
    absl::StatusOr<Job*> job = FindJob(request.node().substr(0, slash));
    if (!job.ok()) return reply(job.status());
    std::string operation = request.entry().operation();
    if (operation.empty() && (*job)->tree->description().has_value() && deps_.recognise_operation) {
      operation = deps_.recognise_operation(*(*job)->tree->description());
    }
    if (operation.empty()) {
      return reply(absl::FailedPreconditionError(
          absl::StrCat("the kind of operation of ", request.node(),
                       " is not known: name it (`grove bank add --operation NAME`, entry.operation)")));
    }
    if (operation.size() > 64 || !IsValidUtf8(operation)) {
      return reply(absl::InvalidArgumentError("entry.operation: name the kind of operation, such as layer_norm"));
    }
    made = EntryOf(node->kernel(), View(**job), operation, absl::ToUnixNanos(clock_.Now()));
    made.source_sha256 = PutBlob(node->kernel().candidate().source());
    made.entry.set_note(Utf8Prefix(request.entry().note(), 1000));
    made.entry.clear_origin_job();  // by hand: no search pushes it out; origin_node still says where it comes from
  } else {
    const v1::BankEntry& entry = request.entry();
    if (entry.operation().empty() || entry.operation().size() > 64 || !IsValidUtf8(entry.operation())) {
      return reply(absl::InvalidArgumentError("entry.operation: name the kind of operation, such as layer_norm"));
    }
    if (entry.device() != v1::DEVICE_KIND_CPU && entry.device() != v1::DEVICE_KIND_CUDA) {
      return reply(absl::InvalidArgumentError("entry.device: must be CPU or CUDA"));
    }
    if (absl::Status status = ValidateCandidate(entry.candidate(), entry.device(), "entry.candidate"); !status.ok()) {
      return reply(status);
    }
    made.entry = entry;
    made.entry.set_id(RandomId("b-", 8));
    made.entry.set_arch(Utf8Prefix(entry.arch(), 64));
    made.entry.set_recipe(Utf8Prefix(entry.recipe(), 64 << 10));
    made.entry.set_problem_name(Utf8Prefix(entry.problem_name(), 256));
    made.entry.set_note(Utf8Prefix(entry.note(), 1000));
    made.entry.clear_origin_job();
    made.entry.set_added_unix_nanos(absl::ToUnixNanos(clock_.Now()));
    made.source_sha256 = PutBlob(entry.candidate().source());
    made.entry.mutable_candidate()->clear_source();
  }
  const std::string id = bank_.Add(std::move(made), &batch_);
  AfterCommit<v1::BankEntry>(std::move(reply), [this, id]() -> absl::StatusOr<v1::BankEntry> {
    GROVE_ASSIGN_OR_RETURN(const bank::Entry* entry, bank_.Find(id));
    return WithSource(*entry);
  });
}

}  // namespace engine_internal

}  // namespace grove::coordinator
