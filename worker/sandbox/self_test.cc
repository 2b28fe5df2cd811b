#include "worker/sandbox/self_test.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace grove::sandbox {
namespace {

// Generous: the probes end in milliseconds, and a machine under load must not look unsafe.
constexpr absl::Duration kProbeWall = absl::Seconds(30);
constexpr int64_t kMiB = 1 << 20;

SandboxSpec ProbeSpec(const std::string& probe, std::vector<std::string> arguments) {
  SandboxSpec spec;
  spec.label = "probe";
  spec.argv = {probe};
  for (std::string& a : arguments) spec.argv.push_back(std::move(a));
  spec.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  spec.read_only = {probe};
  spec.bounds.wall = kProbeWall;
  spec.bounds.memory_bytes = 64 * kMiB;
  spec.bounds.processes = 32;
  spec.bounds.disk_bytes = 16 * kMiB;
  spec.bounds.output_bytes = kMiB;
  spec.tick = absl::Milliseconds(10);
  return spec;
}

struct Ran {
  absl::Status status;
  Ending ending;
};

Ran Run(const std::shared_ptr<SandboxHost>& host, SandboxSpec spec) {
  auto process = SandboxedProcess::Start(host, std::move(spec));
  if (!process.ok()) return {process.status(), {}};
  return {absl::OkStatus(), (*process)->Wait()};
}

std::string Describe(const Ran& ran) {
  if (!ran.status.ok()) return std::string(ran.status.message());
  const Ending& e = ran.ending;
  switch (e.kind) {
    case Ending::Kind::kExited:
      return absl::StrCat("exit ", e.exit_code, e.err.empty() ? "" : absl::StrCat(": ", e.err.substr(0, 300)));
    case Ending::Kind::kSignaled:
      return SignalName(e.signal);
    case Ending::Kind::kKilled:
      return "killed";
    case Ending::Kind::kLimit:
      return absl::StrCat("ended by limit ", e.limit);
  }
  return "";
}

// A spinning program must use no processor time while it is held, and some once it is let go.
LayerState TryHold(const std::shared_ptr<SandboxHost>& host, const std::string& probe) {
  LayerState layer{"hold", "", false, false, ""};
  if (!host->cgroups().freezer()) {
    layer.evidence =
        "no freezer: a candidate goes on running while the reference is timed, and results do not say held";
    return layer;
  }
  layer.mechanism = host->cgroups().evidence();
  auto process = SandboxedProcess::Start(host, ProbeSpec(probe, {"spin"}));
  if (!process.ok()) {
    layer.evidence = std::string(process.status().message());
    return layer;
  }
  if (absl::Status held = (*process)->Hold(true); !held.ok()) {
    layer.evidence = std::string(held.message());
    return layer;
  }
  const double before = (*process)->CpuSeconds();
  absl::SleepFor(absl::Milliseconds(50));
  const double after = (*process)->CpuSeconds();
  (void)(*process)->Hold(false);
  const absl::Time deadline = SteadyNow() + kProbeWall;
  while ((*process)->CpuSeconds() <= after && SteadyNow() < deadline) absl::SleepFor(absl::Milliseconds(5));
  const bool went_on = (*process)->CpuSeconds() > after;
  // Its last tick may be booked after it stood.
  layer.active = after - before < 0.02 && went_on && !(*process)->Ended();
  layer.evidence = layer.active ? "a spinning program stood still for 50 ms and went on"
                   : went_on    ? absl::StrCat("a program that was held used ", after - before, " s of processor time")
                                : "a program that was held did not go on";
  return layer;
}

}  // namespace

std::vector<std::string> SelfTestReport::ActiveNames() const {
  std::vector<std::string> names;
  for (const LayerState& layer : layers) {
    if (!layer.active || layer.name == "run") continue;
    if (layer.name == "memory" || layer.name == "processes") {
      const std::string part = layer.name == "memory" ? "memory" : "pids";
      names.push_back(absl::StrCat(absl::StartsWith(layer.mechanism, "cgroup") ? "cgroup-" : "watched-", part));
    } else {
      names.push_back(layer.name);
    }
  }
  return names;
}

absl::Status SelfTestReport::Required() const {
  std::vector<std::string> missing;
  for (const LayerState& layer : layers) {
    if (layer.required && !layer.active) missing.push_back(absl::StrCat(layer.name, " (", layer.evidence, ")"));
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the sandbox lacks required layers: ", absl::StrJoin(missing, "; "),
                   ". `grove doctor` says more; --allow-weak-sandbox runs without them, for trusted kernels only"));
}

SelfTestReport RunSelfTest(const std::shared_ptr<SandboxHost>& host, const std::string& probe) {
  SelfTestReport report;
  const auto add = [&](std::string name, std::string mechanism, bool active, std::string evidence) {
    report.layers.push_back({std::move(name), std::move(mechanism), active, true, std::move(evidence)});
  };
  const bool wrapped = !host->bwrap().empty();

  const Ran ok = Run(host, ProbeSpec(probe, {"ok"}));
  const bool runs =
      ok.status.ok() && ok.ending.kind == Ending::Kind::kExited && ok.ending.exit_code == 0 && ok.ending.out == "ok\n";
  add("run", "", runs,
      runs ? "a program ran and answered" : absl::StrCat("a harmless program did not run: ", Describe(ok)));

  const Ran deny = Run(host, ProbeSpec(probe, {"deny", absl::StrCat(getpid())}));
  struct Count {
    int tried = 0;
    std::vector<std::string> open;
  };
  Count namespaces, filesystem, network, seccomp;
  if (deny.status.ok()) {
    for (absl::string_view line : absl::StrSplit(deny.ending.out, '\n', absl::SkipEmpty())) {
      std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
      if (words.size() < 3) continue;
      Count* count = words[0] == "namespaces"   ? &namespaces
                     : words[0] == "filesystem" ? &filesystem
                     : words[0] == "network"    ? &network
                     : words[0] == "seccomp"    ? &seccomp
                                                : nullptr;
      if (count == nullptr) continue;
      ++count->tried;
      if (words[2] != "denied") count->open.push_back(std::string(words[1]));
    }
  }
  // The probe makes at least so many attempts per layer; fewer means that it died half-way, which proves nothing.
  const auto judge = [&](const char* name, const std::string& mechanism, const Count& count, int at_least) {
    const bool active = count.tried >= at_least && count.open.empty();
    std::string evidence;
    if (active) {
      evidence = absl::StrCat(count.tried, " attempts, all denied");
    } else if (!count.open.empty()) {
      evidence = absl::StrCat("not denied: ", absl::StrJoin(count.open, ", "));
    } else {
      evidence = absl::StrCat("the probe did not finish: ", Describe(deny));
    }
    add(name, mechanism, active, evidence);
  };
  judge("namespaces", host->namespace_evidence(), namespaces, 5);
  judge("filesystem", wrapped ? "read-only binds, tmpfs" : "none", filesystem, 11);
  judge("network", wrapped ? "network namespace" : "none", network, 2);
  judge("seccomp", "libseccomp", seccomp, 20);

  const Ran memory = Run(host, ProbeSpec(probe, {"memory", absl::StrCat(512 * kMiB)}));
  add("memory", host->cgroups().memory() ? host->cgroups().evidence() : "watched by the supervisor",
      memory.status.ok() && memory.ending.kind == Ending::Kind::kLimit && memory.ending.limit == "memory_bytes",
      absl::StrCat("512 MiB asked of 64 MiB: ", Describe(memory)));
  const Ran forks = Run(host, ProbeSpec(probe, {"fork", "200"}));
  add("processes",
      host->cgroups().pids()  ? host->cgroups().evidence()
      : host->asks_at_forks() ? "asked at every fork (seccomp)"
                              : "watched by the supervisor",
      forks.status.ok() && forks.ending.kind == Ending::Kind::kLimit && forks.ending.limit == "processes",
      absl::StrCat("200 processes asked of 32: ", Describe(forks)));
  const Ran disk = Run(host, ProbeSpec(probe, {"fill", "/tmp/full", absl::StrCat(64 * kMiB)}));
  const Ran shm = Run(host, ProbeSpec(probe, {"fill", "/dev/shm/full", absl::StrCat(64 * kMiB)}));
  add("disk", wrapped ? "tmpfs with a size" : "none",
      disk.status.ok() && disk.ending.limit == "disk_bytes" && shm.status.ok() && shm.ending.limit == "disk_bytes",
      absl::StrCat("64 MiB asked of 8 MiB: /tmp ", Describe(disk), ", /dev/shm ", Describe(shm)));
  // Not required: without it nothing is unsafe, but a candidate can compute ahead of the question while it is timed.
  report.layers.push_back(runs ? TryHold(host, probe)
                               : LayerState{"hold", "", false, false, "no program ran that could be held"});
  return report;
}

CanaryOutcome RunCanary(const std::shared_ptr<SandboxHost>& host, const std::string& program,
                        const std::string& device_argument, const std::vector<std::string>& device_nodes) {
  SandboxSpec spec;
  spec.label = "canary";
  spec.argv = {program, "--self-test", "--device", device_argument};
  spec.env = {"PATH=/usr/bin:/bin", "HOME=/tmp", "LC_ALL=C"};
  if (const char* libraries = getenv("LD_LIBRARY_PATH"); libraries != nullptr) {
    spec.env.push_back(absl::StrCat("LD_LIBRARY_PATH=", libraries));
  }
  spec.read_only = {program};
  spec.devices = device_nodes;
  spec.bounds.wall = kProbeWall;
  spec.bounds.memory_bytes = int64_t{8} << 30;
  spec.bounds.processes = 256;
  spec.bounds.output_bytes = kMiB;
  const Ran ran = Run(host, std::move(spec));
  CanaryOutcome outcome;
  outcome.wall_seconds = ran.ending.wall_seconds;
  outcome.leftover = ran.ending.leftover;
  // Its last words are one line of JSON; of one that died half-way there are none.
  const nlohmann::json line = nlohmann::json::parse(ran.ending.out, nullptr, false);
  if (line.is_object()) {
    if (line.contains("seconds") && line["seconds"].is_number()) outcome.seconds = line["seconds"].get<double>();
    if (line.contains("error") && line["error"].is_string()) outcome.what = line["error"].get<std::string>();
  }
  const bool ended_well = ran.status.ok() && ran.ending.kind == Ending::Kind::kExited && ran.ending.exit_code == 0;
  outcome.passed = ended_well && line.is_object() && line.value("ok", nlohmann::json(false)) == true;
  if (outcome.passed) {
    outcome.what.clear();
  } else if (outcome.what.empty()) {
    outcome.what = Describe(ran);
  }
  return outcome;
}

LayerState CudaLayer(const CanaryOutcome& canary, const std::vector<std::string>& device_nodes) {
  LayerState layer;
  layer.name = "cuda";
  layer.mechanism = absl::StrJoin(device_nodes, " ");
  layer.active = canary.passed;
  layer.evidence = canary.passed
                       ? absl::StrCat("a kernel ran inside and computed what it should in ",
                                      static_cast<int>(canary.wall_seconds * 1000), " ms, its context included")
                       : canary.what;
  return layer;
}

}  // namespace grove::sandbox
