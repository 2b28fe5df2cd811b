// One grove-judge in its sandbox, from the worker's side: one problem for life.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/wire/channel.h"
#include "grove/v1/types.pb.h"
#include "worker/device/toolchain.h"
#include "worker/pipeline/process_pool.h"
#include "worker/sandbox/sandbox.h"

namespace grove::worker {

struct JudgeConfig {
  std::shared_ptr<sandbox::SandboxHost> host;
  std::string program;  // grove-judge
  std::string python;   // may be empty: native problems need none
  std::vector<std::string> read_only;
  device::Tools tools;
  std::vector<std::string> device_nodes;
  std::string device_argument;
  int threads = 1;
  int64_t memory_bytes = 0;
  double load_seconds = 300;  // a problem's own code may take so long
};

// What came of one request.
struct JudgeAnswer {
  enum class Kind { kDone, kProblem, kInfrastructure, kDied };
  Kind kind = Kind::kInfrastructure;
  nlohmann::json body;  // kDone: the frame
  std::string message;  // otherwise: what happened, for people
};

// Owned by the device thread; Kill may be called from anywhere.
class JudgeProcess {
 public:
  using OnProgress = std::function<void(const std::string& stage, const std::string& detail)>;
  using Cancelled = std::function<bool()>;
  using Hold = std::function<bool(bool held)>;  // stops the candidate or lets it go on; whether it did

  // Looks at what the candidate runs from now on, or no longer: whether enough was seen.
  using Watch = std::function<bool(bool on)>;

  // A candidate, or its rival, that is ready to talk.
  struct Contestant {
    bool python = false;
    wire::Channel channel;
    Hold hold;                                    // empty = it runs all the time
    std::function<bool(int processor)> stand_on;  // with hold: SandboxedProcess::StandOn
    wire::UniqueFd memory, maps;                  // SandboxedProcess::OpenMemory, of a script on a CPU; or none
    Watch watch;                                  // of the candidate, where it matters whose work it is
  };

  // Starts its process, which says hello when it is ready. `python`: it has the interpreter and torch's Python behind
  // it by then, which no native problem wants in its judge.
  static absl::StatusOr<StartedProcess> Spawn(const JudgeConfig& config, bool python);
  // One that has said hello: `started`, which Spawn began for the same `config`, or where there is none, or it comes to
  // nothing, a fresh one. INTERNAL with its last words when it does not come.
  static absl::StatusOr<std::unique_ptr<JudgeProcess>> Start(const JudgeConfig& config,
                                                             std::optional<StartedProcess> started = std::nullopt);

  // kDone's body is the `loaded` frame. kProblem: the problem is at fault.
  // `check`: the description also says what is wrong with the problem, and the judge keeps no problem.
  JudgeAnswer Load(const v1::Problem& problem, const v1::EvaluationOptions& options, bool check,
                   const OnProgress& on_progress, const Cancelled& cancelled);
  // Hands over the sockets of the candidate and, where there is one, of its rival. kDone's body is the `result` frame.
  // `deadline` is the backstop for a judge that hangs. Either both can be held or neither is.
  JudgeAnswer Evaluate(Contestant candidate, std::optional<Contestant> rival, const v1::EvaluationOptions& options,
                       absl::Time deadline, const OnProgress& on_progress, const Cancelled& cancelled);
  // Has a candidate that runs under a profiler do one marked call; within `seconds`. kDone's body is the `profiled`
  // frame, whose `failure` says what went wrong, empty when nothing did.
  JudgeAnswer Profile(Contestant candidate, double seconds, absl::Time deadline, const Cancelled& cancelled);
  // What the device can do. kDone's body is the `rates` frame. Needs no problem.
  JudgeAnswer Rates(double max_seconds, absl::Time deadline, const OnProgress& on_progress, const Cancelled& cancelled);

  const nlohmann::json& hello() const { return hello_; }
  bool Alive() { return !broken_ && !process_->Ended(); }
  sandbox::SandboxedProcess& process() { return *process_; }

 private:
  JudgeProcess(const JudgeConfig& config, StartedProcess started);
  absl::Status AwaitHello(absl::Duration limit);
  JudgeAnswer Await(int64_t id, const char* wanted, absl::Time deadline, const OnProgress& on_progress,
                    const Cancelled& cancelled, const Contestant* candidate = nullptr,
                    const Contestant* rival = nullptr);
  JudgeAnswer Died(const std::string& what);

  std::unique_ptr<sandbox::SandboxedProcess> process_;
  wire::Channel channel_;
  nlohmann::json hello_;
  int64_t next_id_ = 1;
  double load_seconds_ = 300;
  std::chrono::nanoseconds spin_{0};  // before the next frame, while a candidate is held
  bool broken_ = false;
};

}  // namespace grove::worker
