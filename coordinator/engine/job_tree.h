// One job as the fold of its events.
//
// Apply is the only way in: the engine applies each event when it makes it, and the same events again after a restart,
// so both arrive at the same state. What is large stays in the journal and in blobs; here is what the engine needs to
// decide, about 100 bytes a kernel.
//
// The best kernel of a search is the leader by common/measure/lead.h: measured twice, and ahead by more than the
// device's resolution. The second measurement is a second EvaluationFinished of that kernel; both stay in the journal.
// The best of an evaluation job, whose kernels somebody chose, is the CORRECT one with the highest speedup against the
// first baseline.
//
// Owned by the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/measure/lead.h"
#include "coordinator/search/policy.h"
#include "grove/v1/tree.pb.h"

namespace grove::coordinator {

// What makes two candidates of one job one program, whose result is shared: SHA-256 of format, build flags and source,
// byte for byte. Not of less: `__LINE__` tells programs apart that differ in an empty line.
std::string ProgramSha256(const v1::Candidate& candidate);

struct KernelRecord {
  uint64_t written_seq = 0;   // its KernelWritten
  uint64_t finished_seq = 0;  // its EvaluationFinished, 0 = no verdict yet
  int32_t idea = -1;          // index
  int32_t duplicate_of = -1;  // index
  int32_t attempt = 0;        // newest token
  int32_t finished_attempt = 0;
  uint64_t again_seq = 0;  // its second EvaluationFinished, 0 = measured once
  int32_t again_attempt = 0;
  v1::CandidateFormat format = v1::CANDIDATE_FORMAT_UNSPECIFIED;
  v1::Verdict verdict = v1::VERDICT_UNSPECIFIED;  // of the result that stands
  measure::Second again = measure::Second::kNone;
  bool leased = false;
  bool survivor = false;
  bool explored = false;

  // The EvaluationFinished whose result stands.
  uint64_t result_seq() const {
    return again == measure::Second::kLower || again == measure::Second::kFailed ? again_seq : finished_seq;
  }
};

// What is known of the leases of work that has not ended; absent = never leased.
struct LeaseRecord {
  std::string worker;  // the last
  int attempt = 0;
  int attempt_base = 0;  // attempts before the job was resumed
  bool leased = false;
  std::vector<std::string> reasons;  // why leases were lost since then
};

using PolicyFactory = std::function<std::unique_ptr<search::Policy>(const v1::SearchPolicy&)>;

class JobTree {
 public:
  JobTree(std::string id, PolicyFactory make_policy) : id_(std::move(id)), make_policy_(std::move(make_policy)) {}

  // DATA_LOSS when the event cannot follow what came before.
  absl::Status Apply(const v1::Event& event);

  const std::string& id() const { return id_; }
  const v1::JobSpec& spec() const { return spec_; }  // without sources
  const std::string& spec_sha256() const { return spec_sha256_; }
  const std::string& idempotency_key() const { return key_; }
  const v1::EvaluationOptions& options() const {
    if (spec_.has_check_problem()) return spec_.check_problem().options();
    if (spec_.has_calibrate()) return v1::EvaluationOptions::default_instance();
    return spec_.has_search() ? spec_.search().options() : spec_.eval().options();
  }
  bool is_search() const { return spec_.has_search(); }
  bool checks_problem() const { return spec_.has_check_problem(); }
  bool calibrates() const { return spec_.has_calibrate(); }
  bool calibrated() const { return calibrated_; }
  // Its first work is a description of the problem.
  bool wants_description() const { return is_search() || checks_problem(); }
  v1::JobState state() const { return state_; }
  const std::string& state_reason() const { return reason_; }
  bool ended() const;
  uint64_t last_seq() const { return last_seq_; }
  int64_t created_unix_nanos() const { return created_; }
  int64_t started_unix_nanos() const { return started_; }          // created, or resumed last after it had ended
  int64_t put_to_work_unix_nanos() const { return put_to_work_; }  // created, or made RUNNING last
  search::Policy* policy() { return policy_.get(); }
  const search::Policy* policy() const { return policy_.get(); }
  const std::optional<v1::ProblemDescription>& description() const { return description_; }
  // Of the job's own work, which is no kernel: a description of the problem, or a calibration.
  const LeaseRecord& own_lease() const { return own_lease_; }
  std::string OwnWorkId() const;

  // The kernel of a search that is to be measured again before it may lead, -1 = none.
  int WantedAgain() const { return is_search() ? lead_.Wanted() : -1; }
  bool best_confirmed() const { return is_search() && lead_.LeaderConfirmed(); }

  const std::vector<KernelRecord>& kernels() const { return kernels_; }
  const std::vector<v1::IdeaNode>& ideas() const { return ideas_; }
  uint64_t idea_seq(int index) const { return idea_seqs_[index]; }
  const std::vector<int>& kernels_of_idea(int index) const { return kernels_of_idea_[index]; }
  // In order of creation: kernel index k as k, idea index i as -1 - i.
  const std::vector<int32_t>& order() const { return order_; }
  const LeaseRecord& lease(int kernel) const;
  int open_kernels() const { return open_; }

  std::string KernelId(int index) const;
  std::string IdeaId(int index) const;
  // Index of a node id of this job, -1 when it is none.
  int KernelIndex(absl::string_view id) const;
  int IdeaIndex(absl::string_view id) const;
  // The kernel that was first with this program, -1 = none.
  int FindProgram(const std::string& sha256) const;

  // The job without its spec's sources.
  v1::Job Summary() const;

 private:
  absl::Status Bad(const v1::Event& event, absl::string_view what) const;
  void ApplyState(const v1::JobStateChanged& change, int64_t time);
  absl::Status ApplyIdeas(const v1::Event& event);
  absl::Status ApplyKernel(const v1::Event& event);
  absl::Status ApplyFinished(const v1::Event& event);
  absl::Status ApplyAgain(int index, const v1::Event& event);
  int& Leased(int kernel) { return kernels_[kernel].finished_seq == 0 ? leased_ : leased_again_; }
  LeaseRecord* LeaseOf(const std::string& work, int* kernel);

  const std::string id_;
  const PolicyFactory make_policy_;
  v1::JobSpec spec_;
  std::string spec_sha256_;
  std::string key_;
  v1::JobState state_ = v1::JOB_STATE_UNSPECIFIED;
  std::string reason_;
  int64_t created_ = 0;
  int64_t started_ = 0;
  int64_t put_to_work_ = 0;
  int64_t finished_ = 0;
  uint64_t last_seq_ = 0;
  std::unique_ptr<search::Policy> policy_;
  std::optional<v1::ProblemDescription> description_;
  LeaseRecord own_lease_;
  bool calibrated_ = false;
  std::vector<KernelRecord> kernels_;
  std::vector<v1::IdeaNode> ideas_;
  std::vector<uint64_t> idea_seqs_;
  std::vector<std::vector<int>> kernels_of_idea_;
  std::vector<int32_t> order_;
  absl::flat_hash_map<int, LeaseRecord> leases_;  // of kernels that wait for a result and were ever leased
  absl::flat_hash_map<absl::uint128, int32_t> by_program_;
  int open_ = 0;          // kernels without a verdict
  int leased_ = 0;        // of these
  int leased_again_ = 0;  // kernels with a verdict
  measure::Lead lead_;    // searches
  int best_ = -1;         // other jobs
  double best_speedup_ = 0, best_low_ = 0, best_high_ = 0;
  v1::JobCounts counts_;
};

}  // namespace grove::coordinator
