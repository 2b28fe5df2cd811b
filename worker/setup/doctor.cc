#include "worker/setup/doctor.h"

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/version.h"
#include "common/measure/comparison.h"
#include "worker/build/builder.h"
#include "worker/device/device.h"
#include "worker/device/ncu.h"
#include "worker/device/toolchain.h"
#include "worker/device/xid_watch.h"
#include "worker/pipeline/calibration.h"
#include "worker/pipeline/programs.h"
#include "worker/sandbox/limits.h"
#include "worker/sandbox/self_test.h"

namespace grove::worker {
namespace {

enum class State { kOk, kAbsent, kMissing };

struct Finding {
  std::string group, name;
  State state;
  std::string text;
};

const char* Mark(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kAbsent:
      return "--";
    case State::kMissing:
      return "!!";
  }
  return "";
}

// A kernel that must build and, loaded by grove-candidate, would run: proves compiler, header and build sandbox.
constexpr char kCppKernel[] = "#include <grove/kernel.h>\nGROVE_KERNEL(args) { return args->num_inputs < 0; }\n";
constexpr char kCudaKernel[] =
    "#include <grove/kernel.h>\n__global__ void touch(int* p) { if (p) *p = 1; }\n"
    "GROVE_KERNEL(args) { touch<<<1, 1, 0, (cudaStream_t)args->stream>>>(nullptr); return 0; }\n";

}  // namespace

absl::Status RunDoctor(const DoctorOptions& options, std::ostream& out) {
  std::vector<Finding> findings;
  std::vector<std::string> missing;
  const auto add = [&](std::string group, std::string name, State state, std::string text) {
    if (state == State::kMissing) missing.push_back(name);
    if (!options.json) {
      out << Mark(state) << "  " << name << std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') << text << "\n";
      out.flush();
    }
    findings.push_back({std::move(group), std::move(name), state, std::move(text)});
  };

  v1::DeviceInfo device = device::DescribeCpu();
  bool have_device = true;
  if (auto found = device::Detect(options.device); found.ok()) {
    device = *found;
    add("device", "device", State::kOk,
        absl::StrCat(device.kind() == v1::DEVICE_KIND_CUDA ? absl::StrCat("cuda:", device.index(), " ") : "cpu ",
                     device.name(), ", ", device.arch(), ", ", device.memory_bytes() >> 20, " MiB",
                     device.driver().empty() ? "" : absl::StrCat(", driver ", device.driver())));
  } else {
    have_device = false;
    add("device", "device", State::kMissing, std::string(found.status().message()));
  }
  const bool cuda = have_device && device.kind() == v1::DEVICE_KIND_CUDA;
  add("device", "threads", State::kOk, absl::StrCat(sandbox::UsableThreads(), " usable hardware threads"));

  build::BuilderOptions builder;
  const auto cxx = device::FindCxx(options.cxx);
  if (cxx.ok()) {
    builder.cxx = *cxx;
    add("tools", "g++", State::kOk, absl::StrCat(cxx->version, " at ", cxx->path));
  } else {
    builder.cxx_missing = std::string(cxx.status().message());
    add("tools", "g++", State::kMissing, builder.cxx_missing);
  }
  const auto nvcc = device::FindNvcc(options.nvcc);
  if (nvcc.ok()) {
    builder.nvcc = *nvcc;
    add("tools", "nvcc", State::kOk, absl::StrCat(nvcc->version, " at ", nvcc->path));
  } else {
    builder.nvcc_missing = std::string(nvcc.status().message());
    add("tools", "nvcc", cuda ? State::kMissing : State::kAbsent, builder.nvcc_missing);
  }
  if (cuda) {
    // Needed for --profile alone.
    const auto ncu = device::FindNcu(options.ncu);
    const std::string refused = device::CountersRefused();
    add("tools", "ncu", ncu.ok() && refused.empty() ? State::kOk : State::kAbsent,
        !ncu.ok() ? absl::StrCat(std::string(ncu.status().message()), " (--profile needs it)")
                  : absl::StrCat("Nsight Compute ", ncu->version, " at ", ncu->path, ", ",
                                 refused.empty() ? "which may read the GPU's counters" : refused));
    const std::string cuobjdump = nvcc.ok() ? build::FindCuobjdump(*nvcc) : "";
    add("tools", "cuobjdump", cuobjdump.empty() ? State::kAbsent : State::kOk,
        cuobjdump.empty() ? "not found: profiles have no instruction mix (it comes with the CUDA toolkit)" : cuobjdump);
  }
  const auto python = device::FindPython(options.python, "");
  if (python.ok()) {
    builder.python = *python;
    add("tools", "python", State::kOk,
        absl::StrCat("Python ", python->version, " with torch ", python->torch_version, " at ", python->path,
                     python->torch_compile ? ", torch.compile" : ", no torch.compile (torch 1.x)"));
    // Others are found under their own names.
    const std::string& blas = python->blas;
    const bool reference = absl::StartsWith(std::filesystem::path(blas).filename().string(), "libblas.");
    constexpr char kSlow[] =
        ", the reference one: torch multiplies matrices tens of times slower than it might, no figure to beat "
        "(apt-get install libopenblas0-openmp)";
    add("tools", "blas", reference ? State::kAbsent : State::kOk,
        blas.empty() ? "torch's own" : absl::StrCat(blas, reference ? kSlow : ""));
    if (cuda && !python->torch_cuda) {
      add("tools", "torch-cuda", State::kMissing,
          "this torch was built without CUDA; give --python for one that has it (pip install torch)");
    }
  } else {
    builder.python_missing = std::string(python.status().message());
    add("tools", "python", State::kAbsent,
        absl::StrCat(builder.python_missing, " (.py problems and candidates need it)"));
  }

  if (have_device) {
    v1::DeviceInfo calibrated = device;
    if (python.ok()) calibrated.set_torch(python->torch_version);
    std::string why;
    const auto calibration = LoadCalibration(options.paths.state_dir, CalibrationKey(calibrated), &why);
    add("device", "calibration", calibration.has_value() ? State::kOk : State::kAbsent,
        calibration.has_value()
            ? absl::StrFormat("kernels are told apart from a difference of %.2g %% on, at worst",
                              100 * calibration->resolution())
            : absl::StrCat("never calibrated (`grove calibrate`)", why.empty() ? "" : ": ", why, "; differences below ",
                           100 * measure::ResolutionOf(device), " % count as none"));
  }

  std::string candidate, probe;
  for (const char* name : {"grove-judge", "grove-candidate", "grove-candidate-python", "grove-sandbox-probe"}) {
    const auto path = FindProgram(options.paths, name);
    add("programs", name, path.ok() ? State::kOk : State::kMissing,
        path.ok() ? *path : std::string(path.status().message()));
    if (path.ok() && std::string(name) == "grove-judge") {
      std::error_code error;
      const auto folder = std::filesystem::canonical(*path, error).parent_path();  // as it finds itself
      for (const char* library : kJudgeLibraries) {
        const std::string beside = (folder / library).string();
        const bool there = std::filesystem::exists(beside, error);
        add("programs", library, there ? State::kOk : State::kMissing,
            there ? beside : absl::StrCat("not beside ", *path, ": build again, or run `grove-worker setup`"));
      }
    }
    if (path.ok() && std::string(name) == "grove-candidate") candidate = *path;
    if (path.ok() && std::string(name) == "grove-sandbox-probe") probe = *path;
  }
  if (cuda) {
    const auto path = FindProgram(options.paths, kShareableMemory);
    add("programs", kShareableMemory, path.ok() ? State::kOk : State::kAbsent,
        path.ok() ? *path
                  : absl::StrCat(path.status().message(), "; without it scripts copy their results behind the clock"));
  }

  sandbox::SandboxHost::Options host_options;
  host_options.libexec_dir = options.paths.libexec_dir;
  auto host = sandbox::SandboxHost::Create(host_options);
  if (!host.ok()) {
    add("sandbox", "namespaces", State::kMissing, std::string(host.status().message()));
    host_options.allow_weak = true;
    host = sandbox::SandboxHost::Create(host_options);
  }
  if (host.ok() && !probe.empty()) {
    sandbox::SelfTestReport report = sandbox::RunSelfTest(*host, probe);
    if (cuda && !candidate.empty()) {
      const std::vector<std::string> nodes = device::CudaNodes(device);
      report.layers.push_back(sandbox::CudaLayer(sandbox::RunCanary(*host, candidate, "cuda:0", nodes), nodes));
    }
    for (const sandbox::LayerState& layer : report.layers) {
      add("sandbox", layer.name,
          layer.active     ? State::kOk
          : layer.required ? State::kMissing
                           : State::kAbsent,
          absl::StrCat(layer.evidence, layer.mechanism.empty() ? "" : absl::StrCat(" [", layer.mechanism, "]")));
    }
    if (cuda) {
      const auto watch = device::XidWatch::Start(device.uuid());
      const absl::Status listening = watch->Status(absl::Seconds(5));
      add("device", "xids", listening.ok() ? State::kOk : State::kAbsent,
          listening.ok() ? "errors of the GPU are reported by NVML as they happen"
                         : absl::StrCat("errors of the GPU are not reported here: ", std::string(listening.message())));
    } else if (!candidate.empty() && have_device) {
      const sandbox::CanaryOutcome canary = sandbox::RunCanary(*host, candidate, "cpu", {});
      add("device", "canary", canary.passed ? State::kOk : State::kMissing,
          canary.passed ? "the device computes what it should" : canary.what);
    }
    // A kernel that must build.
    char folder[] = "/tmp/grove-doctor-XXXXXX";
    if ((cuda ? nvcc.ok() : cxx.ok()) && mkdtemp(folder) != nullptr) {
      builder.host = *host;
      builder.device = device;
      builder.include_dir = options.paths.include_dir;
      builder.libexec_dir = options.paths.libexec_dir;
      builder.cache_dir = folder;
      const auto made = build::Builder::Create(builder);
      if (!made.ok()) {
        add("build", "build", State::kMissing, std::string(made.status().message()));
      } else {
        v1::Candidate kernel;
        kernel.set_format(cuda ? v1::CANDIDATE_FORMAT_CUDA : v1::CANDIDATE_FORMAT_CPP);
        kernel.set_source(cuda ? kCudaKernel : kCppKernel);
        const auto outcome = (*made)->Build(kernel, sandbox::DefaultLimits(device.kind()), nullptr);
        const bool good = outcome.ok() && outcome->report.ok();
        add("build", "build", good ? State::kOk : State::kMissing,
            good           ? absl::StrCat("a kernel was built in the sandbox in ",
                                          static_cast<int>(outcome->report.seconds() * 1000), " ms")
            : outcome.ok() ? absl::StrCat("a harmless kernel did not build: ", outcome->reason)
                           : std::string(outcome.status().message()));
      }
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
  }

  if (options.json) {
    nlohmann::json document = {{"schema", "grove.doctor/1"},
                               {"version", kVersion},
                               {"ready", missing.empty()},
                               {"findings", nlohmann::json::array()}};
    for (const Finding& f : findings) {
      document["findings"].push_back({{"group", f.group},
                                      {"name", f.name},
                                      {"state", f.state == State::kOk       ? "ok"
                                                : f.state == State::kAbsent ? "absent"
                                                                            : "missing"},
                                      {"detail", f.text}});
    }
    out << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a worker would not start here; missing: ", absl::StrJoin(missing, ", ")));
}

}  // namespace grove::worker
