// The user's configuration file: which coordinator, and how to speak to it.
//
//   coordinator = "gpu-farm.example:7420"
//   tls_ca = "/home/me/.config/grove/ca.pem"
//   tls_cert = "me.pem"        # relative paths start at the file's folder
//   tls_key = "me.key"
//   insecure = false
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grove::cli {

struct Config {
  std::string coordinator;
  std::string tls_cert, tls_key, tls_ca;
  bool insecure = false;
};

// INVALID_ARGUMENT naming file and line: a syntax error, a key that is not known, a value of the wrong type.
absl::StatusOr<Config> ParseConfig(absl::string_view text, const std::string& path);

// A missing file is an empty configuration unless `required`.
absl::StatusOr<Config> LoadConfig(const std::string& path, bool required);

// Environment access, so that tests need not change their own.
using GetEnv = std::function<std::string(const char* name)>;
std::string SystemEnv(const char* name);

std::string DefaultConfigPath(const GetEnv& env);  // $XDG_CONFIG_HOME/grove/config.toml, or ~/.config/...
std::string DefaultDataDir(const GetEnv& env);     // $XDG_DATA_HOME/grove, or ~/.local/share/grove

}  // namespace grove::cli
