// What `grove problem check` says of a problem: for people and as a document. Pure.
#pragma once

#include <string>

#include "clients/cli/exit_code.h"
#include "clients/cli/text.h"
#include "grove/v1/tree.pb.h"

namespace grove::cli {

// kOk without serious findings, else kProblem.
ExitCode ExitCodeOfFindings(const v1::ProblemDescription& description);
std::string RenderFindings(const std::string& problem, const v1::ProblemDescription& description, const Style& style);
std::string FindingsDocument(const v1::Job& job, const v1::ProblemDescription& description, ExitCode code);

}  // namespace grove::cli
