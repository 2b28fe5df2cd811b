// A small certificate authority for a farm: one CA, and certificates that it signs for coordinators, workers and
// clients.
//
// Files in the folder: ca.crt, ca.key, NAME.crt, NAME.key. Keys are EC P-256 (PKCS#8 PEM, mode 0600, never overwritten
// unless asked), certificates X.509 v3 (PEM, mode 0644). A certificate carries both extended key usages, serverAuth and
// clientAuth, because a machine of a farm is often both. Nothing here talks to a network.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace grove::tls {

struct CaOptions {
  std::string common_name = "Kernel Grove CA";
  absl::Duration validity =
      absl::Hours(24 * 3650);  // ten years: replacing a CA means touching every machine of the farm
  bool overwrite = false;
  absl::Time now = absl::Now();  // start of the validity, for tests
};

struct IssueOptions {
  absl::Duration validity = absl::Hours(24 * 397);  // 13 months: the usual bound for server certificates
  bool overwrite = false;
  absl::Time now = absl::Now();  // start of the validity, for tests
};

// What Issue wrote.
struct IssuedFiles {
  std::string certificate;  // path of NAME.crt
  std::string key;          // path of NAME.key
  std::string ca;           // path of ca.crt
};

// Makes ca.crt and ca.key in `dir` (created, mode 0700, if absent). ALREADY_EXISTS when there is a CA already.
absl::Status InitCa(const std::string& dir, const CaOptions& options = {});

// Makes NAME.crt and NAME.key, signed by the CA in `dir`. `name` becomes file name and common name: letters, digits,
// '.', '-', '_', at most 64. `sans` are DNS names (wildcards allowed in the first label) and IP addresses (v4 or v6),
// told apart by their form; empty = localhost, 127.0.0.1 and ::1. INVALID_ARGUMENT names the entry at fault, NOT_FOUND
// says how to make the CA.
absl::StatusOr<IssuedFiles> Issue(const std::string& dir, const std::string& name, const std::vector<std::string>& sans,
                                  const IssueOptions& options = {});

// Checks what a daemon is about to serve with: the texts parse, the key belongs to the certificate, and it is valid
// now. `what` names the files in the message. Empty `ca_pem` is not looked at.
absl::Status CheckKeyPair(absl::string_view certificate_pem, absl::string_view key_pem, absl::string_view ca_pem,
                          absl::Time now, absl::string_view what);

}  // namespace grove::tls
