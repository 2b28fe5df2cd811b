// Watching one job to its end on the user's terminal.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "clients/cli/console.h"
#include "clients/cli/interrupts.h"
#include "clients/cli/job_model.h"
#include "clients/cli/session.h"

namespace grove::cli {

struct FollowOptions {
  uint64_t after_seq = 0;
  double reattach_seconds = -1;  // how long to look for a coordinator that went away; negative = the default
  bool ndjson = false;           // each event as a document on stdout
  bool lines_to_stdout = false;  // plain lines are the command's data (`watch`), where nothing is redrawn
};

struct Followed {
  absl::Status status;  // OK: the job has ended; CANCELLED: interrupted; else why it could not be watched to its end
  JobModel model;
};

Followed Follow(Session* session, const std::string& job, const FollowOptions& options, Console* console,
                Interrupts* interrupts);

}  // namespace grove::cli
