#include "clients/cli/config.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "absl/strings/str_cat.h"
#include "clients/cli/suggest.h"
#include "common/base/files.h"

namespace grove::cli {
namespace {

constexpr int64_t kMaxConfigBytes = 64 << 10;

std::string Home(const GetEnv& env) {
  if (std::string home = env("HOME"); !home.empty()) return home;
  if (const passwd* entry = getpwuid(getuid()); entry != nullptr && entry->pw_dir != nullptr) return entry->pw_dir;
  return "/";
}

}  // namespace

std::string SystemEnv(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string DefaultConfigPath(const GetEnv& env) {
  // The base-directory specification says that relative paths in these variables are to be ignored.
  const std::string base = env("XDG_CONFIG_HOME");
  return absl::StrCat(!base.empty() && base[0] == '/' ? base : Home(env) + "/.config", "/grove/config.toml");
}

std::string DefaultDataDir(const GetEnv& env) {
  const std::string base = env("XDG_DATA_HOME");
  return absl::StrCat(!base.empty() && base[0] == '/' ? base : Home(env) + "/.local/share", "/grove");
}

absl::StatusOr<Config> ParseConfig(absl::string_view text, const std::string& path) {
  const auto error = [&](auto line, const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": ", parts...));
  };
  toml::parse_result parsed = toml::parse(std::string_view(text.data(), text.size()), path);
  if (!parsed) {
    const std::string_view what = parsed.error().description();
    return error(parsed.error().source().begin.line, absl::string_view(what.data(), what.size()));
  }
  Config config;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (auto&& [key, node] : parsed.table()) {
    const std::string name(key.str());
    const auto line = key.source().begin.line;
    std::string* target = name == "coordinator" ? &config.coordinator
                          : name == "tls_cert"  ? &config.tls_cert
                          : name == "tls_key"   ? &config.tls_key
                          : name == "tls_ca"    ? &config.tls_ca
                                                : nullptr;
    if (target != nullptr) {
      const auto* value = node.as_string();
      if (value == nullptr) return error(line, "'", name, "' must be a string in quotes");
      *target = value->get();
      if (name != "coordinator" && !target->empty()) *target = (folder / *target).lexically_normal().string();
    } else if (name == "insecure") {
      const auto* value = node.as_boolean();
      if (value == nullptr) return error(line, "'insecure' must be true or false");
      config.insecure = value->get();
    } else {
      const std::string near = ClosestName(name, {"coordinator", "tls_cert", "tls_key", "tls_ca", "insecure"});
      return error(line, "unknown key '", name, "'",
                   near.empty() ? std::string() : absl::StrCat("; did you mean '", near, "'?"),
                   " (the keys are coordinator, tls_cert, tls_key, tls_ca, insecure)");
    }
  }
  return config;
}

absl::StatusOr<Config> LoadConfig(const std::string& path, bool required) {
  auto text = ReadFile(path, kMaxConfigBytes);
  if (!text.ok()) {
    if (absl::IsNotFound(text.status()) && !required) return Config();
    return absl::InvalidArgumentError(absl::StrCat("configuration ", path, ": ", text.status().message()));
  }
  return ParseConfig(*text, path);
}

}  // namespace grove::cli
