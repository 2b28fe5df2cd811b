// A real store that can be told to fail.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "coordinator/store/store.h"

namespace grove::testing {

// Shared between a test and the store that the engine owns.
struct StoreFaults {
  enum class Mode {
    kNone,
    kRefuse,         // the commit is not made, and says so
    kMakeAndRefuse,  // the commit is made, and says that it was not
  };
  std::atomic<Mode> mode{Mode::kNone};
  std::atomic<int> failed{0};  // commits that were answered with an error
};

class FaultyStore : public store::Store {
 public:
  FaultyStore(std::unique_ptr<store::Store> real, std::shared_ptr<StoreFaults> faults)
      : real_(std::move(real)), faults_(std::move(faults)) {}

  absl::Status Commit(const store::WriteBatch& batch) override {
    if (batch.empty()) return real_->Commit(batch);
    const StoreFaults::Mode mode = faults_->mode;
    if (mode == StoreFaults::Mode::kNone) return real_->Commit(batch);
    if (mode == StoreFaults::Mode::kMakeAndRefuse) {
      if (absl::Status status = real_->Commit(batch); !status.ok()) return status;
    }
    ++faults_->failed;
    return absl::ResourceExhaustedError("no space left on device (injected)");
  }
  absl::Status ReadEvents(const std::string& job, uint64_t after_seq, int64_t max,
                          const std::function<bool(uint64_t, absl::string_view)>& visit) override {
    return real_->ReadEvents(job, after_seq, max, visit);
  }
  absl::StatusOr<std::string> ReadEvent(uint64_t seq) override { return real_->ReadEvent(seq); }
  absl::StatusOr<std::vector<store::JobRow>> ReadJobs() override { return real_->ReadJobs(); }
  absl::StatusOr<std::vector<store::BankRow>> ReadBank() override { return real_->ReadBank(); }
  absl::StatusOr<std::string> ReadBlob(const std::string& sha256) override { return real_->ReadBlob(sha256); }
  absl::StatusOr<uint64_t> LastSeq() override { return real_->LastSeq(); }
  int64_t SizeBytes() override { return real_->SizeBytes(); }

 private:
  std::unique_ptr<store::Store> real_;
  std::shared_ptr<StoreFaults> faults_;
};

}  // namespace grove::testing
