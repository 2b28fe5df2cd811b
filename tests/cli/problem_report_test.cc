#include "clients/cli/problem_report.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "clients/cli/job_model.h"

namespace grove::cli {
namespace {

v1::ProblemDescription Described(bool serious) {
  v1::ProblemDescription description;
  v1::TensorType* input = description.add_inputs();
  input->set_dtype("float32");
  input->add_shape(4);
  input->add_shape(8);
  description.set_memory_bytes(1 << 20);
  description.set_reference_seconds(1e-5);
  v1::ProblemFinding* finding = description.add_findings();
  finding->set_id("low-variance");
  finding->set_serious(serious);
  finding->set_what("the output moves by 1e-06 of its rms\nfrom draw to draw");
  finding->set_remedy("draw other values");
  return description;
}

TEST_CASE("A problem with a serious finding has an exit code of its own, and one with notes is fine", "[cli]") {
  CHECK(ExitCodeOfFindings(Described(true)) == ExitCode::kProblem);
  CHECK(ExitCodeOfFindings(Described(false)) == ExitCode::kOk);
  CHECK(ExitCodeOfFindings({}) == ExitCode::kOk);
  CHECK(static_cast<int>(ExitCode::kProblem) == 19);
}

TEST_CASE("Findings are shown with what, figures and remedy", "[cli]") {
  const std::string text = RenderFindings("softmax", Described(true), {});
  for (const char* part : {"SERIOUS", "low-variance", "1e-06 of its rms from draw", "draw other values", "1 serious",
                           "float32[4,8]", "1.0 MiB", "10.0 us"}) {
    CAPTURE(part, text);
    CHECK(absl::StrContains(text, part));
  }
  CHECK(absl::StrContains(RenderFindings("softmax", Described(false), {}), "nothing serious, 1 to be noted"));
  CHECK(absl::StrContains(RenderFindings("softmax", {}, {}), "nothing found"));
  v1::Job job;
  job.set_id("j-abcdefgh");
  job.set_state(v1::JOB_STATE_DONE);
  const auto document = nlohmann::json::parse(FindingsDocument(job, Described(true), ExitCode::kProblem));
  CHECK(document["schema"] == "grove.v1/problem_check");
  CHECK(document["exit_code"] == 19);
  CHECK(document["findings"][0]["serious"] == true);
  CHECK(document["description"]["inputs"][0]["dtype"] == "float32");
}

TEST_CASE("The model of a job keeps what is said of its problem", "[cli]") {
  JobModel model;
  v1::Event event;
  event.set_seq(1);
  *event.mutable_problem_described()->mutable_description() = Described(true);
  model.Apply(event);
  CHECK(model.described());
  CHECK(model.description().findings(0).id() == "low-variance");
}

}  // namespace
}  // namespace grove::cli
