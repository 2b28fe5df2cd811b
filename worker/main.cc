// grove-worker: reads flags, wires pipeline and farm client, and ends them in order.
//
// End, on SIGTERM or SIGINT: tell the coordinator that no more work is wanted, wait for what runs and for its
// acknowledgement (--grace-seconds at most), close the session, kill what is left. A second signal skips the waiting.
#include <limits.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/version.h"
#include "common/daemon/flags.h"
#include "common/daemon/lifecycle.h"
#include "common/metrics/http_endpoint.h"
#include "common/rpc/address.h"
#include "worker/pipeline/pipeline.h"
#include "worker/rpc/farm_client.h"
#include "worker/rpc/state_folder.h"
#include "worker/rpc/worker_metrics.h"
#include "worker/setup/doctor.h"
#include "worker/setup/setup.h"

namespace grove::worker {
namespace {

struct Flags {
  std::string coordinator = std::string(rpc::kDefaultAddress);
  std::string device = "auto";
  std::string state_dir = XdgFolder("XDG_STATE_HOME", ".local/state") + "/worker";
  std::string name;
  std::vector<std::string> tags;
  rpc::TlsFiles tls;
  std::string tls_server_name;
  bool insecure = false;
  std::string metrics_listen;
  bool allow_weak_sandbox = false;
  int build_slots = 0;
  std::string cache_salt;
  std::string python, nvcc, ncu, cxx = "g++";
  int64_t judge_memory_bytes = 0;
  int64_t warm_judges_memory_bytes = 0;
  v1::Limits limits;
  double grace_seconds = 30;
  bool exit_with_parent = false;
  std::string log_level = "info";
  // doctor
  bool json = false;
  // setup
  SetupOptions setup;
};

// A flag for a limit: its field's setter, name and help.
void AddLimit(CLI::App& app, Flags& flags, const char* name, const char* help, void (v1::Limits::*set)(double)) {
  app.add_option_function<double>(
         name, [&flags, set](double value) { (flags.limits.*set)(value); }, help)
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS")
      ->group("Limits (defaults of jobs that set none; 0 = built-in)");
}
template <typename Int>
void AddLimit(CLI::App& app, Flags& flags, const char* name, const char* help, void (v1::Limits::*set)(Int)) {
  CLI::Option* option = app.add_option_function<Int>(
                               name, [&flags, set](const Int& value) { (flags.limits.*set)(value); }, help)
                            ->group("Limits (defaults of jobs that set none; 0 = built-in)");
  if (absl::StrContains(name, "bytes")) {
    option->transform(CLI::AsSizeValue(false))->type_name("SIZE");  // 64MiB, 2g
  } else {
    option->check(CLI::NonNegativeNumber);
  }
}

// What doctor and setup need as well as the daemon.
void DefineCommon(CLI::App& app, Flags& flags) {
  app.add_option("--device", flags.device, "auto (CUDA when there is a GPU, else the CPU), cpu, or cuda:N")
      ->capture_default_str();
  app.add_option("--state-dir,--state", flags.state_dir, "folder of build cache, spool and identity; one worker each")
      ->capture_default_str();
  app.add_option("--python", flags.python, "interpreter that has torch; found if not given");
  app.add_option("--nvcc", flags.nvcc, "CUDA compiler; found if not given");
  app.add_option("--ncu", flags.ncu, "Nsight Compute, for evaluations with --profile; found if not given");
  app.add_option("--cxx", flags.cxx, "C++ compiler")->capture_default_str();
  app.add_option("--log-level", flags.log_level, "what to log on stderr")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
}

void DefineDaemon(CLI::App& app, Flags& flags) {
  app.add_option("--coordinator", flags.coordinator, "address of the coordinator: host:port, [v6]:port or unix:/path")
      ->envname("GROVE_COORDINATOR")
      ->capture_default_str();
  app.add_option("--name", flags.name, "name shown to people; host name and device if not given");
  app.add_option("--tag", flags.tags,
                 "label told to the coordinator, for later: jobs cannot ask for one yet; may be repeated");
  app.add_option(
         "--metrics-listen", flags.metrics_listen,
         "serve /metrics and /healthz there by plain HTTP; 127.0.0.1:9465 is the usual address. Off unless given")
      ->type_name("HOST:PORT");
  app.add_option("--tls-cert", flags.tls.cert, "PEM certificate to show to the coordinator")->group("Security");
  app.add_option("--tls-key", flags.tls.key, "its PEM key")->group("Security");
  app.add_option("--tls-ca", flags.tls.ca, "PEM authority of the coordinator's certificate")->group("Security");
  app.add_option("--tls-server-name", flags.tls_server_name,
                 "name to look for in it, when it is not the address's host")
      ->group("Security");
  app.add_flag("--insecure", flags.insecure, "talk plain text to another machine")->group("Security");
  app.add_flag("--allow-weak-sandbox", flags.allow_weak_sandbox,
               "start even when layers of the sandbox are missing (see doctor)")
      ->group("Security");
  app.add_option("--build-slots", flags.build_slots, "builds at once; 0 = half the hardware threads, at most 8")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app.add_option("--cache-salt", flags.cache_salt,
                 "any text: builds are taken from the cache only under the same; change it where the tools have "
                 "changed in a way that their versions do not show")
      ->type_name("TEXT");
  app.add_option("--grace-seconds", flags.grace_seconds, "at the end, wait so long for work that runs")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_flag("--exit-with-parent", flags.exit_with_parent,
               "end when the process that started this one does; ignores SIGINT");
  app.add_option("--judge-memory-bytes", flags.judge_memory_bytes, "memory of a judge; 0 = built-in")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE")
      ->group("Limits (defaults of jobs that set none; 0 = built-in)");
  app.add_option("--warm-judges-memory-bytes", flags.warm_judges_memory_bytes,
                 "memory of this machine that judges of earlier problems may hold together; 0 = half of it")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE")
      ->group("Limits (defaults of jobs that set none; 0 = built-in)");
  AddLimit(app, flags, "--limit-build-wall-seconds", "a build's wall time", &v1::Limits::set_build_wall_seconds);
  AddLimit(app, flags, "--limit-build-cpu-seconds", "a build's CPU time", &v1::Limits::set_build_cpu_seconds);
  AddLimit<int64_t>(app, flags, "--limit-build-memory-bytes", "a build's memory", &v1::Limits::set_build_memory_bytes);
  AddLimit<int64_t>(app, flags, "--limit-build-output-bytes", "compiled object, and log kept",
                    &v1::Limits::set_build_output_bytes);
  AddLimit(app, flags, "--limit-run-wall-seconds", "a candidate's whole life", &v1::Limits::set_run_wall_seconds);
  AddLimit(app, flags, "--limit-run-cpu-seconds", "a candidate's CPU time", &v1::Limits::set_run_cpu_seconds);
  AddLimit(app, flags, "--limit-call-wall-seconds", "one call of the kernel", &v1::Limits::set_call_wall_seconds);
  AddLimit<int64_t>(app, flags, "--limit-memory-bytes", "a candidate's memory", &v1::Limits::set_memory_bytes);
  AddLimit<int64_t>(app, flags, "--limit-device-memory-bytes", "a candidate's device memory",
                    &v1::Limits::set_device_memory_bytes);
  AddLimit<int32_t>(app, flags, "--limit-processes", "a candidate's processes and threads", &v1::Limits::set_processes);
  AddLimit<int64_t>(app, flags, "--limit-disk-bytes", "a candidate's /tmp and /dev/shm", &v1::Limits::set_disk_bytes);
  AddLimit<int64_t>(app, flags, "--limit-output-bytes", "a candidate's stdout and stderr",
                    &v1::Limits::set_output_bytes);
}

absl::StatusOr<v1::DeviceInfo> ParseDevice(const std::string& text) {
  v1::DeviceInfo device;
  absl::string_view index = text;
  int number = 0;
  if (text == "auto") return device;
  if (text == "cpu") {
    device.set_kind(v1::DEVICE_KIND_CPU);
    return device;
  }
  if (text == "cuda" || (absl::ConsumePrefix(&index, "cuda:") && absl::SimpleAtoi(index, &number) && number >= 0)) {
    device.set_kind(v1::DEVICE_KIND_CUDA);
    device.set_index(number);
    return device;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--device \"", text, "\" is unknown; use auto, cpu, or cuda:N such as cuda:0"));
}

WorkerPaths FindPaths(const std::string& state_dir) {
  WorkerPaths paths;
  char self[PATH_MAX] = "";
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  const std::string program(self, length > 0 ? static_cast<std::size_t>(length) : 0);
  paths.bin_dir = program.substr(0, program.rfind('/'));
  // bin/, libexec/grove/ and share/grove/ lie side by side in an installation, in the bundle and in a build tree.
  const std::string prefix = paths.bin_dir.substr(0, paths.bin_dir.rfind('/'));
  paths.libexec_dir = prefix + "/libexec/grove";
  paths.include_dir = prefix + "/share/grove/include";
  paths.state_dir = state_dir;
  return paths;
}

int Fail(const absl::Status& status) {
  LogError("worker", status.message());
  return kExitCannotRun;
}

int Usage(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return kExitUsage;
}

int RunDaemon(const Flags& flags, const v1::DeviceInfo& device) {
  // First of all, so that a signal during the start is not lost.
  absl::StatusOr<std::unique_ptr<Lifecycle>> lifecycle = Lifecycle::Start({flags.exit_with_parent});
  if (!lifecycle.ok()) return Fail(lifecycle.status());
  absl::StatusOr<StateFolder> state = OpenStateFolder(flags.state_dir);
  if (!state.ok()) return Fail(state.status());

  char host[256] = "worker";
  gethostname(host, sizeof(host) - 1);
  FarmClientOptions farm;
  farm.channel = {flags.coordinator, flags.tls, flags.insecure, flags.tls_server_name};
  farm.worker_id = state->worker_id;
  farm.name = flags.name;
  farm.version = kVersion;
  farm.tags = flags.tags;
  farm.spool_dir = state->path + "/spool";
  farm.seed = RandomSeed();

  // Pipeline and client know each other: callbacks go through here. Nothing is submitted, and so nothing called back,
  // before the client is there.
  std::atomic<FarmClient*> client_pointer{nullptr};
  std::atomic<WorkerMetrics*> metrics_pointer{nullptr};
  std::atomic<bool> refused{false};
  farm.slot_state = [&] {
    WorkerMetrics* metrics = metrics_pointer.load();
    return metrics != nullptr ? metrics->SlotState() : std::string("idle");
  };
  farm.health = [&] {
    WorkerMetrics* metrics = metrics_pointer.load();
    return metrics != nullptr ? metrics->DeviceHealth() : std::string();
  };
  farm.on_refused = [&](const absl::Status&) {
    refused.store(true);
    (*lifecycle)->Wake();
  };

  PipelineOptions options;
  options.paths = FindPaths(state->path);
  options.device = device;
  options.python = flags.python;
  options.nvcc = flags.nvcc;
  options.ncu = flags.ncu;
  options.cxx = flags.cxx;
  const int threads = static_cast<int>(std::thread::hardware_concurrency());
  options.build_slots = flags.build_slots > 0 ? flags.build_slots : std::clamp(threads / 2, 1, 8);
  options.cache_salt = flags.cache_salt;
  options.allow_weak_sandbox = flags.allow_weak_sandbox;
  options.judge_memory_bytes = flags.judge_memory_bytes;
  options.warm_judges_memory_bytes = flags.warm_judges_memory_bytes;
  options.default_limits = flags.limits;
  absl::StatusOr<std::unique_ptr<Pipeline>> pipeline = Pipeline::Start(
      options,
      [&](const v1::WorkerProgress& progress) {
        if (FarmClient* client = client_pointer.load()) client->OnProgress(progress);
      },
      [&](v1::WorkResult result) {
        if (FarmClient* client = client_pointer.load()) client->OnResult(std::move(result));
      });
  if (!pipeline.ok()) return Fail(pipeline.status());

  const v1::DeviceInfo& found = (*pipeline)->Device();
  if (farm.name.empty()) {
    farm.name =
        absl::StrCat(host, found.kind() == v1::DEVICE_KIND_CUDA ? absl::StrCat(" cuda:", found.index()) : " cpu");
  }
  absl::StatusOr<std::unique_ptr<FarmClient>> client = FarmClient::Create(std::move(farm));
  if (absl::IsInvalidArgument(client.status()) || absl::IsFailedPrecondition(client.status()))
    return Usage(client.status());
  if (!client.ok()) return Fail(client.status());
  client_pointer.store(client->get());
  WorkerMetrics worker_metrics(**pipeline, **client);
  metrics_pointer.store(&worker_metrics);
  std::unique_ptr<metrics::HttpEndpoint> web;
  if (!flags.metrics_listen.empty()) {
    absl::StatusOr<std::unique_ptr<metrics::HttpEndpoint>> started = metrics::HttpEndpoint::Start(
        flags.metrics_listen, [&] { return worker_metrics.Collect(); }, [&] { return worker_metrics.Health(); });
    if (!started.ok()) return Fail(started.status());
    web = *std::move(started);
  }
  LogInfo("worker", "version ", kVersion, ", ", state->worker_id, " on ", found.name(), " (", found.arch(),
          "), state in ", state->path,
          web != nullptr ? absl::StrCat(", metrics on http://", web->address(), "/metrics") : "");
  (*client)->Start(**pipeline);

  Lifecycle::Event event;
  do {
    event = (*lifecycle)->Wait();
  } while (event == Lifecycle::Event::kTimeout || (event == Lifecycle::Event::kWoken && !refused.load()));

  int exit_code = refused.load() ? kExitCannotRun : kExitOk;
  if (event == Lifecycle::Event::kStop && !refused.load()) {
    LogInfo("worker", "ending: finishing what runs; a second signal ends at once");

    auto idle_flag = std::make_shared<std::atomic<bool>>(false);
    (*client)->Drain([idle_flag, life = lifecycle->get()] {
      idle_flag->store(true);
      life->Wake();
    });
    const absl::Time deadline = absl::Now() + absl::Seconds(flags.grace_seconds);
    while (!idle_flag->load()) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) {
        LogWarning("worker", "work still runs after ", flags.grace_seconds,
                   " s; it is killed and will be done elsewhere");
        break;
      }
      event = (*lifecycle)->Wait(left);
      if (event == Lifecycle::Event::kStop) {
        exit_code = kExitForced;
        break;
      }
      if (event == Lifecycle::Event::kParentGone) break;
    }
  }
  (*client)->Stop();
  web.reset();
  pipeline->reset();  // kills what is left
  LogInfo("worker", "ended");
  return exit_code;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "A worker of a Kernel Grove: builds, checks and times kernels on one device for the coordinator that it dials.\n"
      "Subcommands: doctor (what this machine has, with a trial of every layer of the sandbox), setup (build the "
      "judge\n"
      "against this host's PyTorch and CUDA).",
      "grove-worker");
  app.set_version_flag("--version", absl::StrCat("grove-worker ", kVersion));
  app.set_config("--config", "", "read flags from this TOML file (names without the dashes)");
  DefineCommon(app, flags);
  DefineDaemon(app, flags);
  app.footer(
      "Signals: SIGTERM or SIGINT finishes what runs, a second one ends at once. Exit codes: 0 ended when asked, 1 "
      "could\n"
      "not start or was refused, 2 wrong flags, 130 forced.");
  CLI::App* doctor = app.add_subcommand("doctor", "say what this machine has and try every layer of the sandbox");
  DefineCommon(*doctor, flags);
  doctor->add_flag("--json", flags.json, "one JSON document");
  CLI::App* setup =
      app.add_subcommand("setup", "build grove-judge and grove-candidate against this host's PyTorch and CUDA");
  DefineCommon(*setup, flags);
  setup->add_option("--source-dir", flags.setup.source_dir, "sources; those of this installation if not given");
  setup->add_option("--output-dir", flags.setup.output_dir,
                    "where libexec/grove goes; $GROVE_RUNTIME or ~/.local/share/grove/runtime if not given");
  setup->add_option("--cuda", flags.setup.cuda, "build the CUDA parts")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  setup->add_option("--jobs,-j", flags.setup.jobs, "compilers at once; 0 = all hardware threads")
      ->check(CLI::NonNegativeNumber);
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  SetLogLevel(LogLevelFromName(flags.log_level));
  absl::StatusOr<v1::DeviceInfo> device = ParseDevice(flags.device);
  if (!device.ok()) return Usage(device.status());

  if (setup->parsed()) {
    SetupOptions options = flags.setup;
    options.paths = FindPaths(flags.state_dir);
    options.python = flags.python;
    options.nvcc = flags.nvcc;
    if (setup->count("--cxx") > 0 || app.count("--cxx") > 0) options.cxx = flags.cxx;
    absl::Status done = RunSetup(options, std::cout);
    return done.ok() ? kExitOk : Fail(done);
  }
  if (doctor->parsed()) {
    DoctorOptions options;
    options.paths = FindPaths(flags.state_dir);
    options.device = *device;
    options.python = flags.python;
    options.nvcc = flags.nvcc;
    options.ncu = flags.ncu;
    options.cxx = flags.cxx;
    options.json = flags.json;
    absl::Status done = RunDoctor(options, std::cout);
    return done.ok() ? kExitOk : Fail(done);
  }
  return RunDaemon(flags, *device);
}

}  // namespace
}  // namespace grove::worker

int main(int argc, char** argv) { return grove::worker::Main(argc, argv); }
