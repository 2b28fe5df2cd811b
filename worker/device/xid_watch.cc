#include "worker/device/xid_watch.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "worker/device/nvml_library.h"

namespace grove::device {
namespace {

// nvml.h: nvmlEventTypeXidCriticalError. Despite its name it brings every Xid, application errors too.
constexpr unsigned long long kEventXid = 0x8;
// nvmlEventData_t
struct EventData {
  NvmlDevice device;
  unsigned long long event_type;
  unsigned long long event_data;  // the Xid
  unsigned int gpu_instance, compute_instance;
};

constexpr unsigned kWaitMilliseconds = 200;
// The wait above returns within its time; so long after it NVML hangs.
constexpr absl::Duration kHangs = absl::Seconds(10);
constexpr absl::Duration kEndGrace = absl::Seconds(1);
constexpr size_t kMaxKept = 256;

}  // namespace

struct XidWatch::State {
  std::string uuid;
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false, ended = false, listening = false;
  bool lost = false;  // and said so; for the thread alone
  absl::Time last_turn = absl::Now();
  absl::Status failure;  // why it does not listen; until it listens again
  std::deque<XidEvent> events;

  void Fail(absl::Status status) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      failure = std::move(status);
      listening = false;
    }
    changed.notify_all();
  }
  void Add(int xid) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      events.push_back({xid, absl::Now()});
      if (events.size() > kMaxKept) events.pop_front();
    }
    changed.notify_all();
  }
  // False when it is to end.
  bool Turn() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      last_turn = absl::Now();
      listening = true;
      failure = absl::OkStatus();
      if (stop) return false;
    }
    changed.notify_all();
    return true;
  }
};

namespace {

void Listen(XidWatch::State& state) {
  const NvmlLibrary library;
  if (!library.ok()) return state.Fail(absl::UnavailableError(absl::StrCat(library.path(), " cannot be loaded")));
  const auto init = library.Find<int (*)()>("nvmlInit_v2");
  const auto shutdown = library.Find<int (*)()>("nvmlShutdown");
  const auto by_uuid = library.Find<int (*)(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByUUID");
  const auto create = library.Find<int (*)(NvmlEventSet*)>("nvmlEventSetCreate");
  const auto free_set = library.Find<int (*)(NvmlEventSet)>("nvmlEventSetFree");
  const auto enlist = library.Find<int (*)(NvmlDevice, unsigned long long, NvmlEventSet)>("nvmlDeviceRegisterEvents");
  const auto wait = library.Find<int (*)(NvmlEventSet, EventData*, unsigned)>("nvmlEventSetWait_v2");
  if (!init || !shutdown || !by_uuid || !create || !free_set || !enlist || !wait) {
    return state.Fail(absl::UnavailableError("this NVML has no events; update the NVIDIA driver"));
  }
  if (int code = init(); code != kNvmlOk) return state.Fail(library.Error("nvmlInit", code));
  NvmlDevice device = nullptr;
  NvmlEventSet set = nullptr;
  int code = by_uuid(state.uuid.c_str(), &device);
  const char* what = "nvmlDeviceGetHandleByUUID";
  if (code == kNvmlOk) {
    what = "nvmlEventSetCreate";
    code = create(&set);
  }
  if (code == kNvmlOk) {
    what = "nvmlDeviceRegisterEvents";
    code = enlist(device, kEventXid, set);
  }
  if (code == kNvmlOk) state.lost = false;
  while (code == kNvmlOk && state.Turn()) {
    EventData data{};
    what = "nvmlEventSetWait";
    code = wait(set, &data, kWaitMilliseconds);
    if (code == kNvmlOk && (data.event_type & kEventXid) != 0) state.Add(static_cast<int>(data.event_data));
    if (code == kNvmlTimeout) code = kNvmlOk;
  }
  const bool lost = code == kNvmlGpuIsLost;
  if (lost && !std::exchange(state.lost, true)) state.Add(79);  // what the driver says of it, where it still can
  if (code != kNvmlOk) state.Fail(library.Error(what, code));
  if (set != nullptr) free_set(set);
  shutdown();
}

}  // namespace

std::unique_ptr<XidWatch> XidWatch::Start(const std::string& gpu_uuid, absl::Duration pause) {
  auto state = std::make_shared<State>();
  state->uuid = gpu_uuid;
  std::thread([state, pause] {
    std::unique_lock<std::mutex> lock(state->mutex);
    do {
      lock.unlock();
      Listen(*state);
      lock.lock();
    } while (!state->changed.wait_for(lock, absl::ToChronoNanoseconds(pause), [&] { return state->stop; }));
    state->ended = true;
    state->changed.notify_all();
  }).detach();
  return std::unique_ptr<XidWatch>(new XidWatch(std::move(state)));
}

XidWatch::~XidWatch() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, absl::ToChronoNanoseconds(kEndGrace), [this] { return state_->ended; });
}

std::vector<XidEvent> XidWatch::Take() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  std::vector<XidEvent> events(state_->events.begin(), state_->events.end());
  state_->events.clear();
  return events;
}

bool XidWatch::WaitForAny(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->changed.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                           [this] { return !state_->events.empty() || !state_->failure.ok(); });
  return !state_->events.empty();
}

absl::Status XidWatch::Status(absl::Duration settle) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->changed.wait_for(lock, absl::ToChronoNanoseconds(settle),
                           [this] { return state_->listening || !state_->failure.ok(); });
  if (!state_->failure.ok()) return state_->failure;
  if (absl::Now() - state_->last_turn > kHangs) {
    return absl::DeadlineExceededError("NVML has not come back from waiting for events; the driver hangs");
  }
  if (!state_->listening) return absl::UnavailableError("not listening yet");
  return absl::OkStatus();
}

}  // namespace grove::device
