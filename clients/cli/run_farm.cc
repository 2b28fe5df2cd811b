// `grove up|workers|doctor|version`: the machines.
#include <google/protobuf/stubs/common.h>

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/cli/arguments.h"
#include "clients/cli/child.h"
#include "clients/cli/commands.h"
#include "clients/cli/farm.h"
#include "clients/cli/json.h"
#include "clients/cli/output_file.h"
#include "clients/cli/report.h"
#include "clients/cli/session.h"
#include "common/base/files.h"
#include "common/base/version.h"

namespace grove::cli {
namespace {

// Workers wait 30 s for what they run (their --grace-seconds) and then put it aside; 5 s more let them end.
constexpr absl::Duration kDrainPatience = absl::Seconds(35);
constexpr int kMaxWorkers = 64;

ExitCode Print(const Context& context, const std::string& text, ExitCode code = ExitCode::kOk) {
  return context.console->Out(text) ? code : ExitCode::kInfrastructure;
}

}  // namespace

ExitCode RunUp(const Context& context, const UpCommand& command) {
  auto device = ParseDevice(command.device);
  if (!device.ok()) return Fail(context, device.status());
  if (command.workers < 0 || command.workers > kMaxWorkers) {
    return Fail(context, absl::InvalidArgumentError(absl::StrCat("--workers: give 1 to ", kMaxWorkers)));
  }
  const std::vector<std::string> local = LocalDevices();
  std::vector<std::string> devices;
  switch (device->kind) {
    case v1::DEVICE_KIND_CPU:
      devices = {"cpu"};
      break;
    case v1::DEVICE_KIND_CUDA:
      if (device->index >= 0) {
        devices = {absl::StrCat("cuda:", device->index)};
      } else {
        devices = local.front() == "cpu" ? std::vector<std::string>{"cuda:0"} : local;
      }
      if (std::find(local.begin(), local.end(), devices.front()) == local.end()) {
        return Fail(context, absl::FailedPreconditionError(
                                 absl::StrCat("there is no device ", devices.front(), " on this machine (",
                                              absl::StrJoin(local, ", "), "); choose another with --device")));
      }
      break;
    default:
      devices = local;
  }
  FarmOptions options;
  options.data_dir = DataDir(context.global, context.env);
  options.listen = command.listen;
  options.bin_dir = ExecutableDir();
  options.cancellation = &context.interrupts->cancellation();
  Console* console = context.console;
  options.say = [console](absl::string_view text) { console->Message(text); };
  const int workers = command.workers == 0 ? static_cast<int>(devices.size()) : command.workers;
  for (int i = 0; i < workers; ++i) options.devices.push_back(devices[static_cast<size_t>(i) % devices.size()]);
  if (std::set<std::string>(options.devices.begin(), options.devices.end()).size() < options.devices.size()) {
    console->Message(
        "several workers share one device: they disturb each other's timing, so use this for throughput of checks "
        "only");
  }
  const auto flag = [](std::vector<std::string>* flags, const char* name, const std::string& value) {
    if (value.empty()) return;
    flags->push_back(name);
    flags->push_back(value);
  };
  flag(&options.coordinator_flags, "--tls-cert", context.global.tls_cert);
  flag(&options.coordinator_flags, "--tls-key", context.global.tls_key);
  flag(&options.coordinator_flags, "--tls-ca", context.global.tls_ca);
  options.worker_flags = options.coordinator_flags;
  flag(&options.coordinator_flags, "--metrics-listen", command.metrics_listen);
  const std::vector<std::string> models = command.models.CoordinatorFlags();
  options.coordinator_flags.insert(options.coordinator_flags.end(), models.begin(), models.end());
  if (!command.models.api_key_env.empty()) options.secret_variables = {command.models.api_key_env};
  if (context.global.insecure) {
    options.coordinator_flags.push_back("--insecure");
    options.worker_flags.push_back("--insecure");
  }
  if (context.global.allow_weak_sandbox) options.worker_flags.push_back("--allow-weak-sandbox");

  auto farm = Farm::Start(options);
  if (!farm.ok()) {
    if (absl::IsCancelled(farm.status())) return Interrupted(context);
    // What stopped it is a wrong argument (a port in use, a folder of a newer version) as far as anyone can tell.
    const bool broken = absl::IsNotFound(farm.status()) || absl::IsInternal(farm.status());  // or the disk is full
    return Fail(context, farm.status(), broken ? ExitCode::kInfrastructure : ExitCode::kUsage);
  }
  context.interrupts->OnFirst([console] { console->Message("\ndraining; Ctrl-C again stops at once"); });
  Farm* raw = farm->get();
  context.interrupts->OnForce([raw] { raw->Kill(); });
  if (!command.port_file.empty()) {
    absl::Status written = WriteFileAtomically(command.port_file, (*farm)->address() + "\n");
    if (!written.ok()) {
      (*farm)->Stop(kDrainPatience);
      return Fail(context, OutputFileError("--port-file", command.port_file, written));
    }
  }
  if (console->json()) {
    console->Out(absl::StrCat(UpDocument((*farm)->address(), options.data_dir, workers), "\n"));
  } else {
    console->Message(absl::StrCat("coordinator  ", (*farm)->address(), "\nworkers      ",
                                  absl::StrJoin(options.devices, ", "), "\ndata         ", options.data_dir,
                                  "\nlogs         ", options.data_dir, "/logs\nuse it with  grove --coordinator ",
                                  (*farm)->address(), " search PROBLEM   (Ctrl-C drains)"));
  }
  absl::Status health;
  while (!context.interrupts->cancellation().WaitFor(absl::Milliseconds(200))) {
    health = (*farm)->Health();
    if (!health.ok()) break;
  }
  (*farm)->Stop(kDrainPatience);
  context.interrupts->OnForce(nullptr);
  if (!health.ok()) return Fail(context, health, ExitCode::kInfrastructure);
  console->Message("stopped; everything is kept in " + options.data_dir);
  // Ctrl-C is how this command is meant to end.
  return ExitCode::kOk;
}

ExitCode RunWorkers(const Context& context) {
  auto session = Session::Open(context.global, {.need = Need::kRead}, context.console, context.interrupts, context.env);
  if (!session.ok()) return Fail(context, session.status());
  auto response = (*session)->client().ListWorkers((*session)->call());
  if (!response.ok()) return Fail(context, response.status());
  std::vector<v1::WorkerStatus> workers(response->workers().begin(), response->workers().end());
  if (context.console->json()) return Print(context, absl::StrCat(WorkersDocument(workers), "\n"));
  if (workers.empty()) {
    context.console->Message(
        "no worker has connected; start one with `grove-worker --coordinator ADDR`, or both with `grove up`");
    return ExitCode::kOk;
  }
  return Print(context, RenderWorkers(workers));
}

ExitCode RunDoctor(const Context& context, const std::string& device) {
  auto parsed = ParseDevice(device);
  if (!parsed.ok()) return Fail(context, parsed.status());
  const bool json = context.console->json();

  // This machine as a worker.
  std::vector<std::string> argv = {absl::StrCat(ExecutableDir(), "/grove-worker"), "doctor"};
  if (!device.empty()) argv.insert(argv.end(), {"--device", device});
  if (json) argv.push_back("--json");
  // The state of the worker that commands start by themselves: what it found about this device.
  argv.insert(argv.end(), {"--state", absl::StrCat(DataDir(context.global, context.env), "/workers/0")});
  auto worker = RunAndCapture(argv);
  if (context.interrupts->interrupted()) return Interrupted(context);
  bool ok = worker.ok() && worker->exit_code == 0;
  std::string report = worker.ok() ? worker->output : absl::StrCat("!! ", worker.status().message(), "\n");

  // The coordinator.
  CoordinatorCheck check;
  auto session =
      Session::Open(context.global, {.need = Need::kConfigured}, context.console, context.interrupts, context.env);
  ExitCode code = ok ? ExitCode::kOk : ExitCode::kInfrastructure;
  std::string line;
  const auto look = [&](client::Client& client) {
    check.address = client.address();
    client::CallOptions call;
    call.timeout = absl::Seconds(5);
    call.cancellation = &context.interrupts->cancellation();
    auto info = client.GetFarmInfo(call);
    if (!info.ok()) {
      check.problem = std::string(info.status().message());
      return;
    }
    check.version = info->version();
    check.data_dir = info->data_dir();
    if (auto workers = client.ListWorkers(call); workers.ok()) {
      for (const v1::WorkerStatus& status : workers->workers()) check.workers += status.connected() ? 1 : 0;
    }
  };
  if (session.ok()) {
    look((*session)->client());
    if (!check.problem.empty()) {
      code = ExitCode::kUnreachable;
      line = absl::StrCat("!! coordinator  ", check.problem, "\n");
    }
  } else if (absl::IsNotFound(session.status())) {
    // None configured: one may serve the local data folder, and none is no fault.
    const std::string recorded = RecordedAddress(DataDir(context.global, context.env));
    if (!recorded.empty()) {
      if (auto client = client::Client::Create({.address = recorded}); client.ok()) look(**client);
    }
    if (check.version.empty()) {
      check = CoordinatorCheck();
      line = "-- coordinator  none is configured; search and eval start their own\n";
    }
  } else {
    check.problem = std::string(session.status().message());
    code = ExitCodeOf(session.status());
    line = absl::StrCat("!! coordinator  ", check.problem, "\n");
  }
  if (line.empty()) {
    line = absl::StrCat("ok coordinator  ", check.address, ", version ", check.version, ", ", check.workers,
                        " workers, data in ", check.data_dir, "\n");
    if (check.version != kVersion) {
      absl::StrAppend(&line, "-- versions     the coordinator is ", check.version, ", this client ", kVersion, "\n");
    }
  }
  if (json) return Print(context, absl::StrCat(DoctorDocument(check, report, code == ExitCode::kOk), "\n"), code);
  return Print(context, absl::StrCat(report, line, "ok grove        version ", kVersion, "\n"), code);
}

ExitCode RunVersion(const Context& context) {
  const std::string grpc = client::GrpcVersion();
  const std::string protobuf = google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
  if (context.console->json()) return Print(context, absl::StrCat(VersionDocument(kVersion, grpc, protobuf), "\n"));
  return Print(context, absl::StrCat("grove ", kVersion, "\ngRPC ", grpc, ", protobuf ", protobuf, "\n"));
}

}  // namespace grove::cli
