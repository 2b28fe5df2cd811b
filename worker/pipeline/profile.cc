#include "worker/pipeline/profile.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "worker/pipeline/ncu_report.h"
#include "worker/pipeline/verdict.h"
#include "worker/pipeline/work_policy.h"

namespace grove::worker {
namespace {

constexpr char kTable[] = "grove-ncu.csv";  // below the sandbox's /tmp
// Beside what a candidate may have: the profiler itself, and copies of what a kernel writes to.
constexpr int64_t kMoreMemory = int64_t{8} << 30, kMoreDisk = int64_t{1} << 30;
constexpr int kMoreProcesses = 256;
// Of the time for everything, kept for the profiler to write its table.
constexpr absl::Duration kToWrite = absl::Seconds(5);

// The last line that says something.
std::string LastWords(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const size_t at = text.rfind('\n');
  return RepairUtf8(std::string(at == absl::string_view::npos ? text : text.substr(at + 1)).substr(0, 1000), 300);
}

}  // namespace

std::vector<std::string> NcuCommand(const device::Ncu& ncu, const std::string& arch, bool sections,
                                    const std::string& log_file, const std::vector<std::string>& program) {
  std::vector<std::string> command = {ncu.path, "--config-file", "off", "--log-file", log_file, "--csv", "--page",
                                      "raw", "--print-units", "base",
                                      // Only the marked call, of this process alone, and no more of it than is read.
                                      "--profile-from-start", "off", "--target-processes", "application-only",
                                      "--launch-count", absl::StrCat(kMaxProfiledLaunches), "--replay-mode", "kernel",
                                      // As it is timed: the clocks that the device has by itself, and caches cold.
                                      "--clock-control", "none", "--cache-control", "all"};
  if (sections) {
    for (const std::string& section : NcuSections()) {
      command.push_back("--section");
      command.push_back(section);
    }
  } else {
    command.push_back("--metrics");
    command.push_back(NcuMetrics(arch));
  }
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

absl::StatusOr<KernelProfiler::Attempt> KernelProfiler::Try(bool python, bool sections, const v1::Limits& limits,
                                                            const SendProgram& send, const Drive& drive,
                                                            const std::function<bool()>& cancelled,
                                                            absl::Time deadline) {
  const std::string table = absl::StrCat("/tmp/", kTable);
  GROVE_ASSIGN_OR_RETURN(StartedProcess candidate,
                         StartCandidate(config_, python, limits, [&](sandbox::SandboxSpec* spec) {
                           spec->label = "profile";
                           spec->argv = NcuCommand(*ncu_, arch_, sections, table, spec->argv);
                           spec->read_only.insert(spec->read_only.end(), ncu_->folders.begin(), ncu_->folders.end());
                           // Every kernel of torch would be loaded and instrumented first; the call that warms up loads
                           // what is needed.
                           for (std::string& variable : spec->env) {
                             if (absl::StartsWith(variable, "CUDA_MODULE_LOADING="))
                               variable = "CUDA_MODULE_LOADING=LAZY";
                           }
                           // It would copy its section files home first.
                           spec->env.push_back("NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT=1");
                           // It talks to the program that it runs over sockets of the loopback interface.
                           spec->loopback = true;
                           sandbox::Bounds& bounds = spec->bounds;
                           bounds.wall = deadline - SteadyNow();
                           bounds.memory_bytes = limits.memory_bytes() + kMoreMemory;
                           bounds.processes = limits.processes() + kMoreProcesses;
                           bounds.disk_bytes = limits.disk_bytes() + kMoreDisk;
                         }));
  GROVE_RETURN_IF_ERROR(send(&candidate));
  JudgeProcess::Contestant contestant;
  contestant.python = python;
  contestant.channel = std::move(candidate.channel);
  Attempt attempt;
  attempt.driven =
      drive(std::move(contestant), std::max(1.0, absl::ToDoubleSeconds(deadline - SteadyNow() - kToWrite)));
  // It was told to close: the profiler writes its table when the program has ended.
  while (!cancelled() && SteadyNow() < deadline && !candidate.process->WaitFor(absl::Milliseconds(100))) {
  }
  candidate.process->Kill();
  attempt.ending = candidate.process->Wait();
  if (auto text = candidate.process->ReadTmpFile(kTable, kMaxNcuText); text.ok()) attempt.text = *std::move(text);
  // Before its file is open it complains where the program's own words go.
  absl::StrAppend(&attempt.text, "\n", attempt.ending.out, "\n", attempt.ending.err);
  attempt.err = attempt.ending.err;
  return attempt;
}

KernelProfiler::Outcome KernelProfiler::Run(bool python, const v1::Limits& limits, const SendProgram& send,
                                            const Drive& drive, const std::function<bool()>& cancelled) {
  Outcome outcome;
  if (!ncu_.has_value()) {
    auto found = device::FindNcu(ncu_name_);
    if (!found.ok()) {
      outcome.unavailable = std::string(found.status().message());
      return outcome;
    }
    ncu_ = *std::move(found);
  }
  if (std::string refused = device::CountersRefused(); !refused.empty()) {
    outcome.unavailable = refused;
    return outcome;
  }
  const absl::Time deadline = SteadyNow() + kProfileTime;
  for (bool sections : {false, true}) {
    auto attempt = Try(python, sections, limits, send, drive, cancelled, deadline);
    if (!attempt.ok()) {
      outcome.unavailable = RepairUtf8(std::string(attempt.status().message()), 1000);
      return outcome;
    }
    outcome.ending = attempt->ending;
    NcuReport report = ParseNcu(attempt->text);
    if (!report.kernels.empty()) {
      outcome.kernels = std::move(report.kernels);
      if (!attempt->driven.ok()) {
        outcome.unavailable = RepairUtf8(
            absl::StrCat("incomplete: the profiled call did not come to its end: ", attempt->driven.message()), 1000);
      }
      return outcome;
    }
    const sandbox::Ending& ending = attempt->ending;
    if (report.not_permitted) {
      outcome.unavailable =
          "Nsight Compute may not read the GPU's counters (ERR_NVGPUCTRPERM); load the nvidia module with "
          "NVreg_RestrictProfilingToAdminUsers=0";
    } else if (ending.kind == sandbox::Ending::Kind::kLimit && ending.limit == "run_wall_seconds") {
      outcome.unavailable = absl::StrFormat(
          "Nsight Compute had not finished after %.0f s; a candidate with fewer or shorter kernels can be profiled",
          absl::ToDoubleSeconds(kProfileTime));
    } else if (ending.kind == sandbox::Ending::Kind::kLimit) {
      outcome.unavailable = absl::StrFormat("the profiled process was ended: %s is %.6g, reached %.6g", ending.limit,
                                            ending.limit_set, ending.limit_reached);
    } else if (!attempt->driven.ok()) {
      // The profiler then complains of the program's end alone, if at all.
      const std::string words = report.error.empty() ? LastWords(attempt->err) : report.error;
      outcome.unavailable =
          RepairUtf8(absl::StrCat("the profiled call did not come to its end: ", attempt->driven.message(),
                                  words.empty() ? "" : absl::StrCat(" (", words, ")")),
                     1000);
    } else if (!report.error.empty()) {
      outcome.unavailable = absl::StrCat("Nsight Compute ", ncu_->version, ": ", report.error);
    } else {
      outcome.unavailable = absl::StrCat("Nsight Compute ", ncu_->version, " saw no kernel in one call");
    }
    // The same figures by way of its own lists, where they have other names on this chip.
    if (cancelled() || !report.unknown_metric || deadline - SteadyNow() < kProfileTime / 3) break;
  }
  return outcome;
}

void AddBuildFacts(const v1::BuildReport& build, const std::vector<std::string>& functions,
                   std::vector<v1::KernelProfile>* kernels) {
  for (v1::KernelProfile& kernel : *kernels) {
    kernel.set_own(OriginOfKernel(kernel.name(), false) == CodeOrigin::kOwn ||
                   std::any_of(functions.begin(), functions.end(),
                               [&](const std::string& function) { return SameKernel(function, kernel.name()); }));
    for (const v1::KernelResources& built : build.kernels()) {
      if (!SameKernel(built.name(), kernel.name())) continue;
      kernel.set_own(true);
      // Of several instances of one template the largest: names do not tell them apart.
      kernel.set_local_bytes(std::max({kernel.local_bytes(), built.spill_store_bytes(), built.spill_load_bytes()}));
      if (kernel.registers() == 0) kernel.set_registers(built.registers());
      if (kernel.shared_bytes() == 0) kernel.set_shared_bytes(built.shared_bytes());
    }
  }
}

}  // namespace grove::worker
