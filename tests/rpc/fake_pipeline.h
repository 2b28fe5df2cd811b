// A pipeline that behaves: it holds what it was given until the test lets it finish, and reports nothing of what was
// cancelled.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "worker/pipeline/pipeline.h"
#include "worker/rpc/farm_client.h"

namespace grove::testing {

// Thread-safe.
class FakePipeline : public worker::Pipeline {
 public:
  explicit FakePipeline(worker::FarmClient& client, int capacity = 4) : client_(client), capacity_(capacity) {
    device_.set_kind(v1::DEVICE_KIND_CPU);
    device_.set_name("test device");
  }

  void Submit(v1::Assignment assignment) override {
    std::lock_guard<std::mutex> lock(mu_);
    running_[worker::KeyOf(assignment.lease())] = assignment;
    ++submitted_;
    changed_.notify_all();
  }
  void Cancel(const v1::Lease& lease) override {
    std::lock_guard<std::mutex> lock(mu_);
    running_.erase(worker::KeyOf(lease));
    cancelled_.push_back(worker::KeyOf(lease));
    changed_.notify_all();
  }
  std::vector<v1::Lease> Running() const override {
    std::lock_guard<std::mutex> lock(mu_);
    std::vector<v1::Lease> leases;
    for (const auto& [key, assignment] : running_) leases.push_back(assignment.lease());
    return leases;
  }
  v1::DeviceInfo Device() const override { return device_; }
  std::vector<std::string> SandboxLayers() const override { return {"namespaces", "seccomp"}; }
  int Capacity() const override { return capacity_; }
  worker::PipelineStats Stats() override {
    std::lock_guard<std::mutex> lock(mu_);
    worker::PipelineStats stats;
    stats.slot_state = running_.empty() ? "idle" : "timing";
    stats.verdicts_total = {{"VERDICT_CORRECT", finished_}};
    stats.stage_seconds = {{"build", {0.5, 1.5}}, {"time", {3}}};
    stats.sandbox_layers = {{"namespaces", true}, {"cgroup", false}};
    stats.busy_seconds_total = 1.25;
    return stats;
  }

  // Ends a lease with a CORRECT verdict and `reason`. False when it does not run.
  bool Finish(const worker::LeaseKey& key, const std::string& reason = "") {
    v1::WorkResult result;
    {
      std::lock_guard<std::mutex> lock(mu_);
      auto found = running_.find(key);
      if (found == running_.end()) return false;
      *result.mutable_lease() = found->second.lease();
      running_.erase(found);
      ++finished_;
    }
    result.mutable_evaluation()->set_verdict(v1::VERDICT_CORRECT);
    result.mutable_evaluation()->set_reason(reason);
    client_.OnResult(std::move(result));
    return true;
  }
  // Waits until it was given `n` leases in all.
  bool WaitForSubmitted(int n) {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return submitted_ >= n; });
  }
  bool WaitForCancelled(int n) {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return static_cast<int>(cancelled_.size()) >= n; });
  }
  std::vector<worker::LeaseKey> cancelled() const {
    std::lock_guard<std::mutex> lock(mu_);
    return cancelled_;
  }

 private:
  worker::FarmClient& client_;
  const int capacity_;
  v1::DeviceInfo device_;
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::map<worker::LeaseKey, v1::Assignment> running_;
  std::vector<worker::LeaseKey> cancelled_;
  int submitted_ = 0;
  int64_t finished_ = 0;
};

}  // namespace grove::testing
