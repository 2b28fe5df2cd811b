// `grove bank list|show|add|remove`.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/input.h"
#include "clients/cli/json.h"
#include "clients/cli/report.h"
#include "clients/cli/session.h"

namespace grove::cli {
namespace {

absl::StatusOr<std::unique_ptr<Session>> OpenToRead(const Context& context) {
  return Session::Open(context.global, {.need = Need::kRead}, context.console, context.interrupts, context.env);
}

ExitCode Print(const Context& context, const std::string& text) {
  return context.console->Out(text) ? ExitCode::kOk : ExitCode::kInfrastructure;
}

}  // namespace

ExitCode RunBankList(const Context& context, const BankCommand& command) {
  auto device = ParseDevice(command.device);
  if (!device.ok()) return Fail(context, device.status());
  auto session = OpenToRead(context);
  if (!session.ok()) return Fail(context, session.status());
  v1::ListBankRequest request;
  request.set_operation(command.operation);
  request.set_device(device->kind);
  auto response = (*session)->client().ListBank(request, (*session)->call());
  if (!response.ok()) return Fail(context, response.status());
  std::vector<v1::BankEntry> entries(response->entries().begin(), response->entries().end());
  if (context.console->json()) return Print(context, absl::StrCat(BankDocument(entries), "\n"));
  if (entries.empty()) {
    context.console->Message(
        "no such kernels in the bank; searches put their best ones there, `grove bank add` any other");
    return ExitCode::kOk;
  }
  return Print(context, RenderBank(entries, absl::GetCurrentTimeNanos()));
}

ExitCode RunBankShow(const Context& context, const BankCommand& command) {
  auto session = OpenToRead(context);
  if (!session.ok()) return Fail(context, session.status());
  auto entry = (*session)->client().GetBankEntry(command.id, (*session)->call());
  if (!entry.ok()) return Fail(context, entry.status());
  if (context.console->json()) return Print(context, absl::StrCat(BankEntryDocument(*entry), "\n"));
  return Print(context, RenderBankEntry(*entry, context.console->out_style()));
}

ExitCode RunBankAdd(const Context& context, const BankCommand& command) {
  v1::AddBankEntryRequest request;
  // A node is JOB/k3 (an idea, JOB/i3, is refused by the coordinator); everything else is a file. A file of such a name
  // can be written ./JOB/k3.
  if (absl::StartsWith(command.source, "j-") &&
      (absl::StrContains(command.source, "/k") || absl::StrContains(command.source, "/i"))) {
    if (!command.device.empty()) {
      return Fail(context, absl::InvalidArgumentError("a kernel node brings its device along: leave out --device"));
    }
    request.set_node(command.source);
    // A search knows what its problem computes; an evaluation of a file does not.
    if (!command.operation.empty()) request.mutable_entry()->set_operation(command.operation);
    if (!command.note.empty()) request.mutable_entry()->set_note(command.note);
  } else {
    auto device = ParseDevice(command.device);
    if (!device.ok()) return Fail(context, device.status());
    if (command.operation.empty() || device->kind == v1::DEVICE_KIND_UNSPECIFIED) {
      return Fail(context, absl::InvalidArgumentError(
                               "a kernel from a file needs --operation (such as softmax) and --device (cpu or cuda)"));
    }
    auto candidate = ReadCandidate(command.source);
    if (!candidate.ok()) return Fail(context, candidate.status());
    v1::BankEntry* entry = request.mutable_entry();
    *entry->mutable_candidate() = *std::move(candidate);
    entry->set_operation(command.operation);
    entry->set_device(device->kind);
    entry->set_note(command.note);
  }
  auto session = OpenToRead(context);
  if (!session.ok()) return Fail(context, session.status());
  auto entry = (*session)->client().AddBankEntry(request, (*session)->call());
  if (!entry.ok()) return Fail(context, entry.status());
  if (context.console->json()) return Print(context, absl::StrCat(BankEntryDocument(*entry), "\n"));
  return Print(context, absl::StrCat(entry->id(), "\n"));
}

ExitCode RunBankRemove(const Context& context, const BankCommand& command) {
  auto session = OpenToRead(context);
  if (!session.ok()) return Fail(context, session.status());
  absl::Status removed = (*session)->client().RemoveBankEntry(command.id, (*session)->call());
  if (!removed.ok()) return Fail(context, removed);
  if (context.console->json()) return Print(context, absl::StrCat(RemovedDocument(command.id), "\n"));
  context.console->Message(absl::StrCat(command.id, " removed"));
  return ExitCode::kOk;
}

}  // namespace grove::cli
