// The connection a command works on: the configured coordinator, the one that serves the local data folder, or one that
// is started for this command's duration.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "clients/cli/console.h"
#include "clients/cli/farm.h"
#include "clients/cli/interrupts.h"
#include "clients/cli/options.h"
#include "clients/cpp/client.h"

namespace grove::cli {

enum class Need {
  kConfigured,  // only an address that was given: `doctor`
  kRead,        // any coordinator; a local one without a worker will do
  kWork,        // one that can run evaluations
};

class Session {
 public:
  struct Wanted {
    Need need = Need::kRead;
    std::string device;     // kWork: as --device; embedded: what its worker runs on; "" = what this machine has
    bool may_start = true;  // false: an embedded coordinator would not do (--detach)
    std::string model_url;  // kWork, embedded: it may have the model's key, because this command's user named it
    ModelFlags models;      // kWork: for an embedded coordinator; INVALID_ARGUMENT where another one serves
  };

  // Order: --coordinator, GROVE_COORDINATOR, the configuration file, DATA/coordinator.addr, embedded. Says on the
  // console what it started.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const GlobalOptions& options, const Wanted& wanted,
                                                       Console* console, Interrupts* interrupts, const GetEnv& env);
  ~Session();

  client::Client& client() { return *client_; }
  client::CallOptions call() const;
  bool embedded() const { return farm_ != nullptr; }  // the coordinator ends with this process
  // The coordinator serves the local data folder for somebody else: it may end with that command, and the folder's work
  // can be gone on with by another one.
  bool borrowed() const { return farm_ == nullptr && !data_dir_.empty(); }
  Farm* farm() { return farm_.get(); }
  const std::string& data_dir() const { return data_dir_; }  // "" when it is not on this machine

  // Ends an embedded farm in an orderly way. Idempotent.
  void Close(absl::Duration patience);

 private:
  Session() = default;
  Interrupts* interrupts_ = nullptr;
  std::unique_ptr<Farm> farm_;
  std::unique_ptr<client::Client> client_;
  std::string data_dir_;
};

// The configured address with its TLS files; address empty = none.
absl::StatusOr<client::ClientOptions> ConfiguredCoordinator(const GlobalOptions& options, const GetEnv& env);

std::string DataDir(const GlobalOptions& options, const GetEnv& env);

}  // namespace grove::cli
