// grove-coordinator: reads flags, wires the parts, and ends them in order.
//
// Start: lock and open the store, rebuild the engine, serve, then say where (port file) and turn health to SERVING.
// End, on SIGTERM or SIGINT: health NOT_SERVING, no new work, wait for what runs, close the workers' streams, stop the
// engine (whoever waits is answered), stop the server. A second signal skips the waiting. Whatever is cut off is in the
// journal or comes again from a worker's spool.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/version.h"
#include "common/daemon/flags.h"
#include "common/daemon/lifecycle.h"
#include "common/metrics/http_endpoint.h"
#include "common/rpc/deadlines.h"
#include "common/rpc/server.h"
#include "coordinator/engine/engine_impl.h"
#include "coordinator/generate/catalogue/catalogue.h"
#include "coordinator/generate/factory.h"
#include "coordinator/generate/operation.h"
#include "coordinator/generate/usage_status.h"
#include "coordinator/llm/settings.h"
#include "coordinator/rpc/services.h"
#include "coordinator/search/policy.h"
#include "coordinator/store/sqlite_store.h"
#include "coordinator/web/engine_metrics.h"

namespace grove::coordinator {
namespace {

struct Flags {
  std::string listen = std::string(rpc::kDefaultAddress);
  std::string data_dir = XdgFolder("XDG_DATA_HOME", ".local/share");
  std::string port_file;
  std::string metrics_listen;
  rpc::TlsFiles tls;
  bool insecure = false;
  bool reflection = false;
  bool exit_with_parent = false;
  bool hold = false;
  int64_t hold_before = 0;
  std::string log_level = "info";
  double heartbeat_seconds = 2;
  double lease_seconds = 15;
  double drain_seconds = 10;
  int max_attempts = 5;
  std::string cache_salt;
  int generator_threads = 8;
  llm::Settings llm = llm::SettingsFromEnvironment();
  bool llm_no_job_urls = false;
};

void Define(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", absl::StrCat("grove-coordinator ", kVersion));
  app.set_config("--config", "", "read flags from this TOML file (names without the dashes)");
  app.add_option("--listen", flags.listen,
                 "address to serve on: host:port, [v6]:port or unix:/path; port 0 takes any free one")
      ->capture_default_str();
  app.add_option("--data-dir,--data", flags.data_dir,
                 "folder of the journal and the blobs; made if absent, used by one coordinator")
      ->capture_default_str();
  app.add_option("--port-file", flags.port_file,
                 "write host:port here once serving (atomically), for scripts and port 0");
  app.add_option("--metrics-listen", flags.metrics_listen,
                 "serve /metrics and /healthz there by plain HTTP; 127.0.0.1:9464 is the usual address. Off unless "
                 "given, so that "
                 "several coordinators on one machine do not meet")
      ->type_name("HOST:PORT");
  app.add_option("--tls-cert", flags.tls.cert, "PEM certificate to serve with (`grove certs` makes one)")
      ->group("Security");
  app.add_option("--tls-key", flags.tls.key, "its PEM key")->group("Security");
  app.add_option("--tls-ca", flags.tls.ca, "PEM authority: clients and workers must show a certificate of it")
      ->group("Security");
  app.add_flag("--insecure", flags.insecure,
               "serve plain text to other machines; only where everyone on the network is trusted")
      ->group("Security");
  app.add_flag("--reflection", flags.reflection, "answer gRPC reflection, for grpcurl and the like")->group("Security");
  app.add_option("--heartbeat-seconds", flags.heartbeat_seconds, "how often workers report")
      ->check(CLI::Range(0.05, 60.0))
      ->capture_default_str()
      ->group("Farm");
  app.add_option("--lease-seconds", flags.lease_seconds, "silence after which a worker's work is given to another one")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str()
      ->group("Farm");
  app.add_option("--max-attempts", flags.max_attempts, "leases of one evaluation before it is called unmeasurable")
      ->check(CLI::Range(1, 100))
      ->capture_default_str()
      ->group("Farm");
  app.add_option("--cache-salt", flags.cache_salt,
                 "any text: results are used again (--reuse) only for jobs under the same; change it where a machine "
                 "has changed in a way that its description does not show")
      ->type_name("TEXT")
      ->group("Farm");
  app.add_option("--drain-seconds", flags.drain_seconds, "at the end, wait so long for evaluations that run")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str()
      ->group("Farm");
  app.add_option("--generator-threads", flags.generator_threads, "ideas and kernels in the making at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str()
      ->group("Models");
  app.add_flag("--hold", flags.hold, "jobs that have not ended stand still until they are resumed; for looking at them")
      ->group("Farm");
  app.add_option("--hold-before", flags.hold_before,
                 "the same for those that were last put to work before this time (nanoseconds since 1970)")
      ->check(CLI::NonNegativeNumber)
      ->group("Farm");
  app.add_option("--llm-base-url", flags.llm.base_url, "OpenAI-compatible endpoint, without /chat/completions")
      ->capture_default_str()
      ->group("Models");
  app.add_option("--llm-key-url", flags.llm.key_url, "second endpoint that gets the key, from jobs that name it")
      ->type_name("URL")
      ->group("Models");
  app.add_option("--llm-model", flags.llm.model, "model of jobs that name none")->group("Models");
  app.add_option("--llm-api-key-file", flags.llm.api_key_file, "file whose first line is the key")->group("Models");
  app.add_option("--llm-api-key-env", flags.llm.api_key_env, "environment variable with the key, when there is no file")
      ->capture_default_str()
      ->group("Models");
  app.add_option("--llm-max-output-tokens", flags.llm.max_output_tokens, "0 = the model's own limit")
      ->check(CLI::NonNegativeNumber)
      ->group("Models");
  app.add_flag("--llm-no-job-urls", flags.llm_no_job_urls, "jobs may not name an endpoint of their own")
      ->group("Models");
  app.add_flag("--llm-plain-http", flags.llm.allow_plain_http, "allow http:// endpoints on other machines")
      ->group("Models");
  app.add_flag("--exit-with-parent", flags.exit_with_parent,
               "end when the process that started this one does; ignores SIGINT");
  app.add_option("--log-level", flags.log_level, "what to log on stderr")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.footer(
      "Signals: SIGTERM or SIGINT ends in order, a second one at once. Exit codes: 0 ended when asked, 1 could not\n"
      "start or go on, 2 wrong flags, 130 forced.");
}

// DATA/coordinator.addr: one line "host:port pid".
std::string AddressFile(const std::string& data_dir) { return data_dir + "/coordinator.addr"; }

std::string WhoHasIt(const std::string& data_dir) {
  absl::StatusOr<std::string> text = ReadFile(AddressFile(data_dir), 4096);
  if (!text.ok()) return "";
  const std::vector<std::string> words = absl::StrSplit(absl::StripSuffix(*text, "\n"), ' ');
  if (words.size() < 2) return "";
  return absl::StrCat(" (process ", words[1], ", serving on ", words[0], ")");
}

absl::StatusOr<std::unique_ptr<store::Store>> OpenStore(const std::string& data_dir) {
  auto unusable = [&](const absl::Status& why) {
    return absl::Status(why.code(), absl::StrCat("the data folder cannot be used: ", why.message(),
                                                 "; choose another with --data or correct its permissions"));
  };
  if (absl::Status made = MakeDirs(data_dir); !made.ok()) return unusable(made);
  if (access(data_dir.c_str(), W_OK | X_OK) != 0)
    return unusable(ErrnoStatus(errno, absl::StrCat("cannot write to ", data_dir)));
  absl::StatusOr<std::unique_ptr<store::Store>> store = store::OpenSqliteStore(data_dir);
  if (absl::IsFailedPrecondition(store.status())) {
    // Whether it is the lock or the version shows by trying the lock.
    absl::StatusOr<std::unique_ptr<FileLock>> lock = FileLock::Acquire(data_dir + "/lock");
    if (absl::IsFailedPrecondition(lock.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat("the data folder ", data_dir, " is in use by another coordinator", WhoHasIt(data_dir),
                       "; talk to that one, stop it, or choose another ", "folder with --data"));
    }
  }
  return store;
}

int Fail(const absl::Status& status) {
  LogError("coordinator", status.message());
  return kExitCannotRun;
}

int Running(Engine& engine) {
  auto answer = std::make_shared<std::promise<int>>();
  std::future<int> running = answer->get_future();
  engine.GetFarmInfo(
      [answer](absl::StatusOr<v1::FarmInfo> info) { answer->set_value(info.ok() ? info->running() : 0); });
  if (running.wait_for(std::chrono::seconds(1)) != std::future_status::ready) return 0;
  return running.get();
}

// Waits until nothing runs, for drain_seconds at most. False when a second signal came.
bool WaitForLeases(Engine& engine, Lifecycle& lifecycle, double drain_seconds) {
  const absl::Time deadline = absl::Now() + absl::Seconds(drain_seconds);
  for (int running; (running = Running(engine)) > 0;) {
    if (absl::Now() >= deadline) {
      LogInfo("coordinator", running, " evaluations still run; their results come back from the workers' spools");
      return true;
    }
    switch (lifecycle.Wait(absl::Milliseconds(100))) {
      case Lifecycle::Event::kStop:
        return false;
      case Lifecycle::Event::kParentGone:
        return true;
      default:
        break;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "The coordinator of a Kernel Grove: keeps jobs, searches and results, and gives work to the workers that dial "
      "in.",
      "grove-coordinator");
  Define(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  SetLogLevel(LogLevelFromName(flags.log_level));
  if (flags.lease_seconds < 2 * flags.heartbeat_seconds) {
    std::fprintf(
        stderr,
        "--lease-seconds (%g) must be at least twice --heartbeat-seconds (%g), or a lease ends by one late heartbeat\n",
        flags.lease_seconds, flags.heartbeat_seconds);
    return kExitUsage;
  }
  flags.llm.allow_job_base_url = !flags.llm_no_job_urls;
  if (absl::Status bad = llm::Validate(flags.llm); !bad.ok()) {
    std::fprintf(stderr, "%s\n", std::string(bad.message()).c_str());
    return kExitUsage;
  }

  absl::StatusOr<std::unique_ptr<Lifecycle>> lifecycle = Lifecycle::Start({flags.exit_with_parent});
  if (!lifecycle.ok()) return Fail(lifecycle.status());

  absl::StatusOr<std::unique_ptr<store::Store>> store = OpenStore(flags.data_dir);
  if (!store.ok()) return Fail(store.status());

  EngineOptions options;
  options.data_dir = flags.data_dir;
  options.version = kVersion;
  options.heartbeat = absl::Seconds(flags.heartbeat_seconds);
  options.lease = absl::Seconds(flags.lease_seconds);
  options.max_attempts = flags.max_attempts;
  options.cache_salt = flags.cache_salt;
  options.generator_threads = flags.generator_threads;
  options.hold_before = flags.hold ? absl::InfiniteFuture() : absl::FromUnixNanos(flags.hold_before);
  generate::FactoryOptions generators;
  generators.llm = flags.llm;
  generators.catalogue = generate::MakeCatalogueGenerator;
  EngineDependencies parts;
  parts.clock = &SystemClock::Get();
  parts.store = *std::move(store);
  parts.make_generator = [make = generate::MakeGeneratorFactory(std::move(generators))](
                             const v1::GeneratorSpec& spec) -> absl::StatusOr<std::shared_ptr<generate::Generator>> {
    absl::StatusOr<std::unique_ptr<generate::Generator>> made = make(spec);
    if (!made.ok()) return made.status();
    return std::shared_ptr<generate::Generator>(*std::move(made));
  };
  parts.usage_of = generate::UsageOf;
  parts.recognise_operation = generate::RecogniseOperation;
  parts.make_policy = search::MakeBranchingPolicy;
  parts.with_defaults = search::WithDefaults;
  parts.validate_policy = search::Validate;
  absl::StatusOr<std::unique_ptr<Engine>> engine = CreateEngine(std::move(options), std::move(parts));
  if (!engine.ok()) return Fail(engine.status());

  auto services = std::make_unique<Services>(**engine);
  rpc::ServerOptions server_options;
  server_options.listen = flags.listen;
  server_options.tls = flags.tls;
  server_options.insecure = flags.insecure;
  server_options.reflection = flags.reflection;
  absl::StatusOr<std::unique_ptr<rpc::Server>> server = rpc::Server::Start(server_options, services->all());
  if (!server.ok()) return Fail(server.status());
  const std::string address = (*server)->address().ToString();

  EngineMetrics engine_metrics(**engine, rpc::kScrapeDeadline);
  std::unique_ptr<metrics::HttpEndpoint> web;
  if (!flags.metrics_listen.empty()) {
    absl::StatusOr<std::unique_ptr<metrics::HttpEndpoint>> started = metrics::HttpEndpoint::Start(
        flags.metrics_listen, [&] { return engine_metrics.Collect(); }, [&] { return engine_metrics.Health(); });
    if (!started.ok()) return Fail(started.status());
    web = *std::move(started);
  }

  if (absl::Status written =
          WriteFileAtomically(AddressFile(flags.data_dir), absl::StrCat(address, " ", getpid(), "\n"));
      !written.ok()) {
    return Fail(written);
  }
  (*server)->SetServing(true);
  if (!flags.port_file.empty()) {
    if (absl::Status written = WriteFileAtomically(flags.port_file, address + "\n"); !written.ok())
      return Fail(written);
  }
  LogInfo("coordinator", "version ", kVersion, " serving on ", address,
          flags.tls.empty()      ? ""
          : flags.tls.ca.empty() ? " with TLS"
                                 : " with mutual TLS",
          ", data in ", flags.data_dir,
          web != nullptr ? absl::StrCat(", metrics on http://", web->address(), "/metrics") : "");

  Lifecycle::Event event;
  do {
    event = (*lifecycle)->Wait();
  } while (event != Lifecycle::Event::kStop && event != Lifecycle::Event::kParentGone);

  (*server)->SetServing(false);
  engine_metrics.SetDraining();
  (*engine)->Drain();
  bool patient = true;
  if (event == Lifecycle::Event::kStop) {
    LogInfo("coordinator", "ending: no new work; a second signal ends at once");
    patient = WaitForLeases(**engine, **lifecycle, flags.drain_seconds);
  } else {
    LogInfo("coordinator", "ending with the process that started this one");
  }
  services->CloseWorkers(absl::UnavailableError("the coordinator is shutting down"));
  (*engine)->Stop();
  // Every waiting call has been answered by Stop; 2 s lets the answers leave.
  (*server)->Shutdown(patient ? absl::Seconds(2) : absl::ZeroDuration());
  web.reset();
  unlink(AddressFile(flags.data_dir).c_str());
  LogInfo("coordinator", "ended");
  std::fflush(nullptr);
  // Without the engine's destructor: it would wait for model calls in flight, and everything acknowledged is on disk.
  std::_Exit(patient ? kExitOk : kExitForced);
}

}  // namespace
}  // namespace grove::coordinator

int main(int argc, char** argv) { return grove::coordinator::Main(argc, argv); }
