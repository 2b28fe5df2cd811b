// A server stream that is fed page by page from an asynchronous source, with one write outstanding.
//
// Memory is bounded by one page however slow the reader is: the next page is asked for only when the last item of this
// one was taken over by the transport, whose own buffer HTTP/2's flow control bounds.
//
// Lifetime: the object owns itself from Start until OnDone, and each outstanding request for a page holds a reference,
// so a late answer finds it alive. Locks: gRPC never runs a reaction inside StartWrite or Finish for reactors like this
// one, so both may be called under mu_; the page source is never called under it.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/status.h"

namespace grove::coordinator {

// Thread-safe.
template <typename T>
class PagedWriter : public grpc::ServerWriteReactor<T>, public std::enable_shared_from_this<PagedWriter<T>> {
 public:
  void Start() {
    self_ = this->shared_from_this();
    Ask();
  }

 protected:
  // Asks the source for the next page; its answer goes to Deliver, exactly once per call and perhaps before Ask
  // returns.
  virtual void Ask() = 0;
  // The call was cancelled while a page is awaited: the source may answer at once.
  virtual void AbandonAsk() {}

  // `last`: nothing comes after these items.
  void Deliver(const absl::Status& status, std::vector<T> page, bool last) {
    auto keep = this->shared_from_this();
    std::unique_lock<std::mutex> lock(mu_);
    if (finished_) return;
    if (cancelled_) return FinishLocked(grpc::Status::CANCELLED);
    if (!status.ok()) return FinishLocked(rpc::ToGrpc(status));
    page_ = std::move(page);
    next_ = 0;
    last_ = last;
    Advance(std::move(lock));
  }

  bool cancelled() {
    std::lock_guard<std::mutex> lock(mu_);
    return cancelled_;
  }

 private:
  void OnWriteDone(bool ok) final {
    std::unique_lock<std::mutex> lock(mu_);
    if (finished_) return;
    if (!ok) return FinishLocked(grpc::Status::CANCELLED);
    Advance(std::move(lock));
  }

  void OnCancel() final {
    {
      std::lock_guard<std::mutex> lock(mu_);
      cancelled_ = true;
      if (finished_) return;
    }
    AbandonAsk();
  }

  void OnDone() final { auto self = std::move(self_); }

  void Advance(std::unique_lock<std::mutex> lock) {
    if (next_ < page_.size()) {
      // No buffer hint: a hinted write does not complete before something else flushes the transport, and there is
      // nothing else.
      this->StartWrite(&page_[next_++]);
      return;
    }
    page_.clear();
    if (last_) return FinishLocked(grpc::Status::OK);
    lock.unlock();
    Ask();
  }

  void FinishLocked(const grpc::Status& status) {
    finished_ = true;
    this->Finish(status);
  }

  std::mutex mu_;
  std::vector<T> page_;
  std::size_t next_ = 0;
  bool last_ = false;
  bool cancelled_ = false;
  bool finished_ = false;
  std::shared_ptr<PagedWriter<T>> self_;
};

}  // namespace grove::coordinator
