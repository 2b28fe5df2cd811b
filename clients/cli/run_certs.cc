// `grove certs init|issue`: a farm's own certificate authority.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clients/cli/commands.h"
#include "clients/cli/json.h"
#include "common/tls/certificates.h"

namespace grove::cli {
namespace {

std::string Folder(const Context& context, const CertsCommand& command) {
  if (!command.dir.empty()) return command.dir;
  return (std::filesystem::path(DefaultConfigPath(context.env)).parent_path() / "certs").string();
}

// ALREADY_EXISTS and the like are the caller's to solve.
ExitCode Report(const Context& context, const std::map<std::string, std::string>& files, const std::string& hint) {
  if (context.console->json()) {
    return context.console->Out(absl::StrCat(CertsDocument(files), "\n")) ? ExitCode::kOk : ExitCode::kInfrastructure;
  }
  std::string out;
  for (const auto& [name, path] : files) absl::StrAppend(&out, name, "  ", path, "\n");
  const bool written = context.console->Out(out);
  context.console->Message(hint);
  return written ? ExitCode::kOk : ExitCode::kInfrastructure;
}

}  // namespace

ExitCode RunCertsInit(const Context& context, const CertsCommand& command) {
  const std::string dir = Folder(context, command);
  tls::CaOptions options;
  if (!command.name.empty()) options.common_name = command.name;
  if (command.days > 0) options.validity = absl::Hours(24) * command.days;
  options.overwrite = command.force;
  if (absl::Status made = tls::InitCa(dir, options); !made.ok()) return Fail(context, made);
  return Report(context, {{"ca", dir + "/ca.crt"}, {"ca_key", dir + "/ca.key"}},
                "keep ca.key to yourself; `grove certs issue NAME --host HOST` makes certificates with it");
}

ExitCode RunCertsIssue(const Context& context, const CertsCommand& command) {
  const std::string dir = Folder(context, command);
  tls::IssueOptions options;
  if (command.days > 0) options.validity = absl::Hours(24) * command.days;
  options.overwrite = command.force;
  auto files = tls::Issue(dir, command.name, command.hosts, options);
  if (!files.ok()) return Fail(context, files.status());
  return Report(context, {{"tls_ca", files->ca}, {"tls_cert", files->certificate}, {"tls_key", files->key}},
                absl::StrCat("use them with --tls-ca ", files->ca, " --tls-cert ", files->certificate, " --tls-key ",
                             files->key));
}

}  // namespace grove::cli
