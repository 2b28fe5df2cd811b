// Processes started ahead of their work, so that no evaluation waits for one to start: a native candidate has its
// device context made, a Python one has torch imported, a judge has both behind it.
//
// Theory of operation. Whoever wants more of a kind says so (Restock); a thread starts them, one at a time. While the
// pool is told to be quiet (something is being timed) it starts none, and those that are still on their way to being
// ready are held.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/wire/channel.h"
#include "worker/sandbox/sandbox.h"

namespace grove::worker {

// A process and our end of its channel, on which it says hello once it is ready.
struct StartedProcess {
  std::unique_ptr<sandbox::SandboxedProcess> process;
  wire::Channel channel;
};

// What is started ahead, the first of them first.
enum class Ahead { kNativeCandidate, kPythonCandidate, kNativeJudge, kPythonJudge };
inline constexpr size_t kAheadKinds = 4;

// Thread-safe.
class ProcessPool {
 public:
  struct Kind {
    std::function<absl::StatusOr<StartedProcess>()> start;  // called by the pool's thread
    int most = 1;                                           // that wait at once
  };
  explicit ProcessPool(std::array<Kind, kAheadKinds> kinds);  // in the order of Ahead
  ~ProcessPool();

  // The oldest that waits, ready or not, let go on where it was held; one that is just being started is waited for.
  // Nothing where there is none, or where it has ended meanwhile.
  std::optional<StartedProcess> Take(Ahead kind);
  // Starts as many of this kind as may wait. Returns at once. One that cannot be started ends it: whoever needs one
  // will be told why.
  void Restock(Ahead kind);
  // Nothing starts, and nothing that starts goes on (where processes can be held), until it is told otherwise. Returns
  // when that holds; what is just being started is waited for for a second at most.
  void Quiet(bool quiet);
  // Returns when all that is to wait does, and is ready; after so long at most. Until the next Restock nothing starts.
  void Settle(absl::Duration most);
  // Ends those that wait. None is started until the next Restock.
  void Clear();
  void Clear(Ahead kind);
  // Waiting now, ready or not.
  int Waiting(Ahead kind);

 private:
  struct Waiting_ {
    StartedProcess started;
    bool held = false;
  };
  struct Shelf {
    Kind kind;
    std::list<Waiting_> waiting;  // oldest first
    bool wanted = false;          // until there are as many as may be
    int cleared = 0;              // what was being started meanwhile is not kept
  };
  void Stock();
  Shelf* Short();  // the first that wants another
  Shelf& Of(Ahead kind) { return shelves_[static_cast<size_t>(kind)]; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Shelf, kAheadKinds> shelves_;
  bool starting_ = false;  // the thread is between deciding to start one and adding it
  bool quiet_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace grove::worker
