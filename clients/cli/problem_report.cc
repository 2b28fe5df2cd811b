#include "clients/cli/problem_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "clients/cli/json.h"

namespace grove::cli {

using Json = nlohmann::ordered_json;

ExitCode ExitCodeOfFindings(const v1::ProblemDescription& description) {
  for (const v1::ProblemFinding& finding : description.findings()) {
    if (finding.serious()) return ExitCode::kProblem;
  }
  return ExitCode::kOk;
}

std::string RenderFindings(const std::string& problem, const v1::ProblemDescription& description, const Style& style) {
  int serious = 0;
  std::string out;
  for (const v1::ProblemFinding& finding : description.findings()) {
    serious += finding.serious() ? 1 : 0;
    absl::StrAppend(&out, finding.serious() ? style.Red("SERIOUS") : style.Yellow("NOTE   "), "  ",
                    style.Bold(OneLine(finding.id())), "\n  ", OneLine(finding.what()), "\n  ",
                    style.Dim(OneLine(finding.remedy())), "\n");
  }
  std::string types;
  for (const v1::TensorType& input : description.inputs()) {
    std::string shape;
    for (int64_t size : input.shape()) absl::StrAppend(&shape, shape.empty() ? "" : ",", size);
    absl::StrAppend(&types, types.empty() ? "" : ", ", OneLine(input.dtype()), "[", shape, "]");
  }
  absl::StrAppend(&out, style.Bold(OneLine(problem)), ": ",
                  description.findings_size() == 0 ? style.Green("nothing found")
                  : serious > 0                    ? style.Red(absl::StrCat(serious, " serious"))
                                                   : style.Green("nothing serious"));
  if (description.findings_size() > serious) {
    absl::StrAppend(&out, serious > 0 ? " and " : ", ", description.findings_size() - serious, " to be noted");
  }
  absl::StrAppend(&out, "\n  inputs     ", types, "\n  data       ", FormatBytes(description.memory_bytes()),
                  " of inputs, parameters and outputs\n  reference  ", FormatSeconds(description.reference_seconds()),
                  " a call on ", OneLine(DeviceLine(description.device())), "\n");
  return out;
}

std::string FindingsDocument(const v1::Job& job, const v1::ProblemDescription& description, ExitCode code) {
  Json document;
  document["schema"] = "grove.v1/problem_check";
  document["job"] = job.id();
  document["name"] = job.spec().name();
  document["state"] = JobStateName(job.state());
  document["state_reason"] = job.state_reason();
  document["exit_code"] = static_cast<int>(code);
  Json findings = Json::array();
  for (const v1::ProblemFinding& finding : description.findings()) findings.push_back(JsonOf(finding));
  document["findings"] = std::move(findings);
  v1::ProblemDescription rest = description;
  rest.clear_findings();
  document["description"] = JsonOf(rest);
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace grove::cli
