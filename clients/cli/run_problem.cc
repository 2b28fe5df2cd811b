// `grove problem check`.
#include "absl/strings/str_cat.h"
#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/finish.h"
#include "clients/cli/input.h"
#include "clients/cli/problem_report.h"

namespace grove::cli {

ExitCode FinishProblemCheck(const Context& context, Session* session, const std::string& id, const JobModel& model) {
  auto job = session->client().GetJob(id, session->call());
  if (!job.ok()) return Fail(context, job.status());
  SayJobFailure(context, *job);
  const bool done = job->state() == v1::JOB_STATE_DONE;
  const ExitCode code = done ? ExitCodeOfFindings(model.description()) : ExitCodeOfFailedJob(*job);
  std::string out;
  if (context.console->json()) {
    out = absl::StrCat(FindingsDocument(*job, model.description(), code), "\n");
  } else if (done) {
    out = RenderFindings(job->spec().name(), model.description(), context.console->out_style());
  }
  return context.console->Out(out) ? code : ExitCode::kInfrastructure;
}

ExitCode RunProblemCheck(const Context& context, const ProblemCommand& command) {
  auto device = ParseDevice(command.device);
  if (!device.ok()) return Fail(context, device.status());
  auto problem = ReadProblem(command.problem);
  if (!problem.ok()) return Fail(context, problem.status());
  v1::JobSpec spec;
  spec.set_name(problem->name());
  *spec.mutable_check_problem()->mutable_problem() = *std::move(problem);
  spec.mutable_check_problem()->mutable_options()->set_device(device->kind);
  return SubmitAndFollow(context, spec, command.key, command.device == "auto" ? "" : command.device, command.detach,
                         "");
}

}  // namespace grove::cli
