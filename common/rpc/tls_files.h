// The three TLS flags that every program has: --tls-cert, --tls-key, --tls-ca.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace grove::rpc {

// Paths of PEM files; empty = not given.
struct TlsFiles {
  std::string cert;  // own certificate (server: needed for TLS; client: for mutual TLS)
  std::string key;   // its key
  std::string ca;    // server: clients must show a certificate of this CA; client: the server's must be of this CA
  bool empty() const { return cert.empty() && key.empty() && ca.empty(); }
};

// Their contents.
struct TlsMaterial {
  std::string cert_pem, key_pem, ca_pem;
};

// Reads the files (at most 1 MiB each) and checks that they fit each other: cert and key come together, the key belongs
// to the certificate, the certificate is valid now. Errors name the flag and the file.
absl::StatusOr<TlsMaterial> LoadTls(const TlsFiles& files);

}  // namespace grove::rpc
