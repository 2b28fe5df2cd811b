#include "worker/pipeline/work_policy.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "worker/pipeline/format.h"

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
  // As the C++ library writes it, and as NVIDIA's tools do.
  for (const absl::string_view anonymous : {"(anonymous namespace)", "<unnamed>"}) {
    for (size_t at; (at = name.find(std::string(anonymous))) != std::string::npos;) name.erase(at, anonymous.size());
  }
  std::string stem = name.substr(0, name.find_first_of("(<"));
  if (const size_t at = stem.find_last_of(" :"); at != std::string::npos) stem = stem.substr(at + 1);
  return stem;
}

// A demangled signature without what tools write differently.
std::string Signature(std::string name) {
  absl::StrReplaceAll({{"(anonymous namespace)::", ""}, {"<unnamed>::", ""}, {" ", ""}}, &name);
  if (absl::StartsWith(name, "void")) name.erase(0, 4);
  return name;
}

bool StartsWithAny(const std::string& name, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const char* prefix) { return absl::StartsWith(name, prefix); });
}

bool ContainsAny(const std::string& name, std::initializer_list<const char*> parts) {
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

// Where CPU time went, in shares of what was the candidate's, others', and calling either.
struct Watched {
  bool enough = false;
  double own = 0, foreign = 0, calling = 0;
  double beyond = 0, error = 0;           // foreign less what calling excuses, and its standard error
  double at_once = 0, at_once_error = 0;  // the same of the time that passed: some thread was there
  double somewhere = 0;                   // of the time that passed, with some thread in foreign code
  std::string worst;                      // of the foreign files
};

constexpr char kDeleted[] = " (deleted)";

// Where a candidate can write, a name says nothing: a copy of a library may be called libc.so.6 there. Memory without a
// file has a name of the candidate's own, slashes and all, behind one of the kernel's, and kDeleted behind it.
bool Writable(const std::string& path) {
  return StartsWithAny(path, {"/tmp/", "/var/tmp/", "/dev/", "/memfd:"}) || absl::EndsWith(path, kDeleted) ||
         path.rfind('/') == 0;
}

// The interpreter, what it imports, and the parts of torch that find operators and make tensors.
bool Calling(const std::string& path) {
  return StartsWithAny(BaseName(path), {"python3", "libpython", "libtorch_python", "libc10", "libshm"}) ||
         absl::StrContains(path, "/lib-dynload/");
}

// What was there before the program was loaded cannot be an object of the candidate's with a fitting name. (Its path
// may be another one since: a package that is replaced leaves a file that is deleted.)
const sandbox::MappedCode* WasThere(const SeenCode& code, const sandbox::MappedCode& mapped) {
  for (const sandbox::MappedCode& before : code.before) {
    if (before.file == mapped.file && before.file.inode != 0 && !before.changed && !mapped.changed) return &before;
  }
  return nullptr;
}

CodeOrigin OriginOf(const SeenCode& code, const sandbox::MappedCode& mapped) {
  const sandbox::MappedCode* before = WasThere(code, mapped);
  if (before == nullptr) return OriginOfLibrary(mapped.path);
  return OriginOfLibrary(std::string(absl::StripSuffix(before->path, kDeleted)));
}

// A vendor's library, and not what the candidate calls one.
bool IsVendors(CodeOrigin origin, const sandbox::MappedCode& mapped) {
  return origin == CodeOrigin::kLibrary && !Writable(mapped.path);
}

enum class Whose { kOwn, kForeign, kCalling, kNobodys };

Whose WhoseIs(const SeenCode& code, const sandbox::MappedCode& mapped, v1::WorkPolicy policy) {
  const CodeOrigin origin = OriginOf(code, mapped);
  if (code.objects.count(mapped.file) != 0) return Whose::kOwn;
  if (Calling(mapped.path) && (WasThere(code, mapped) != nullptr || !Writable(mapped.path))) return Whose::kCalling;
  if (IsVendors(origin, mapped) && policy == v1::WORK_POLICY_LIBRARIES) return Whose::kOwn;
  return origin == CodeOrigin::kHarmless ? Whose::kNobodys : Whose::kForeign;
}

// WhoseIs of each file once: there are thousands of looks.
class Owners {
 public:
  Owners(const SeenCode& code, v1::WorkPolicy policy) : code_(code), policy_(policy) {}
  Whose Of(const sandbox::MappedCode& mapped) {
    const auto known = known_.find(mapped);
    return known != known_.end() ? known->second
                                 : known_.emplace(mapped, WhoseIs(code_, mapped, policy_)).first->second;
  }

 private:
  const SeenCode& code_;
  const v1::WorkPolicy policy_;
  std::map<sandbox::MappedCode, Whose> known_;
};

// By the time that passed, and not by what all threads together took of it: a thread that works for others is there
// whatever spins beside it, in the interpreter or in code of the candidate's own, and takes turns with it.
void SumLooks(const SeenCode& code, Owners* owners, Watched* sum) {
  double all = 0, foreign = 0, calling = 0, squares = 0;
  for (const std::vector<Standing>& look : code.watched->looks) {
    double longest[4] = {};
    for (const Standing& thread : look) {
      double& its = longest[static_cast<int>(owners->Of(thread.code))];
      its = std::max(its, thread.ran);
    }
    const auto of = [&longest](Whose whose) { return longest[static_cast<int>(whose)]; };
    const double ran = std::max({of(Whose::kOwn), of(Whose::kForeign), of(Whose::kCalling)});
    all += ran;
    squares += ran * ran;
    foreign += of(Whose::kForeign);
    // Calling excuses by time of its own alone.
    if (of(Whose::kForeign) == 0) calling += of(Whose::kCalling);
  }
  if (!(all > 0)) return;
  sum->somewhere = foreign / all;
  sum->at_once = (foreign - calling) / all;
  sum->at_once_error = std::sqrt(sum->somewhere * (1 - sum->somewhere) * squares) / all;
}

// CPU seconds of one thread, by whose code it stood in.
struct ThreadTime {
  double of[4] = {};
  double own() const { return of[static_cast<int>(Whose::kOwn)]; }
  double foreign() const { return of[static_cast<int>(Whose::kForeign)]; }
  double calling() const { return of[static_cast<int>(Whose::kCalling)]; }
  double all() const { return own() + foreign() + calling() + of[static_cast<int>(Whose::kNobodys)]; }
  // A thread that only calls works for nobody, and excuses nobody.
  bool Works() const { return own() + foreign() > 0; }
};

struct ThreadTimes {
  std::map<pid_t, ThreadTime> threads;
  double all = 0;        // with what stood in system calls
  double telling = 0;    // own, foreign and calling of the threads that work
  double all_looks = 0;  // that all of it is worth

  bool Enough(double seconds) const {
    return seconds >= kLeastWatched && all > 0 && all_looks * seconds / all >= kLeastLooks;
  }
};

ThreadTimes ByThread(const SeenCode& code, Owners* owners) {
  ThreadTimes times;
  for (const std::vector<Standing>& look : code.watched->looks) {
    for (const Standing& thread : look) {
      times.threads[thread.thread].of[static_cast<int>(owners->Of(thread.code))] += thread.ran;
    }
  }
  times.all = code.watched->system_seconds;
  for (const auto& [thread, its] : times.threads) {
    times.all += its.all();
    if (its.Works()) times.telling += its.own() + its.foreign() + its.calling();
  }
  if (code.watched->squares > 0) times.all_looks = times.all * times.all / code.watched->squares;
  return times;
}

constexpr double kMostEnded = 0.05;  // of the time that passed: half of what code of others may have

// Of the time that passed, that of threads which nobody saw: what spins beside them dilutes nothing.
double EndedShare(const WatchedWork& watched) {
  if (!watched.problem.empty()) return 0;  // nobody can say which threads were there
  const double all = watched.passed_seconds + watched.ended_seconds;
  return all > 0 ? watched.ended_seconds / all : 0;
}

// Of the files of others, the one in which most time was spent.
std::string WorstFile(const SeenCode& code, Owners* owners) {
  std::map<std::string, double> seconds;
  for (const std::vector<Standing>& look : code.watched->looks) {
    for (const Standing& thread : look) {
      if (owners->Of(thread.code) == Whose::kForeign) seconds[BaseName(thread.code.path)] += thread.ran;
    }
  }
  const auto worst = std::max_element(seconds.begin(), seconds.end(),
                                      [](const auto& one, const auto& other) { return one.second < other.second; });
  return worst == seconds.end() ? "" : worst->first;
}

Watched Sum(const SeenCode& code, v1::WorkPolicy policy) {
  Owners owners(code, policy);
  const ThreadTimes times = ByThread(code, &owners);
  Watched sum;
  sum.enough = times.Enough(times.telling);
  if (!sum.enough) return sum;
  for (const auto& [thread, its] : times.threads) {
    if (!its.Works()) continue;
    sum.own += its.own() / times.telling;
    sum.foreign += its.foreign() / times.telling;
    sum.calling += its.calling() / times.telling;
    sum.beyond += std::max(0.0, its.foreign() - its.calling()) / times.telling;
  }
  const double looks = times.all_looks * times.telling / times.all;
  sum.error = std::sqrt(std::max(0.0, sum.foreign * (1 - sum.foreign)) / looks);
  sum.worst = WorstFile(code, &owners);
  SumLooks(code, &owners, &sum);
  return sum;
}

// A name as the generators of vendors' libraries make them: sm80_xmma_gemm_..., nvjet_tst_...
bool Generated(absl::string_view name) {
  if (absl::ConsumePrefix(&name, "sm")) {
    while (!name.empty() && absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) name.remove_prefix(1);
    absl::ConsumePrefix(&name, "_");
  }
  return absl::StartsWith(name, "xmma_") || absl::StartsWith(name, "nvjet_");
}

}  // namespace

CodeOrigin OriginOfLibrary(const std::string& path) {
  const std::string name = absl::AsciiStrToLower(BaseName(path));
  const bool writable = Writable(path);
  if (StartsWithAny(name, {"libtorch", "libaten", "libc10", "libcaffe", "libshm"})) {
    return CodeOrigin::kTorch;
  }
  if (StartsWithAny(name, {"libcublas",   "libcudnn",     "libcufft",   "libcurand",  "libcusolver",  "libcusparse",
                           "libcutensor", "libnpp",       "libnvinfer", "libnccl",    "libcutlass",   "libmkl",
                           "libopenblas", "libblas",      "libcblas",   "liblapack",  "libatlas",     "libdnnl",
                           "libmkldnn",   "libnnpack",    "libqnnpack", "libxnnpack", "libsleef",     "libfftw",
                           "libblis",     "libflexiblas", "libonednn",  "libgsl",     "libarmadillo", "libxsmm"})) {
    return CodeOrigin::kLibrary;
  }
  if (!writable && StartsWithAny(name, {"libcudart",   "libcuda.",        "libcuda-",
                                        "libnvrtc",    "libnvjitlink",    "libnvptxcompiler",
                                        "libtriton",   "libnvidia-",      "libnvvm",
                                        "libnvfatbin", "libcupti",        "libc.so",
                                        "libc-",       "libm.so",         "libm-",
                                        "libgcc_s",    "libstdc++",       "libgomp",
                                        "libiomp",     "libomp",          "libpthread",
                                        "libdl",       "librt",           "ld-linux",
                                        "ld-",         "libmvec",         "libutil",
                                        "libquadmath", "libatomic",       "libnss",
                                        "libresolv",   "grove-candidate", "libgrove-shareable-memory"})) {
    return CodeOrigin::kHarmless;
  }
  return CodeOrigin::kOwn;
}

CodeOrigin OriginOfKernel(const std::string& name, bool operators, const std::vector<std::string>& functions) {
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
  const std::string lower = absl::AsciiStrToLower(name);
  if (ContainsAny(lower, {"at::native", "at::cuda", "at_cuda_detail", "c10::", "at::", "caffe2::"})) {
    return CodeOrigin::kTorch;
  }
  // A matrix product of its own may be called gemm; what stands in a library's namespace, or has the name of its
  // generators, is the library's, also where it was linked into an extension.
  if (!ContainsAny(lower, {"cublas", "cudnn", "cutlass::", "cub::", "thrust::"}) && !Generated(lower)) {
    const std::string signature = Signature(name);
    for (const std::string& function : functions) {
      if (Signature(function) == signature) return CodeOrigin::kOwn;
    }
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

bool SameKernel(const std::string& one, const std::string& other) { return KernelStem(one) == KernelStem(other); }

bool SeenEnough(const SeenCode& code) {
  if (!code.watched.has_value()) return false;
  if (!code.watched->problem.empty()) return true;
  // (Which policy does not matter: what is not the candidate's is foreign under each, and either is work.)
  Owners owners(code, v1::WORK_POLICY_OWN_KERNELS);
  const ThreadTimes times = ByThread(code, &owners);
  // Where some thread does more than call, it has to be seen: what spins beside it says nothing.
  return times.Enough(times.telling > 0 ? times.telling : times.all);
}

std::optional<std::string> WorkUnseen(const v1::Candidate& candidate, const SeenCode& code) {
  if (!IsPython(candidate) &&
      std::none_of(code.after.begin(), code.after.end(),
                   [&](const sandbox::MappedCode& mapped) { return code.objects.count(mapped.file) != 0; })) {
    return "its own object was not seen in its memory";
  }
  if (!code.watched.has_value()) return "its threads were not looked at";
  // (All that a native candidate can run is known by what is in its memory.)
  const double ended = IsPython(candidate) ? EndedShare(*code.watched) : 0;
  if (ended > kMostEnded) {
    return absl::StrFormat(
        "%.0f %% of its time was that of threads or processes that had ended before they could be looked at; threads "
        "that stay (a pool) can be seen",
        100 * ended);
  }
  if (SeenEnough(code)) return std::nullopt;
  return absl::StrCat("its threads were found running ", code.watched->seen,
                      " times, which is too little; on a quieter machine it may be seen");
}

std::optional<std::string> JudgeWork(const v1::Candidate& candidate, const v1::EvaluationOptions& options,
                                     const SeenCode& code, v1::EvaluationResult* result) {
  const v1::WorkPolicy policy =
      options.work() == v1::WORK_POLICY_UNSPECIFIED ? v1::WORK_POLICY_ANYTHING : options.work();
  v1::WorkReport* work = result->mutable_work();
  work->set_policy(policy);
  const bool python = IsPython(candidate);
  const bool cpu = result->device().kind() != v1::DEVICE_KIND_CUDA;
  std::optional<std::string> breach;
  auto accuse = [&](const std::string& evidence) {
    if (!breach.has_value()) breach = evidence;
  };

  bool own_code = false, library = false;
  for (const sandbox::MappedCode& mapped : code.after) {
    const std::string name = BaseName(mapped.path);
    if (code.objects.count(mapped.file) != 0) {
      own_code = true;
      if (mapped.changed && cpu) accuse("it wrote other code over that of the object that was built for it");
      continue;
    }
    if (code.before.count(mapped) != 0 || WasThere(code, mapped) != nullptr) continue;
    if (mapped.changed && code.before.count({mapped.path, mapped.file, false}) != 0) {
      // Of a script nobody has asked whether its libraries were as they are from the start.
      if (cpu && !python) accuse(absl::StrCat("it wrote other code over that of ", name));
      continue;
    }
    const CodeOrigin origin = OriginOf(code, mapped);
    library = library || IsVendors(origin, mapped);
    if (work->libraries_size() < kMaxLibraries) work->add_libraries(name);
    if (policy == v1::WORK_POLICY_ANYTHING) continue;
    if (origin == CodeOrigin::kTorch ||
        (origin == CodeOrigin::kLibrary && (policy == v1::WORK_POLICY_OWN_KERNELS || !IsVendors(origin, mapped)))) {
      accuse(absl::StrCat("it loaded ", name, " while it worked"));
    } else if (!python && (origin == CodeOrigin::kOwn || mapped.changed)) {
      // A native candidate's object is the one file that was built for it.
      if (cpu || mapped.path != "[anonymous]") {
        accuse(mapped.path == "[anonymous]" ? "it ran code that belongs to no file"
                                            : absl::StrCat("it loaded code that is not its own object: ", name));
      }
    }
  }
  if (policy == v1::WORK_POLICY_ANYTHING) breach.reset();

  if (!python) {
    if (work->how().empty()) {
      // What there was is known, and not how long any of it ran: no share.
      work->set_how(absl::StrCat(
          "the kernel's books of the code in its processes: ", own_code ? "its own object" : "its own object not seen",
          work->libraries().empty() ? ", and nothing else since its start" : ", and what is named here",
          "; a native candidate can launch nothing that is not there; how long each ran was not observed"));
    }
    return breach;
  }
  if (work->kernels_size() > 0) {
    // The share of what is not the candidate's own, by what the observation could name.
    double foreign = 0;
    std::string worst;
    double worst_share = 0;
    const bool operators = absl::StrContains(work->how(), "operators");
    for (v1::KernelProfile& kernel : *work->mutable_kernels()) {
      const CodeOrigin origin = OriginOfKernel(kernel.name(), operators, code.functions);
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
    // A call of the candidate's own code alone runs no operator that torch knows of, and then only looking from outside
    // tells a share; on a GPU it runs kernels.
    if (!cpu) accuse("no kernel of it was seen, so that nothing shows whose the work is");
  }
  if (policy == v1::WORK_POLICY_ANYTHING || !cpu) return breach;

  // What a profiler in its own process may not see, or may be kept from seeing.
  const bool no_code = !own_code && !(library && policy == v1::WORK_POLICY_LIBRARIES);
  if (no_code) {
    accuse("it never had code of its own in memory, so that nothing but torch and Python can have done the work");
    work->set_own_share(0);
  }
  if (!code.watched.has_value()) return breach;
  const Watched watched = Sum(code, policy);
  if (!watched.enough) {
    absl::StrAppend(work->mutable_how(), "; from outside too little of it was seen to say more",
                    code.watched->problem.empty() ? "" : ": ", code.watched->problem);
    return breach;
  }
  const std::string seen = absl::StrFormat(
      "threads found running %d times from outside: %.0f %% of their CPU time in its own code, %.0f %% in torch and "
      "other code, %.0f %% in calling",
      code.watched->seen, 100 * watched.own, 100 * watched.foreign, 100 * watched.calling);
  absl::StrAppend(work->mutable_how(), work->how().empty() ? "" : "; ", seen);
  const double outside = std::clamp(1 - std::max(watched.beyond, watched.at_once), 0.0, 1.0);
  if (!no_code) work->set_own_share(work->kernels().empty() ? outside : std::min(work->own_share(), outside));
  if (watched.beyond - 3 * watched.error > kForeignWatched) {
    accuse(absl::StrFormat("%.0f %% of the CPU time of its threads was spent in code of others, most of it in %s",
                           100 * watched.foreign, watched.worst));
  } else if (watched.at_once - 3 * watched.at_once_error > kForeignWatched) {
    accuse(absl::StrFormat(
        "in %.0f %% of the time that its runs took some thread of it was in code of others, most of it in %s",
        100 * watched.somewhere, watched.worst));
  }
  return breach;
}

void MergeWork(const v1::Candidate& candidate, const v1::EvaluationOptions& options, const SeenCode& code,
               const std::string& no_functions, bool watched, v1::EvaluationResult* result) {
  const auto breach = JudgeWork(candidate, options, code, result);
  if (result->verdict() != v1::VERDICT_CORRECT) return;
  const auto untold = [&](const std::string& why) {
    result->set_verdict(v1::VERDICT_UNMEASURABLE);
    result->set_reason(absl::StrCat("whose work it is, as the job requires, could not be told: ", why));
    result->clear_timing();
  };
  if (breach.has_value() && !no_functions.empty()) {
    untold(absl::StrCat(*breach, ", and the functions of its extensions are not known: ", no_functions));
  } else if (breach.has_value()) {
    result->set_verdict(v1::VERDICT_CHEATED);
    result->set_reason(absl::StrCat("the work is not the candidate's own, as the job requires: ", *breach));
    result->mutable_fault()->set_stage("check");
    result->mutable_fault()->set_evidence(absl::StrCat(*breach, " (", result->work().how(), ")"));
  } else if (watched) {
    if (const auto unseen = WorkUnseen(candidate, code); unseen.has_value()) untold(*unseen);
  }
}

}  // namespace grove::worker
