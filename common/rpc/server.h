// Runs a gRPC server: address and TLS policy, channel arguments, health service, reflection, and an orderly end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "common/rpc/tls_files.h"

namespace grpc {
class Service;
class Channel;
}  // namespace grpc

namespace grove::rpc {

struct ServerOptions {
  std::string listen = std::string(kDefaultAddress);  // port 0 = any free one
  TlsFiles tls;             // cert and key = TLS; ca as well = clients must show a certificate of it
  bool insecure = false;    // plaintext on an address that other machines reach
  bool reflection = false;  // lists the services to anyone who asks
};

// Thread-safe.
class Server {
 public:
  // `services` must outlive the server. Serves when it returns, with health NOT_SERVING until SetServing(true).
  // Errors, each with its remedy: INVALID_ARGUMENT (address, TLS files), FAILED_PRECONDITION (plaintext refused),
  // ALREADY_EXISTS (the port is in use), PERMISSION_DENIED, NOT_FOUND (no such address on this machine).
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       const std::vector<grpc::Service*>& services);
  ~Server();  // Shutdown with no patience
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const Address& address() const { return address_; }  // with the port really bound

  // The standard health service's answer, for the whole server and each service.
  void SetServing(bool serving);

  // Takes no more calls, waits so long for those in flight, then cancels them. Idempotent.
  void Shutdown(absl::Duration patience);

 private:
  struct Impl;
  Server(Address address, std::unique_ptr<Impl> impl);
  Address address_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grove::rpc
