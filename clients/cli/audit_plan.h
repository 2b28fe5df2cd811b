// Which jobs an audit submits, and in which order. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cli/audit_corpus.h"
#include "grove/v1/tree.pb.h"

namespace grove::cli {

struct AuditEntry {
  enum class Role {
    kAttempt,  // a file of the case itself
    kTwin,     // the honest twin, beside the attempts that are compared with it
    kThen,     // the control that is judged after the case
  };
  Role role = Role::kAttempt;
  size_t judged_case = 0;  // position in the corpus: whose score it is
  size_t file_case = 0;    // whose file it is; another one's for twins and for what comes after
  size_t file = 0;         // position among its files
  int repetition = 0;
  bool operator==(const AuditEntry&) const = default;
};

// One eval job. Entries stand in the order of its candidates.
struct AuditBatch {
  v1::JobSpec spec;
  std::vector<AuditEntry> entries;
  // Everything before has ended when this is submitted, and this has ended before anything after is.
  bool alone = false;
};

// Whether `twin` is what `attempt` is compared with, given that both are of one job.
bool IsTwinOf(const AuditCorpus& corpus, const AuditEntry& twin, const AuditEntry& attempt);

struct AuditSelection {
  v1::DeviceKind device = v1::DEVICE_KIND_CPU;
  std::vector<std::string> ids;      // empty = all
  std::vector<std::string> classes;  // empty = all
};

// The positions of the cases that were asked for, whether or not they have anything for the device. INVALID_ARGUMENT:
// an id or a class that is not there.
absl::StatusOr<std::vector<size_t>> SelectAuditCases(const AuditCorpus& corpus, const AuditSelection& selection);

// Whether a case has a file for the device.
bool AppliesTo(const AuditCase& one, v1::DeviceKind device);

// Cases with the same problem and options share jobs of at most kAuditBatch candidates; what is timed comes last, so
// that little is built beside it. FAILED_PRECONDITION: a twin without a file of the kind that is needed.
inline constexpr size_t kAuditBatch = 24;
absl::StatusOr<std::vector<AuditBatch>> PlanAudit(const AuditCorpus& corpus, const std::vector<size_t>& cases,
                                                  v1::DeviceKind device);

}  // namespace grove::cli
