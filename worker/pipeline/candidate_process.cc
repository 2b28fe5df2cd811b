#include "worker/pipeline/candidate_process.h"

#include <poll.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "worker/pipeline/programs.h"
#include "worker/sandbox/limits.h"

namespace grove::worker {
namespace {

// To be ready: torch from a cold disk takes half a minute, a native candidate milliseconds. Not on the candidate's
// clock: none of its code runs yet.
constexpr absl::Duration kReadyTimeout = absl::Seconds(120);
// The judge notices run_wall_seconds itself; the sandbox is the backstop for a judge that is busy.
constexpr absl::Duration kWallGrace = absl::Milliseconds(300);

}  // namespace

sandbox::Bounds CandidateBounds(const v1::Limits& limits) {
  sandbox::Bounds bounds;
  bounds.wall = absl::Seconds(limits.run_wall_seconds()) + kWallGrace;
  bounds.cpu_seconds = limits.run_cpu_seconds();
  bounds.memory_bytes = limits.memory_bytes();
  bounds.processes = limits.processes();
  bounds.disk_bytes = limits.disk_bytes();
  bounds.output_bytes = limits.output_bytes();
  return bounds;
}

absl::StatusOr<StartedProcess> StartCandidate(const CandidateConfig& config, bool python, const v1::Limits& limits,
                                              const std::function<void(sandbox::SandboxSpec*)>& adapt) {
  const std::string& program = python ? config.python_script : config.native_program;
  if (program.empty() || (python && config.python.empty())) {
    return absl::FailedPreconditionError(
        python ? "this worker has no Python with torch, so it cannot run .py candidates (see grove doctor)"
               : "grove-candidate is not installed here; `grove-worker setup` builds it");
  }
  auto [judge_end, candidate_end] = wire::Channel::CreatePair();
  sandbox::SandboxSpec spec;
  spec.label = python ? "python" : "native";
  if (python) spec.argv.push_back(config.python);
  for (const std::string& a : {program, std::string("--fd"), std::string("3"), std::string("--device"),
                               config.device_argument, std::string("--threads"), absl::StrCat(config.threads)}) {
    spec.argv.push_back(a);
  }
  const bool cuda = config.device_argument != "cpu";
  spec.env = ProgramEnvironment(cuda, config.threads, config.tools);
  spec.read_only = {program};
  spec.devices = config.device_nodes;
  spec.identity = python;
  if (python && cuda && !config.shareable_memory.empty()) {
    spec.argv.insert(spec.argv.end(), {"--shareable-memory", config.shareable_memory});
    spec.read_only.push_back(config.shareable_memory);
  }
  if (python) {
    spec.read_only.insert(spec.read_only.end(), config.python_folders.begin(), config.python_folders.end());
    spec.read_only.push_back(absl::StrCat(std::filesystem::path(program).parent_path().string(), "/extension_key.py"));
  }
  spec.fds = {{candidate_end.fd(), 3}};
  spec.bounds = CandidateBounds(limits);
  spec.bounds.wall = absl::ZeroDuration();  // it waits, for as long as there is no work
  spec.bounds.cpu_seconds = 0;
  if (adapt) adapt(&spec);
  auto process = sandbox::SandboxedProcess::Start(config.host, std::move(spec));
  if (!process.ok()) return process.status();
  return StartedProcess{*std::move(process), std::move(judge_end)};
}

absl::StatusOr<StartedProcess> TakeCandidate(ProcessPool& pool, const CandidateConfig& config, bool python,
                                             const v1::Limits& limits) {
  std::optional<StartedProcess> started;
  // The size of a waiting one's /tmp cannot be changed.
  if (limits.disk_bytes() == config.default_limits.disk_bytes()) started = pool.Take(CandidateKind(python));
  if (!started.has_value()) {
    auto fresh = StartCandidate(config, python, limits, nullptr);
    if (!fresh.ok()) return fresh.status();
    started = *std::move(fresh);
  }
  const absl::Time deadline = SteadyNow() + kReadyTimeout;
  for (;;) {
    pollfd one{started->channel.fd(), POLLIN, 0};
    const int ready = poll(&one, 1, 50);
    if (ready > 0 && (one.revents & POLLIN) != 0) break;
    const bool ended = started->process->Ended();
    if (ended || SteadyNow() > deadline || (ready > 0 && (one.revents & (POLLHUP | POLLERR)) != 0)) {
      started->process->Kill();
      const sandbox::Ending& ending = started->process->Wait();
      std::string words = ending.err.substr(0, 2000);
      return absl::InternalError(absl::StrCat("the candidate program did not start (",
                                              ending.kind == sandbox::Ending::Kind::kLimit ? ending.limit
                                              : ended ? absl::StrCat("exit ", ending.exit_code)
                                                      : "no answer",
                                              ")", words.empty() ? "" : ": ", words));
    }
  }
  started->process->SetBounds(CandidateBounds(limits));
  return *std::move(started);
}

}  // namespace grove::worker
