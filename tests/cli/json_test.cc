#include "clients/cli/json.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/cli/samples.h"

namespace grove::cli {
namespace {

using nlohmann::json;

TEST_CASE("Every document is one line with its schema first", "[cli]") {
  const v1::Job job;
  const v1::TreeNode node = Kernel("j/k1", "", CorrectResult(2, 1, 3));
  const std::map<std::string, std::string> documents = {
      {"error", ErrorDocument(absl::NotFoundError("x"), ExitCode::kUsage)},
      {"eval", EvalDocument(job, {}, ExitCode::kOk)},
      {"search", SearchDocument(job, nullptr, {}, ExitCode::kOk)},
      {"submitted", SubmittedDocument(job)},
      {"jobs", JobsDocument({})},
      {"job", JobDocument(job)},
      {"event", EventDocument({})},
      {"tree", TreeDocument(job, {node})},
      {"node", NodeDocument(node, {}, {})},
      {"best", BestDocument(node.kernel(), "")},
      {"bank", BankDocument({})},
      {"bank_entry", BankEntryDocument({})},
      {"removed", RemovedDocument("b-1")},
      {"workers", WorkersDocument({})},
      {"version", VersionDocument("1", "2", "3")},
      {"up", UpDocument("a:1", "/d", 1)},
      {"certs", CertsDocument({})},
      {"doctor", DoctorDocument({}, "not json", true)},
  };
  for (const auto& [name, text] : documents) {
    CAPTURE(name, text);
    CHECK(text.find('\n') == std::string::npos);
    CHECK(text.rfind("{\"schema\":\"grove.v1/" + name + "\"", 0) == 0);
    CHECK(json::parse(text).is_object());
  }
}

TEST_CASE("An eval's document has verdict and figures beside the whole result", "[cli]") {
  v1::Job job;
  job.set_id("j-a");
  job.set_state(v1::JOB_STATE_DONE);
  v1::KernelNode good = Kernel("j-a/k1", "", CorrectResult(2, 1.9, 2.1)).kernel();
  good.mutable_candidate()->set_name("good.cpp");
  const v1::KernelNode bad = Kernel("j-a/k2", "", WrongResult()).kernel();
  const json document = json::parse(EvalDocument(job, {good, bad}, ExitCode::kWrong));
  CHECK(document["exit_code"] == 11);
  CHECK(document["state"] == "DONE");
  CHECK(document["results"][0]["candidate"] == "good.cpp");
  CHECK(document["results"][0]["verdict"] == "CORRECT");
  CHECK(document["results"][0]["speedup"] == 2.0);
  CHECK(document["results"][0]["speedup_low"] == 1.9);
  CHECK(document["results"][0]["baseline"] == "eager");
  CHECK(document["results"][0]["samples"] == 120);
  CHECK(document["results"][0]["result"]["timing"]["baselines"][0]["candidate_median_seconds"].is_number());
  CHECK(document["results"][1]["verdict"] == "WRONG");
  CHECK(document["results"][1]["speedup"].is_null());
  CHECK(document["results"][1]["result"]["correctness"]["outputs"][0]["worst"]["index"][1] == "7");
}

TEST_CASE("What was not judged has no verdict in an eval's document, and the reason", "[cli]") {
  v1::Job job;
  job.set_state(v1::JOB_STATE_FAILED);
  job.set_state_reason("bad.toml line 1: not TOML");
  v1::KernelNode unjudged;
  unjudged.set_id("j-a/k1");
  const json document = json::parse(EvalDocument(job, {unjudged}, ExitCode::kUsage));
  CHECK(document["results"][0]["verdict"].is_null());
  CHECK(document["results"][0]["reason"] == "not judged; the job is FAILED: bad.toml line 1: not TOML");
}

TEST_CASE("Bytes that are not UTF-8 do not break a document", "[cli]") {
  CHECK_NOTHROW(json::parse(ErrorDocument(absl::InternalError("bad \xff byte"), ExitCode::kInfrastructure)));
}

TEST_CASE("The worker's own report is nested when it is JSON", "[cli]") {
  CHECK(json::parse(DoctorDocument({}, "{\"ok\":true}", true))["worker"]["ok"] == true);
  CHECK(json::parse(DoctorDocument({}, "text", true))["worker"] == "text");
}

}  // namespace
}  // namespace grove::cli
