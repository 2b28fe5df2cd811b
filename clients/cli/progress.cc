#include "clients/cli/progress.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/cli/report.h"
#include "clients/cli/tree_view.h"

namespace grove::cli {
namespace {

std::string Counts(const JobModel& model) {
  std::string text;
  if (model.spec().has_search()) absl::StrAppend(&text, model.ideas().size(), " ideas, ");
  absl::StrAppend(&text, model.kernels().size(), " kernels: ", model.queued(), " queued, ", model.running().size(),
                  " running, ", model.finished(), " judged");
  if (!model.verdicts().empty()) absl::StrAppend(&text, " (", RenderVerdictCounts(model.verdicts()), ")");
  return text;
}

// Judged per minute and the time that the rest takes at that rate.
std::string Pace(const JobModel& model, const ProgressView& view) {
  std::string text = FormatClock(view.elapsed_seconds);
  const int done = model.finished() - view.finished_before;
  if (done < 2 || view.elapsed_seconds < 1) return text;
  const double rate = done / view.elapsed_seconds;
  absl::StrAppend(&text, absl::StrFormat(", %.3g/min", rate * 60));
  const int left = model.PlannedEvaluations() - model.finished();
  if (left > 0) {
    double seconds = left / rate;
    const double budget = model.spec().search().policy().max_seconds();
    if (budget > 0) seconds = std::min(seconds, std::max(0.0, budget - view.elapsed_seconds));
    absl::StrAppend(&text, model.spec().has_search() ? ", at most " : ", about ", FormatClock(seconds), " left");
  }
  return text;
}

std::string Stages(const JobModel& model) {
  std::map<std::string, int> by_stage;
  for (const auto& [kernel, running] : model.running()) ++by_stage[running.stage.empty() ? "starting" : running.stage];
  return absl::StrJoin(by_stage, ", ", [](std::string* s, const std::pair<const std::string, int>& stage) {
    absl::StrAppend(s, stage.second, " ", OneLine(stage.first));
  });
}

std::string Best(const JobModel& model, const Style& style) {
  const v1::KernelNode* best = model.best();
  if (best == nullptr) return style.Dim("no correct kernel yet");
  const v1::BaselineTiming* timing = RankingTiming(best->result());
  if (timing == nullptr) return style.Dim("no correct kernel yet");
  std::string text = absl::StrCat(
      "best ", style.Green(FormatSpeedup(timing->speedup(), timing->speedup_low(), timing->speedup_high())), " vs ",
      BaselineName(timing->baseline()), "  ", ShortId(best->id()));
  if (const v1::IdeaNode* idea = model.FindIdea(best->idea())) absl::StrAppend(&text, " ", OneLine(idea->title()));
  if (best->idea().empty() && !best->candidate().name().empty())
    absl::StrAppend(&text, " ", OneLine(best->candidate().name()));
  return text;
}

// An idea and what its kernels came to, on one line.
std::string IdeaLine(const v1::IdeaNode& idea, const std::vector<const v1::KernelNode*>& kernels, const Style& style) {
  const v1::KernelNode* best = nullptr;
  std::map<v1::Verdict, int> verdicts;
  int open = 0;
  for (const v1::KernelNode* kernel : kernels) {
    const v1::Verdict verdict = kernel->result().verdict();
    if (verdict == v1::VERDICT_UNSPECIFIED) {
      ++open;
      continue;
    }
    ++verdicts[verdict];
    const auto* timing = RankingTiming(kernel->result());
    if (timing != nullptr && (best == nullptr || timing->speedup() > RankingTiming(best->result())->speedup()))
      best = kernel;
  }
  std::string outcome;
  if (best != nullptr) {
    const auto* timing = RankingTiming(best->result());
    outcome = style.Green(FormatSpeedup(timing->speedup(), timing->speedup_low(), timing->speedup_high()));
  } else if (!verdicts.empty()) {
    outcome = style.Yellow(RenderVerdictCounts(verdicts));
  }
  if (open > 0) absl::StrAppend(&outcome, outcome.empty() ? "" : "  ", style.Dim(absl::StrCat(open, " under way")));
  if (kernels.empty()) outcome = style.Dim("being written");
  const std::string from = idea.parent().empty() ? "" : absl::StrCat(" on ", ShortId(idea.parent()));
  return absl::StrCat("  ", style.unicode ? "• " : "- ", OneLine(idea.title()), style.Dim(from), "  ", outcome);
}

}  // namespace

std::vector<std::string> RenderProgress(const std::string& job, const JobModel& model, const ProgressView& view) {
  std::vector<std::string> lines;
  const size_t limit = std::max<size_t>(2, view.max_lines);
  const auto add = [&](const std::string& line) { lines.push_back(Fit(line, view.width)); };
  std::string head = absl::StrCat(view.style.Bold(job), " ");
  if (model.state() == v1::JOB_STATE_PAUSED) {
    absl::StrAppend(&head, view.style.Yellow("paused"), model.state_reason().empty() ? "" : ": ",
                    OneLine(model.state_reason()), "  ");
  } else if (model.spec().has_calibrate()) {
    absl::StrAppend(&head, "calibrating  ");
    const auto running = model.running().begin();
    if (running != model.running().end()) {
      absl::StrAppend(&head, OneLine(running->second.stage), " ", OneLine(running->second.detail));
    }
    add(head);
    return lines;
  } else if (!model.described() && model.kernels().empty()) {
    absl::StrAppend(&head, "reading the problem  ");
  }
  add(absl::StrCat(head, Counts(model)));
  const std::string stages = Stages(model);
  add(absl::StrCat("  ", Best(model, view.style), "   ", Pace(model, view), stages.empty() ? "" : "   ", stages));
  const size_t room = limit - 2;
  if (room == 0 || model.ideas().empty()) return lines;

  std::map<std::string, std::vector<const v1::KernelNode*>> by_idea;
  for (const v1::KernelNode& kernel : model.kernels()) {
    if (!kernel.idea().empty()) by_idea[kernel.idea()].push_back(&kernel);
  }
  size_t shown = model.ideas().size();
  if (shown > room) {
    shown = room - 1;
    add(view.style.Dim(absl::StrCat("  ", model.ideas().size() - shown, " earlier ideas")));
  }
  for (size_t i = model.ideas().size() - shown; i < model.ideas().size(); ++i) {
    add(IdeaLine(model.ideas()[i], by_idea[model.ideas()[i].id()], view.style));
  }
  return lines;
}

std::string PlainLine(const v1::Event& event, const JobModel& model) {
  switch (event.body_case()) {
    case v1::Event::kJobState: {
      std::string line = absl::StrCat("job ", absl::AsciiStrToLower(JobStateName(event.job_state().state())));
      // Why it failed is said once, in full, by the command that ends with it.
      const bool failed = event.job_state().state() == v1::JOB_STATE_FAILED;
      if (!failed && !event.job_state().reason().empty())
        absl::StrAppend(&line, ": ", OneLine(event.job_state().reason()));
      return line;
    }
    case v1::Event::kProblemDescribed:
      return event.problem_described().error().empty() ? "problem understood" : "problem cannot be used";
    case v1::Event::kIdeasProposed: {
      if (!event.ideas_proposed().error().empty()) {
        return absl::StrCat("generator: ", OneLine(event.ideas_proposed().error()));
      }
      std::string lines;
      for (const v1::IdeaNode& idea : event.ideas_proposed().ideas()) {
        absl::StrAppend(&lines, lines.empty() ? "" : "\n", ShortId(idea.id()), " idea: ", OneLine(idea.title()),
                        idea.parent().empty() ? "" : absl::StrCat(" (on ", ShortId(idea.parent()), ")"));
      }
      return lines;
    }
    case v1::Event::kKernelWritten:
      return event.kernel_written().error().empty()
                 ? ""
                 : absl::StrCat("generator: ", OneLine(event.kernel_written().error()));
    case v1::Event::kEvaluationRequeued:
      return absl::StrCat(ShortId(event.evaluation_requeued().kernel()),
                          " queued again: ", OneLine(event.evaluation_requeued().reason()));
    case v1::Event::kEvaluationFinished: {
      const v1::KernelNode* kernel = model.FindKernel(event.evaluation_finished().kernel());
      if (kernel == nullptr) return "";
      std::string line = absl::StrCat(ShortId(kernel->id()), " ", KernelOutcome(*kernel, Style()));
      if (kernel->idea().empty()) {
        if (!kernel->candidate().name().empty()) absl::StrAppend(&line, "  ", OneLine(kernel->candidate().name()));
      } else if (const v1::IdeaNode* idea = model.FindIdea(kernel->idea())) {
        absl::StrAppend(&line, "  ", OneLine(idea->title()));
      }
      const bool best = model.best() == kernel && kernel->result().verdict() == v1::VERDICT_CORRECT;
      if (event.evaluation_finished().confirmation()) {
        // The second line about this kernel; others that look faster may not have been measured again yet.
        absl::StrAppend(&line, "  (measured again", best ? ", best of those" : "", ")");
      } else if (best) {
        absl::StrAppend(&line, "  (best so far)");
      }
      return line;
    }
    default:
      return "";
  }
}

std::string PlainSummary(const JobModel& model, const ProgressView& view) {
  return absl::StrCat(Counts(model), "; ", Best(model, Style()), "; ", Pace(model, view));
}

}  // namespace grove::cli
