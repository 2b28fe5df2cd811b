// What each command does once its flags are parsed. Each returns the exit code and has said everything there is to say.
#pragma once

#include "clients/cli/console.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/interrupts.h"
#include "clients/cli/options.h"
#include "grove/v1/types.pb.h"

namespace grove::cli {

struct Context {
  GlobalOptions global;
  Console* console;
  Interrupts* interrupts;
  GetEnv env;
};

ExitCode RunUp(const Context& context, const UpCommand& command);
ExitCode RunSearch(const Context& context, const SearchCommand& command);
ExitCode RunEval(const Context& context, const EvalCommand& command);
ExitCode RunCompare(const Context& context, const CompareCommand& command);
ExitCode RunCalibrate(const Context& context, const CalibrateCommand& command);

ExitCode RunProblemCheck(const Context& context, const ProblemCommand& command);

ExitCode RunJobs(const Context& context, const JobsCommand& command);
ExitCode RunJob(const Context& context, const NodeCommand& command);
ExitCode RunWatch(const Context& context, const NodeCommand& command);
ExitCode RunCancel(const Context& context, const NodeCommand& command);
ExitCode RunResume(const Context& context, const NodeCommand& command);
ExitCode RunTree(const Context& context, const NodeCommand& command);
ExitCode RunBest(const Context& context, const NodeCommand& command);
ExitCode RunShow(const Context& context, const NodeCommand& command);

ExitCode RunBankList(const Context& context, const BankCommand& command);
ExitCode RunBankShow(const Context& context, const BankCommand& command);
ExitCode RunBankAdd(const Context& context, const BankCommand& command);
ExitCode RunBankRemove(const Context& context, const BankCommand& command);

ExitCode RunWorkers(const Context& context);
ExitCode RunDoctor(const Context& context, const std::string& device);
ExitCode RunVersion(const Context& context);

ExitCode RunAudit(const Context& context, const AuditCommand& command);

ExitCode RunCertsInit(const Context& context, const CertsCommand& command);
ExitCode RunCertsIssue(const Context& context, const CertsCommand& command);

// Says a failure the way that fits the output (a document with --json) and gives its exit code.
ExitCode Fail(const Context& context, const absl::Status& status);
ExitCode Fail(const Context& context, const absl::Status& status, ExitCode code);
// The same for what Ctrl-C ended; a person has been told on stderr.
ExitCode Interrupted(const Context& context, absl::string_view what = "interrupted");

// The evaluation flags as a message; INVALID_ARGUMENT names the flag.
absl::StatusOr<v1::EvaluationOptions> MakeEvaluationOptions(const EvaluationFlags& flags);

}  // namespace grove::cli
