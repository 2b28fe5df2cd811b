#include "worker/pipeline/work_policy.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace grove::worker {
namespace {

constexpr int kMaxLibraries = 64;

std::string BaseName(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (const size_t at = name.find(" (deleted)"); at != std::string::npos) name.resize(at);
  return name;
}

// "void ns::name<int, 3>(float*)" -> "name"; "name_kernel(float*)" -> "name_kernel".
std::string KernelStem(std::string name) {
  static constexpr char kAnonymous[] = "(anonymous namespace)";
  for (size_t at; (at = name.find(kAnonymous)) != std::string::npos;) name.erase(at, sizeof kAnonymous - 1);
  std::string stem = name.substr(0, name.find_first_of("(<"));
  if (const size_t at = stem.find_last_of(" :"); at != std::string::npos) stem = stem.substr(at + 1);
  return stem;
}

bool StartsWithAny(const std::string& name, const std::vector<const char*>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const char* prefix) { return absl::StartsWith(name, prefix); });
}

bool ContainsAny(const std::string& name, const std::vector<const char*>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const char* part) { return absl::StrContains(name, part); });
}

// Operators that compute nothing: they make or describe tensors.
bool Bookkeeping(const std::string& name) {
  static const auto* names = new std::vector<const char*>{"aten::empty",
                                                          "aten::view",
                                                          "aten::reshape",
                                                          "aten::as_strided",
                                                          "aten::detach",
                                                          "aten::transpose",
                                                          "aten::permute",
                                                          "aten::squeeze",
                                                          "aten::unsqueeze",
                                                          "aten::expand",
                                                          "aten::slice",
                                                          "aten::select",
                                                          "aten::t",
                                                          "aten::alias",
                                                          "aten::resolve_",
                                                          "aten::lift_fresh",
                                                          "aten::narrow",
                                                          "aten::to",
                                                          "aten::_unsafe_view",
                                                          "aten::set_",
                                                          "aten::resize_",
                                                          "aten::item",
                                                          "aten::_local_scalar_dense",
                                                          "detach"};
  for (const char* entry : *names) {
    if (name == entry || (absl::StartsWith(name, entry) && name.size() > std::string(entry).size() &&
                          (name[std::string(entry).size()] == '_' || absl::EndsWith(entry, "_")))) {
      return true;
    }
  }
  return false;
}

}  // namespace

CodeOrigin OriginOfLibrary(const std::string& path) {
  const std::string name = absl::AsciiStrToLower(BaseName(path));
  // Where a candidate can write, a name says nothing: a copy of a library may be called libc.so.6 there.
  const bool writable = StartsWithAny(path, {"/tmp/", "/var/tmp/", "/dev/shm/"}) || path.rfind('/') == 0;
  if (StartsWithAny(name, {"libtorch", "libaten", "libc10", "libcaffe", "libshm", "libtriton"})) {
    return CodeOrigin::kTorch;
  }
  if (StartsWithAny(name, {"libcublas",   "libcudnn",     "libcufft",   "libcurand",  "libcusolver",  "libcusparse",
                           "libcutensor", "libnpp",       "libnvinfer", "libnccl",    "libcutlass",   "libmkl",
                           "libopenblas", "libblas",      "libcblas",   "liblapack",  "libatlas",     "libdnnl",
                           "libmkldnn",   "libnnpack",    "libqnnpack", "libxnnpack", "libsleef",     "libfftw",
                           "libblis",     "libflexiblas", "libonednn",  "libgsl",     "libarmadillo", "libxsmm"})) {
    return CodeOrigin::kLibrary;
  }
  if (absl::StartsWith(name, "memfd:grove-object")) return CodeOrigin::kHarmless;
  if (!writable &&
      StartsWithAny(name,
                    {"libcudart",      "libcuda.",   "libcuda-",    "libnvrtc",  "libnvjitlink", "libnvptxcompiler",
                     "libnvidia-",     "libnvvm",    "libnvfatbin", "libcupti",  "libc.so",      "libc-",
                     "libm.so",        "libm-",      "libgcc_s",    "libstdc++", "libgomp",      "libiomp",
                     "libomp",         "libpthread", "libdl",       "librt",     "ld-linux",     "ld-",
                     "libmvec",        "libutil",    "libquadmath", "libatomic", "libnss",       "libresolv",
                     "grove-candidate"})) {
    return CodeOrigin::kHarmless;
  }
  return CodeOrigin::kOwn;
}

CodeOrigin OriginOfKernel(const std::string& name, const v1::BuildReport& build, bool operators) {
  if (operators) {
    if (absl::StartsWith(name, "ProfilerStep") || absl::StartsWith(name, "cuda")) return CodeOrigin::kHarmless;
    if (Bookkeeping(name)) return CodeOrigin::kHarmless;
    if (absl::StrContains(name, "aten::") || absl::StrContains(name, "mkldnn::") ||
        absl::StrContains(name, "quantized::") || absl::StrContains(name, "torch_") ||
        absl::StrContains(name, "prims::")) {
      return CodeOrigin::kTorch;
    }
    return CodeOrigin::kOwn;
  }
  const std::string stem = KernelStem(name);
  for (const v1::KernelResources& kernel : build.kernels()) {
    if (KernelStem(kernel.name()) == stem) return CodeOrigin::kOwn;
  }
  const std::string lower = absl::AsciiStrToLower(name);
  if (ContainsAny(lower, {"at::native", "at::cuda", "at_cuda_detail", "c10::", "at::", "caffe2::"})) {
    return CodeOrigin::kTorch;
  }
  if (ContainsAny(lower, {"cublas",        "cudnn",      "cutlass",    "cufft",    "curand",    "cusolver",
                          "cusparse",      "cutensor",   "gemm",       "gemv",     "xmma",      "implicit_convolve",
                          "winograd",      "nchwtonhwc", "nhwctonchw", "nvjet",    "flash_fwd", "fmha",
                          "pytorch_flash", "splitk",     "cub::",      "thrust::", "_sgemm",    "nccl"})) {
    return CodeOrigin::kLibrary;
  }
  // Compiled while it ran (Triton, NVRTC): such kernels have plain C names. What else has a C++ signature and is not
  // from this build is torch's.
  return name.find_first_of("(<: ") == std::string::npos ? CodeOrigin::kOwn : CodeOrigin::kTorch;
}

std::optional<std::string> JudgeWork(const v1::Candidate& candidate, const v1::EvaluationOptions& options,
                                     const std::set<std::string>& before, const std::set<std::string>& after,
                                     v1::EvaluationResult* result) {
  const v1::WorkPolicy policy =
      options.work() == v1::WORK_POLICY_UNSPECIFIED ? v1::WORK_POLICY_ANYTHING : options.work();
  v1::WorkReport* work = result->mutable_work();
  work->set_policy(policy);
  const bool python = candidate.format() == v1::CANDIDATE_FORMAT_KERNELBENCH;
  const bool cpu = result->device().kind() != v1::DEVICE_KIND_CUDA;
  std::optional<std::string> breach;
  auto accuse = [&](const std::string& evidence) {
    if (!breach.has_value()) breach = evidence;
  };

  for (const std::string& file : after) {
    if (before.count(file) != 0) continue;
    const CodeOrigin origin = OriginOfLibrary(file);
    if (absl::StartsWith(BaseName(file), "memfd:grove-object")) continue;
    if (work->libraries_size() < kMaxLibraries) work->add_libraries(BaseName(file));
    if (policy == v1::WORK_POLICY_ANYTHING) continue;
    if (origin == CodeOrigin::kTorch || (origin == CodeOrigin::kLibrary && policy == v1::WORK_POLICY_OWN_KERNELS)) {
      accuse(absl::StrCat("it loaded ", BaseName(file), " while it worked"));
    } else if (origin == CodeOrigin::kOwn && !python) {
      // A native candidate's object is the one file that was built for it.
      if (cpu || file != "[anonymous]") {
        accuse(file == "[anonymous]" ? "it ran code that belongs to no file"
                                     : absl::StrCat("it loaded code that is not its own object: ", BaseName(file)));
      }
    }
  }

  if (!python) {
    if (work->how().empty()) {
      work->set_how(
          "libraries with code in the candidate's processes, from the kernel's books; a native candidate can launch "
          "nothing that is in none of them");
    }
    if (!breach.has_value() && policy != v1::WORK_POLICY_ANYTHING) work->set_own_share(1);
  } else if (work->kernels_size() > 0) {
    // The share of what is not the candidate's own, by what the observation could name.
    double foreign = 0;
    std::string worst;
    double worst_share = 0;
    const bool operators = absl::StrContains(work->how(), "operators");
    for (v1::KernelProfile& kernel : *work->mutable_kernels()) {
      const CodeOrigin origin = OriginOfKernel(kernel.name(), result->build(), operators);
      kernel.set_own(origin == CodeOrigin::kOwn);
      const bool allowed = origin == CodeOrigin::kOwn || origin == CodeOrigin::kHarmless ||
                           (origin == CodeOrigin::kLibrary && policy == v1::WORK_POLICY_LIBRARIES);
      if (allowed) continue;
      foreign += kernel.share();
      if (kernel.share() > worst_share) worst_share = kernel.share(), worst = kernel.name();
    }
    work->set_own_share(std::clamp(1 - foreign, 0.0, 1.0));
    if (policy != v1::WORK_POLICY_ANYTHING && foreign > kForeignShare) {
      accuse(absl::StrFormat("%.0f %% of the time of a call was not the candidate's own, most of it in %s (%.0f %%)",
                             100 * foreign, worst, 100 * worst_share));
    }
  } else if (policy != v1::WORK_POLICY_ANYTHING) {
    // Nothing seen is nothing proven; a call that runs no kernel and no operator is the candidate's own on a CPU.
    if (!cpu) accuse("no kernel of it was seen, so that nothing shows whose the work is");
    if (cpu) work->set_own_share(1);
  }
  return breach;
}

}  // namespace grove::worker
