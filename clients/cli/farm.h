// A coordinator and workers as children of this process: for `grove up`, and for `search` and `eval` where no
// coordinator is configured. Children that die are started again, with back-off and a bound; they end with this
// process, however it ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "clients/cpp/cancellation.h"

namespace grove::cli {

struct FarmOptions {
  std::string data_dir;
  std::string listen = "127.0.0.1:0";
  std::vector<std::string> devices;            // one worker each: "cpu", "cuda:0"; empty = coordinator only
  std::vector<std::string> coordinator_flags;  // further ones, such as --tls-cert
  std::vector<std::string> worker_flags;
  std::vector<std::string> secret_variables;  // of our environment: kept from the workers beside what looks like one
  std::string bin_dir;                        // where grove-coordinator and grove-worker are
  client::Cancellation* cancellation = nullptr;
  std::function<void(absl::string_view)> say;  // from any thread: a child died, was started again, was given up
};

class Farm {
 public:
  // Returns once the coordinator listens; workers dial in by themselves. Errors carry the log's last lines;
  // ALREADY_EXISTS: another process serves the data folder; FAILED_PRECONDITION: the coordinator refused the folder or
  // its flags; INTERNAL: it ended otherwise.
  static absl::StatusOr<std::unique_ptr<Farm>> Start(FarmOptions options);
  ~Farm();  // Kill
  Farm(const Farm&) = delete;
  Farm& operator=(const Farm&) = delete;

  const std::string& address() const;

  // Why it cannot go on (a child was given up), or OK.
  absl::Status Health() const;
  // Calls it once that is so, at once where it is so already, from any thread; it must not block and must not touch
  // this object. Replaces the one before; null: it is not running any more and never will.
  void OnGivenUp(std::function<void()> call);

  // SIGTERM to the workers, then to the coordinator; SIGKILL to what is left after `patience`. Idempotent.
  void Stop(absl::Duration patience);

  // SIGKILL to all at once. Callable from any thread, and while Stop waits.
  void Kill();

 private:
  struct Impl;
  explicit Farm(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// "cpu", or "cuda:0" ... for the GPUs of this machine, by their device files. Never empty.
std::vector<std::string> LocalDevices(const std::string& dev_dir = "/dev");

// The address that a live coordinator of this data folder left there, or "" (none, or unreadable). Whether it lives is
// for the caller to try.
std::string RecordedAddress(const std::string& data_dir);

}  // namespace grove::cli
