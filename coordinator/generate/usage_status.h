// What a failed call has cost, carried inside its Status: an answer that could not be used was still paid for.
#pragma once

#include "absl/status/status.h"
#include "coordinator/generate/generator.h"

namespace grove::generate {

// `status` with `usage` attached; unchanged when it is OK.
absl::Status WithUsage(absl::Status status, const Usage& usage);

// The usage attached to `status`; all zero when there is none.
Usage UsageOf(const absl::Status& status);

}  // namespace grove::generate
