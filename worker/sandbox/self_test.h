// Proves each layer of the sandbox on this machine by trying what it must deny, and that something can run inside it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/sandbox/sandbox.h"

namespace grove::sandbox {

struct LayerState {
  // "run", "namespaces", "filesystem", "network", "seccomp", "memory", "processes", "disk", "hold"
  std::string name;
  std::string mechanism;  // "cgroup v1: ...", "supervisor", ...
  bool active = false;
  bool required = true;
  std::string evidence;  // what was tried and what came of it
};

struct SelfTestReport {
  std::vector<LayerState> layers;
  // Names of active layers with how memory and processes are bounded: "cgroup-memory" or "watched-memory" and so on.
  std::vector<std::string> ActiveNames() const;
  // OK, or FAILED_PRECONDITION naming each required layer that is not active and why.
  absl::Status Required() const;
};

// Runs <libexec>/grove-sandbox-probe in sandboxes; about half a second on an idle machine.
SelfTestReport RunSelfTest(const std::shared_ptr<SandboxHost>& host, const std::string& probe_path);

// A program whose answer is known: `grove-candidate --self-test` in a sandbox like a candidate's, on the device.
struct CanaryOutcome {
  bool passed = false;
  double seconds = 0;                  // of its fixed piece of work, on the device's own clock
  double wall_seconds = 0;             // of all of it
  std::string what;                    // how it failed
  std::shared_ptr<Leftover> leftover;  // when it could not be ended
};
CanaryOutcome RunCanary(const std::shared_ptr<SandboxHost>& host, const std::string& candidate_program,
                        const std::string& device_argument, const std::vector<std::string>& device_nodes);

// The layer "cuda", from a canary on cuda:0.
LayerState CudaLayer(const CanaryOutcome& canary, const std::vector<std::string>& device_nodes);

}  // namespace grove::sandbox
