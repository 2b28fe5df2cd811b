#include "clients/cli/json.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/text.h"

namespace grove::cli {
namespace {

using Json = nlohmann::ordered_json;

// A map's keys are numbers in a message; Verdict is written by name elsewhere.
void NameVerdicts(Json* json) {
  for (auto& [key, value] : json->items()) {
    if (key != "verdicts" || !value.is_object()) {
      if (value.is_structured()) NameVerdicts(&value);
      continue;
    }
    Json named = Json::object();
    for (const auto& [number, count] : value.items()) {
      int verdict = 0;
      const bool known = absl::SimpleAtoi(number, &verdict) && v1::Verdict_IsValid(verdict);
      named[known ? v1::Verdict_Name(verdict) : number] = count;
    }
    value = std::move(named);
  }
}

Json FromMessage(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!status.ok() || parsed.is_discarded()) return Json::object();
  NameVerdicts(&parsed);
  return parsed;
}

template <typename Messages>
Json FromMessages(const Messages& messages) {
  Json list = Json::array();
  for (const auto& message : messages) list.push_back(FromMessage(message));
  return list;
}

Json Document(absl::string_view name) {
  Json document;
  document["schema"] = absl::StrCat("grove.v1/", name);
  return document;
}

std::string Print(const Json& document) { return document.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A node without the wrapper of the oneof, with "kind" instead.
Json FromNode(const v1::TreeNode& node) {
  Json json;
  json["kind"] = node.has_idea() ? "idea" : "kernel";
  Json body = node.has_idea() ? FromMessage(node.idea()) : FromMessage(node.kernel());
  json.update(body);
  return json;
}

}  // namespace

nlohmann::ordered_json JsonOf(const google::protobuf::Message& message) { return FromMessage(message); }

nlohmann::ordered_json VerdictIn(const v1::Job& job, const v1::EvaluationResult& result) {
  Json json;
  if (result.verdict() != v1::VERDICT_UNSPECIFIED) {
    json["verdict"] = VerdictName(result.verdict());
    json["reason"] = result.reason();
  } else {
    json["verdict"] = nullptr;
    json["reason"] = absl::StrCat("not judged; the job is ", JobStateName(job.state()),
                                  job.state_reason().empty() ? "" : ": ", job.state_reason());
  }
  return json;
}

std::string ErrorDocument(const absl::Status& status, ExitCode code) {
  Json document = Document("error");
  document["code"] = absl::StatusCodeToString(status.code());
  document["message"] = std::string(status.message());
  document["exit_code"] = static_cast<int>(code);
  return Print(document);
}

std::string EvalDocument(const v1::Job& job, absl::Span<const v1::KernelNode> kernels, ExitCode code) {
  Json document = Document("eval");
  document["job"] = job.id();
  document["name"] = job.spec().name();
  document["state"] = JobStateName(job.state());
  document["state_reason"] = job.state_reason();
  document["exit_code"] = static_cast<int>(code);
  Json results = Json::array();
  for (const v1::KernelNode& kernel : kernels) {
    Json result;
    result["candidate"] = kernel.candidate().name();
    result["node"] = kernel.id();
    result.update(VerdictIn(job, kernel.result()));
    if (const v1::BaselineTiming* timing = RankingTiming(kernel.result())) {
      result["speedup"] = timing->speedup();
      result["speedup_low"] = timing->speedup_low();
      result["speedup_high"] = timing->speedup_high();
      result["baseline"] = BaselineName(timing->baseline());
      result["samples"] = timing->samples();
    } else {
      result["speedup"] = nullptr;
    }
    result["result"] = FromMessage(kernel.result());
    results.push_back(std::move(result));
  }
  document["results"] = std::move(results);
  return Print(document);
}

std::string SearchDocument(const v1::Job& job, const v1::KernelNode* best, absl::Span<const v1::TreeNode> tree,
                           ExitCode code) {
  Json document = Document("search");
  document["job"] = job.id();
  document["name"] = job.spec().name();
  document["state"] = JobStateName(job.state());
  document["state_reason"] = job.state_reason();
  document["exit_code"] = static_cast<int>(code);
  document["counts"] = FromMessage(job.counts());
  Json verdicts = Json::object();
  for (const auto& [verdict, count] : job.counts().verdicts()) {
    verdicts[VerdictName(static_cast<v1::Verdict>(verdict))] = count;
  }
  document["verdicts"] = std::move(verdicts);
  document["speedup"] = job.best_node().empty() ? Json(nullptr) : Json(job.best_speedup());
  document["speedup_low"] = job.best_node().empty() ? Json(nullptr) : Json(job.best_speedup_low());
  document["speedup_high"] = job.best_node().empty() ? Json(nullptr) : Json(job.best_speedup_high());
  document["best"] = best == nullptr ? Json(nullptr) : FromMessage(*best);
  Json nodes = Json::array();
  for (const v1::TreeNode& node : tree) nodes.push_back(FromNode(node));
  document["tree"] = std::move(nodes);
  return Print(document);
}

std::string SubmittedDocument(const v1::Job& job) {
  Json document = Document("submitted");
  document["job"] = job.id();
  document["name"] = job.spec().name();
  document["state"] = JobStateName(job.state());
  return Print(document);
}

std::string JobsDocument(absl::Span<const v1::Job> jobs) {
  Json document = Document("jobs");
  document["jobs"] = FromMessages(jobs);
  return Print(document);
}

std::string JobDocument(const v1::Job& job) {
  Json document = Document("job");
  document["job"] = FromMessage(job);
  return Print(document);
}

std::string EventDocument(const v1::Event& event) {
  Json document = Document("event");
  document["event"] = FromMessage(event);
  return Print(document);
}

std::string TreeDocument(const v1::Job& job, absl::Span<const v1::TreeNode> nodes) {
  Json document = Document("tree");
  document["job"] = job.id();
  document["state"] = JobStateName(job.state());
  document["best_node"] = job.best_node();
  Json list = Json::array();
  for (const v1::TreeNode& node : nodes) list.push_back(FromNode(node));
  document["nodes"] = std::move(list);
  return Print(document);
}

std::string NodeDocument(const v1::TreeNode& node, absl::Span<const v1::TreeNode> lineage,
                         absl::Span<const v1::KernelNode> kernels) {
  Json document = Document("node");
  document["node"] = FromNode(node);
  Json list = Json::array();
  for (const v1::TreeNode& ancestor : lineage) list.push_back(FromNode(ancestor));
  document["lineage"] = std::move(list);
  if (node.has_idea()) document["kernels"] = FromMessages(kernels);
  return Print(document);
}

std::string BestDocument(const v1::KernelNode& kernel, const std::string& file) {
  Json document = Document("best");
  document["kernel"] = FromMessage(kernel);
  if (!file.empty()) document["file"] = file;
  return Print(document);
}

std::string BankDocument(absl::Span<const v1::BankEntry> entries) {
  Json document = Document("bank");
  document["entries"] = FromMessages(entries);
  return Print(document);
}

std::string BankEntryDocument(const v1::BankEntry& entry) {
  Json document = Document("bank_entry");
  document["entry"] = FromMessage(entry);
  return Print(document);
}

std::string RemovedDocument(const std::string& id) {
  Json document = Document("removed");
  document["id"] = id;
  return Print(document);
}

std::string WorkersDocument(absl::Span<const v1::WorkerStatus> workers) {
  Json document = Document("workers");
  document["workers"] = FromMessages(workers);
  return Print(document);
}

std::string VersionDocument(const std::string& version, const std::string& grpc, const std::string& protobuf) {
  Json document = Document("version");
  document["version"] = version;
  document["grpc"] = grpc;
  document["protobuf"] = protobuf;
  return Print(document);
}

std::string UpDocument(const std::string& address, const std::string& data, int workers) {
  Json document = Document("up");
  document["coordinator"] = address;
  document["data"] = data;
  document["workers"] = workers;
  return Print(document);
}

std::string CertsDocument(const std::map<std::string, std::string>& files) {
  Json document = Document("certs");
  for (const auto& [name, path] : files) document[name] = path;
  return Print(document);
}

std::string DoctorDocument(const CoordinatorCheck& coordinator, const std::string& worker_report, bool ok) {
  Json document = Document("doctor");
  document["ok"] = ok;
  Json reached;
  reached["address"] = coordinator.address;
  reached["reachable"] = coordinator.problem.empty() && !coordinator.address.empty();
  reached["problem"] = coordinator.problem;
  reached["version"] = coordinator.version;
  reached["data_dir"] = coordinator.data_dir;
  reached["workers"] = coordinator.workers;
  document["coordinator"] = std::move(reached);
  Json worker = Json::parse(worker_report, nullptr, /*allow_exceptions=*/false);
  document["worker"] = worker.is_discarded() ? Json(worker_report) : std::move(worker);
  return Print(document);
}

}  // namespace grove::cli
