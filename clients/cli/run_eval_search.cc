// `grove eval`, `grove search`, and what comes after a search: `grove resume`, `grove watch`.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/finish.h"
#include "clients/cli/follow.h"
#include "clients/cli/input.h"
#include "clients/cli/json.h"
#include "clients/cli/output_file.h"
#include "clients/cli/report.h"
#include "clients/cli/session.h"
#include "clients/cli/tree_view.h"
#include "common/base/files.h"

namespace grove::cli {
namespace {

// Above this, whole results are not fetched one by one: what the tree carries (all but logs and samples) is shown.
constexpr size_t kWholeResults = 200;
// How long an embedded coordinator and its worker may take to put away what they have. What is under way is not lost
// but done again at the next start.
constexpr absl::Duration kEmbeddedPatience = absl::Seconds(5);
constexpr int64_t kMaxExchangeBytes = 16 << 20;

std::string DeviceFlag(const EvaluationFlags& flags) { return flags.device == "auto" ? "" : flags.device; }

// What Ctrl-C says, by whether the coordinator stays.
void SayOnInterrupt(const Context& context, Session* session, const std::string& job) {
  Console* console = context.console;
  const bool embedded = session->embedded();
  context.interrupts->OnFirst([console, embedded, job] {
    if (embedded) {
      console->Message(
          absl::StrCat("\nstopping; nothing is lost: `grove resume ", job, "` goes on (Ctrl-C again stops at once)"));
    } else {
      console->Message(absl::StrCat("\ndetached; ", job, " goes on: `grove watch ", job,
                                    "` to look again, `grove cancel ", job, "` to stop it"));
    }
  });
}

std::string DataLine(Session* session) {
  if (!session->data_dir().empty()) return session->data_dir();
  auto info = session->client().GetFarmInfo(session->call());
  return info.ok() ? absl::StrCat(info->data_dir(), " (on the coordinator's machine)") : std::string("the coordinator");
}

}  // namespace

absl::StatusOr<std::vector<v1::KernelNode>> FetchKernels(Session* session, const std::string& job) {
  auto tree = session->client().GetTree(job, session->call());
  if (!tree.ok()) return tree.status();
  std::vector<v1::KernelNode> kernels;
  for (v1::TreeNode& node : *tree) {
    if (node.has_kernel()) kernels.push_back(std::move(*node.mutable_kernel()));
  }
  if (kernels.size() > kWholeResults) return kernels;
  for (v1::KernelNode& kernel : kernels) {
    auto whole = session->client().GetNode(kernel.id(), session->call());
    if (!whole.ok()) return whole.status();
    if (whole->has_kernel()) kernel = std::move(*whole->mutable_kernel());
  }
  return kernels;
}

// A job that did not come to its end by itself: why, on stderr. Nothing to say for DONE.
void SayJobFailure(const Context& context, const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_FAILED || job.state() == v1::JOB_STATE_CANCELLED) {
    context.console->Error(absl::StrCat(job.id(), " ", absl::AsciiStrToLower(JobStateName(job.state())),
                                        job.state_reason().empty() ? "" : ": ",
                                        absl::StripTrailingAsciiWhitespace(Printable(job.state_reason()))));
  }
}

namespace {

ExitCode FinishEval(const Context& context, Session* session, const std::string& id) {
  auto job = session->client().GetJob(id, session->call());
  if (!job.ok()) return Fail(context, job.status());
  auto kernels = FetchKernels(session, id);
  if (!kernels.ok()) return Fail(context, kernels.status());
  const ExitCode code = ExitCodeOfEval(*job, *kernels);
  SayJobFailure(context, *job);
  if (context.console->json()) {
    if (!context.console->Out(absl::StrCat(EvalDocument(*job, *kernels, code), "\n"))) return ExitCode::kInfrastructure;
    return code;
  }
  std::string out;
  if (job->state() == v1::JOB_STATE_DONE) {
    for (const v1::KernelNode& kernel : *kernels) {
      absl::StrAppend(&out, out.empty() ? "" : "\n", RenderEvaluation(kernel, context.console->out_style()));
    }
  }
  if (!context.console->Out(out)) return ExitCode::kInfrastructure;
  if (kernels->size() > 1) {
    std::map<v1::Verdict, int> verdicts;
    for (const v1::KernelNode& kernel : *kernels) ++verdicts[kernel.result().verdict()];
    context.console->Message(absl::StrCat(kernels->size(), " candidates: ", RenderVerdictCounts(verdicts)));
  }
  if (!kernels->empty() && job->state() == v1::JOB_STATE_DONE) {
    context.console->Message(absl::StrCat("sources, compiler text and samples: `grove show ", kernels->front().id(),
                                          "`; kept in ", DataLine(session)));
  }
  return code;
}

// The job's model calls as a recording, one line each.
absl::Status WriteRecording(Session* session, const std::string& id, const std::string& path, const Context& context,
                            int* lines) {
  std::vector<std::string> exchanges;
  client::WatchOptions watch;
  watch.cancellation = &context.interrupts->cancellation();
  // The job has ended, so the stream ends with its last event.
  absl::Status watched = session->client().WatchJob(id, watch, [&](const v1::Event& event) {
    if (event.has_model_called() && !event.model_called().exchange_sha256().empty()) {
      exchanges.push_back(event.model_called().exchange_sha256());
    }
    return true;
  });
  if (!watched.ok()) return watched;
  std::string text;
  for (const std::string& sha256 : exchanges) {
    auto line = session->client().GetArtifact(sha256, kMaxExchangeBytes, session->call());
    if (!line.ok()) return line.status();
    absl::StrAppend(&text, *line);
    if (!absl::EndsWith(text, "\n")) absl::StrAppend(&text, "\n");
  }
  *lines = static_cast<int>(exchanges.size());
  const absl::Status written = WriteFileAtomically(path, text);
  return written.ok() ? written : OutputFileError("--record", path, written);
}

ExitCode FinishSearch(const Context& context, Session* session, const std::string& id, const std::string& record) {
  auto job = session->client().GetJob(id, session->call());
  if (!job.ok()) return Fail(context, job.status());
  auto tree = session->client().GetTree(id, session->call());
  if (!tree.ok()) return Fail(context, tree.status());
  std::optional<v1::KernelNode> best;
  if (!job->best_node().empty()) {
    auto node = session->client().GetNode(job->best_node(), session->call());
    if (!node.ok()) return Fail(context, node.status());
    best = node->kernel();
  }
  ExitCode code = ExitCodeOfSearch(*job);
  SayJobFailure(context, *job);
  if (!record.empty()) {
    int lines = 0;
    if (absl::Status written = WriteRecording(session, id, record, context, &lines); !written.ok()) {
      context.console->Error(written.message());
      if (code == ExitCode::kOk) code = ExitCodeOf(written);
    } else if (lines == 0) {
      context.console->Message(absl::StrCat(record, " is empty: ",
                                            job->spec().search().generator().kind() == v1::GENERATOR_KIND_OPENAI
                                                ? "no model gave an answer"
                                                : "this generator asks no model",
                                            ", so there is nothing to record"));
    } else {
      context.console->Message(absl::StrCat("recorded ", lines, " exchanges in ", record,
                                            "; `--generator replay:", record, "` repeats them"));
    }
  }
  if (context.console->json()) {
    if (!context.console->Out(absl::StrCat(SearchDocument(*job, best ? &*best : nullptr, *tree, code), "\n"))) {
      return ExitCode::kInfrastructure;
    }
    return code;
  }
  TreeOptions options;
  options.style = context.console->out_style();
  options.width = context.console->out_width();
  options.best = job->best_node();
  std::string out = RenderTree(*tree, options);
  absl::StrAppend(&out, out.empty() ? "" : "\n", RenderSearchEnd(*job, best ? &*best : nullptr, options.style));
  if (best) {
    const char* extension = best->candidate().format() == v1::CANDIDATE_FORMAT_CUDA  ? "cu"
                            : best->candidate().format() == v1::CANDIDATE_FORMAT_CPP ? "cpp"
                                                                                     : "py";
    absl::StrAppend(&out, "  source     grove best ", job->id(), " -o best.", extension, "\n");
    absl::StrAppend(&out, "  details    grove show ", best->id(), "\n");
  }
  absl::StrAppend(&out, "  files      ", DataLine(session), "\n");
  if (!context.console->Out(out)) return ExitCode::kInfrastructure;
  return code;
}

// Goes on with a job whose coordinator ended with the command that had started it. Replaces the session.
absl::Status GoOn(const Context& context, std::unique_ptr<Session>* session, const Session::Wanted& wanted,
                  const std::string& job) {
  context.console->Message(
      absl::StrCat("the coordinator was another command's and has ended with it; going on with ", job));
  session->reset();
  auto opened = Session::Open(context.global, wanted, context.console, context.interrupts, context.env);
  if (!opened.ok()) return opened.status();
  *session = *std::move(opened);
  auto found = (*session)->client().GetJob(job, (*session)->call());
  if (!found.ok()) return found.status();
  if (found->state() != v1::JOB_STATE_PAUSED) return absl::OkStatus();
  v1::ResumeJobRequest request;
  request.set_id(job);
  return (*session)->client().ResumeJob(request, (*session)->call()).status();
}

// Watches and finishes; the interrupt's message has been set up by then. `wanted`: what the session was opened for.
ExitCode FollowAndFinish(const Context& context, std::unique_ptr<Session> session, const Session::Wanted& wanted,
                         const v1::Job& job, const std::string& record) {
  FollowOptions options;
  options.reattach_seconds = context.global.reattach;
  Followed followed;
  for (;;) {
    SayOnInterrupt(context, session.get(), job.id());
    followed = Follow(session.get(), job.id(), options, context.console, context.interrupts);
    if (!absl::IsUnavailable(followed.status) || !session->borrowed() || !wanted.may_start) break;
    if (absl::Status went_on = GoOn(context, &session, wanted, job.id()); !went_on.ok()) return Fail(context, went_on);
  }
  if (absl::IsCancelled(followed.status)) {
    session->Close(kEmbeddedPatience);
    return Interrupted(context,
                       absl::StrCat("interrupted; nothing of ", job.id(), " is lost: `grove jobs` has its state"));
  }
  if (!followed.status.ok()) {
    context.console->Message(
        absl::StrCat(job.id(), " is kept by the coordinator; `grove watch ", job.id(), "` attaches again"));
    return Fail(context, followed.status);
  }
  context.interrupts->OnFirst(nullptr);
  const bool search = job.spec().has_search() || !followed.model.ideas().empty();
  const ExitCode code = search                       ? FinishSearch(context, session.get(), job.id(), record)
                        : job.spec().has_calibrate() ? FinishCalibrate(context, session.get(), job.id(), followed.model)
                        : job.spec().has_check_problem()
                            ? FinishProblemCheck(context, session.get(), job.id(), followed.model)
                        : job.spec().eval().has_rival() ? FinishCompare(context, session.get(), job.id())
                                                        : FinishEval(context, session.get(), job.id());
  session->Close(kEmbeddedPatience);
  return code;
}

v1::DeviceKind DeviceOf(const v1::JobSpec& spec) {
  if (spec.has_calibrate()) return spec.calibrate().device();
  if (spec.has_check_problem()) return spec.check_problem().options().device();
  return spec.has_search() ? spec.search().options().device() : spec.eval().options().device();
}

// That there are jobs of earlier commands which this one leaves alone.
void SayInterrupted(Session* session, const std::string& own, Console* console) {
  v1::ListJobsRequest request;
  request.set_state(v1::JOB_STATE_PAUSED);
  request.set_limit(1000);
  auto paused = session->client().ListJobs(request, session->call());
  if (!paused.ok()) return;
  std::vector<std::string> ids;
  for (const v1::Job& job : paused->jobs()) {
    if (job.id() != own) ids.push_back(job.id());
  }
  if (ids.empty()) return;
  const std::string which = ids.size() == 1 ? ids[0] : "ID";
  console->Message(absl::StrCat(ids.size(), ids.size() == 1 ? " interrupted job waits" : " interrupted jobs wait",
                                ": `grove resume ", which, "` goes on with ", ids.size() == 1 ? "it" : "one",
                                ids.size() == 1 ? "" : " (`grove jobs --state paused` lists them)"));
}

// Where a job's model calls go, when it says so itself.
std::string ModelUrl(const v1::JobSpec& spec) { return spec.search().generator().base_url(); }

}  // namespace

ExitCode SubmitAndFollow(const Context& context, const v1::JobSpec& spec, const std::string& key,
                         const std::string& device, bool detach, const std::string& record, const ModelFlags& models) {
  const Session::Wanted wanted{
      .need = Need::kWork, .device = device, .may_start = !detach, .model_url = ModelUrl(spec), .models = models};
  auto session = Session::Open(context.global, wanted, context.console, context.interrupts, context.env);
  if (!session.ok()) return Fail(context, session.status());
  const std::string own_key = key.empty() ? client::Client::NewIdempotencyKey() : key;
  auto submitted = (*session)->client().SubmitJob(spec, own_key, (*session)->call());
  if (absl::IsUnavailable(submitted.status()) && (*session)->borrowed() && wanted.may_start) {
    // It was another command's, and is about to end with it.
    session->reset();
    session = Session::Open(context.global, wanted, context.console, context.interrupts, context.env);
    if (!session.ok()) return Fail(context, session.status());
    submitted = (*session)->client().SubmitJob(spec, own_key, (*session)->call());
  }
  if (!submitted.ok()) return Fail(context, submitted.status());
  const v1::Job& job = submitted->job();
  if ((*session)->embedded()) SayInterrupted(session->get(), job.id(), context.console);
  if (detach) {
    if (context.console->json()) {
      context.console->Out(absl::StrCat(SubmittedDocument(job), "\n"));
    } else {
      context.console->Out(absl::StrCat(job.id(), "\n"));
      context.console->Message(absl::StrCat("submitted; `grove watch ", job.id(), "` shows how it goes"));
    }
    return ExitCode::kOk;
  }
  v1::Job named = job;
  if (!named.has_spec()) *named.mutable_spec() = spec;
  return FollowAndFinish(context, *std::move(session), wanted, named, record);
}

absl::StatusOr<v1::EvaluationOptions> MakeEvaluationOptions(const EvaluationFlags& flags) {
  v1::EvaluationOptions options;
  auto device = ParseDevice(flags.device);
  if (!device.ok()) return device.status();
  options.set_device(device->kind);
  options.set_trials(flags.trials);
  if (!flags.tolerance.empty()) {
    auto tolerance = ParseTolerance(flags.tolerance);
    if (!tolerance.ok()) return tolerance.status();
    *options.mutable_tolerance() = *tolerance;
  }
  if (absl::Status parsed = ParsePrecision(flags.precision, &options); !parsed.ok()) return parsed;
  auto work = ParseWork(flags.work);
  if (!work.ok()) return work.status();
  options.set_work(*work);
  auto distributions = ParseDistributions(flags.distributions);
  if (!distributions.ok()) return distributions.status();
  for (v1::InputDistribution distribution : *distributions) options.add_distributions(distribution);
  if (flags.only_given_inputs && !distributions->empty()) {
    return absl::InvalidArgumentError("--only-given-inputs and --distributions contradict each other");
  }
  options.set_only_given_inputs(flags.only_given_inputs);
  auto cache = ParseCache(flags.cache);
  if (!cache.ok()) return cache.status();
  options.set_cache(*cache);
  options.set_skip_timing(flags.no_timing);
  options.set_profile(flags.profile);
  auto baselines = ParseBaselines(flags.baseline);
  if (!baselines.ok()) return baselines.status();
  if (flags.no_timing && flags.baseline != EvaluationFlags().baseline) {
    return absl::InvalidArgumentError("--no-timing and --baseline contradict each other");
  }
  for (v1::Baseline baseline : *baselines) {
    if (!flags.no_timing) options.add_baselines(baseline);
  }
  for (const std::string& limit : flags.limits) {
    if (absl::Status applied = ApplyLimit(limit, options.mutable_limits()); !applied.ok()) return applied;
  }
  options.set_min_time_seconds(flags.min_time);
  options.set_max_time_seconds(flags.max_time);
  if (flags.min_time > 0 && flags.max_time > 0 && flags.max_time < flags.min_time) {
    return absl::InvalidArgumentError("--max-time is below --min-time");
  }
  options.set_max_samples(flags.samples);
  options.set_keep_samples(flags.keep_samples);
  options.set_reuse_result(flags.reuse);
  return options;
}

ExitCode RunEval(const Context& context, const EvalCommand& command) {
  auto options = MakeEvaluationOptions(command.evaluation);
  if (!options.ok()) return Fail(context, options.status());
  auto problem = ReadProblem(command.problem);
  if (!problem.ok()) return Fail(context, problem.status());
  v1::JobSpec spec;
  v1::EvalSpec* eval = spec.mutable_eval();
  *eval->mutable_options() = *options;
  // All that is wrong is said at once: a batch of hundreds is not corrected one file per attempt.
  absl::Status first;
  int wrong = 0;
  for (const std::string& path : command.candidates) {
    auto candidate = ReadCandidate(path);
    if (!candidate.ok()) {
      if (wrong++ == 0) {
        first = candidate.status();
      } else if (wrong <= 20 && !context.console->json()) {
        context.console->Error(candidate.status().message());
      }
      continue;
    }
    for (const std::string& flag : command.build_flags) candidate->add_build_flags(flag);
    *eval->add_candidates() = *std::move(candidate);
  }
  if (!first.ok()) return Fail(context, first);
  auto name = JobName(command.name, problem->name());
  if (!name.ok()) return Fail(context, name.status());
  spec.set_name(*std::move(name));
  *eval->mutable_problem() = *std::move(problem);
  // A .cu or .cpp candidate names its device by itself.
  std::string device = DeviceFlag(command.evaluation);
  for (const v1::Candidate& candidate : eval->candidates()) {
    if (!device.empty()) break;
    if (candidate.format() == v1::CANDIDATE_FORMAT_CUDA) device = "cuda";
    if (candidate.format() == v1::CANDIDATE_FORMAT_CPP) device = "cpu";
  }
  return SubmitAndFollow(context, spec, command.key, device, command.detach, "");
}

ExitCode RunSearch(const Context& context, const SearchCommand& command) {
  auto options = MakeEvaluationOptions(command.evaluation);
  if (!options.ok()) return Fail(context, options.status());
  auto generator = ParseGenerator(command.generator);
  if (!generator.ok()) return Fail(context, generator.status());
  auto problem = ReadProblem(command.problem);
  if (!problem.ok()) return Fail(context, problem.status());
  v1::JobSpec spec;
  auto name = JobName(command.name, problem->name());
  if (!name.ok()) return Fail(context, name.status());
  spec.set_name(*std::move(name));
  v1::SearchSpec* search = spec.mutable_search();
  *search->mutable_problem() = *std::move(problem);
  *search->mutable_options() = *options;
  search->set_no_bank(command.no_bank);
  search->mutable_generator()->set_kind(generator->kind);
  if (generator->kind == v1::GENERATOR_KIND_OPENAI) {
    search->mutable_generator()->set_model(command.model);
    search->mutable_generator()->set_base_url(command.base_url);
    search->mutable_generator()->set_temperature(command.temperature);
  } else if (!command.model.empty() || !command.base_url.empty()) {
    return Fail(context, absl::InvalidArgumentError("--model and --base-url go with --generator openai"));
  }
  if (generator->kind == v1::GENERATOR_KIND_REPLAY) {
    auto recording = ReadTextFile(generator->recording_file, kMaxRecordingBytes, "recording");
    if (!recording.ok()) return Fail(context, recording.status());
    search->mutable_generator()->set_recording(*std::move(recording));
  }
  v1::SearchPolicy* policy = search->mutable_policy();
  policy->set_rounds(command.rounds);
  policy->set_ideas(command.ideas);
  policy->set_variants(command.variants);
  policy->set_keep(command.keep);
  policy->set_max_evaluations(command.max_evaluations);
  policy->set_seed(command.seed);
  policy->set_max_seconds(command.max_seconds);
  // Zero means the default there, "none" is negative.
  if (command.repairs_given) policy->set_repairs(command.repairs == 0 ? -1 : command.repairs);
  if (command.explore_given) policy->set_explore_ratio(command.explore == 0 ? -1 : command.explore);
  return SubmitAndFollow(context, spec, command.key, DeviceFlag(command.evaluation), command.detach, command.record,
                         command.models);
}

ExitCode RunResume(const Context& context, const NodeCommand& command) {
  // Looked at first, because a coordinator of our own is told by its flags which model's URL may have the key, and its
  // worker which device the job is for.
  auto session = Session::Open(context.global, {.need = Need::kRead}, context.console, context.interrupts, context.env);
  if (!session.ok()) return Fail(context, session.status());
  auto job = (*session)->client().GetJob(command.id, (*session)->call());
  if (!job.ok()) return Fail(context, job.status());
  const v1::DeviceKind kind = DeviceOf(job->spec());
  const Session::Wanted wanted{.need = Need::kWork,
                               .device = kind == v1::DEVICE_KIND_CPU    ? "cpu"
                                         : kind == v1::DEVICE_KIND_CUDA ? "cuda"
                                                                        : "",
                               .model_url = ModelUrl(job->spec()),
                               .models = command.models};
  if ((*session)->embedded()) {
    (*session)->Close(kEmbeddedPatience);
    session->reset();
    session = Session::Open(context.global, wanted, context.console, context.interrupts, context.env);
    if (!session.ok()) return Fail(context, session.status());
    job = (*session)->client().GetJob(job->id(), (*session)->call());
    if (!job.ok()) return Fail(context, job.status());
  }
  // One that was interrupted is PAUSED for a coordinator of ours, and goes on by itself under any other.
  if (job->state() != v1::JOB_STATE_RUNNING || command.extra_rounds > 0 || command.extra_evaluations > 0) {
    v1::ResumeJobRequest request;
    request.set_id(job->id());
    request.set_extra_rounds(command.extra_rounds);
    request.set_extra_evaluations(command.extra_evaluations);
    auto resumed = (*session)->client().ResumeJob(request, (*session)->call());
    if (!resumed.ok()) return Fail(context, resumed.status());
  }
  return FollowAndFinish(context, *std::move(session), wanted, *job, "");
}

ExitCode RunWatch(const Context& context, const NodeCommand& command) {
  auto session = Session::Open(context.global, {.need = Need::kRead}, context.console, context.interrupts, context.env);
  if (!session.ok()) return Fail(context, session.status());
  auto job = (*session)->client().GetJob(command.id, (*session)->call());
  if (!job.ok()) return Fail(context, job.status());
  if ((*session)->embedded() && (job->state() == v1::JOB_STATE_RUNNING || job->state() == v1::JOB_STATE_PAUSED)) {
    context.console->Message(absl::StrCat("no worker is connected, so ", job->id(), " will not move; `grove resume ",
                                          job->id(), "` goes on with it"));
  }
  Console* console = context.console;
  context.interrupts->OnFirst([console] { console->Message("\ndetached"); });
  FollowOptions options;
  options.ndjson = console->json();
  options.lines_to_stdout = !console->live();
  options.after_seq = command.after;
  options.reattach_seconds = context.global.reattach;
  Followed followed = Follow(session->get(), job->id(), options, console, context.interrupts);
  if (absl::IsCancelled(followed.status)) return ExitCode::kInterrupted;
  if (!followed.status.ok()) {
    // The stream on stdout is no place for an error document of another shape.
    console->Error(followed.status.message());
    return ExitCodeOf(followed.status);
  }
  auto ended = (*session)->client().GetJob(job->id(), (*session)->call());
  if (!ended.ok()) return Fail(context, ended.status());
  SayJobFailure(context, *ended);
  if (!options.ndjson) console->Out(RenderJob(*ended, ended->finished_unix_nanos(), console->out_style()));
  if (ended->spec().has_eval()) {
    auto tree = (*session)->client().GetTree(job->id(), (*session)->call());
    if (!tree.ok()) return Fail(context, tree.status());
    std::vector<v1::KernelNode> kernels;
    for (const v1::TreeNode& node : *tree) {
      if (node.has_kernel()) kernels.push_back(node.kernel());
    }
    return ExitCodeOfEval(*ended, kernels);
  }
  return ExitCodeOfSearch(*ended);
}

}  // namespace grove::cli
