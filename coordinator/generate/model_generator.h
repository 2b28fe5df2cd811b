// Ideas and kernels from a language model.
#pragma once

#include <memory>
#include <string>

#include "coordinator/generate/generator.h"
#include "coordinator/llm/model_client.h"

namespace grove::generate {

struct ModelGeneratorOptions {
  std::string model;
  double temperature = 0;         // 0 = the model's default
  int32_t max_output_tokens = 0;  // 0 = the model's own limit
};

// One call of the model per request; every answer that came is recorded in Usage.exchange, also one that could not be
// used (then in the status, usage_status.h). Thread-safe.
class ModelGenerator : public Generator {
 public:
  ModelGenerator(std::unique_ptr<llm::ModelClient> client, ModelGeneratorOptions options);

  // FAILED_PRECONDITION for a device without a native kernel format, or a problem with neither inputs nor outputs
  // known.
  absl::Status Supports(const Context& context) override;
  absl::StatusOr<IdeasAnswer> ProposeIdeas(const Context& context, const IdeaRequest& request) override;
  absl::StatusOr<KernelAnswer> WriteKernel(const Context& context, const KernelRequest& request) override;
  void Cancel() override { client_->Cancel(); }

 private:
  // Asks and records. The answer's text is in `text`.
  absl::StatusOr<Usage> Ask(const std::string& kind, const std::string& request, std::vector<llm::Message> messages,
                            std::string* text, bool* truncated);

  const std::unique_ptr<llm::ModelClient> client_;
  const ModelGeneratorOptions options_;
};

// What Supports asks of any generator whose kernels come as text.
absl::Status SupportsNativeKernels(const Context& context);

}  // namespace grove::generate
