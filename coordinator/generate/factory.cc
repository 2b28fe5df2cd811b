#include "coordinator/generate/factory.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/generate/model_generator.h"
#include "coordinator/generate/replay.h"
#include "coordinator/llm/openai_client.h"

namespace grove::generate {
namespace {

absl::StatusOr<std::unique_ptr<Generator>> MakeModelGenerator(const v1::GeneratorSpec& spec,
                                                              const llm::Settings& settings) {
  if (absl::Status status = llm::Validate(settings); !status.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this coordinator's model settings are wrong: ", status.message()));
  }
  ModelGeneratorOptions options;
  options.model = spec.model().empty() ? settings.model : spec.model();
  options.temperature = spec.temperature();
  options.max_output_tokens = settings.max_output_tokens;
  if (options.model.empty()) {
    return absl::InvalidArgumentError(
        "the generator openai needs the name of a model: give --model, or GROVE_LLM_MODEL on the "
        "coordinator");
  }
  if (options.model.size() > 200) return absl::InvalidArgumentError("the model's name has more than 200 characters");
  if (!std::isfinite(options.temperature) || options.temperature < 0 || options.temperature > 2) {
    return absl::InvalidArgumentError("the temperature must be from 0 (the model's default) to 2");
  }
  const std::string url = spec.base_url().empty() ? settings.base_url : spec.base_url();
  GROVE_RETURN_IF_ERROR(llm::ValidateBaseUrl(url, settings.allow_plain_http));
  if (!settings.allow_job_base_url && !llm::SameEndpoint(url, settings.base_url)) {
    return absl::FailedPreconditionError(
        "this coordinator lets no job name a base URL of its own; leave --base-url out");
  }
  return std::make_unique<ModelGenerator>(std::make_unique<llm::OpenAiClient>(settings, url, llm::SystemDeps()),
                                          std::move(options));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Generator>> MakeGenerator(const v1::GeneratorSpec& spec, const FactoryOptions& options) {
  switch (spec.kind()) {
    case v1::GENERATOR_KIND_UNSPECIFIED:
    case v1::GENERATOR_KIND_CATALOGUE: {
      std::unique_ptr<Generator> catalogue = options.catalogue ? options.catalogue() : nullptr;
      if (catalogue == nullptr) {
        return absl::FailedPreconditionError("this coordinator has no catalogue; use the generator openai or replay");
      }
      return catalogue;
    }
    case v1::GENERATOR_KIND_OPENAI:
      return MakeModelGenerator(spec, options.llm);
    case v1::GENERATOR_KIND_REPLAY: {
      GROVE_ASSIGN_OR_RETURN(std::unique_ptr<Generator> replay, ReplayGenerator::Create(spec.recording()));
      return replay;
    }
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("generator kind ", static_cast<int>(spec.kind()),
                       " is unknown here; this coordinator knows catalogue, openai and replay"));
  }
}

GeneratorFactory MakeGeneratorFactory(FactoryOptions options) {
  return [options = std::move(options)](const v1::GeneratorSpec& spec) { return MakeGenerator(spec, options); };
}

}  // namespace grove::generate
