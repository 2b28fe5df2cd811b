#include "clients/cli/job_model.h"

#include <algorithm>

#include "clients/cli/text.h"

namespace grove::cli {

v1::KernelNode* JobModel::MutableKernel(const std::string& id) {
  const auto found = kernel_index_.find(id);
  return found == kernel_index_.end() ? nullptr : &kernels_[found->second];
}

const v1::KernelNode* JobModel::FindKernel(const std::string& id) const {
  const auto found = kernel_index_.find(id);
  return found == kernel_index_.end() ? nullptr : &kernels_[found->second];
}

const v1::IdeaNode* JobModel::FindIdea(const std::string& id) const {
  const auto found = idea_index_.find(id);
  return found == idea_index_.end() ? nullptr : &ideas_[found->second];
}

const v1::KernelNode* JobModel::best() const {
  if (lead_.Leader() >= 0) return &kernels_[static_cast<size_t>(lead_.Leader())];
  return best_.empty() ? nullptr : FindKernel(best_);
}

int JobModel::queued() const {
  return std::max(0, static_cast<int>(kernels_.size()) - finished_ - static_cast<int>(running_.size()));
}

void JobModel::Apply(const v1::Event& event) {
  if (event.seq() != 0) {
    if (event.seq() <= last_seq_) return;
    last_seq_ = event.seq();
  }
  if (event.time_unix_nanos() != 0) {
    if (first_time_ == 0) first_time_ = event.time_unix_nanos();
    last_time_ = std::max(last_time_, event.time_unix_nanos());
  }
  switch (event.body_case()) {
    case v1::Event::kJobCreated:
      spec_ = event.job_created().spec();
      if (state_ == v1::JOB_STATE_UNSPECIFIED) state_ = v1::JOB_STATE_RUNNING;
      break;
    case v1::Event::kJobState:
      state_ = event.job_state().state();
      state_reason_ = event.job_state().reason();
      break;
    case v1::Event::kProblemDescribed:
      described_ = event.problem_described().error().empty();
      description_ = event.problem_described().description();
      problem_error_ = event.problem_described().error();
      break;
    case v1::Event::kDeviceCalibrated:
      calibrated_ = event.device_calibrated();
      problem_error_ = calibrated_.error();
      break;
    case v1::Event::kIdeasProposed:
      for (const v1::IdeaNode& idea : event.ideas_proposed().ideas()) {
        if (idea_index_.emplace(idea.id(), ideas_.size()).second) ideas_.push_back(idea);
      }
      if (!event.ideas_proposed().error().empty()) {
        ++generator_errors_;
        last_generator_error_ = event.ideas_proposed().error();
      }
      break;
    case v1::Event::kKernelWritten:
      if (!event.kernel_written().error().empty()) {
        ++generator_errors_;
        last_generator_error_ = event.kernel_written().error();
      } else if (event.kernel_written().has_kernel()) {
        const v1::KernelNode& kernel = event.kernel_written().kernel();
        if (kernel_index_.emplace(kernel.id(), kernels_.size()).second) {
          kernels_.push_back(kernel);
          // A duplicate shares its original's result and never has an evaluation of its own.
          if (!kernel.duplicate_of().empty() && kernel.result().verdict() == v1::VERDICT_UNSPECIFIED) {
            if (const v1::KernelNode* original = FindKernel(kernel.duplicate_of())) {
              *kernels_.back().mutable_result() = original->result();
            }
          }
          if (kernels_.back().result().verdict() != v1::VERDICT_UNSPECIFIED) ++finished_;
        }
      }
      break;
    case v1::Event::kEvaluationLeased: {
      Running& running = running_[event.evaluation_leased().kernel()];
      running = Running();
      running.worker = event.evaluation_leased().worker();
      if (v1::KernelNode* kernel = MutableKernel(event.evaluation_leased().kernel())) {
        kernel->set_attempt(event.evaluation_leased().attempt());
      }
      break;
    }
    case v1::Event::kEvaluationRequeued:
      running_.erase(event.evaluation_requeued().kernel());
      ++requeued_;
      break;
    case v1::Event::kEvaluationFinished: {
      const v1::EvaluationFinished& end = event.evaluation_finished();
      running_.erase(end.kernel());
      v1::KernelNode* kernel = MutableKernel(end.kernel());
      if (kernel == nullptr) break;
      const int index = static_cast<int>(kernel - kernels_.data());
      if (kernel->state() == v1::NODE_STATE_DONE) {
        // Measured again, because it would lead.
        if (!end.confirmation() || kernel->result().verdict() != v1::VERDICT_CORRECT) break;
        const measure::Second second = measure::Weigh(kernel->result(), end.result());
        lead_.Again(index, end.result());
        if (second != measure::Second::kLower && second != measure::Second::kFailed) break;
        if (second == measure::Second::kFailed) {
          if (--verdicts_[v1::VERDICT_CORRECT] == 0) verdicts_.erase(v1::VERDICT_CORRECT);
          ++verdicts_[end.result().verdict()];
        }
        *kernel->mutable_result() = end.result();
        kernel->set_result_sha256(end.result_sha256());
        break;
      }
      const bool had_verdict = kernel->result().verdict() != v1::VERDICT_UNSPECIFIED;
      *kernel->mutable_result() = end.result();
      kernel->set_result_sha256(end.result_sha256());
      kernel->set_state(v1::NODE_STATE_DONE);
      if (!had_verdict) ++finished_;
      ++verdicts_[end.result().verdict()];
      if (spec_.has_search()) {
        if (kernel->duplicate_of().empty()) lead_.First(index, end.result());
      } else if (const v1::BaselineTiming* timing = RankingTiming(end.result());
                 timing != nullptr && timing->speedup() > best_speedup_) {
        best_speedup_ = timing->speedup();
        best_ = end.kernel();
      }
      break;
    }
    case v1::Event::kKernelSelected:
      if (v1::KernelNode* kernel = MutableKernel(event.kernel_selected().kernel())) {
        kernel->set_survivor(true);
        kernel->set_explored(event.kernel_selected().explored());
      }
      break;
    case v1::Event::kModelCalled:
      ++model_calls_;
      tokens_ += event.model_called().prompt_tokens() + event.model_called().completion_tokens();
      break;
    case v1::Event::kProgress: {
      const auto found = running_.find(event.progress().kernel());
      if (found != running_.end()) {
        found->second.stage = event.progress().stage();
        found->second.detail = event.progress().detail();
      }
      break;
    }
    case v1::Event::BODY_NOT_SET:
      break;
  }
}

int JobModel::PlannedEvaluations() const {
  if (spec_.has_eval()) {
    return std::max<int>(static_cast<int>(kernels_.size()), spec_.eval().candidates_size());
  }
  if (!spec_.has_search()) return 0;
  const v1::SearchPolicy& policy = spec_.search().policy();
  const auto or_default = [](int32_t value, int64_t fallback) { return value > 0 ? int64_t{value} : fallback; };
  const int64_t rounds = or_default(policy.rounds(), 3);
  const int64_t per_parent = or_default(policy.ideas(), 4) * or_default(policy.variants(), 2);
  const int64_t keep = or_default(policy.keep(), 3);
  const int64_t total = per_parent + (rounds - 1) * keep * per_parent;
  return static_cast<int>(std::min(total, or_default(policy.max_evaluations(), 1000)));
}

}  // namespace grove::cli
