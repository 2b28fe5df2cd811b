// How an engine is made. main.cc wires the real parts; tests wire fakes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/engine/engine.h"
#include "coordinator/generate/generator.h"
#include "coordinator/search/policy.h"
#include "coordinator/store/store.h"

namespace grove::coordinator {

struct EngineDependencies {
  Clock* clock = nullptr;  // must outlive the engine
  // Already open (store::OpenSqliteStore(options.data_dir)); an OpenSqliteStore error is the message for the operator.
  std::unique_ptr<store::Store> store;
  // Makes the generator of a search. Called on the engine's thread at submission and once per unfinished search after a
  // restart: must not block on the network. INVALID_ARGUMENT and FAILED_PRECONDITION go to the submitter as they are.
  std::function<absl::StatusOr<std::shared_ptr<generate::Generator>>(const v1::GeneratorSpec&)> make_generator;
  // generate::UsageOf: what a failed generator call has cost. Null = nothing.
  std::function<generate::Usage(const absl::Status&)> usage_of;
  // generate::RecogniseOperation. Null = no bank.
  std::function<std::string(const v1::ProblemDescription&)> recognise_operation;
  // search::MakeBranchingPolicy, search::WithDefaults, search::Validate.
  std::function<std::unique_ptr<search::Policy>(const v1::SearchPolicy&)> make_policy;
  std::function<v1::SearchPolicy(const v1::SearchPolicy&)> with_defaults;
  std::function<std::optional<std::string>(const v1::SearchPolicy&)> validate_policy;
};

// Rebuilds all state from the store, then starts the engine's thread. Errors: the store cannot be read, or its journal
// cannot be understood (DATA_LOSS, naming the event).
//
// The destructor stops the loop, cancels generator calls in flight and waits for them.
absl::StatusOr<std::unique_ptr<Engine>> CreateEngine(EngineOptions options, EngineDependencies dependencies);

}  // namespace grove::coordinator
