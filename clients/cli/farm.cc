#include "clients/cli/farm.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "clients/cli/child.h"
#include "common/base/files.h"
#include "common/base/ids.h"

namespace grove::cli {
namespace {

// A coordinator reopens a tree of 100,000 nodes in 2 s; ten times that is a disk in trouble.
constexpr absl::Duration kStartPatience = absl::Seconds(20);
// Restarts of one child within a minute before it is given up: a crash now and then is survived, a crash loop is told.
constexpr size_t kMaxRestarts = 5;
constexpr absl::Duration kRestartWindow = absl::Minutes(1);
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(200);
constexpr absl::Duration kLastBackoff = absl::Seconds(5);
// A child that says by its exit code that it cannot run here (1) or does not know its flags (2), at once, will hardly
// change its mind; but a predecessor that still holds its folder lets go within about 3 s, which four tries span.
constexpr size_t kMaxRefusals = 4;
constexpr absl::Duration kAtOnce = absl::Seconds(3);
constexpr absl::Duration kPoll = absl::Milliseconds(50);
constexpr size_t kTailLines = 15;

// The first word of "127.0.0.1:1234" (port file) or "127.0.0.1:1234 4711" (coordinator.addr). Both are written
// atomically.
std::string AddressFromFile(const std::string& path) {
  auto text = ReadFile(path, 4096);
  if (!text.ok()) return "";
  const std::vector<absl::string_view> words = absl::StrSplit(*text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return words.empty() ? "" : std::string(words.front());
}

// Less than this is no room for the first page of a journal's log (4 KiB), a lock and an address.
constexpr uintmax_t kRoomToStart = 64 << 10;
bool DiskIsFull(const std::string& folder) {
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  return !error && space.available < kRoomToStart;
}

absl::Status FullDisk(const std::string& folder, absl::string_view why) {
  return absl::InternalError(absl::StrCat("the disk that holds ", folder,
                                          " is full; free some space, or name another folder with --data\n", why));
}

// Why the data folder cannot be made: a full disk is the machine's fault, anything else is for the user to change.
absl::Status UnusableFolder(const std::string& folder, const absl::Status& why) {
  if (absl::IsResourceExhausted(why)) return FullDisk(folder, why.message());
  return absl::FailedPreconditionError(absl::StrCat("the data folder ", folder, " cannot be used: ", why.message(),
                                                    "; name another with --data, or correct its permissions"));
}

}  // namespace

struct Farm::Impl {
  FarmOptions options;
  std::string address;

  struct Member {
    std::string name;
    std::vector<std::string> argv;
    std::string log;
    Inherit inherit;
    int64_t log_start = 0;
    std::unique_ptr<Child> child;
    std::deque<absl::Time> restarts;
    absl::Duration backoff = kFirstBackoff;
    absl::Time restart_at = absl::InfiniteFuture();
    absl::Time launched;
  };

  mutable absl::Mutex mutex;
  std::vector<Member> members ABSL_GUARDED_BY(mutex);  // the coordinator first
  absl::Status health ABSL_GUARDED_BY(mutex);
  std::function<void()> given_up ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  bool ended ABSL_GUARDED_BY(mutex) = false;  // all children are
  std::atomic<bool> killed{false};
  std::thread supervisor;

  std::string Bin(const char* name) const { return absl::StrCat(options.bin_dir, "/", name); }

  void Say(absl::string_view text) const {
    if (options.say) options.say(text);
  }

  // Members' own failures in one sentence with the log's end.
  static std::string Obituary(const Member& member) {
    const std::string tail = TailOfFile(member.log, member.log_start, kTailLines);
    return absl::StrCat(member.name, " ended with ", member.child->HowItEnded(), "; its log ", member.log,
                        tail.empty() ? " says nothing" : absl::StrCat(" ends with:\n", tail));
  }

  absl::Status Launch(Member* member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    member->log_start = FileSize(member->log);
    auto child = Child::Start(member->argv, member->log, member->inherit);
    if (!child.ok()) {
      if (absl::IsNotFound(child.status())) {
        return absl::NotFoundError(
            absl::StrCat("cannot start ", member->argv[0],
                         ": no such program; it is installed beside grove, is the installation whole?"));
      }
      return child.status();
    }
    member->child = *std::move(child);
    member->launched = absl::Now();
    return absl::OkStatus();
  }

  absl::Status StartCoordinator() {
    const std::string port_file = absl::StrCat(options.data_dir, "/logs/", RandomId("port-", 8));
    Member member;
    member.name = "grove-coordinator";
    member.log = absl::StrCat(options.data_dir, "/logs/coordinator.log");
    member.inherit.credentials = true;  // the model's key
    member.argv = {Bin("grove-coordinator"), "--data", options.data_dir, "--listen", options.listen, "--port-file",
                   port_file, "--exit-with-parent",
                   // The workers have drained, or been given up, before it is asked to end: nothing to wait for.
                   "--drain-seconds", "0"};
    member.argv.insert(member.argv.end(), options.coordinator_flags.begin(), options.coordinator_flags.end());
    absl::MutexLock lock(&mutex);
    if (absl::Status launched = Launch(&member); !launched.ok()) return launched;
    const absl::Time deadline = absl::Now() + kStartPatience;
    while (address.empty()) {
      address = AddressFromFile(port_file);
      if (!address.empty()) break;
      if (!member.child->Running()) {
        unlink(port_file.c_str());
        const std::string why = Obituary(member);
        // The store locks this file for as long as it is open (coordinator/store/sqlite_store.h).
        const auto lock = FileLock::Acquire(absl::StrCat(options.data_dir, "/lock"));
        if (absl::IsFailedPrecondition(lock.status())) return absl::AlreadyExistsError(why);
        // The log is on the same disk, so that it may be silent about this; and what it ended with may have made room.
        if (DiskIsFull(options.data_dir) || absl::StrContains(why, strerror(ENOSPC))) {
          return FullDisk(options.data_dir, why);
        }
        const int code = member.child->ExitCode();
        return code == 1 || code == 2 ? absl::FailedPreconditionError(why) : absl::InternalError(why);
      }
      if (absl::Now() > deadline) {
        return absl::DeadlineExceededError(absl::StrCat("grove-coordinator did not begin to listen within ",
                                                        absl::FormatDuration(kStartPatience), "; see ", member.log));
      }
      if (options.cancellation != nullptr && options.cancellation->WaitFor(absl::Milliseconds(5))) {
        return absl::CancelledError("interrupted");
      }
      if (options.cancellation == nullptr) absl::SleepFor(absl::Milliseconds(5));
    }
    unlink(port_file.c_str());
    // A restart must come back where the workers and the client expect it.
    if (absl::EndsWith(options.listen, ":0")) member.argv[4] = address;
    members.push_back(std::move(member));
    return absl::OkStatus();
  }

  absl::Status StartWorkers() {
    absl::MutexLock lock(&mutex);
    for (size_t i = 0; i < options.devices.size(); ++i) {
      Member member;
      member.name = absl::StrCat("grove-worker ", i, " (", options.devices[i], ")");
      member.log = absl::StrCat(options.data_dir, "/logs/worker-", i, ".log");
      member.inherit.without = options.secret_variables;
      member.argv = {Bin("grove-worker"),
                     "--coordinator",
                     address,
                     "--device",
                     options.devices[i],
                     "--state",
                     absl::StrCat(options.data_dir, "/workers/", i),
                     "--exit-with-parent"};
      member.argv.insert(member.argv.end(), options.worker_flags.begin(), options.worker_flags.end());
      if (absl::Status launched = Launch(&member); !launched.ok()) return launched;
      members.push_back(std::move(member));
    }
    return absl::OkStatus();
  }

  // Restarts the dead. Owned by the supervisor thread, which also outlives every child that it started: some kernels
  // tie "exit with parent" to the starting thread.
  void Supervise() {
    for (;;) {
      std::vector<std::string> said;
      {
        absl::MutexLock lock(&mutex);
        mutex.AwaitWithTimeout(absl::Condition(&stopping), kPoll);
        if (stopping) {
          mutex.Await(absl::Condition(&ended));
          return;
        }
        const absl::Time now = absl::Now();
        if (!health.ok()) continue;
        for (Member& member : members) {
          if (!health.ok()) break;
          if (member.child->Running()) continue;
          if (member.restart_at == absl::InfiniteFuture()) {
            while (!member.restarts.empty() && now - member.restarts.front() > kRestartWindow)
              member.restarts.pop_front();
            const int code = member.child->ExitCode();
            const bool refused = (code == 1 || code == 2) && now - member.launched < kAtOnce;
            if (member.restarts.size() >= (refused ? kMaxRefusals : kMaxRestarts)) {
              health = absl::InternalError(
                  absl::StrCat("gave up after ", member.restarts.size(), " restarts: ", Obituary(member)));
              continue;
            }
            if (member.restarts.empty()) member.backoff = kFirstBackoff;
            member.restart_at = now + member.backoff;
            member.backoff = std::min(member.backoff * 2, kLastBackoff);
            if (!refused || member.restarts.empty()) {
              said.push_back(absl::StrCat(Obituary(member), "\nstarting it again"));
            }
          } else if (now >= member.restart_at) {
            member.restart_at = absl::InfiniteFuture();
            member.restarts.push_back(now);
            if (absl::Status launched = Launch(&member); !launched.ok()) {
              health = launched;
            }
          }
        }
        if (!health.ok() && given_up) given_up();
      }
      for (const std::string& text : said) Say(text);
    }
  }
};

Farm::Farm(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Farm::~Farm() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<Farm>> Farm::Start(FarmOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  std::error_code error;
  const auto absolute = std::filesystem::absolute(impl->options.data_dir, error);
  if (!error) impl->options.data_dir = absolute.lexically_normal().string();
  for (const char* folder : {"/logs", "/workers"}) {
    if (absl::Status made = MakeDirs(absl::StrCat(impl->options.data_dir, folder)); !made.ok()) {
      return UnusableFolder(impl->options.data_dir, made);
    }
  }
  std::unique_ptr<Farm> farm(new Farm(std::move(impl)));
  Impl* self = farm->impl_.get();
  absl::Status started;
  absl::Mutex mutex;
  bool done = false;
  self->supervisor = std::thread([self, &started, &mutex, &done] {
    absl::Status status = self->StartCoordinator();
    if (status.ok()) status = self->StartWorkers();
    const bool ok = status.ok();
    {
      absl::MutexLock lock(&mutex);
      started = std::move(status);
      done = true;
    }
    if (ok) self->Supervise();
  });
  {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&done));
  }
  if (!started.ok()) return started;
  return farm;
}

const std::string& Farm::address() const { return impl_->address; }

absl::Status Farm::Health() const {
  absl::MutexLock lock(&impl_->mutex);
  return impl_->health;
}

void Farm::OnGivenUp(std::function<void()> call) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->given_up = std::move(call);
  if (!impl_->health.ok() && impl_->given_up) impl_->given_up();
}

void Farm::Stop(absl::Duration patience) {
  {
    absl::MutexLock lock(&impl_->mutex);
    impl_->stopping = true;
  }
  // From here on the supervisor touches no child; it waits, because its own end might end them (see Supervise).
  std::vector<Impl::Member*> members;
  {
    absl::MutexLock lock(&impl_->mutex);
    for (Impl::Member& member : impl_->members) members.push_back(&member);
  }
  const absl::Time deadline = absl::Now() + patience;
  const auto end = [&](size_t first, size_t last) {
    if (patience > absl::ZeroDuration()) {
      for (size_t i = first; i < last; ++i) members[i]->child->Signal(SIGTERM);
      for (size_t i = first; i < last; ++i) {
        while (!impl_->killed && absl::Now() < deadline && !members[i]->child->WaitFor(absl::Milliseconds(20))) {
        }
      }
    }
    for (size_t i = first; i < last; ++i) members[i]->child->Signal(SIGKILL);
    for (size_t i = first; i < last; ++i) members[i]->child->WaitFor(absl::Seconds(5));
  };
  if (members.size() > 1) end(1, members.size());
  if (!members.empty()) end(0, 1);
  {
    absl::MutexLock lock(&impl_->mutex);
    impl_->ended = true;
  }
  if (impl_->supervisor.joinable()) impl_->supervisor.join();
}

void Farm::Kill() {
  impl_->killed = true;
  absl::MutexLock lock(&impl_->mutex);
  for (Impl::Member& member : impl_->members) {
    // By pid and without reaping, because Stop may be about to reap it on its own thread.
    kill(member.child->pid(), SIGKILL);
  }
}

std::vector<std::string> LocalDevices(const std::string& dev_dir) {
  std::vector<int> indexes;
  if (DIR* dir = opendir(dev_dir.c_str()); dir != nullptr) {
    while (const dirent* entry = readdir(dir)) {
      absl::string_view name = entry->d_name;
      int index = 0;
      if (absl::ConsumePrefix(&name, "nvidia") && absl::SimpleAtoi(name, &index)) indexes.push_back(index);
    }
    closedir(dir);
  }
  if (indexes.empty()) return {"cpu"};
  std::sort(indexes.begin(), indexes.end());
  // CUDA counts the devices that it sees from 0, whatever their files are called.
  std::vector<std::string> devices;
  for (size_t i = 0; i < indexes.size(); ++i) devices.push_back(absl::StrCat("cuda:", i));
  return devices;
}

std::string RecordedAddress(const std::string& data_dir) {
  return AddressFromFile(absl::StrCat(data_dir, "/coordinator.addr"));
}

}  // namespace grove::cli
