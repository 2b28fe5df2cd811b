#include "coordinator/generate/factory.h"

#include <catch2/catch.hpp>

#include "coordinator/generate/recording.h"

namespace grove::generate {
namespace {

class EmptyGenerator : public Generator {
 public:
  absl::Status Supports(const Context&) override { return absl::OkStatus(); }
  absl::StatusOr<IdeasAnswer> ProposeIdeas(const Context&, const IdeaRequest&) override { return IdeasAnswer{}; }
  absl::StatusOr<KernelAnswer> WriteKernel(const Context&, const KernelRequest&) override { return KernelAnswer{}; }
};

absl::StatusCode Code(const v1::GeneratorSpec& spec, const FactoryOptions& options) {
  return MakeGenerator(spec, options).status().code();
}

TEST_CASE("The catalogue is the default and is made by whoever has it", "[generate]") {
  FactoryOptions options;
  CHECK(Code({}, options) == absl::StatusCode::kFailedPrecondition);
  options.catalogue = [] { return std::make_unique<EmptyGenerator>(); };
  CHECK(Code({}, options) == absl::StatusCode::kOk);
  CHECK(MakeGeneratorFactory(options)({}).ok());
}

TEST_CASE("A model is needed from the job or the coordinator, and a temperature in its range", "[generate]") {
  v1::GeneratorSpec spec;
  spec.set_kind(v1::GENERATOR_KIND_OPENAI);
  FactoryOptions options;
  CHECK(Code(spec, options) == absl::StatusCode::kInvalidArgument);
  options.llm.model = "default-model";
  CHECK(Code(spec, options) == absl::StatusCode::kOk);
  spec.set_temperature(3);
  CHECK(Code(spec, options) == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("A job's base URL is checked, and can be forbidden", "[generate]") {
  v1::GeneratorSpec spec;
  spec.set_kind(v1::GENERATOR_KIND_OPENAI);
  spec.set_model("m");
  FactoryOptions options;
  spec.set_base_url("http://example.com/v1");
  CHECK(Code(spec, options) == absl::StatusCode::kInvalidArgument);
  options.llm.allow_plain_http = true;
  CHECK(Code(spec, options) == absl::StatusCode::kOk);
  options.llm.allow_job_base_url = false;
  CHECK(Code(spec, options) == absl::StatusCode::kFailedPrecondition);
  spec.set_base_url("https://API.openai.com/v1/");
  CHECK(Code(spec, options) == absl::StatusCode::kOk);
}

TEST_CASE("A replay needs a recording, and an unknown kind is named", "[generate]") {
  v1::GeneratorSpec spec;
  spec.set_kind(v1::GENERATOR_KIND_REPLAY);
  CHECK(Code(spec, {}) == absl::StatusCode::kInvalidArgument);
  Exchange exchange;
  exchange.kind = "ideas";
  spec.set_recording(ExchangeLine(exchange));
  CHECK(Code(spec, {}) == absl::StatusCode::kOk);
  spec.set_kind(static_cast<v1::GeneratorKind>(99));
  CHECK(Code(spec, {}) == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace grove::generate
