#include "worker/pipeline/equipment.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/device/device.h"
#include "worker/device/toolchain.h"
#include "worker/device/xid_watch.h"
#include "worker/pipeline/calibration.h"
#include "worker/pipeline/programs.h"
#include "worker/sandbox/limits.h"

namespace grove::worker {
namespace {

// A GPU with less memory than this has one candidate's context waiting, a larger one two, and a judge's.
constexpr int64_t kSmallDevice = int64_t{32} << 30;

void Append(const std::vector<std::string>& more, std::vector<std::string>* folders) {
  folders->insert(folders->end(), more.begin(), more.end());
}

// Begins with a canary; whatever the self-test finds missing is an error unless weak sandboxes are allowed.
absl::Status TryDevice(const PipelineOptions& options, const CandidateConfig& candidates, const std::string& probe,
                       Equipment* equipment) {
  const v1::DeviceInfo& device = equipment->device;
  const bool cuda = device.kind() == v1::DEVICE_KIND_CUDA;
  sandbox::SelfTestReport& report = equipment->self_test;
  report = sandbox::RunSelfTest(candidates.host, probe);
  std::shared_ptr<device::XidWatch> watch;
  if (cuda) watch = device::XidWatch::Start(device.uuid());
  HealthProbes probes = options.health_probes.has_value()
                            ? *options.health_probes
                            : RealProbes(candidates.host, candidates.native_program, candidates.device_argument,
                                         candidates.device_nodes, watch, device.uuid());
  const sandbox::CanaryOutcome first = probes.canary();
  equipment->health = std::make_unique<DeviceHealth>(std::move(probes));
  if (cuda) report.layers.push_back(sandbox::CudaLayer(first, candidates.device_nodes));
  GROVE_RETURN_IF_ERROR(equipment->health->Begin(first));
  // The canary took longer than NVML does to begin listening.
  if (watch != nullptr) (void)watch->Status(absl::Seconds(1));
  equipment->health->CheckListening();
  if (absl::Status status = report.Required(); !status.ok()) {
    if (!options.allow_weak_sandbox) return status;
    LogWarning("worker", "WEAK SANDBOX, for trusted kernels only: ", std::string(status.message()));
  }
  return absl::OkStatus();
}

// The compilers and the Python that builds need and sandboxes show.
absl::StatusOr<build::BuilderOptions> FindTools(const PipelineOptions& options, const v1::DeviceInfo& device,
                                                std::shared_ptr<sandbox::SandboxHost> host) {
  const bool cuda = device.kind() == v1::DEVICE_KIND_CUDA;
  const std::string& state = options.paths.state_dir;
  build::BuilderOptions tools;
  tools.host = std::move(host);
  tools.include_dir = options.paths.include_dir;
  tools.libexec_dir = options.paths.libexec_dir;
  tools.cache_dir = absl::StrCat(state, "/build-cache");
  tools.cache_salt = options.cache_salt;
  tools.glue_folders = {absl::StrCat(RuntimeFolder(), "/torch-glue"), absl::StrCat(state, "/torch-glue")};
  if (auto cxx = device::FindCxx(options.cxx); cxx.ok()) {
    tools.cxx = *cxx;
  } else {
    tools.cxx_missing = std::string(cxx.status().message());
    if (!cuda) return cxx.status();
  }
  if (cuda) {
    auto nvcc = device::FindNvcc(options.nvcc);
    if (!nvcc.ok()) return nvcc.status();
    tools.nvcc = *nvcc;
  }
  if (auto python = device::FindPython(options.python, absl::StrCat(state, "/cache")); python.ok()) {
    tools.python = *python;
  } else {
    tools.python_missing = std::string(python.status().message());
    LogWarning("worker", "no .py problems or candidates here: ", tools.python_missing);
  }
  return tools;
}

}  // namespace

absl::StatusOr<Equipment> FindEquipment(PipelineOptions* options) {
  Equipment equipment;
  v1::DeviceInfo& device = equipment.device;
  CandidateConfig& candidates = equipment.candidates;
  JudgeConfig& judges = equipment.judges;
  GROVE_ASSIGN_OR_RETURN(device, device::Detect(options->device));
  const bool cuda = device.kind() == v1::DEVICE_KIND_CUDA;
  const int threads = sandbox::UsableThreads();
  if (options->build_slots <= 0) options->build_slots = std::clamp(threads / 2, 1, 8);
  if (options->paths.state_dir.empty()) return absl::InvalidArgumentError("a worker needs a state folder");
  GROVE_RETURN_IF_ERROR(MakeDirs(options->paths.state_dir));
  GROVE_ASSIGN_OR_RETURN(candidates.native_program, FindProgram(options->paths, "grove-candidate"));
  GROVE_ASSIGN_OR_RETURN(judges.program, FindProgram(options->paths, "grove-judge"));
  GROVE_ASSIGN_OR_RETURN(const std::string probe, FindProgram(options->paths, "grove-sandbox-probe"));

  sandbox::SandboxHost::Options host_options;
  host_options.libexec_dir = options->paths.libexec_dir;
  host_options.allow_weak = options->allow_weak_sandbox;
  GROVE_ASSIGN_OR_RETURN(candidates.host, sandbox::SandboxHost::Create(host_options));
  candidates.device_nodes = device::CudaNodes(device);
  candidates.device_argument = device::DeviceArgument(device);
  candidates.threads = threads;
  candidates.native_ahead = candidates.python_ahead = cuda && device.memory_bytes() >= kSmallDevice ? 2 : 1;
  candidates.default_limits = sandbox::FillLimits({}, options->default_limits, device.kind());
  GROVE_RETURN_IF_ERROR(TryDevice(*options, candidates, probe, &equipment));

  GROVE_ASSIGN_OR_RETURN(build::BuilderOptions tools, FindTools(*options, device, candidates.host));
  equipment.judges_ahead = candidates.host->cgroups().freezer() && !(cuda && device.memory_bytes() < kSmallDevice);
  judges.host = candidates.host;
  judges.device_nodes = candidates.device_nodes;
  judges.device_argument = candidates.device_argument;
  judges.threads = threads;
  judges.memory_bytes =
      options->judge_memory_bytes > 0 ? options->judge_memory_bytes : sandbox::DefaultJudgeMemoryBytes();
  judges.read_only = {judges.program.substr(0, judges.program.rfind('/'))};
  if (tools.python.has_value()) {
    device.set_torch(tools.python->torch_version);
    if (auto script = FindProgram(options->paths, "grove-candidate-python"); script.ok()) {
      candidates.python_script = *script;
    }
    if (auto library = FindProgram(options->paths, kShareableMemory); cuda && library.ok()) {
      candidates.shareable_memory = *library;
    }
    candidates.python = judges.python = tools.python->path;
    candidates.python_folders = tools.python->folders;
    Append(tools.python->folders, &judges.read_only);
  }
  judges.tools = candidates.tools = {tools.cxx, tools.nvcc};
  // torch.compile and Triton build what they generate; the judge's baselines and Python candidates need a compiler.
  for (const auto& compiler : {tools.cxx, tools.nvcc}) {
    if (!compiler.has_value()) continue;
    Append(compiler->folders, &judges.read_only);
    Append(compiler->folders, &candidates.python_folders);
  }
  tools.device = device;
  GROVE_ASSIGN_OR_RETURN(equipment.builder, build::Builder::Create(tools));
  device.set_toolkit(equipment.builder->Toolkit());
  equipment.calibration_key = CalibrationKey(device);
  std::string void_because;
  if (auto calibration = LoadCalibration(options->paths.state_dir, equipment.calibration_key, &void_because)) {
    *device.mutable_calibration() = *std::move(calibration);
  } else if (!void_because.empty()) {
    LogWarning("worker", "the device's calibration is not used: ", void_because);
  }
  return equipment;
}

std::unique_ptr<ProcessPool> MakePool(const CandidateConfig& candidates, const JudgeConfig& judges) {
  const auto candidate = [&](bool python) {
    return ProcessPool::Kind{
        [candidates, python] { return StartCandidate(candidates, python, candidates.default_limits, nullptr); },
        python ? candidates.python_ahead : candidates.native_ahead};
  };
  const auto judge = [&](bool python) {
    return ProcessPool::Kind{[judges, python] { return JudgeProcess::Spawn(judges, python); }, 1};
  };
  return std::make_unique<ProcessPool>(
      std::array<ProcessPool::Kind, kAheadKinds>{candidate(false), candidate(true), judge(false), judge(true)});
}

}  // namespace grove::worker
