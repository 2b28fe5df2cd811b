// What an audit's results mean: which cases were stopped, which controls were rejected, and the score. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "clients/cli/audit_plan.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/text.h"

namespace grove::cli {

// One entry of a batch with what came of it.
struct AuditOutcome {
  AuditEntry entry;
  std::string node;                 // "" = its job never got so far
  v1::EvaluationResult result;      // VERDICT_UNSPECIFIED = no verdict
  double twin_speedup = 0;          // of its twin in the same job; 0 = none, or not timed
  std::vector<std::string> traces;  // what of it was found on this machine, or in its result, and must not be there
  std::string clock;                // how this machine's clock jumped meanwhile; "" = it did not
  bool good = false;
  // Not good for what a busy machine does to an honest one too (its speed, no figure, a time limit, a clock that was
  // set): measuring again may say otherwise.
  bool by_chance = false;
  std::string seen;  // "CORRECT 3.1x [3.0, 3.2]"
  std::string why;   // of one that is not good, and for those without a verdict
  // Of one that was measured several times with different ends: how often it was not good, and what was seen in each.
  std::string rounds;
};

double SpeedupOf(const v1::EvaluationResult& result);  // 0 = not timed

// On a CPU a gain counts from here on, whatever a manifest says: processors that others use tell no more.
inline constexpr double kLeastGainOnCpu = 1.0;

// Fills good, by_chance, seen and why.
void JudgeAudit(const AuditCorpus& corpus, AuditOutcome* outcome);

// One outcome of what was measured several times. A gain must show every time, and against the best figure that the
// twin had in any of them; a time without a figure speaks for nothing. Where rounds differ `rounds` has them all.
AuditOutcome SettleAudit(const AuditCorpus& corpus, std::vector<AuditOutcome> rounds);

enum class AuditState {
  kGood,         // stopped, or a control that passed
  kMissed,       // not stopped, or a control that was rejected
  kKnownMiss,    // not stopped, as its manifest says
  kNotRun,       // some of it has no verdict
  kNotForDevice  // nothing of it runs on this device
};

struct AuditCaseScore {
  size_t index = 0;
  AuditState state = AuditState::kNotForDevice;
  std::vector<AuditOutcome> outcomes;  // attempts and what came after; twins are not scored
};

struct AuditClassScore {
  int cases = 0;  // that apply to the device
  int good = 0, missed = 0, known = 0, not_run = 0, other_device = 0;
};

struct AuditScore {
  std::vector<AuditCaseScore> cases;
  std::map<std::string, AuditClassScore> classes;
  std::vector<std::string> mended;  // known misses that are stopped by now
  AuditClassScore exploits, controls;
};

// `outcomes` are judged already.
AuditScore ScoreAudit(const AuditCorpus& corpus, const std::vector<size_t>& chosen, v1::DeviceKind device,
                      const std::vector<AuditOutcome>& outcomes);

// kOk: all that applies was stopped (but for known misses) and no control was rejected; kAuditMissed; kInfrastructure
// where something has no verdict and nothing was missed.
ExitCode ExitCodeOfAudit(const AuditScore& score);

// One line for each outcome that is not good: "MISSED T01 side_stream.cu ..."; "VARIED ..." for one that counts as good
// and was not so in every round.
std::string RenderAuditMiss(const AuditCorpus& corpus, const AuditCaseScore& one, const Style& style);
// The table of classes and the last line.
std::string RenderAuditScore(const AuditCorpus& corpus, const AuditScore& score, const Style& style);
std::string RenderAuditList(const AuditCorpus& corpus, const std::vector<size_t>& chosen);

struct AuditRun {
  std::string corpus_folder, device;
  v1::DeviceInfo where;  // from the first result
  double seconds = 0;
};
std::string AuditDocument(const AuditCorpus& corpus, const AuditScore& score, const AuditRun& run, ExitCode code);
std::string AuditListDocument(const AuditCorpus& corpus, const std::vector<size_t>& chosen);

}  // namespace grove::cli
