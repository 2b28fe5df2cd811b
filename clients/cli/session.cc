#include "clients/cli/session.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/cli/child.h"

namespace grove::cli {
namespace {

// How long to try for a data folder that another process holds: it may be a coordinator that is just starting (and will
// answer), or one that is draining (and will let go).
constexpr absl::Duration kDataFolderPatience = absl::Seconds(15);

// Is there a coordinator behind this address?
absl::StatusOr<std::unique_ptr<client::Client>> Probe(const std::string& address, client::Cancellation* cancellation) {
  if (address.empty()) return absl::NotFoundError("no coordinator recorded");
  auto client = client::Client::Create({.address = address});
  if (!client.ok()) return client.status();
  auto info = (*client)->GetFarmInfo(
      {.timeout = absl::Seconds(5), .patience = absl::ZeroDuration(), .cancellation = cancellation});
  if (!info.ok()) return info.status();
  return client;
}

// Flags for a coordinator that is not ours to start would be silently without effect.
absl::Status NotForRunning(const ModelFlags& models, absl::string_view address) {
  const std::vector<std::string> flags = models.CoordinatorFlags();
  if (flags.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flags.front(), " is for a coordinator that this command starts, but the one at ", address,
                   " serves; give the flag to that one (`grove up` and `grove-coordinator` have it)"));
}

// cuda:N names a GPU of this machine, and a coordinator that serves knows workers alone, on whatever machines.
void SayWhatANumberIsWorth(const Session::Wanted& wanted, Console* console) {
  if (wanted.need != Need::kWork || !absl::StrContains(wanted.device, ':')) return;
  console->Message(absl::StrCat("note: the number in --device ", wanted.device,
                                " is for a coordinator that this command starts; any GPU of the one that serves may do "
                                "the work (`grove workers` lists them)"));
}

}  // namespace

absl::StatusOr<client::ClientOptions> ConfiguredCoordinator(const GlobalOptions& options, const GetEnv& env) {
  const std::string path = options.config.empty() ? DefaultConfigPath(env) : options.config;
  auto config = LoadConfig(path, /*required=*/!options.config.empty());
  if (!config.ok()) return config.status();
  const auto first = [](const std::string& a, const std::string& b) { return a.empty() ? b : a; };
  client::ClientOptions client;
  client.address = first(options.coordinator, first(env("GROVE_COORDINATOR"), config->coordinator));
  client.tls_cert = first(options.tls_cert, config->tls_cert);
  client.tls_key = first(options.tls_key, config->tls_key);
  client.tls_ca = first(options.tls_ca, config->tls_ca);
  client.insecure = options.insecure || config->insecure;
  return client;
}

std::string DataDir(const GlobalOptions& options, const GetEnv& env) {
  return options.data.empty() ? DefaultDataDir(env) : options.data;
}

client::CallOptions Session::call() const {
  client::CallOptions call;
  call.cancellation = &interrupts_->cancellation();
  // An embedded coordinator that was killed is back within seconds.
  if (farm_ != nullptr) call.patience = absl::Seconds(15);
  return call;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const GlobalOptions& options, const Wanted& wanted,
                                                       Console* console, Interrupts* interrupts, const GetEnv& env) {
  std::unique_ptr<Session> session(new Session());
  session->interrupts_ = interrupts;
  auto configured = ConfiguredCoordinator(options, env);
  if (!configured.ok()) return configured.status();
  if (!configured->address.empty()) {
    auto client = client::Client::Create(*configured);
    if (!client.ok()) return client.status();
    if (auto status = NotForRunning(wanted.models, (*client)->address()); !status.ok()) return status;
    SayWhatANumberIsWorth(wanted, console);
    session->client_ = *std::move(client);
    return session;
  }
  if (wanted.need == Need::kConfigured) return absl::NotFoundError("no coordinator is configured");

  const std::string data = DataDir(options, env);
  session->data_dir_ = data;
  const absl::Time deadline = absl::Now() + kDataFolderPatience;
  for (;;) {
    if (auto client = Probe(RecordedAddress(data), &interrupts->cancellation()); client.ok()) {
      if (auto status = NotForRunning(wanted.models, (*client)->address()); !status.ok()) return status;
      console->Message(absl::StrCat("using the coordinator at ", (*client)->address(), ", which serves ", data));
      SayWhatANumberIsWorth(wanted, console);
      session->client_ = *std::move(client);
      return session;
    }
    if (interrupts->interrupted()) return absl::CancelledError("interrupted");
    if (!wanted.may_start) {
      return absl::FailedPreconditionError(
          "--detach needs a coordinator that outlives this command: start one with `grove up` (in another terminal or "
          "as a "
          "service), or name one with --coordinator or GROVE_COORDINATOR");
    }
    if (wanted.need == Need::kRead) {
      std::error_code error;
      if (!std::filesystem::exists(absl::StrCat(data, "/journal.db"), error)) {
        return absl::UnavailableError(absl::StrCat("no coordinator is configured, and ", data,
                                                   " holds no earlier work; start one with `grove up`, name one with "
                                                   "--coordinator or GROVE_COORDINATOR, or name "
                                                   "another data folder with --data"));
      }
    }
    FarmOptions farm_options;
    farm_options.data_dir = data;
    farm_options.bin_dir = ExecutableDir();
    farm_options.cancellation = &interrupts->cancellation();
    farm_options.say = [console](absl::string_view text) { console->Message(text); };
    if (options.allow_weak_sandbox) farm_options.worker_flags.push_back("--allow-weak-sandbox");
    // What it runs when the command is interrupted is done again later, so that Ctrl-C need not wait long.
    farm_options.worker_flags.insert(farm_options.worker_flags.end(), {"--grace-seconds", "1"});
    farm_options.coordinator_flags = wanted.models.CoordinatorFlags();
    if (!wanted.models.api_key_env.empty()) farm_options.secret_variables = {wanted.models.api_key_env};
    if (!wanted.model_url.empty()) {
      farm_options.coordinator_flags.insert(farm_options.coordinator_flags.end(), {"--llm-key-url", wanted.model_url});
    }
    // Looking at a search must not go on with it: nobody asked for its model calls. Nor does a command that works go on
    // with what earlier ones left: its user waits for its own job. A coordinator that is started again knows that one
    // by its time.
    if (wanted.need == Need::kRead) farm_options.coordinator_flags = {"--hold"};
    if (wanted.need == Need::kWork) {
      farm_options.coordinator_flags.insert(farm_options.coordinator_flags.end(),
                                            {"--hold-before", absl::StrCat(absl::GetCurrentTimeNanos())});
    }
    if (wanted.need == Need::kWork) {
      const std::vector<std::string> local = LocalDevices();
      const std::string device = wanted.device == "cuda" ? "cuda:0" : wanted.device;
      // Nobody else will bring the device to a coordinator that lives as long as this command.
      const bool cuda = absl::StartsWith(device, "cuda");
      if (cuda && std::find(local.begin(), local.end(), device) == local.end()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "there is no device ", device, " on this machine (", absl::StrJoin(local, ", "),
            "); choose another with --device, or name a coordinator that has such a worker with --coordinator"));
      }
      farm_options.devices = {device.empty() ? local.front() : device};
    }
    auto farm = Farm::Start(farm_options);
    if (!farm.ok()) {
      // Someone else has the folder: a coordinator that is about to answer or about to leave.
      if (absl::IsAlreadyExists(farm.status()) && absl::Now() < deadline) {
        if (interrupts->cancellation().WaitFor(absl::Milliseconds(200))) return absl::CancelledError("interrupted");
        continue;
      }
      // That it refused this folder or these flags is the user's to change; anything else is a coordinator out of
      // reach.
      if (absl::IsCancelled(farm.status()) || absl::IsFailedPrecondition(farm.status())) return farm.status();
      // Nothing is out of reach where a disk is full or a program is missing.
      if (absl::IsInternal(farm.status()) || absl::IsNotFound(farm.status())) {
        return absl::InternalError(farm.status().message());
      }
      return absl::UnavailableError(farm.status().message());
    }
    session->farm_ = *std::move(farm);
    Farm* raw = session->farm_.get();
    interrupts->OnForce([raw] { raw->Kill(); });
    auto client = client::Client::Create({.address = raw->address()});
    if (!client.ok()) return client.status();
    session->client_ = *std::move(client);
    if (wanted.need == Need::kWork) {
      console->Message(absl::StrCat("no coordinator configured: started one for this command at ", raw->address(),
                                    " with a worker on ", absl::StrJoin(farm_options.devices, ", "), "; data in ",
                                    data));
    }
    return session;
  }
}

void Session::Close(absl::Duration patience) {
  if (farm_ == nullptr) return;
  farm_->Stop(patience);
  interrupts_->OnForce(nullptr);
}

Session::~Session() { Close(absl::Seconds(5)); }

}  // namespace grove::cli
