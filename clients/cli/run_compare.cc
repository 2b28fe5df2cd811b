// `grove compare`, `grove calibrate`.
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/compare_report.h"
#include "clients/cli/finish.h"
#include "clients/cli/input.h"
#include "common/measure/replicas.h"

namespace grove::cli {

ExitCode FinishCompare(const Context& context, Session* session, const std::string& id) {
  auto job = session->client().GetJob(id, session->call());
  if (!job.ok()) return Fail(context, job.status());
  auto kernels = FetchKernels(session, id);
  if (!kernels.ok()) return Fail(context, kernels.status());
  const ExitCode code = ExitCodeOfCompare(*job, *kernels);
  SayJobFailure(context, *job);
  std::string out;
  if (context.console->json()) {
    out = absl::StrCat(CompareDocument(*job, *kernels, code), "\n");
  } else if (job->state() == v1::JOB_STATE_DONE) {
    for (const v1::KernelNode& kernel : *kernels) {
      absl::StrAppend(&out, out.empty() ? "" : "\n", RenderComparison(*job, kernel, context.console->out_style()));
    }
  }
  return context.console->Out(out) ? code : ExitCode::kInfrastructure;
}

ExitCode FinishCalibrate(const Context& context, Session* session, const std::string& id, const JobModel& model) {
  auto job = session->client().GetJob(id, session->call());
  if (!job.ok()) return Fail(context, job.status());
  SayJobFailure(context, *job);
  const ExitCode code = job->state() == v1::JOB_STATE_DONE ? ExitCode::kOk : ExitCodeOfFailedJob(*job);
  std::string out;
  if (context.console->json()) {
    out = absl::StrCat(CalibrateDocument(*job, model.calibrated(), code), "\n");
  } else if (code == ExitCode::kOk) {
    out = RenderCalibration(model.calibrated(), context.console->out_style());
  }
  return context.console->Out(out) ? code : ExitCode::kInfrastructure;
}

ExitCode RunCompare(const Context& context, const CompareCommand& command) {
  auto options = MakeEvaluationOptions(command.evaluation);
  if (!options.ok()) return Fail(context, options.status());
  options->set_replicas(command.replicas > 0 ? command.replicas : measure::kDefaultReplicas);
  auto problem = ReadProblem(command.problem);
  if (!problem.ok()) return Fail(context, problem.status());
  v1::JobSpec spec;
  v1::EvalSpec* eval = spec.mutable_eval();
  *eval->mutable_options() = *options;
  for (size_t i = 0; i < command.candidates.size(); ++i) {
    auto candidate = ReadCandidate(command.candidates[i]);
    if (!candidate.ok()) return Fail(context, candidate.status());
    for (const std::string& flag : command.build_flags) candidate->add_build_flags(flag);
    // The flags of one side alone: two builds of one source can be compared.
    for (const std::string& flag : i == 0 ? command.rival_flags : command.candidate_flags) {
      candidate->add_build_flags(flag);
    }
    (i == 0 ? *eval->mutable_rival() : *eval->add_candidates()) = *std::move(candidate);
  }
  auto name = JobName(command.name, problem->name());
  if (!name.ok()) return Fail(context, name.status());
  spec.set_name(*std::move(name));
  *eval->mutable_problem() = *std::move(problem);
  std::string device = command.evaluation.device == "auto" ? "" : command.evaluation.device;
  const auto takes = [&](const v1::Candidate& candidate) {
    if (!device.empty()) return;
    if (candidate.format() == v1::CANDIDATE_FORMAT_CUDA) device = "cuda";
    if (candidate.format() == v1::CANDIDATE_FORMAT_CPP) device = "cpu";
  };
  takes(eval->rival());
  for (const v1::Candidate& candidate : eval->candidates()) takes(candidate);
  return SubmitAndFollow(context, spec, command.key, device, command.detach, "");
}

ExitCode RunCalibrate(const Context& context, const CalibrateCommand& command) {
  auto device = ParseDevice(command.device);
  if (!device.ok()) return Fail(context, device.status());
  v1::JobSpec spec;
  v1::CalibrateSpec* calibrate = spec.mutable_calibrate();
  calibrate->set_device(device->kind);
  calibrate->set_max_seconds(command.max_seconds);
  calibrate->set_runs(command.runs);
  calibrate->set_worker(command.worker);
  return SubmitAndFollow(context, spec, command.key, command.device == "auto" ? "" : command.device, command.detach,
                         "");
}

}  // namespace grove::cli
