// The command line: parsing, help, suggestions. The one place that knows CLI11.
#pragma once

#include "clients/cli/completion.h"
#include "clients/cli/config.h"
#include "clients/cli/interrupts.h"

namespace grove::cli {

// Parses and runs; the process's exit code.
int RunApp(int argc, const char* const* argv, Interrupts* interrupts, const GetEnv& env);

// What the parser knows, for completion scripts and their tests.
CompletionCommand DescribeApp();

}  // namespace grove::cli
