#include "worker/pipeline/device_turn.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "worker/pipeline/format.h"
#include "worker/pipeline/verdict.h"
#include "worker/sandbox/mappings.h"

namespace grove::worker {
namespace {

// A candidate that closed its channel is given this long to end by itself, so that its signal is known.
constexpr absl::Duration kEndGrace = absl::Milliseconds(500);
// Between two looks at a timed candidate's code: each reads a few files of /proc while it is held.
constexpr absl::Duration kLookInterval = absl::Milliseconds(250);

absl::StatusOr<wire::UniqueFd> SealedMemfd(const std::string& content) {
  wire::UniqueFd fd(memfd_create("grove-object", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make a memfd");
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = write(fd.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ErrnoStatus(errno, "cannot fill a memfd");
    done += static_cast<size_t>(n);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return ErrnoStatus(errno, "cannot seal a memfd");
  }
  return fd;
}

// On a CPU it is watched from outside whose work is done, where the job asks.
bool IsWatched(const v1::EvaluationOptions& options, bool cuda) {
  return (options.work() == v1::WORK_POLICY_LIBRARIES || options.work() == v1::WORK_POLICY_OWN_KERNELS) && !cuda;
}

JudgeProcess::Contestant ContestantOf(bool python, bool cuda, StartedProcess& started) {
  JudgeProcess::Contestant one;
  one.python = python;
  one.channel = std::move(started.channel);
  if (started.process->CanHold()) {
    one.hold = [process = started.process.get()](bool held) { return process->Hold(held).ok(); };
    one.stand_on = [process = started.process.get()](int processor) { return process->StandOn(processor); };
    if (python && !cuda) {
      if (const auto memory = started.process->OpenMemory(); memory.ok()) {
        one.memory = wire::UniqueFd(memory->first);
        one.maps = wire::UniqueFd(memory->second);
      }
    }
  }
  return one;
}

sandbox::Ending End(bool gone, StartedProcess& started) {
  // Whatever it is doing; a process that is already on its way out may name its own end first.
  if (gone) started.process->WaitFor(kEndGrace);
  started.process->Kill();
  sandbox::Ending ending = started.process->Wait();
  started.process.reset();
  return ending;
}

}  // namespace

absl::Status SendProgram(const v1::Candidate& candidate, const build::BuildOutcome& built, StartedProcess* process,
                         std::set<sandbox::FileIdentity>* own) {
  std::vector<wire::UniqueFd> objects;
  std::vector<int> fds;
  nlohmann::json program;
  if (IsPython(candidate)) {
    program = {{"type", "program"},
               {"kind", "python"},
               {"source", candidate.source()},
               {"extensions", nlohmann::json::array()}};
  } else {
    program = {{"type", "program"}, {"kind", "native"}, {"entry", "grove_kernel"}};
  }
  for (const build::BuiltObject& object : built.objects) {
    GROVE_ASSIGN_OR_RETURN(wire::UniqueFd fd, SealedMemfd(object.content));
    if (IsPython(candidate)) program["extensions"].push_back({{"key", object.key}, {"name", object.name}});
    fds.push_back(fd.get());
    own->insert(sandbox::IdentityOf(fd.get()));
    objects.push_back(std::move(fd));
  }
  if (auto error = process->channel.Send(program, fds)) {
    return absl::InternalError(absl::StrCat("the candidate program took no work: ", *error));
  }
  return absl::OkStatus();
}

DeviceTurn::DeviceTurn(Tools tools, const Work& work, const v1::EvaluationOptions& options)
    : tools_(std::move(tools)),
      work_(work),
      evaluate_(work.assignment.evaluate()),
      options_(options),
      python_(IsPython(evaluate_.candidate())),
      rival_python_(IsPython(evaluate_.rival())),
      compared_(work.rival_built.has_value() && work.rival_built->report.ok()),
      policy_(IsWatched(options, tools_.cuda)) {}

absl::Status DeviceTurn::Begin() {
  tools_.meters.EnterSlot("starting");
  const absl::Time begin = SteadyNow();
  const auto start = [&](bool python, const v1::Candidate& candidate, const build::BuildOutcome& built,
                         std::set<sandbox::FileIdentity>* own) -> absl::StatusOr<StartedProcess> {
    auto started = TakeCandidate(tools_.pool, tools_.candidates, python, work_.limits);
    if (!started.ok()) return absl::UnavailableError(started.status().message());
    GROVE_RETURN_IF_ERROR(SendProgram(candidate, built, &*started, own));
    return started;
  };
  GROVE_ASSIGN_OR_RETURN(candidate_, start(python_, evaluate_.candidate(), *work_.built, &outcome_.code.objects));
  if (compared_) {
    std::set<sandbox::FileIdentity> its;
    GROVE_ASSIGN_OR_RETURN(rival_, start(rival_python_, evaluate_.rival(), *work_.rival_built, &its));
  }
  tools_.record("start", begin);
  return absl::OkStatus();
}

bool DeviceTurn::Cancelled() {
  if (!work_.cancelled) return false;
  if (cancelled_at_ == absl::InfiniteFuture()) {
    // The candidate dies at once, the judge notices and stays warm.
    cancelled_at_ = SteadyNow();
    candidate_.process->Kill();
    if (rival_.has_value()) rival_->process->Kill();
  }
  return SteadyNow() - cancelled_at_ > kCancelGrace;
}

void DeviceTurn::Look(bool timing, bool changes) {
  if (timing && SteadyNow() < next_look_) return;
  next_look_ = SteadyNow() + kLookInterval;
  outcome_.code.after.merge(sandbox::ExecutableMappings(candidate_.process->Pids(), changes));
}

void DeviceTurn::LookForOthers() {
  if (const std::optional<int> now = tools_.health.ForeignProcesses()) {
    outcome_.foreign = std::max(outcome_.foreign.value_or(0), *now);
  }
}

void DeviceTurn::EndWatch() {
  if (!watch_.has_value()) return;
  const WatchedWork seen = watch_->Finish();
  watch_.reset();
  SeenCode& code = outcome_.code;
  // What was in memory only for the time of a call is seen where it ran.
  for (const std::vector<Standing>& look : seen.looks) {
    for (const Standing& thread : look) code.after.insert(thread.code);
  }
  if (code.watched.has_value()) {
    code.watched->Add(seen);
  } else {
    code.watched = seen;
  }
}

// The judge waits for the answer, so that the candidate still runs when it is looked at, however late that is.
bool DeviceTurn::OnWatch(bool on) {
  EndWatch();
  // (Of a script the pages are gone through once: its torch makes that long.)
  Look(/*timing=*/false, /*changes=*/!python_ || !outcome_.code.watched.has_value());
  if (on) {
    watch_.emplace([process = candidate_.process.get()] { return process->Pids(); }, [this] { return held_.load(); },
                   /*changes=*/!python_, [process = candidate_.process.get()] { return process->CpuSeconds(); });
  }
  return !on && SeenEnough(outcome_.code);  // nobody asks at its beginning
}

void DeviceTurn::OnProgress(const std::string& stage, const std::string& detail) {
  // At the beginning and at the end, while the judge and the candidate hold the device; also where nothing was timed,
  // for others may be why. Long before timing: NVML takes a moment.
  if (!options_.skip_timing() && !std::exchange(looked_for_others_, true)) LookForOthers();
  const bool timing = stage == "time";
  // What asking costs is learnt before, and taken off every run: where processors are few, what starts beside it makes
  // it dear. On a GPU's host there are enough, and the next one needs the time.
  const bool quiet = timing || (stage == "open" && !tools_.cuda);
  if (stage != stage_) {
    stage_ = stage;
    tools_.meters.ShowSlot(timing ? "timing" : "checking");
    tools_.meters.EnterSlot(timing ? "timing" : "checking");
    tools_.pool.Quiet(quiet);
  }
  Look(timing, policy_ && !python_);
  tools_.progress(stage, detail);
}

TurnOutcome DeviceTurn::Run(JudgeProcess& judge) {
  constexpr absl::Duration kMostSettling = absl::Seconds(5);
  tools_.meters.EnterSlot("checking");
  // The next one gets ready while this one is checked, and stands still while it is timed.
  tools_.pool.Restock(CandidateKind(python_));
  if (compared_) tools_.pool.Restock(CandidateKind(rival_python_));
  // On a CPU it gets ready before: while one stands still half started, asking costs a fraction of what it costs later
  // (measured on a virtual machine: 0.2 ms instead of 1.5), and what asking costs is learnt then.
  if (!tools_.cuda && !options_.skip_timing()) tools_.pool.Settle(kMostSettling);

  // Whether its code was written over is asked where a policy rests on it: of a script (whose torch makes it slow)
  // once.
  SeenCode& code = outcome_.code;
  code.before = sandbox::ExecutableMappings(candidate_.process->Pids(), policy_ && !python_);
  code.after = code.before;
  const absl::Time judged_from = SteadyNow();
  // Both have their own clock for what they do; the judge asks them one after the other.
  const absl::Time deadline =
      judged_from + (compared_ ? 2 : 1) * absl::Seconds(work_.limits.run_wall_seconds()) + kJudgeGrace;
  std::optional<JudgeProcess::Contestant> against;
  if (compared_) against = ContestantOf(rival_python_, tools_.cuda, *rival_);
  JudgeProcess::Contestant judged = ContestantOf(python_, tools_.cuda, candidate_);
  if (judged.hold) {
    judged.hold = [this, hold = std::move(judged.hold)](bool held) {
      held_ = held;
      return hold(held);
    };
  }
  if (policy_) judged.watch = [this](bool on) { return OnWatch(on); };
  outcome_.answer = judge.Evaluate(
      std::move(judged), std::move(against), options_, deadline,
      [this](const std::string& stage, const std::string& detail) { OnProgress(stage, detail); },
      [this] { return Cancelled(); });
  EndWatch();
  if (!options_.skip_timing()) LookForOthers();
  tools_.record("judge", judged_from);
  tools_.meters.EnterSlot("ending");
  tools_.pool.Quiet(false);

  const absl::Time ending_from = SteadyNow();
  const auto left = [&](const char* who) {
    const JudgeAnswer& answer = outcome_.answer;
    return answer.kind == JudgeAnswer::Kind::kDone && answer.body.contains(who) && answer.body[who] == "candidate_gone";
  };
  outcome_.gone = left("ended");
  outcome_.ending = End(outcome_.gone, candidate_);
  if (compared_) {
    outcome_.rival_gone = left("rival_ended");
    outcome_.rival_ending = End(outcome_.rival_gone, *rival_);
    rival_.reset();
    // A process that does not die disturbs whatever comes next, whosever it is.
    if (outcome_.ending.leftover == nullptr) outcome_.ending.leftover = outcome_.rival_ending->leftover;
  }
  tools_.record("end", ending_from);
  return std::move(outcome_);
}

absl::StatusOr<v1::EvaluationResult> ResultOf(const TurnOutcome& turn, const Work& work,
                                              const v1::EvaluationOptions& options, bool cuda) {
  const auto body = turn.answer.body.find("result");
  if (body == turn.answer.body.end()) return absl::InternalError("the judge gave no result");
  GROVE_ASSIGN_OR_RETURN(v1::EvaluationResult result, ParseResult(*body));
  const v1::EvaluateWork& evaluate = work.assignment.evaluate();
  MergeEnding(turn.ending, turn.gone, turn.answer.body.value("quiet", false), &result);
  if (evaluate.has_rival()) {
    MergeRival(work.rival_built.has_value() ? &*work.rival_built : nullptr,
               turn.rival_ending.has_value() ? &*turn.rival_ending : nullptr, turn.rival_gone,
               turn.answer.body.value("rival_quiet", false), &result);
  }
  if (turn.foreign.has_value()) MergeForeign(*turn.foreign, &result);
  *result.mutable_build() = work.built->report;
  SeenCode code = turn.code;
  if (work.instructions.has_value()) code.functions = work.instructions->functions;
  MergeWork(evaluate.candidate(), options, code, work.no_instructions, IsWatched(options, cuda), &result);
  return result;
}

}  // namespace grove::worker
