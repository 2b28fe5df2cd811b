#include "worker/pipeline/health.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "worker/device/foreign.h"
#include "worker/device/xid.h"

namespace grove::worker {

std::string XidFindings::Text() const {
  std::vector<std::string> parts;
  for (const std::vector<int>* list : {&device, &application, &notices}) {
    for (int xid : *list) parts.push_back(device::XidText(xid));
  }
  return absl::StrJoin(parts, ", ");
}

std::string DeviceHealth::RunCanary() {
  const sandbox::CanaryOutcome outcome = probes_.canary();
  std::string failure;
  if (!outcome.passed) {
    failure = outcome.what.empty() ? "it failed" : outcome.what;
  } else if (known_seconds_ > 0 && probes_.slowdown > 0 && outcome.seconds > probes_.slowdown * known_seconds_) {
    failure = absl::StrFormat("it took %.3g ms, %.3g ms when the worker started", 1e3 * outcome.seconds,
                              1e3 * known_seconds_);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  ++counts_.canaries;
  if (failure.empty()) {
    last_pass_ = Now();
  } else {
    ++counts_.canary_failures;
  }
  if (outcome.leftover != nullptr) leftover_ = outcome.leftover;
  return failure;
}

absl::Status DeviceHealth::Begin(const sandbox::CanaryOutcome& first) {
  if (!first.passed) {
    return absl::FailedPreconditionError(absl::StrCat("the device does not compute what it should: ", first.what));
  }
  known_seconds_ = first.seconds;
  std::lock_guard<std::mutex> lock(mutex_);
  last_pass_ = Now();
  ++counts_.canaries;
  return absl::OkStatus();
}

void DeviceHealth::CheckListening() {
  if (!probes_.listening) return;
  const std::string why(probes_.listening().message());
  std::lock_guard<std::mutex> lock(mutex_);
  if (deaf_.empty() && !why.empty()) LogWarning("health", "errors of the GPU (Xids) are not seen: ", why);
  if (!deaf_.empty() && why.empty()) LogInfo("health", "errors of the GPU (Xids) are seen again");
  deaf_ = why;
  counts_.deaf = !why.empty();
}

XidFindings DeviceHealth::TakeXids(bool faulted) {
  CheckListening();
  XidFindings findings;
  if (!probes_.xids) return findings;
  for (const device::XidEvent& event : probes_.xids(faulted ? kXidPatience : absl::ZeroDuration())) {
    switch (device::MeaningOf(event.xid).blame) {
      case device::XidBlame::kApplication:
        findings.application.push_back(event.xid);
        break;
      case device::XidBlame::kDevice:
        findings.device.push_back(event.xid);
        break;
      case device::XidBlame::kNotice:
        findings.notices.push_back(event.xid);
        break;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = std::find_if(counts_.xids.begin(), counts_.xids.end(),
                                 [&](const auto& entry) { return entry.first == event.xid; });
    if (it != counts_.xids.end()) {
      ++it->second;
    } else if (counts_.xids.size() < 64) {
      counts_.xids.emplace_back(event.xid, 1);
    }
  }
  // One fault may bring the same Xid many times over.
  for (std::vector<int>* list : {&findings.application, &findings.device, &findings.notices}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return findings;
}

bool DeviceHealth::PassesAfter(const std::string& fault) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++counts_.faults;
  }
  std::string failure;
  for (int attempt = 0; attempt < kCanaryAttempts; ++attempt) {
    if (attempt > 0) probes_.sleep(kCanaryPause * attempt);
    failure = RunCanary();
    if (failure.empty()) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (quarantined_) return false;  // for another reason
      text_ = absl::StrCat("last fault at ", absl::FormatTime(absl::RFC3339_sec, Now(), absl::UTCTimeZone()), ": ",
                           fault, "; the device passed its test afterwards");
      return true;
    }
    LogWarning("health", "the canary failed after ", fault, ": ", failure);
  }
  Enter(absl::StrCat("after ", fault, " it failed its test ", kCanaryAttempts, " times: ", failure));
  return false;
}

void DeviceHealth::Quarantine(const std::string& why) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++counts_.faults;
  }
  Enter(why);
}

void DeviceHealth::QuarantineFor(std::shared_ptr<sandbox::Leftover> leftover, const std::string& why) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    leftover_ = std::move(leftover);
    ++counts_.faults;
  }
  Enter(why);
}

void DeviceHealth::Enter(const std::string& why) {
  std::lock_guard<std::mutex> lock(mutex_);
  const absl::Time now = Now();
  entered_.erase(
      std::remove_if(entered_.begin(), entered_.end(), [&](absl::Time t) { return now - t > absl::Hours(1); }),
      entered_.end());
  if (!quarantined_) {
    entered_.push_back(now);
    ++counts_.quarantines;
    tries_ = 0;
  }
  quarantined_ = true;
  text_ = absl::StrCat("quarantined at ", absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone()), ": ", why);
  next_try_ = now + kFirstRetry;
  if (static_cast<int>(entered_.size()) > kMaxQuarantinesPerHour) {
    next_try_ = absl::InfiniteFuture();
    absl::StrAppend(&text_, "; the ", entered_.size(), "th time within an hour, so it stays out until the worker is ",
                    "restarted");
  }
  LogError("health", text_);
}

absl::Time DeviceHealth::LastPass() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return last_pass_;
}

bool DeviceHealth::Quarantined() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return quarantined_;
}

absl::Time DeviceHealth::NextTry() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return quarantined_ ? next_try_ : absl::InfiniteFuture();
}

bool DeviceHealth::Retry() {
  std::shared_ptr<sandbox::Leftover> leftover;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!quarantined_ || Now() < next_try_) return !quarantined_;
    leftover = leftover_;
  }
  std::string failure;
  if (leftover != nullptr && !leftover->Gone()) {
    failure = absl::StrCat("process ", leftover->pid(), " is still there");
  } else {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      leftover_ = nullptr;
    }
    failure = RunCanary();
    // What the device has reported since counts too.
    if (failure.empty()) {
      const XidFindings findings = TakeXids(false);
      if (!findings.device.empty()) failure = absl::StrCat("it reported ", findings.Text());
    }
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (failure.empty()) {
    quarantined_ = false;
    next_try_ = absl::InfiniteFuture();
    text_ = absl::StrCat("was ", text_, "; passed its test at ",
                         absl::FormatTime(absl::RFC3339_sec, Now(), absl::UTCTimeZone()));
    LogInfo("health", "the device passed its test and takes work again");
    return true;
  }
  ++tries_;
  next_try_ = Now() + std::min(kLongestRetry, kFirstRetry * (int64_t{1} << std::min(tries_, 20)));
  LogWarning("health", "still quarantined: ", failure, "; next try in ", absl::FormatDuration(next_try_ - Now()));
  return false;
}

std::string DeviceHealth::Text() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (deaf_.empty()) return text_;
  return absl::StrCat(text_, text_.empty() ? "" : "; ", "errors of the GPU (Xids) are not seen: ", deaf_);
}

DeviceHealth::Counts DeviceHealth::Snapshot() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

HealthProbes RealProbes(std::shared_ptr<sandbox::SandboxHost> host, std::string candidate_program,
                        std::string device_argument, std::vector<std::string> device_nodes,
                        std::shared_ptr<device::XidWatch> watch, std::string gpu_uuid) {
  HealthProbes probes;
  probes.slowdown = device_argument == "cpu" ? kCanarySlowdownCpu : kCanarySlowdownCuda;
  probes.canary = [host = std::move(host), program = std::move(candidate_program), device = std::move(device_argument),
                   nodes = std::move(device_nodes)] { return sandbox::RunCanary(host, program, device, nodes); };
  if (watch != nullptr) {
    probes.listening = [watch] { return watch->Status(); };
    probes.xids = [watch = std::move(watch)](absl::Duration patience) {
      if (patience > absl::ZeroDuration()) watch->WaitForAny(patience);
      return watch->Take();
    };
  }
  if (!gpu_uuid.empty()) {
    probes.foreign = [uuid = std::move(gpu_uuid)] { return device::ForeignProcesses(uuid); };
  }
  probes.now = [] { return absl::Now(); };
  probes.sleep = [](absl::Duration pause) { absl::SleepFor(pause); };
  return probes;
}

}  // namespace grove::worker
