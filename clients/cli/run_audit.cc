// `grove audit`: the corpus of ways to fool an evaluator, through the whole service.
#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/cli/arguments.h"
#include "clients/cli/audit_corpus.h"
#include "clients/cli/audit_host.h"
#include "clients/cli/audit_plan.h"
#include "clients/cli/audit_score.h"
#include "clients/cli/child.h"
#include "clients/cli/commands.h"
#include "clients/cli/farm.h"
#include "clients/cli/session.h"
#include "clients/cli/watch_stop.h"

namespace grove::cli {
namespace {

// Jobs that wait at the coordinator behind the one that is watched: enough for builds to go on ahead.
constexpr size_t kAhead = 3;
// How often that is measured again against which only speaks what chance does too.
constexpr int kMeasureAgain = 2;
// A killed process is given this long to be gone from the process table.
constexpr absl::Duration kTracePatience = absl::Seconds(5);
constexpr absl::Duration kEmbeddedPatience = absl::Seconds(5);

struct Submitted {
  std::string job;
  const AuditBatch* batch;
};

bool Finished(const AuditOutcome& outcome) { return outcome.result.verdict() != v1::VERDICT_UNSPECIFIED; }

// What came of one job's candidates, in the order of the batch.
absl::StatusOr<std::vector<AuditOutcome>> Collect(Session* session, const AuditCorpus& corpus,
                                                  const Submitted& submitted, const client::CallOptions& call) {
  auto job = session->client().GetJob(submitted.job, call);
  if (!job.ok()) return job.status();
  auto tree = session->client().GetTree(submitted.job, call);
  if (!tree.ok()) return tree.status();
  std::vector<AuditOutcome> outcomes;
  for (const AuditEntry& entry : submitted.batch->entries) {
    AuditOutcome outcome;
    outcome.entry = entry;
    outcome.why = job->state() == v1::JOB_STATE_DONE ? "" : job->state_reason();
    outcomes.push_back(std::move(outcome));
  }
  // An eval job's kernels are its candidates, in order.
  size_t at = 0;
  for (const v1::TreeNode& node : *tree) {
    if (!node.has_kernel() || at >= outcomes.size()) continue;
    outcomes[at].node = node.kernel().id();
    outcomes[at].result = node.kernel().result();
    ++at;
  }
  for (AuditOutcome& outcome : outcomes) {
    for (const AuditOutcome& other : outcomes) {
      if (!IsTwinOf(corpus, other.entry, outcome.entry)) continue;
      outcome.twin_speedup = SpeedupOf(other.result);
    }
  }
  return outcomes;
}

class Audit {
 public:
  Audit(const Context& context, Session* session, const AuditCorpus& corpus)
      : context_(context), session_(session), corpus_(corpus) {}

  // The plan must live as long as this does.
  absl::Status Run(const std::vector<AuditBatch>& plan) {
    for (const AuditBatch& batch : plan) {
      for (const AuditEntry& entry : batch.entries) {
        if (host_.has_value() || !corpus_.cases[entry.judged_case].leaves_nothing) continue;
        auto host = AuditHost::Begin();
        if (!host.ok()) return host.status();
        host_.emplace(*std::move(host));
      }
    }
    for (const AuditBatch& batch : plan) total_ += batch.entries.size();
    for (const AuditBatch& batch : plan) {
      if (batch.alone) {
        while (!waiting_.empty()) {
          if (absl::Status done = FinishOne(); !done.ok()) return done;
        }
      }
      auto job = session_->client().SubmitJob(batch.spec, client::Client::NewIdempotencyKey(), session_->call());
      if (!job.ok()) return job.status();
      waiting_.push_back({job->job().id(), &batch});
      while (waiting_.size() > (batch.alone ? 0 : kAhead)) {
        if (absl::Status done = FinishOne(); !done.ok()) return done;
      }
    }
    while (!waiting_.empty()) {
      if (absl::Status done = FinishOne(); !done.ok()) return done;
    }
    return absl::OkStatus();
  }

  // Of what is still under way, what has been judged is kept, and the rest is of no use to anybody.
  void CancelAll() {
    const client::CallOptions once{.timeout = absl::Seconds(5), .patience = absl::ZeroDuration()};
    for (const Submitted& one : waiting_) {
      auto outcomes = Collect(session_, corpus_, one, once);
      session_->client().CancelJob(one.job, "the audit was ended", once).IgnoreError();
      if (outcomes.ok()) KeepFinished(*std::move(outcomes));
    }
  }

  // Of cases that were judged in part, the rest: without it they would count as if all of them had been.
  void NameUnjudged(const std::vector<AuditBatch>& plan) {
    std::vector<AuditOutcome> unjudged;
    for (const AuditBatch& batch : plan) {
      for (const AuditEntry& entry : batch.entries) {
        bool begun = false, judged = entry.role == AuditEntry::Role::kTwin;
        for (const AuditOutcome& outcome : outcomes_) {
          begun = begun || outcome.entry.judged_case == entry.judged_case;
          judged = judged || outcome.entry == entry;
        }
        if (!begun || judged) continue;
        AuditOutcome outcome;
        outcome.entry = entry;
        outcome.why = "the audit was interrupted";
        JudgeAudit(corpus_, &outcome);
        unjudged.push_back(std::move(outcome));
      }
    }
    std::move(unjudged.begin(), unjudged.end(), std::back_inserter(outcomes_));
  }

  const std::vector<AuditOutcome>& outcomes() const { return outcomes_; }

  // The cases that something was wrong with that chance may have done.
  std::vector<size_t> ToMeasureAgain() const {
    std::set<size_t> chance, otherwise;
    for (const AuditOutcome& outcome : outcomes_) {
      if (outcome.entry.role == AuditEntry::Role::kTwin || outcome.good) continue;
      (outcome.by_chance ? chance : otherwise).insert(outcome.entry.judged_case);
    }
    std::vector<size_t> again;
    std::set_difference(chance.begin(), chance.end(), otherwise.begin(), otherwise.end(), std::back_inserter(again));
    return again;
  }

  // Puts their outcomes aside, so that they are measured anew, and Settle() decides by all.
  void SetAside(const std::vector<size_t>& cases) {
    const auto chosen = [&](const AuditOutcome& outcome) {
      return std::find(cases.begin(), cases.end(), outcome.entry.judged_case) != cases.end();
    };
    std::copy_if(outcomes_.begin(), outcomes_.end(), std::back_inserter(earlier_), chosen);
    outcomes_.erase(std::remove_if(outcomes_.begin(), outcomes_.end(), chosen), outcomes_.end());
  }

  void Settle() {
    for (AuditOutcome& outcome : outcomes_) {
      std::vector<AuditOutcome> rounds = {outcome};
      for (const AuditOutcome& other : earlier_) {
        if (other.entry == outcome.entry) rounds.push_back(other);
      }
      if (rounds.size() > 1 && outcome.entry.role != AuditEntry::Role::kTwin) outcome = SettleAudit(corpus_, rounds);
    }
  }

 private:
  // Of a job that has not ended. Not what its twin decides that is not there yet, nor what the end of a job decides.
  void KeepFinished(std::vector<AuditOutcome> outcomes) {
    for (const AuditOutcome& one : outcomes) {
      if (!Finished(one) || corpus_.cases[one.entry.judged_case].leaves_nothing) continue;
      const bool waits = std::any_of(outcomes.begin(), outcomes.end(), [&](const AuditOutcome& other) {
        return IsTwinOf(corpus_, other.entry, one.entry) && !Finished(other);
      });
      if (waits) continue;
      outcomes_.push_back(one);
      outcomes_.back().why.clear();  // it was judged, whatever its job was stopped for
      JudgeAudit(corpus_, &outcomes_.back());
    }
  }

  absl::Status FinishOne() {
    const Submitted current = waiting_.front();
    client::WatchOptions watch;
    WatchStop stop(session_, context_.interrupts);
    watch.cancellation = &stop.cancellation();
    if (context_.global.reattach >= 0) watch.reattach_for = absl::Seconds(context_.global.reattach);
    size_t finished = 0;
    Show(current, finished);
    absl::Status watched = session_->client().WatchJob(current.job, watch, [&](const v1::Event& event) {
      if (event.has_evaluation_finished()) {
        ++finished;
        TellProgress(current, finished);
      }
      if (event.job_state().state() == v1::JOB_STATE_PAUSED) {
        context_.console->Message(absl::StrCat(current.batch->spec.name(), " (", current.job,
                                               ") is paused: ", OneLine(event.job_state().reason())));
      }
      Show(current, finished);
      return true;
    });
    if (!watched.ok()) return stop.Outcome(watched);
    auto outcomes = Collect(session_, corpus_, current, session_->call());
    if (!outcomes.ok()) return outcomes.status();
    waiting_.pop_front();
    done_ += current.batch->entries.size();
    std::vector<std::string> traces;
    std::string clock;
    const auto leaves_nothing = [&](const AuditEntry& entry) {
      return host_.has_value() && corpus_.cases[entry.judged_case].leaves_nothing;
    };
    for (const AuditEntry& entry : current.batch->entries) {
      if (!leaves_nothing(entry)) continue;
      traces = host_->Traces(kTracePatience);
      clock = host_->ClockSet();
      break;
    }
    for (AuditOutcome& outcome : *outcomes) {
      if (leaves_nothing(outcome.entry)) {
        outcome.traces = host_->Told(outcome.result.ShortDebugString());
        outcome.traces.insert(outcome.traces.end(), traces.begin(), traces.end());
        outcome.clock = clock;
      }
      JudgeAudit(corpus_, &outcome);
      outcomes_.push_back(std::move(outcome));
    }
    Tell(current);
    return absl::OkStatus();
  }

  void Show(const Submitted& current, size_t finished) {
    const size_t done = std::min(total_, done_ + finished);
    context_.console->SetBlock({absl::StrCat("audit  ", done, "/", total_, "  ", current.batch->spec.name())});
  }

  // A line for each evaluation where nothing is redrawn.
  void TellProgress(const Submitted& current, size_t finished) {
    if (context_.console->live()) return;
    context_.console->Message(absl::StrCat(std::min(total_, done_ + finished), "/", total_, " ",
                                           current.batch->spec.name(), " (", current.job, ")"));
  }

  // Each miss as soon as its job has ended.
  void Tell(const Submitted& current) {
    for (size_t i = outcomes_.size() - current.batch->entries.size(); i < outcomes_.size(); ++i) {
      const AuditOutcome& outcome = outcomes_[i];
      if (outcome.entry.role == AuditEntry::Role::kTwin || outcome.good) continue;
      const AuditCase& judged = corpus_.cases[outcome.entry.judged_case];
      context_.console->Message(absl::StrCat("  ", judged.id, " (",
                                             corpus_.cases[outcome.entry.file_case].files[outcome.entry.file].name,
                                             "): ", outcome.seen, "; ", OneLine(outcome.why)));
    }
  }

  const Context& context_;
  Session* const session_;
  const AuditCorpus& corpus_;
  std::optional<AuditHost> host_;  // where a case that was chosen has to leave nothing on it
  std::deque<Submitted> waiting_;
  std::vector<AuditOutcome> outcomes_, earlier_;
  size_t total_ = 0, done_ = 0;
};

// "cpu", "cuda" or "cuda:N" as it was said; else what the farm has, or this machine where there is none.
absl::StatusOr<v1::DeviceKind> DeviceToAudit(Session* session, const DeviceArgument& said) {
  if (said.kind != v1::DEVICE_KIND_UNSPECIFIED) return said.kind;
  if (session->embedded()) {
    return absl::StartsWith(LocalDevices().front(), "cuda") ? v1::DEVICE_KIND_CUDA : v1::DEVICE_KIND_CPU;
  }
  auto workers = session->client().ListWorkers(session->call());
  if (!workers.ok()) return workers.status();
  v1::DeviceKind found = v1::DEVICE_KIND_UNSPECIFIED;
  for (const v1::WorkerStatus& worker : workers->workers()) {
    const v1::DeviceKind kind = worker.device().kind();
    if (found == v1::DEVICE_KIND_UNSPECIFIED || kind == v1::DEVICE_KIND_CUDA) found = kind;
  }
  return found == v1::DEVICE_KIND_UNSPECIFIED ? v1::DEVICE_KIND_CPU : found;
}

ExitCode List(const Context& context, const AuditCorpus& corpus, const std::vector<size_t>& chosen) {
  const std::string out =
      context.console->json() ? absl::StrCat(AuditListDocument(corpus, chosen), "\n") : RenderAuditList(corpus, chosen);
  return context.console->Out(out) ? ExitCode::kOk : ExitCode::kInfrastructure;
}

}  // namespace

ExitCode RunAudit(const Context& context, const AuditCommand& command) {
  auto device = ParseDevice(command.device);
  if (!device.ok()) return Fail(context, device.status());
  auto folder = command.corpus.empty() ? FindAuditCorpus(ExecutableDir()) : absl::StatusOr<std::string>(command.corpus);
  if (!folder.ok()) return Fail(context, folder.status(), ExitCode::kUsage);
  auto corpus = LoadAuditCorpus(*folder);
  if (!corpus.ok()) return Fail(context, corpus.status(), ExitCode::kUsage);
  AuditSelection selection;
  selection.ids = command.ids;
  selection.classes = command.classes;
  auto chosen = SelectAuditCases(*corpus, selection);
  if (!chosen.ok()) return Fail(context, chosen.status());
  if (command.list) return List(context, *corpus, *chosen);

  const absl::Time began = absl::Now();
  const std::string wanted = command.device == "auto" ? "" : command.device;
  auto session = Session::Open(context.global, {.need = Need::kWork, .device = wanted}, context.console,
                               context.interrupts, context.env);
  if (!session.ok()) return Fail(context, session.status());
  auto kind = DeviceToAudit(session->get(), *device);
  if (!kind.ok()) return Fail(context, kind.status());
  auto plan = PlanAudit(*corpus, *chosen, *kind);
  if (!plan.ok()) return Fail(context, plan.status());
  Audit audit(context, session->get(), *corpus);
  absl::Status ran = audit.Run(*plan);
  // On a busy machine one figure says little; a trick that pays does so each time.
  std::deque<std::vector<AuditBatch>> further;
  for (int round = 0; round < kMeasureAgain && ran.ok(); ++round) {
    const std::vector<size_t> again = audit.ToMeasureAgain();
    if (again.empty()) break;
    auto next = PlanAudit(*corpus, again, *kind);
    if (!next.ok()) return Fail(context, next.status());
    context.console->Message(absl::StrCat("measuring again: ", again.size(), again.size() == 1 ? " case" : " cases"));
    audit.SetAside(again);
    further.push_back(*std::move(next));
    ran = audit.Run(further.back());
    audit.Settle();
  }
  context.console->ClearBlock();
  // What was seen before an interruption is said all the same; the rest counts as not run.
  const bool interrupted = absl::IsCancelled(ran);
  if (interrupted) {
    audit.CancelAll();
    audit.NameUnjudged(*plan);
  } else if (!ran.ok()) {
    return Fail(context, ran);
  }
  const AuditScore score = ScoreAudit(*corpus, *chosen, *kind, audit.outcomes());
  const ExitCode code = interrupted ? ExitCode::kInterrupted : ExitCodeOfAudit(score);
  AuditRun run;
  run.corpus_folder = *folder;
  run.device = DeviceKindName(*kind);
  run.seconds = absl::ToDoubleSeconds(absl::Now() - began);
  for (const AuditOutcome& outcome : audit.outcomes()) {
    if (outcome.result.has_device()) run.where = outcome.result.device();
  }
  (*session)->Close(kEmbeddedPatience);
  std::string out;
  if (context.console->json()) {
    out = absl::StrCat(AuditDocument(*corpus, score, run, code), "\n");
  } else {
    for (const AuditCaseScore& one : score.cases) {
      absl::StrAppend(&out, RenderAuditMiss(*corpus, one, context.console->out_style()));
    }
    absl::StrAppend(&out, out.empty() ? "" : "\n", RenderAuditScore(*corpus, score, context.console->out_style()));
  }
  if (!context.console->Out(out)) return ExitCode::kInfrastructure;
  context.console->Message(absl::StrCat(DeviceLine(run.where), ", ", FormatClock(run.seconds)));
  return code;
}

}  // namespace grove::cli
