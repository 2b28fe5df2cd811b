#include "coordinator/generate/usage_status.h"

#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grove/v1/tree.pb.h"

namespace grove::generate {
namespace {

constexpr char kUsage[] = "grove/generate.usage";
constexpr char kCalls[] = "grove/generate.calls";
constexpr char kEstimated[] = "grove/generate.estimated";
constexpr char kExchange[] = "grove/generate.exchange";

}  // namespace

absl::Status WithUsage(absl::Status status, const Usage& usage) {
  if (status.ok()) return status;
  // ModelCalled has most of the fields, so it serves as the record.
  v1::ModelCalled called;
  called.set_model(usage.model);
  called.set_prompt_tokens(usage.prompt_tokens);
  called.set_completion_tokens(usage.completion_tokens);
  called.set_seconds(usage.seconds);
  status.SetPayload(kUsage, absl::Cord(called.SerializeAsString()));
  status.SetPayload(kCalls, absl::Cord(absl::StrCat(usage.calls)));
  if (usage.estimated) status.SetPayload(kEstimated, absl::Cord("1"));
  if (!usage.exchange.empty()) status.SetPayload(kExchange, absl::Cord(usage.exchange));
  return status;
}

Usage UsageOf(const absl::Status& status) {
  Usage usage;
  const auto payload = status.GetPayload(kUsage);
  v1::ModelCalled called;
  if (!payload || !called.ParseFromString(std::string(*payload))) return usage;
  usage.model = called.model();
  usage.prompt_tokens = called.prompt_tokens();
  usage.completion_tokens = called.completion_tokens();
  usage.seconds = called.seconds();
  if (const auto calls = status.GetPayload(kCalls); !calls || !absl::SimpleAtoi(std::string(*calls), &usage.calls))
    usage.calls = 0;
  usage.estimated = status.GetPayload(kEstimated).has_value();
  if (const auto exchange = status.GetPayload(kExchange)) usage.exchange = std::string(*exchange);
  return usage;
}

}  // namespace grove::generate
