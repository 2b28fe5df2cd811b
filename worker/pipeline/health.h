// Whether the device may be trusted with the next lease.
//
// After every fault a canary must pass: a program of ours, in a sandbox like a candidate's, that computes what is known
// and takes about as long as it did when the worker started. A device that fails it several times in a row, or reports
// an error of its own (an Xid that is not an application's), or still holds a process that cannot be killed, is
// quarantined: the worker says so in its heartbeats, gets no leases, and tries again with growing pauses. One that
// keeps coming back stays out until the worker is restarted.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/device/xid_watch.h"
#include "worker/sandbox/self_test.h"

namespace grove::worker {

// What health is judged by. The pipeline's are real; tests may bring others.
struct HealthProbes {
  std::function<sandbox::CanaryOutcome()> canary;
  // The Xids since the last call, waiting up to `patience` for a first one. May be empty: no GPU, no events.
  std::function<std::vector<device::XidEvent>(absl::Duration patience)> xids;
  // OK while Xids come at all; never waits. May be empty likewise.
  std::function<absl::Status()> listening;
  // How many processes of others hold the device; nothing where that is not known. May be empty: no GPU.
  std::function<std::optional<int>()> foreign;
  std::function<absl::Time()> now;
  std::function<void(absl::Duration)> sleep;
  double slowdown = 0;  // of a canary against the first, beyond which it has failed; 0 = any time will do
};

// What Xids say about one evaluation.
struct XidFindings {
  std::vector<int> application, device, notices;
  std::string Text() const;  // "Xid 31 (GPU memory page fault), ..."; the device's first
};

// Called by the device thread; Text, Quarantined and the counts by any.
class DeviceHealth {
 public:
  explicit DeviceHealth(HealthProbes probes) : probes_(std::move(probes)) {}

  // With what the first canary gave: how long it takes from now on. FAILED_PRECONDITION when it did not pass.
  absl::Status Begin(const sandbox::CanaryOutcome& first);

  // Says so, once, when no Xids come any more, and when they come again. Never waits.
  void CheckListening();
  // Xids of what has just run; CheckListening besides. Waits a moment where `faulted`: events come after the error that
  // the program sees.
  XidFindings TakeXids(bool faulted);

  std::optional<int> ForeignProcesses() const { return probes_.foreign ? probes_.foreign() : std::nullopt; }

  // After `fault` (for people): runs the canary, again after short pauses when it fails. False: quarantined now.
  bool PassesAfter(const std::string& fault);
  absl::Time LastPass() const;  // of a canary
  // Without asking the canary: the device itself has said that something is wrong.
  void Quarantine(const std::string& why);
  // A process that did not die: quarantined until it is gone and a canary has passed.
  void QuarantineFor(std::shared_ptr<sandbox::Leftover> leftover, const std::string& why);

  bool Quarantined() const;
  absl::Time NextTry() const;  // InfiniteFuture: not quarantined, or only a restart helps
  // When it is time: the canary. True when the device is well again.
  bool Retry();

  std::string Text() const;  // for heartbeats: why quarantined, or the last fault; that no Xids come
  struct Counts {
    int64_t faults = 0, canaries = 0, canary_failures = 0, quarantines = 0;
    bool deaf = false;                          // no Xids come
    std::vector<std::pair<int, int64_t>> xids;  // by number
  };
  Counts Snapshot() const;

 private:
  // Empty when it passed.
  std::string RunCanary();
  void Enter(const std::string& why);
  absl::Time Now() const { return probes_.now(); }

  const HealthProbes probes_;
  double known_seconds_ = 0;  // of the first canary
  absl::Time last_pass_ = absl::InfinitePast();
  mutable std::mutex mutex_;
  bool quarantined_ = false;
  std::string text_;
  std::string deaf_;  // why no Xids come; empty while they do
  int tries_ = 0;     // failed ones since the quarantine began
  absl::Time next_try_ = absl::InfiniteFuture();
  std::vector<absl::Time> entered_;  // quarantines of the last hour
  std::shared_ptr<sandbox::Leftover> leftover_;
  Counts counts_;
};

// What is meant by "fails several times in a row", and by "keeps coming back".
inline constexpr int kCanaryAttempts = 3;
inline constexpr absl::Duration kCanaryPause = absl::Milliseconds(500);  // memory of the dead is given back meanwhile
// A canary this much slower than the first one: a GPU that is stuck at its idle clock is 5 times slower (H200: 345
// against 1980 MHz), one that is power capped less than 2. A CPU's time, though counted for the thread alone, varies
// more, with its clock and with what runs on the core's other thread.
inline constexpr double kCanarySlowdownCuda = 4, kCanarySlowdownCpu = 20;
inline constexpr absl::Duration kFirstRetry = absl::Seconds(5);
inline constexpr absl::Duration kLongestRetry = absl::Minutes(10);
inline constexpr int kMaxQuarantinesPerHour = 5;
inline constexpr absl::Duration kXidPatience = absl::Milliseconds(300);

// The real ones. `watch` may be null, `gpu_uuid` empty.
HealthProbes RealProbes(std::shared_ptr<sandbox::SandboxHost> host, std::string candidate_program,
                        std::string device_argument, std::vector<std::string> device_nodes,
                        std::shared_ptr<device::XidWatch> watch, std::string gpu_uuid);

}  // namespace grove::worker
