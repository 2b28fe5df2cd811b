// From what a job asks for to the generator that does it.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/generate/generator.h"
#include "coordinator/llm/settings.h"
#include "grove/v1/tree.pb.h"

namespace grove::generate {

struct FactoryOptions {
  llm::Settings llm;
  // Makes the embedded catalogue. Passed in, so that this library does not depend on the catalogue's. Null = there is
  // none.
  std::function<std::unique_ptr<Generator>()> catalogue;
};

// A generator for `spec`; GENERATOR_KIND_UNSPECIFIED is the catalogue. Each job gets its own (a replay has a position).
// INVALID_ARGUMENT: the spec makes no sense (no model, a bad URL, a recording that is none). FAILED_PRECONDITION: this
// coordinator cannot do it, and how to make it able to. Calls nobody and reads no key: a missing key shows at the first
// call.
absl::StatusOr<std::unique_ptr<Generator>> MakeGenerator(const v1::GeneratorSpec& spec, const FactoryOptions& options);

// MakeGenerator with its options bound: what the engine is given. Thread-safe if options.catalogue is.
using GeneratorFactory = std::function<absl::StatusOr<std::unique_ptr<Generator>>(const v1::GeneratorSpec& spec)>;
GeneratorFactory MakeGeneratorFactory(FactoryOptions options);

}  // namespace grove::generate
