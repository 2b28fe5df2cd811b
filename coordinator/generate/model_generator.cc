#include "coordinator/generate/model_generator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/generate/parse.h"
#include "coordinator/generate/prompts.h"
#include "coordinator/generate/recording.h"
#include "coordinator/generate/usage_status.h"

namespace grove::generate {
namespace {

// An answer of no use that ended at the token limit has that as its cause.
absl::Status Explained(const absl::Status& status, bool truncated) {
  if (status.ok() || !truncated) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; it was cut off at the model's token limit: raise --llm-max-output-tokens"));
}

}  // namespace

absl::Status SupportsNativeKernels(const Context& context) {
  if (context.device.kind() != v1::DEVICE_KIND_CPU && context.device.kind() != v1::DEVICE_KIND_CUDA) {
    return absl::FailedPreconditionError(
        "kernels can be written for the devices cpu and cuda only; choose one with --device");
  }
  if (context.description.outputs_size() == 0) {
    return absl::FailedPreconditionError(
        "the problem's outputs are not known, so no kernel can be asked for; see what the "
        "worker said about the problem");
  }
  return absl::OkStatus();
}

ModelGenerator::ModelGenerator(std::unique_ptr<llm::ModelClient> client, ModelGeneratorOptions options)
    : client_(std::move(client)), options_(std::move(options)) {}

absl::Status ModelGenerator::Supports(const Context& context) { return SupportsNativeKernels(context); }

absl::StatusOr<Usage> ModelGenerator::Ask(const std::string& kind, const std::string& request,
                                          std::vector<llm::Message> messages, std::string* text, bool* truncated) {
  llm::CompletionParams params;
  params.model = options_.model;
  params.temperature = options_.temperature;
  params.max_output_tokens = options_.max_output_tokens;
  GROVE_ASSIGN_OR_RETURN(llm::Completion completion, client_->Complete(messages, params));
  Exchange exchange;
  exchange.kind = kind;
  exchange.request = request;
  exchange.prompt_sha256 = PromptSha256(messages);
  exchange.model = completion.model;
  exchange.prompt_tokens = completion.prompt_tokens;
  exchange.completion_tokens = completion.completion_tokens;
  exchange.seconds = completion.seconds;
  exchange.messages = std::move(messages);
  exchange.answer = completion.text;
  Usage usage;
  usage.model = completion.model;
  usage.prompt_tokens = completion.prompt_tokens;
  usage.completion_tokens = completion.completion_tokens;
  usage.seconds = completion.seconds;
  usage.calls = 1;
  usage.estimated = completion.usage_estimated;
  usage.exchange = ExchangeLine(exchange) + "\n";
  *text = std::move(completion.text);
  *truncated = completion.truncated;
  return usage;
}

absl::StatusOr<IdeasAnswer> ModelGenerator::ProposeIdeas(const Context& context, const IdeaRequest& request) {
  std::string text;
  bool truncated = false;
  GROVE_ASSIGN_OR_RETURN(Usage usage, Ask("ideas", request.request, IdeasPrompt(context, request), &text, &truncated));
  absl::StatusOr<std::vector<v1::IdeaNode>> ideas = ParseIdeas(text, request.count);
  if (!ideas.ok()) return WithUsage(Explained(ideas.status(), truncated), usage);
  return IdeasAnswer{*std::move(ideas), std::move(usage)};
}

absl::StatusOr<KernelAnswer> ModelGenerator::WriteKernel(const Context& context, const KernelRequest& request) {
  std::string text;
  bool truncated = false;
  GROVE_ASSIGN_OR_RETURN(Usage usage,
                         Ask("kernel", request.request, KernelPrompt(context, request), &text, &truncated));
  absl::StatusOr<v1::KernelNode> kernel = ParseKernel(text, context.device.kind());
  if (!kernel.ok()) return WithUsage(Explained(kernel.status(), truncated), usage);
  return KernelAnswer{*std::move(kernel), std::move(usage)};
}

}  // namespace grove::generate
