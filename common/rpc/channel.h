// A client's way to a coordinator: plaintext on loopback, TLS or mutual TLS elsewhere.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/tls_files.h"

namespace grpc {
class Channel;
}

namespace grove::rpc {

struct ChannelOptions {
  std::string address;    // common/rpc/address.h
  TlsFiles tls;           // any of them set = TLS; ca empty = the system's roots; cert and key = mutual TLS
  bool insecure = false;  // plaintext to another machine
  // For certificates that do not carry the address dialled, such as through a tunnel. Empty = the address's host.
  std::string tls_server_name;
};

// Does not connect yet: the first call does. INVALID_ARGUMENT: the address or the TLS files; FAILED_PRECONDITION:
// plaintext to another machine without `insecure`.
absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(const ChannelOptions& options);

}  // namespace grove::rpc
