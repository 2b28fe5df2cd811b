// Where a server listens or a client dials: "host:port", "[v6]:port", "unix:/path" or "unix:relative".
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grove::rpc {

inline constexpr int kDefaultPort = 7433;
inline constexpr absl::string_view kDefaultAddress = "127.0.0.1:7433";

struct Address {
  std::string host;       // without brackets; "" for a Unix socket
  int port = 0;           // 0 = any free one (listening only)
  std::string unix_path;  // "" for TCP

  bool is_unix() const { return !unix_path.empty(); }
  // Nobody else than this machine's users can reach it: a Unix socket, 127.0.0.0/8, ::1, "localhost".
  bool is_loopback() const;
  // The form that ParseAddress reads and gRPC understands: "127.0.0.1:7433", "[::1]:7433", "unix:/path".
  std::string ToString() const;
};

// A missing port is `default_port`; a missing host (":7433") is every interface, written "[::]". INVALID_ARGUMENT
// quotes the text and says which forms there are.
absl::StatusOr<Address> ParseAddress(absl::string_view text, int default_port = kDefaultPort);

}  // namespace grove::rpc
