#include "worker/pipeline/candidate_pool.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
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

std::vector<std::string> ProgramEnvironment(bool cuda, int threads, const device::Tools& tools) {
  std::vector<std::string> env = {"HOME=/tmp",
                                  "TMPDIR=/tmp",
                                  "USER=grove",
                                  "LC_ALL=C.UTF-8",
                                  "PYTHONDONTWRITEBYTECODE=1",
                                  "PYTHONUNBUFFERED=1",
                                  absl::StrCat("OMP_NUM_THREADS=", threads),
                                  "OMP_WAIT_POLICY=passive"};
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  if (cuda) {
    // Triton and torch.compile look for the toolkit by these.
    if (tools.nvcc.has_value()) {
      const std::string& home = tools.nvcc->home;
      env.push_back(absl::StrCat("CUDA_HOME=", home));
      env.push_back(absl::StrCat("CUDA_PATH=", home));
      // Its own is in Triton's package; another one where somebody asks for the toolkit's.
      if (getenv("TRITON_PTXAS_PATH") != nullptr) env.push_back(absl::StrCat("TRITON_PTXAS_PATH=", home, "/bin/ptxas"));
      path = absl::StrCat(home, "/bin:", path);
    }
    // A kernel is loaded whole when its object is, and not at its first, timed, launch.
    env.push_back("CUDA_MODULE_LOADING=EAGER");
    env.push_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  }
  if (const char* libraries = getenv("LD_LIBRARY_PATH"); libraries != nullptr) {
    env.push_back(absl::StrCat("LD_LIBRARY_PATH=", libraries));
  }
  if (tools.cxx.has_value()) {
    env.push_back(absl::StrCat("CXX=", tools.cxx->path));
    env.push_back(absl::StrCat("CC=", tools.cxx->c_path));
    absl::StrAppend(&path, ":", std::filesystem::path(tools.cxx->path).parent_path().string());
  }
  env.push_back(absl::StrCat("PATH=", path));
  return env;
}

absl::StatusOr<PreparedCandidate> StartCandidate(const CandidateConfig& config, bool python, const v1::Limits& limits,
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
  PreparedCandidate prepared;
  prepared.process = *std::move(process);
  prepared.judge_end = std::move(judge_end);
  prepared.disk_bytes = limits.disk_bytes();
  return prepared;
}

CandidatePool::CandidatePool(CandidateConfig config) : config_(std::move(config)), thread_([this] { Stock(); }) {}

CandidatePool::~CandidatePool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CandidatePool::Stock() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto short_of = [&](bool python) {
    return wanted_[python] && static_cast<int>(waiting_[python].size()) < Ahead(python);
  };
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || (!quiet_ && (short_of(false) || short_of(true))); });
    if (stopping_) return;
    const bool python = !short_of(false);
    const int generation = generation_;
    starting_ = true;
    lock.unlock();
    auto next = StartCandidate(config_, python, config_.default_limits, nullptr);
    lock.lock();
    if (!next.ok()) {
      wanted_[python] = false;  // Take will try again and say why
    } else if (generation == generation_ && !stopping_) {
      Waiting_ one{*std::move(next), false};
      if (quiet_) one.held = one.candidate.process->Hold(true).ok();
      waiting_[python].push_back(std::move(one));
    }
    starting_ = false;
    changed_.notify_all();
  }
}

void CandidatePool::Restock(bool python) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    wanted_[python] = true;
  }
  changed_.notify_all();
}

void CandidatePool::Quiet(bool quiet) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (quiet_ == quiet) return;
  quiet_ = quiet;
  for (auto& [python, all] : waiting_) {
    for (Waiting_& one : all) {
      if (quiet && !one.held) {
        // A ready one sleeps on its socket by itself, and must be able to die.
        pollfd ready{one.candidate.judge_end.fd(), POLLIN, 0};
        if (poll(&ready, 1, 0) == 0) one.held = one.candidate.process->Hold(true).ok();
      } else if (!quiet && one.held) {
        (void)one.candidate.process->Hold(false);
        one.held = false;
      }
    }
  }
  // One is started within tens of milliseconds. On a machine that is overrun what is timed does not wait for it.
  if (quiet) changed_.wait_for(lock, std::chrono::seconds(1), [&] { return !starting_ || !quiet_ || stopping_; });
  changed_.notify_all();
}

int CandidatePool::Waiting(bool python) {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(waiting_[python].size());
}

absl::StatusOr<PreparedCandidate> CandidatePool::Take(bool python, const v1::Limits& limits) {
  PreparedCandidate prepared;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    // One that is just being started comes sooner than another that would be started now.
    changed_.wait(lock, [&] { return !starting_ || !waiting_[python].empty() || stopping_; });
    std::list<Waiting_>& all = waiting_[python];
    if (!all.empty()) {
      if (all.front().held) (void)all.front().candidate.process->Hold(false);
      prepared = std::move(all.front().candidate);
      all.pop_front();
    }
  }
  changed_.notify_all();
  // The size of its /tmp cannot be changed, and one that died while waiting is of no use.
  if (prepared.process != nullptr && (prepared.disk_bytes != limits.disk_bytes() || prepared.process->Ended())) {
    prepared = PreparedCandidate();
  }
  if (prepared.process == nullptr) {
    auto started = StartCandidate(config_, python, limits, nullptr);
    if (!started.ok()) return started.status();
    prepared = *std::move(started);
  }
  const absl::Time deadline = SteadyNow() + kReadyTimeout;
  for (;;) {
    pollfd one{prepared.judge_end.fd(), POLLIN, 0};
    const int ready = poll(&one, 1, 50);
    if (ready > 0 && (one.revents & POLLIN) != 0) break;
    const bool ended = prepared.process->Ended();
    if (ended || SteadyNow() > deadline || (ready > 0 && (one.revents & (POLLHUP | POLLERR)) != 0)) {
      prepared.process->Kill();
      const sandbox::Ending& ending = prepared.process->Wait();
      std::string words = ending.err.substr(0, 2000);
      return absl::InternalError(absl::StrCat("the candidate program did not start (",
                                              ending.kind == sandbox::Ending::Kind::kLimit ? ending.limit
                                              : ended ? absl::StrCat("exit ", ending.exit_code)
                                                      : "no answer",
                                              ")", words.empty() ? "" : ": ", words));
    }
  }
  prepared.process->SetBounds(CandidateBounds(limits));
  return prepared;
}

void CandidatePool::Clear() {
  std::map<bool, std::list<Waiting_>> gone;
  std::lock_guard<std::mutex> lock(mutex_);
  gone.swap(waiting_);
  wanted_.clear();
  ++generation_;
}

}  // namespace grove::worker
