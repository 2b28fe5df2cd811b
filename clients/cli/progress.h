// The live display of a job: what its few lines say. Pure; drawing is Console's.
#pragma once

#include <string>
#include <vector>

#include "clients/cli/job_model.h"
#include "clients/cli/text.h"

namespace grove::cli {

struct ProgressView {
  Style style;
  size_t width = 80;
  size_t max_lines = 20;       // at least 2
  double elapsed_seconds = 0;  // since this watcher began to look
  int finished_before = 0;     // judged before it began, which must not count for the rate
};

// Stage counts, the best so far with its interval, rate, time left; for a search also the newest ideas with what came
// of them. Never more than max_lines.
std::vector<std::string> RenderProgress(const std::string& job, const JobModel& model, const ProgressView& view);

// Where there is no terminal: the line that this event is worth, or "". Call after the model has applied it.
std::string PlainLine(const v1::Event& event, const JobModel& model);

// A summary line for a job with so many kernels that one line each is too much.
std::string PlainSummary(const JobModel& model, const ProgressView& view);

}  // namespace grove::cli
