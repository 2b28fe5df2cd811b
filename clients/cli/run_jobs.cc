// `grove jobs|job|cancel|tree|best|show`: looking at what there is.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/cli/commands.h"
#include "clients/cli/json.h"
#include "clients/cli/output_file.h"
#include "clients/cli/report.h"
#include "clients/cli/session.h"
#include "clients/cli/tree_view.h"
#include "common/base/files.h"

namespace grove::cli {
namespace {

absl::StatusOr<std::unique_ptr<Session>> OpenToRead(const Context& context) {
  return Session::Open(context.global, {.need = Need::kRead}, context.console, context.interrupts, context.env);
}

// Prints and maps a stdout that cannot be written.
ExitCode Print(const Context& context, const std::string& text, ExitCode code = ExitCode::kOk) {
  return context.console->Out(text) ? code : ExitCode::kInfrastructure;
}

ExitCode PrintDocument(const Context& context, const std::string& document, ExitCode code = ExitCode::kOk) {
  return Print(context, absl::StrCat(document, "\n"), code);
}

// From the node's parent up to the reference, nearest first.
std::vector<v1::TreeNode> Lineage(const std::vector<v1::TreeNode>& tree, const v1::TreeNode& node) {
  std::unordered_map<std::string, const v1::TreeNode*> by_id;
  for (const v1::TreeNode& other : tree) by_id[other.has_idea() ? other.idea().id() : other.kernel().id()] = &other;
  std::vector<v1::TreeNode> lineage;
  const v1::TreeNode* at = &node;
  while (lineage.size() < by_id.size()) {  // a loop of parents ends, too
    std::string parent;
    if (at->has_idea()) {
      parent = at->idea().parent();
    } else {
      const v1::KernelNode& kernel = at->kernel();
      parent = !kernel.repaired_from().empty() ? kernel.repaired_from()
               : !kernel.idea().empty()        ? kernel.idea()
                                               : kernel.parent();
    }
    const auto found = by_id.find(parent);
    if (parent.empty() || found == by_id.end()) break;
    at = found->second;
    lineage.push_back(*at);
  }
  return lineage;
}

}  // namespace

ExitCode Fail(const Context& context, const absl::Status& status, ExitCode code) {
  if (context.console->json()) context.console->Out(absl::StrCat(ErrorDocument(status, code), "\n"));
  context.console->Error(status.message());
  return code;
}

ExitCode Interrupted(const Context& context, absl::string_view what) {
  if (context.console->json()) {
    context.console->Out(absl::StrCat(ErrorDocument(absl::CancelledError(what), ExitCode::kInterrupted), "\n"));
  }
  return ExitCode::kInterrupted;
}

ExitCode Fail(const Context& context, const absl::Status& status) {
  if (absl::IsCancelled(status)) return Interrupted(context);
  return Fail(context, status, ExitCodeOf(status));
}

ExitCode RunJobs(const Context& context, const JobsCommand& command) {
  v1::ListJobsRequest request;
  request.set_limit(command.limit);
  if (!command.state.empty()) {
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
    if (!v1::JobState_Parse(absl::StrCat("JOB_STATE_", absl::AsciiStrToUpper(command.state)), &state) ||
        state == v1::JOB_STATE_UNSPECIFIED) {
      return Fail(context,
                  absl::InvalidArgumentError(absl::StrCat("--state: '", command.state,
                                                          "' is not one of running, paused, done, cancelled, failed")));
    }
    request.set_state(state);
  }
  auto session = OpenToRead(context);
  if (!session.ok()) return Fail(context, session.status());
  auto response = (*session)->client().ListJobs(request, (*session)->call());
  if (!response.ok()) return Fail(context, response.status());
  std::vector<v1::Job> jobs(response->jobs().begin(), response->jobs().end());
  if (context.console->json()) return PrintDocument(context, JobsDocument(jobs));
  if (jobs.empty()) {
    context.console->Message("no jobs; `grove search` and `grove eval` make some");
    return ExitCode::kOk;
  }
  return Print(context, RenderJobs(jobs, absl::GetCurrentTimeNanos()));
}

ExitCode RunJob(const Context& context, const NodeCommand& command) {
  auto session = OpenToRead(context);
  if (!session.ok()) return Fail(context, session.status());
  auto job = (*session)->client().GetJob(command.id, (*session)->call());
  if (!job.ok()) return Fail(context, job.status());
  if (context.console->json()) return PrintDocument(context, JobDocument(*job));
  return Print(context, RenderJob(*job, absl::GetCurrentTimeNanos(), context.console->out_style()));
}

ExitCode RunCancel(const Context& context, const NodeCommand& command) {
  auto session = OpenToRead(context);
  if (!session.ok()) return Fail(context, session.status());
  auto job = (*session)->client().CancelJob(
      command.id, command.reason.empty() ? "cancelled by the user" : command.reason, (*session)->call());
  if (!job.ok()) return Fail(context, job.status());
  if (context.console->json()) return PrintDocument(context, JobDocument(*job));
  context.console->Message(absl::StrCat(job->id(), " is ", absl::AsciiStrToLower(JobStateName(job->state()))));
  return ExitCode::kOk;
}

ExitCode RunTree(const Context& context, const NodeCommand& command) {
  auto session = OpenToRead(context);
  if (!session.ok()) return Fail(context, session.status());
  auto job = (*session)->client().GetJob(command.id, (*session)->call());
  if (!job.ok()) return Fail(context, job.status());
  auto tree = (*session)->client().GetTree(job->id(), (*session)->call());
  if (!tree.ok()) return Fail(context, tree.status());
  if (command.format == "json" || context.console->json()) return PrintDocument(context, TreeDocument(*job, *tree));
  if (command.format == "dot") {
    return Print(context, RenderDot(absl::StrCat(job->spec().name(), " ", job->id()), *tree, job->best_node()));
  }
  TreeOptions options;
  options.style = context.console->out_style();
  options.width = context.console->out_width();
  options.best = job->best_node();
  const std::string head = absl::StrCat(options.style.Bold(job->id()), "  ", OneLine(job->spec().name()), "  ",
                                        JobStateName(job->state()), "\n");
  return Print(context, absl::StrCat(head, RenderTree(*tree, options)));
}

ExitCode RunBest(const Context& context, const NodeCommand& command) {
  auto session = OpenToRead(context);
  if (!session.ok()) return Fail(context, session.status());
  auto job = (*session)->client().GetJob(command.id, (*session)->call());
  if (!job.ok()) return Fail(context, job.status());
  if (job->best_node().empty()) {
    const bool running = job->state() == v1::JOB_STATE_RUNNING || job->state() == v1::JOB_STATE_PAUSED;
    ExitCode code = running ? ExitCode::kInfrastructure : ExitCodeOfSearch(*job);
    return Fail(context,
                absl::NotFoundError(
                    absl::StrCat(job->id(), " has no correct kernel",
                                 running ? " yet; it is still running" : "; see `grove tree " + job->id() + "`")),
                code);
  }
  auto node = (*session)->client().GetNode(job->best_node(), (*session)->call());
  if (!node.ok()) return Fail(context, node.status());
  const v1::KernelNode& kernel = node->kernel();
  const std::string file = command.output == "-" ? "" : command.output;
  if (!file.empty()) {
    if (absl::Status written = WriteFileAtomically(file, kernel.candidate().source()); !written.ok()) {
      return Fail(context, OutputFileError("-o", file, written));
    }
  }
  if (context.console->json()) return PrintDocument(context, BestDocument(kernel, file));
  context.console->Message(absl::StrCat(kernel.id(), "  ", KernelVerdictLine(kernel),
                                        kernel.result().has_device() ? "  on " : "",
                                        kernel.result().has_device() ? DeviceLine(kernel.result().device()) : "",
                                        file.empty() ? "" : absl::StrCat("\nwritten to ", file)));
  return file.empty() ? Print(context, kernel.candidate().source()) : ExitCode::kOk;
}

ExitCode RunShow(const Context& context, const NodeCommand& command) {
  if (command.id.find('/') == std::string::npos) {
    return Fail(context, absl::InvalidArgumentError(absl::StrCat(
                             "'", command.id,
                             "' is not a node; nodes are called JOB/k1 (kernels) and JOB/i1 (ideas), `grove tree ",
                             command.id, "` lists them")));
  }
  auto session = OpenToRead(context);
  if (!session.ok()) return Fail(context, session.status());
  auto node = (*session)->client().GetNode(command.id, (*session)->call());
  if (!node.ok()) return Fail(context, node.status());
  const std::string& id = node->has_idea() ? node->idea().id() : node->kernel().id();
  auto tree = (*session)->client().GetTree(id.substr(0, id.find('/')), (*session)->call());
  if (!tree.ok()) return Fail(context, tree.status());
  const std::vector<v1::TreeNode> lineage = Lineage(*tree, *node);
  std::vector<v1::KernelNode> kernels;
  if (node->has_idea()) {
    for (const v1::TreeNode& other : *tree) {
      if (other.has_kernel() && other.kernel().idea() == id) kernels.push_back(other.kernel());
    }
  }
  if (context.console->json()) return PrintDocument(context, NodeDocument(*node, lineage, kernels));
  const Style& style = context.console->out_style();
  return Print(context, node->has_idea() ? RenderIdeaNode(node->idea(), lineage, kernels, style)
                                         : RenderKernelNode(node->kernel(), lineage, style));
}

}  // namespace grove::cli
