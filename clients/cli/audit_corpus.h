// The corpus of `grove audit`: known ways to fool an evaluator, and honest kernels beside them, each a folder with a
// manifest. docs/audit.md has the format. Pure but for reading files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grove/v1/types.pb.h"

namespace grove::cli {

// What an attempt must come to.
struct AuditExpectation {
  std::vector<v1::Verdict> verdicts;  // any of them; never empty unless gains_nothing
  bool gains_nothing = false;         // CORRECT as well, while it is not faster than the twin by more than max_gain
  double max_gain = 0.25;             // relative: speedup / twin's speedup - 1
  double min_speedup = 0, max_speedup = 0;  // bounds on a CORRECT one; 0 = none
  bool NeedsTiming() const { return gains_nothing || min_speedup > 0 || max_speedup > 0; }
};

// One source file of a case.
struct AuditFile {
  std::string name;  // "replay.cpp"
  v1::Candidate candidate;
  bool on_cpu = false, on_cuda = false;
  AuditExpectation expect;
};

struct AuditCase {
  std::string id, title, what, source, layer;
  std::string group;  // the folder above: "timing", "controls", ...
  std::string folder;
  v1::Problem problem, problem_cuda;  // problem_cuda is problem where the manifest has none
  std::string twin, then;             // ids of controls; "" = none
  bool sequence = false;
  bool leaves_nothing = false;  // and nothing of it may be found on this machine afterwards (audit_host.h)
  int repeat = 1;
  std::string known_miss;
  v1::EvaluationOptions options;  // skip_timing is set by whether a speedup counts
  std::vector<AuditFile> files;   // sorted by name
  bool control() const { return group == "controls"; }
};

struct AuditCorpus {
  std::vector<AuditCase> cases;  // classes in the order of kAuditClasses, then by id
  const AuditCase* Find(absl::string_view id) const;
};

// The folders of a corpus, in the order of the report.
extern const std::vector<std::string> kAuditClasses;

// INVALID_ARGUMENT names file and key: unknown keys, unknown words, a twin that is no control, one id twice, a folder
// without files. NOT_FOUND: no such folder.
absl::StatusOr<AuditCorpus> LoadAuditCorpus(const std::string& folder);

// One manifest. `files` are the attempts beside it (name to source), `problem_text` gives a problem by the manifest's
// words.
struct AuditSources {
  std::map<std::string, std::string> files;
  std::map<std::string, v1::Problem> problems;  // "transcend", "./problem.py"
};
absl::StatusOr<AuditCase> ParseAuditManifest(absl::string_view text, const std::string& path, const std::string& group,
                                             const AuditSources& sources);

// Where the corpus is: beside an installed program (../share/grove/exploits) or in the source tree that it was built
// from. NOT_FOUND says where it was looked for.
absl::StatusOr<std::string> FindAuditCorpus(const std::string& executable_dir);

}  // namespace grove::cli
