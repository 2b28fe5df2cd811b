// What a case of the audit may have left on this machine, and what it may have read of it. The corpus marks what it
// makes: processes are called kExploitProcess, files, sockets and groups have kExploitMark in their names. Says nothing
// about a worker on another machine.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace grove::cli {

inline constexpr char kExploitProcess[] = "grove-exploit";
inline constexpr char kExploitMark[] = "grove-exploit-mark";
// Where the corpus looks for a file that is not its own: anybody on this machine may read it.
inline constexpr char kExploitSecret[] = "/tmp/grove-exploit-secret";

class AuditHost {
 public:
  // Writes the secret and notes clock and settings. Errors name the file.
  static absl::StatusOr<AuditHost> Begin(const std::string& secret_file = kExploitSecret);
  AuditHost(AuditHost&& other) noexcept;
  AuditHost& operator=(AuditHost&&) = delete;
  ~AuditHost();

  // What is there that must not be, each in words; empty = nothing. Processes on their way out are given `patience`.
  std::vector<std::string> Traces(absl::Duration patience) const;
  // How the wall clock was set since Begin or the last call; "" = it was not. Others than a candidate may have done it.
  std::string ClockSet();
  // Of a result as text: the secret, or a line of a password file.
  std::vector<std::string> Told(absl::string_view result) const;

 private:
  AuditHost() = default;

  std::string secret_file_, secret_;
  double clock_offset_ = 0;  // wall clock less the steady one, seconds
  std::vector<std::string> settings_;
};

}  // namespace grove::cli
