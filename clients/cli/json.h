// The documents of --json. Each is one line of JSON with "schema": "grove.v1/<name>" first. Messages are in protobuf's
// JSON mapping with the original field names (enum values by name, 64-bit integers as strings). Pure; docs/cli.md lists
// the fields.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "clients/cli/exit_code.h"
#include "grove/v1/services.pb.h"
#include "grove/v1/tree.pb.h"

namespace grove::cli {

// A message as it stands in a document.
nlohmann::ordered_json JsonOf(const google::protobuf::Message& message);

// "verdict" and "reason" of one result: null, and why, where the job ended before it was judged.
nlohmann::ordered_json VerdictIn(const v1::Job& job, const v1::EvaluationResult& result);

std::string ErrorDocument(const absl::Status& status, ExitCode code);
std::string EvalDocument(const v1::Job& job, absl::Span<const v1::KernelNode> kernels, ExitCode code);
std::string SearchDocument(const v1::Job& job, const v1::KernelNode* best, absl::Span<const v1::TreeNode> tree,
                           ExitCode code);
std::string SubmittedDocument(const v1::Job& job);  // --detach
std::string JobsDocument(absl::Span<const v1::Job> jobs);
std::string JobDocument(const v1::Job& job);
std::string EventDocument(const v1::Event& event);  // one line of `watch --json`
std::string TreeDocument(const v1::Job& job, absl::Span<const v1::TreeNode> nodes);
std::string NodeDocument(const v1::TreeNode& node, absl::Span<const v1::TreeNode> lineage,
                         absl::Span<const v1::KernelNode> kernels);
std::string BestDocument(const v1::KernelNode& kernel, const std::string& file);
std::string BankDocument(absl::Span<const v1::BankEntry> entries);
std::string BankEntryDocument(const v1::BankEntry& entry);
std::string RemovedDocument(const std::string& id);
std::string WorkersDocument(absl::Span<const v1::WorkerStatus> workers);
std::string VersionDocument(const std::string& version, const std::string& grpc, const std::string& protobuf);
std::string UpDocument(const std::string& address, const std::string& data, int workers);
std::string CertsDocument(const std::map<std::string, std::string>& files);

// `worker_report` is what `grove-worker doctor --json` printed; not JSON = it is given as a string.
struct CoordinatorCheck {
  std::string address;  // empty = none configured
  std::string problem;  // empty = reached
  std::string version;
  std::string data_dir;
  int workers = 0;
};
std::string DoctorDocument(const CoordinatorCheck& coordinator, const std::string& worker_report, bool ok);

}  // namespace grove::cli
