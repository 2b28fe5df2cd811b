#include "worker/pipeline/judge_process.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/wire/spin.h"
#include "worker/pipeline/programs.h"
#include "worker/pipeline/verdict.h"

namespace grove::worker {
namespace {

// torch from a cold disk, and on a GPU the device's context.
constexpr absl::Duration kHelloTimeout = absl::Seconds(180);
// One that was started ahead has had time already.
constexpr absl::Duration kAheadTimeout = absl::Seconds(60);
// Past the judge's own limit for a problem's code, before it is taken to hang.
constexpr absl::Duration kLoadGrace = absl::Seconds(30);
// A problem's code may print; a flood of it ends the judge.
constexpr int64_t kOutputBytes = int64_t{64} << 20;
constexpr int64_t kDiskBytes = int64_t{4} << 30;
constexpr int kProcesses = 2048;

std::string TextOf(const nlohmann::json& body, const char* key) {
  auto it = body.find(key);
  return it != body.end() && it->is_string() ? it->get<std::string>() : std::string();
}

// Who waits to let a candidate go does so on the judge's clock, and waking up would be in it. Between two timed runs on
// a GPU there are some 10 ms, 100 where runs are long.
constexpr std::chrono::milliseconds kSpin{120};

}  // namespace

absl::StatusOr<StartedProcess> JudgeProcess::Spawn(const JudgeConfig& config, bool python) {
  auto [ours, theirs] = wire::Channel::CreatePair();
  sandbox::SandboxSpec spec;
  spec.label = "judge";
  spec.argv = {config.program,
               "--fd",
               "3",
               "--device",
               config.device_argument,
               "--threads",
               absl::StrCat(config.threads),
               "--memory-bytes",
               absl::StrCat(config.memory_bytes),
               "--load-seconds",
               absl::StrCat(config.load_seconds)};
  if (!config.python.empty()) {
    spec.argv.push_back("--python");
    spec.argv.push_back(config.python);
    if (python) {
      spec.argv.push_back("--ahead");
      spec.argv.push_back("python");
    }
  }
  spec.env = ProgramEnvironment(config.device_argument != "cpu", config.threads, config.tools);
  spec.read_only = config.read_only;
  spec.devices = config.device_nodes;
  spec.identity = true;
  spec.fds = {{theirs.fd(), 3}};
  spec.bounds.memory_bytes = config.memory_bytes;
  spec.bounds.processes = kProcesses;
  spec.bounds.disk_bytes = kDiskBytes;
  spec.bounds.output_bytes = kOutputBytes;
  // More than candidates have: all of a user share what is on its way between processes, and each may fill its own
  // part.
  spec.descriptors = sandbox::kJudgeDescriptors;
  spec.names = {"judge_wall_seconds", "judge_cpu_seconds", "judge_memory_bytes",
                "judge_processes",    "judge_disk_bytes",  "judge_output_bytes"};
  spec.tick = absl::Milliseconds(200);
  auto process = sandbox::SandboxedProcess::Start(config.host, std::move(spec));
  if (!process.ok()) return process.status();
  return StartedProcess{*std::move(process), std::move(ours)};
}

JudgeProcess::JudgeProcess(const JudgeConfig& config, StartedProcess started)
    : process_(std::move(started.process)), channel_(std::move(started.channel)), load_seconds_(config.load_seconds) {
  if (config.device_argument != "cpu" && std::thread::hardware_concurrency() >= wire::kProcessorsToSpin) spin_ = kSpin;
}

absl::Status JudgeProcess::AwaitHello(absl::Duration limit) {
  wire::ReceiveResult hello = channel_.Receive(absl::ToChronoNanoseconds(limit));
  if (hello.ok() && TextOf(hello.message.body, "type") == "hello") {
    hello_ = std::move(hello.message.body);
    return absl::OkStatus();
  }
  if (hello.ok() && TextOf(hello.message.body, "type") == "failed") {
    return absl::InternalError(absl::StrCat("the judge did not start: ", TextOf(hello.message.body, "message")));
  }
  return absl::InternalError(Died(absl::StrCat("the judge did not start: ", hello.error)).message);
}

absl::StatusOr<std::unique_ptr<JudgeProcess>> JudgeProcess::Start(const JudgeConfig& config,
                                                                  std::optional<StartedProcess> started) {
  if (started.has_value()) {
    std::unique_ptr<JudgeProcess> judge(new JudgeProcess(config, *std::move(started)));
    const absl::Status status = judge->AwaitHello(kAheadTimeout);
    if (status.ok() && judge->Alive()) return judge;
    LogWarning("worker", "a judge that was started ahead came to nothing: ", std::string(status.message()));
  }
  GROVE_ASSIGN_OR_RETURN(StartedProcess fresh, Spawn(config, false));
  std::unique_ptr<JudgeProcess> judge(new JudgeProcess(config, std::move(fresh)));
  GROVE_RETURN_IF_ERROR(judge->AwaitHello(kHelloTimeout));
  return judge;
}

JudgeAnswer JudgeProcess::Died(const std::string& what) {
  broken_ = true;
  process_->WaitFor(absl::Milliseconds(500));
  process_->Kill();
  const sandbox::Ending& ending = process_->Wait();
  JudgeAnswer answer;
  answer.kind = JudgeAnswer::Kind::kDied;
  std::string how;
  switch (ending.kind) {
    case sandbox::Ending::Kind::kLimit:
      how = absl::StrCat("it reached ", ending.limit, " = ", ending.limit_set);
      break;
    case sandbox::Ending::Kind::kSignaled:
      how = absl::StrCat("it was ended by ", sandbox::SignalName(ending.signal));
      break;
    case sandbox::Ending::Kind::kExited:
      how = absl::StrCat("it exited with code ", ending.exit_code);
      break;
    case sandbox::Ending::Kind::kKilled:
      how = "it was killed";
      break;
  }
  std::string words = ending.err.size() > 2000 ? ending.err.substr(ending.err.size() - 2000) : ending.err;
  answer.message = RepairUtf8(absl::StrCat(what, " (", how, ")", words.empty() ? "" : ": ", words), 4096);
  return answer;
}

JudgeAnswer JudgeProcess::Await(int64_t id, const char* wanted, absl::Time deadline, const OnProgress& on_progress,
                                const Cancelled& cancelled, const Contestant* candidate, const Contestant* rival) {
  std::chrono::steady_clock::time_point let_go;  // whichever of the two it was
  for (;;) {
    if (cancelled && cancelled()) {
      broken_ = true;  // whatever it says from now on belongs to a request that nobody waits for
      process_->Kill();
      return {JudgeAnswer::Kind::kInfrastructure, {}, "cancelled"};
    }
    const absl::Time now = SteadyNow();
    if (now > deadline) return Died("the judge did not answer in time");
    // Short waits, so that a cancellation is seen.
    const absl::Duration wait = std::min<absl::Duration>(deadline - now, absl::Milliseconds(100));
    wire::ReceiveResult received = channel_.Receive(absl::ToChronoNanoseconds(wait));
    channel_.SpinFor(std::chrono::nanoseconds(0));
    if (received.status == wire::ReceiveStatus::kTimeout) continue;
    if (!received.ok()) return Died(absl::StrCat("the judge ended: ", received.error));
    nlohmann::json& body = received.message.body;
    const std::string type = TextOf(body, "type");
    auto it = body.find("id");
    if (it == body.end() || !it->is_number_integer() || it->get<int64_t>() != id) continue;
    if (type == "progress") {
      if (on_progress) on_progress(RepairUtf8(TextOf(body, "stage"), 64), RepairUtf8(TextOf(body, "detail"), 256));
      continue;
    }
    if (type == "watch" && candidate != nullptr && candidate->watch) {
      const bool enough = candidate->watch(body.value("on", nlohmann::json(false)) == true);
      if (channel_.Send({{"type", "watched"}, {"id", id}, {"enough", enough}})) return Died("the judge took no answer");
      continue;
    }
    if (type == "hold" && candidate != nullptr && candidate->hold) {
      const bool held = body.value("held", nlohmann::json(false)) == true;
      const Contestant* who = TextOf(body, "who") == "rival" ? rival : candidate;
      // Nothing of it runs before this. Letting go is not answered: the judge waits for the candidate's own answer, and
      // hears of the moment when it has it held again.
      if (!held) let_go = std::chrono::steady_clock::now();
      const bool done = who != nullptr && who->hold && who->hold(held);
      const auto stood = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
      bool placed = true;
      if (const auto processor = body.find("processor"); done && held && processor != body.end()) {
        placed = who->stand_on && processor->is_number_integer() && *processor >= -1 && *processor < CPU_SETSIZE &&
                 who->stand_on(processor->get<int>());
      }
      if (held && channel_.Send({{"type", "held"},
                                 {"id", id},
                                 {"ok", done},
                                 {"stood_ns", stood},
                                 {"placed", placed},
                                 {"let_go_ns", std::chrono::nanoseconds(let_go.time_since_epoch()).count()}})) {
        return Died("the judge took no answer");
      }
      if (held) channel_.SpinFor(spin_);  // until it is let go, which is soon
      continue;
    }
    if (type == wanted) return {JudgeAnswer::Kind::kDone, std::move(body), ""};
    if (type == "failed") {
      std::string message = TextOf(body, "message");
      const std::string detail = TextOf(body, "detail");
      if (!detail.empty() && detail != message) absl::StrAppend(&message, "\n", detail);
      const bool problem = TextOf(body, "kind") == "problem";
      return {problem ? JudgeAnswer::Kind::kProblem : JudgeAnswer::Kind::kInfrastructure,
              {},
              RepairUtf8(std::move(message), 64 << 10)};
    }
    return Died(absl::StrCat("the judge said ", type.substr(0, 40), " where ", wanted, " was due"));
  }
}

JudgeAnswer JudgeProcess::Load(const v1::Problem& problem, const v1::EvaluationOptions& options, bool check,
                               const OnProgress& on_progress, const Cancelled& cancelled) {
  auto problem_json = ToJson(problem);
  auto options_json = ToJson(options);
  if (!problem_json.ok()) return {JudgeAnswer::Kind::kProblem, {}, "the problem's source is not UTF-8 text"};
  if (!options_json.ok()) return {JudgeAnswer::Kind::kInfrastructure, {}, std::string(options_json.status().message())};
  const int64_t id = next_id_++;
  if (auto error = channel_.Send(
          {{"type", "load"}, {"id", id}, {"problem", *problem_json}, {"options", *options_json}, {"check", check}})) {
    return Died(absl::StrCat("the judge took no problem: ", *error));
  }
  return Await(id, "loaded", SteadyNow() + absl::Seconds(load_seconds_) + kLoadGrace, on_progress, cancelled);
}

JudgeAnswer JudgeProcess::Evaluate(Contestant candidate, std::optional<Contestant> rival,
                                   const v1::EvaluationOptions& options, absl::Time deadline,
                                   const OnProgress& on_progress, const Cancelled& cancelled) {
  auto options_json = ToJson(options);
  if (!options_json.ok()) return {JudgeAnswer::Kind::kInfrastructure, {}, std::string(options_json.status().message())};
  const int64_t id = next_id_++;
  std::vector<int> fds = {candidate.channel.fd()};
  const bool can_hold = candidate.hold != nullptr && (!rival.has_value() || rival->hold != nullptr);
  nlohmann::json body = {{"type", "evaluate"},
                         {"id", id},
                         {"candidate", {{"kind", candidate.python ? "python" : "native"}}},
                         {"can_hold", can_hold},
                         {"can_watch", candidate.watch != nullptr},
                         {"options", *options_json}};
  if (rival.has_value()) {
    body["rival"] = {{"kind", rival->python ? "python" : "native"}};
    fds.push_back(rival->channel.fd());
  }
  const auto share_memory = [&](const char* who, const Contestant& one) {
    if (!one.memory.valid()) return;
    body[who]["memory"] = true;
    fds.insert(fds.end(), {one.memory.get(), one.maps.get()});
  };
  share_memory("candidate", candidate);
  if (rival.has_value()) share_memory("rival", *rival);
  if (auto error = channel_.Send(body, fds)) {
    return Died(absl::StrCat("the judge took no candidate: ", *error));
  }
  candidate.channel.Close();
  if (rival.has_value()) rival->channel.Close();
  return Await(id, "result", deadline, on_progress, cancelled, &candidate, rival.has_value() ? &*rival : nullptr);
}

JudgeAnswer JudgeProcess::Profile(Contestant candidate, double seconds, absl::Time deadline,
                                  const Cancelled& cancelled) {
  const int64_t id = next_id_++;
  const std::vector<int> fds = {candidate.channel.fd()};
  if (auto error = channel_.Send({{"type", "profile"},
                                  {"id", id},
                                  {"candidate", {{"kind", candidate.python ? "python" : "native"}}},
                                  {"max_seconds", seconds}},
                                 fds)) {
    return Died(absl::StrCat("the judge took no candidate: ", *error));
  }
  candidate.channel.Close();
  return Await(id, "profiled", deadline, nullptr, cancelled);
}

JudgeAnswer JudgeProcess::Rates(double max_seconds, absl::Time deadline, const OnProgress& on_progress,
                                const Cancelled& cancelled) {
  const int64_t id = next_id_++;
  if (auto error = channel_.Send({{"type", "rates"}, {"id", id}, {"max_seconds", max_seconds}})) {
    return Died(absl::StrCat("the judge took no request: ", *error));
  }
  return Await(id, "rates", deadline, on_progress, cancelled);
}

}  // namespace grove::worker
