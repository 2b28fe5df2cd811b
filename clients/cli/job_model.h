// What is known of a job from its events so far: the fold that the live display shows. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/measure/lead.h"
#include "grove/v1/tree.pb.h"

namespace grove::cli {

class JobModel {
 public:
  // Events in order; one that was applied before (same or lower sequence number) is ignored.
  void Apply(const v1::Event& event);

  struct Running {
    std::string stage;  // "" = leased, no word yet
    std::string detail;
    std::string worker;
  };

  const v1::JobSpec& spec() const { return spec_; }
  v1::JobState state() const { return state_; }
  const std::string& state_reason() const { return state_reason_; }
  const std::string& problem_error() const { return problem_error_; }
  const std::vector<v1::IdeaNode>& ideas() const { return ideas_; }
  const std::vector<v1::KernelNode>& kernels() const { return kernels_; }  // in order of creation
  const v1::KernelNode* FindKernel(const std::string& id) const;
  const v1::IdeaNode* FindIdea(const std::string& id) const;
  const v1::KernelNode* best() const;  // fastest correct one by its ranking baseline, of a search the leader; or null
  bool best_confirmed() const { return lead_.LeaderConfirmed(); }
  const v1::DeviceCalibrated& calibrated() const { return calibrated_; }
  const std::map<std::string, Running>& running() const { return running_; }

  int queued() const;
  int finished() const { return finished_; }
  int requeued() const { return requeued_; }
  const std::map<v1::Verdict, int>& verdicts() const { return verdicts_; }
  int64_t model_calls() const { return model_calls_; }
  int64_t tokens() const { return tokens_; }
  int generator_errors() const { return generator_errors_; }
  const std::string& last_generator_error() const { return last_generator_error_; }
  bool described() const { return described_; }
  const v1::ProblemDescription& description() const { return description_; }
  uint64_t last_seq() const { return last_seq_; }
  int64_t first_time_unix_nanos() const { return first_time_; }
  int64_t last_time_unix_nanos() const { return last_time_; }

  // Upper bound of the evaluations that the job will ask for: an eval's candidates, a search's I*V + (R-1)*K*I*V within
  // max_evaluations. 0 = not known.
  int PlannedEvaluations() const;

 private:
  v1::KernelNode* MutableKernel(const std::string& id);

  v1::JobSpec spec_;
  v1::JobState state_ = v1::JOB_STATE_UNSPECIFIED;
  std::string state_reason_, problem_error_, last_generator_error_;
  std::vector<v1::IdeaNode> ideas_;
  std::vector<v1::KernelNode> kernels_;
  std::unordered_map<std::string, size_t> idea_index_, kernel_index_;
  std::map<std::string, Running> running_;
  std::map<v1::Verdict, int> verdicts_;
  int finished_ = 0, requeued_ = 0, generator_errors_ = 0;
  int64_t model_calls_ = 0, tokens_ = 0;
  bool described_ = false;
  v1::ProblemDescription description_;
  std::string best_;
  double best_speedup_ = 0;
  measure::Lead lead_;  // searches
  v1::DeviceCalibrated calibrated_;
  uint64_t last_seq_ = 0;
  int64_t first_time_ = 0, last_time_ = 0;
};

}  // namespace grove::cli
