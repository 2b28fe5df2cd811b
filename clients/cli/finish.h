// What the commands share that submit a job, watch it to its end, and say what came of it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cli/commands.h"
#include "clients/cli/job_model.h"
#include "clients/cli/session.h"

namespace grove::cli {

// `device` and `models`: for a worker that has to be started; `record`: file for a search's model calls, or empty.
ExitCode SubmitAndFollow(const Context& context, const v1::JobSpec& spec, const std::string& key,
                         const std::string& device, bool detach, const std::string& record,
                         const ModelFlags& models = {});

// With whole results where there are not too many.
absl::StatusOr<std::vector<v1::KernelNode>> FetchKernels(Session* session, const std::string& job);
// A job that did not come to its end by itself: why, on stderr.
void SayJobFailure(const Context& context, const v1::Job& job);

ExitCode FinishCompare(const Context& context, Session* session, const std::string& id);
ExitCode FinishProblemCheck(const Context& context, Session* session, const std::string& id, const JobModel& model);
ExitCode FinishCalibrate(const Context& context, Session* session, const std::string& id, const JobModel& model);

}  // namespace grove::cli
