#include "worker/build/builder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "worker/build/elf_symbols.h"
#include "worker/build/flags.h"
#include "worker/build/ptxas.h"
#include "worker/sandbox/limits.h"

namespace grove::build {
namespace {

using sandbox::Ending;

constexpr size_t kMaxSourceBytes = 1 << 20;
constexpr int64_t kMaxLogBytes = 256 << 10;
// Room for what compilers write beside the object: preprocessed text, assembly, one file per stage.
constexpr int64_t kTemporaryBytes = int64_t{256} << 20;
// More than this on stderr is no error message but an attack on whoever reads it.
constexpr int64_t kMaxCompilerOutput = int64_t{16} << 20;
constexpr int kBuildProcesses = 256;
// A failed build whose folder was ever so full failed for want of room. Compilers write what they hold in memory at
// once, and a file that does not fit ends at the brim, so that less than all was used by what came before.
constexpr double kFull = 0.85;
constexpr size_t kMaxExtensions = 16;     // descriptors per frame, docs/protocol.md
constexpr int kExitExtensionFailed = 10;  // record_extensions.py

// "sm_90" -> "90a": from Hopper on, the instructions that matter most exist only in the architecture's own target.
std::string CudaTarget(const std::string& arch) {
  std::string digits;
  for (char c : arch) {
    if (c >= '0' && c <= '9') digits += c;
  }
  if (digits.empty()) digits = "80";
  return std::stoi(digits) >= 90 ? absl::StrCat(digits, "a") : digits;
}

// "sm_90" -> "9.0a", as TORCH_CUDA_ARCH_LIST takes it; torch 1.x knows no "a".
std::string TorchArch(const std::string& arch, const std::string& torch_version) {
  std::string target = CudaTarget(arch);
  const bool suffix = target.back() == 'a';
  if (suffix) target.pop_back();
  const std::string number = absl::StrCat(target.substr(0, target.size() - 1), ".", target.substr(target.size() - 1));
  return suffix && !absl::StartsWith(torch_version, "1.") ? absl::StrCat(number, "a") : number;
}

bool IsUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const int more = c < 0x80 ? 0 : (c >> 5) == 6 ? 1 : (c >> 4) == 14 ? 2 : (c >> 3) == 30 ? 3 : -1;
    if (more < 0 || i + static_cast<size_t>(more) >= text.size()) return false;
    for (int k = 1; k <= more; ++k) {
      if ((static_cast<unsigned char>(text[i + static_cast<size_t>(k)]) >> 6) != 2) return false;
    }
    i += static_cast<size_t>(more) + 1;
  }
  return true;
}

// Protobuf strings must be UTF-8, and a compiler may quote any byte of a source.
std::string RepairUtf8(std::string text) {
  if (IsUtf8(text)) return text;
  for (char& c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return text;
}

std::string CheckSource(const v1::Candidate& candidate) {
  const std::string& source = candidate.source();
  if (source.empty()) return "the candidate's source is empty";
  if (source.size() > kMaxSourceBytes) {
    return absl::StrCat("the candidate's source has ", source.size(), " bytes; at most ", kMaxSourceBytes,
                        " are accepted");
  }
  if (source.find('\0') != std::string::npos) return "the candidate's source has a NUL character; it must be text";
  if (!IsUtf8(source)) return "the candidate's source is not UTF-8 text";
  return "";
}

BuildOutcome Failed(std::string reason, std::string log = "") {
  BuildOutcome outcome;
  outcome.verdict = v1::VERDICT_BUILD_FAILED;
  outcome.report.set_ok(false);
  outcome.report.set_log(log.empty() ? reason : std::move(log));
  outcome.reason = std::move(reason);
  return outcome;
}

// First line that looks like the compiler's complaint.
std::string FirstError(const std::string& log) {
  size_t begin = 0;
  std::string first;
  while (begin < log.size()) {
    size_t end = log.find('\n', begin);
    if (end == std::string::npos) end = log.size();
    const std::string line = log.substr(begin, end - begin);
    if (first.empty() && !line.empty()) first = line;
    if (absl::StrContains(line, "error") || absl::StrContains(line, "undefined reference")) return line.substr(0, 300);
    begin = end + 1;
  }
  return first.substr(0, 300);
}

void AddFault(const Ending& ending, const v1::Limits& limits, BuildOutcome* outcome) {
  v1::FaultReport& fault = outcome->fault;
  fault.set_stage("build");
  fault.set_limit(ending.limit);
  fault.set_limit_set(ending.limit == "build_output_bytes" ? static_cast<double>(limits.build_output_bytes())
                                                           : ending.limit_set);
  fault.set_limit_reached(std::max(ending.limit_reached, fault.limit_set()));
  outcome->verdict = ending.limit == "build_wall_seconds" ? v1::VERDICT_TIMED_OUT : v1::VERDICT_LIMIT_EXCEEDED;
  outcome->reason = absl::StrCat("the build was ended: ", ending.limit, " is ", fault.limit_set(), ", reached ",
                                 fault.limit_reached());
}

sandbox::SandboxSpec BaseSpec(const v1::Limits& limits) {
  sandbox::SandboxSpec spec;
  spec.label = "build";
  spec.names = {"build_wall_seconds", "build_cpu_seconds",  "build_memory_bytes",
                "processes",          "build_output_bytes", "build_output_bytes"};
  spec.bounds.wall = absl::Seconds(limits.build_wall_seconds());
  spec.bounds.cpu_seconds = limits.build_cpu_seconds();
  spec.bounds.memory_bytes = limits.build_memory_bytes();
  spec.bounds.processes = kBuildProcesses;
  spec.bounds.disk_bytes = 2 * (limits.build_output_bytes() + kTemporaryBytes);
  spec.bounds.output_bytes = kMaxCompilerOutput;
  spec.kept_output_bytes = kMaxLogBytes;
  return spec;
}

absl::StatusOr<Ending> RunToEnd(sandbox::SandboxedProcess& process, const std::function<bool()>& cancelled) {
  while (!process.WaitFor(absl::Milliseconds(50))) {
    if (cancelled && cancelled()) {
      process.Kill();
      process.Wait();
      return absl::CancelledError("the build was cancelled");
    }
  }
  return process.Wait();
}

void AppendUnique(std::vector<std::string>* to, const std::vector<std::string>& from) {
  for (const std::string& item : from) {
    if (std::find(to->begin(), to->end(), item) == to->end()) to->push_back(item);
  }
}

// Only decides whether the small headers are got ready.
bool WantsGlue(const std::string& source) {
  return absl::StrContains(source, "load_inline(") || absl::StrContains(source, "torch/extension.h");
}

std::string CpuFlagsHash() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, name, flags;
  while (std::getline(file, line) && (name.empty() || flags.empty())) {
    if (absl::StartsWith(line, "model name")) name = line;
    if (absl::StartsWith(line, "flags")) flags = line;
  }
  return Sha256HexOfParts({name, flags});
}

}  // namespace

bool MentionsExtensions(const std::string& source) {
  return absl::StrContains(source, "cpp_extension") || absl::StrContains(source, "load_inline");
}

Builder::Builder(BuilderOptions options)
    : options_(std::move(options)), machine_(CpuFlagsHash()), cache_(options_.cache_dir, options_.cache_bytes) {}

absl::StatusOr<std::unique_ptr<Builder>> Builder::Create(BuilderOptions options) {
  std::unique_ptr<Builder> builder(new Builder(std::move(options)));
  auto header = ReadFile(absl::StrCat(builder->options_.include_dir, "/grove/kernel.h"), 1 << 20);
  if (!header.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("grove/kernel.h is missing from this installation: ", header.status().message()));
  }
  builder->kernel_header_ = *std::move(header);
  if (builder->options_.glue_folders.empty()) {
    builder->options_.glue_folders = {absl::StrCat(builder->options_.cache_dir, "/torch-glue")};
  }
  // What turns a candidate's calls into objects is part of what the objects depend on.
  for (const char* name : {"record_extensions.py", "extension_key.py"}) {
    auto text = ReadFile(absl::StrCat(builder->options_.libexec_dir, "/", name), 1 << 20);
    if (text.ok()) builder->support_ = Sha256HexOfParts({builder->support_, *text});
  }
  if (auto glue = builder->GlueOptions(); glue.has_value()) {
    if (auto key = TorchGlueKey(*glue); key.ok()) builder->support_ = Sha256HexOfParts({builder->support_, *key});
  }
  return builder;
}

std::string Builder::Toolkit() const {
  if (options_.device.kind() == v1::DEVICE_KIND_CUDA) return options_.nvcc ? options_.nvcc->version : "";
  return options_.cxx ? options_.cxx->version : "";
}

absl::StatusOr<InstructionMix> Builder::Instructions(const std::vector<BuiltObject>& objects,
                                                     const std::function<bool()>& cancelled) const {
  if (!options_.nvcc) return absl::NotFoundError(options_.nvcc_missing);
  return CountInstructions(options_.host, *options_.nvcc, objects, cancelled);
}

std::vector<std::string> Builder::NativeArguments(const v1::Candidate& candidate) const {
  std::vector<std::string> arguments;
  if (candidate.format() == v1::CANDIDATE_FORMAT_CUDA) {
    const std::string target = CudaTarget(options_.device.arch());
    arguments = {"-O3",     "-std=c++17", absl::StrCat("-gencode=arch=compute_", target, ",code=sm_", target),
                 "-shared", "-Xcompiler", "-fPIC",
                 "-Xptxas", "-v",         "-Iinclude"};
  } else {
    arguments = {"-O3", "-march=native", "-fopenmp", "-std=c++20", "-shared", "-fPIC", "-Iinclude"};
  }
  for (const std::string& flag : candidate.build_flags()) arguments.push_back(flag);
  return arguments;
}

std::string Builder::KeyOf(const v1::Candidate& c) const {
  const bool python = c.format() == v1::CANDIDATE_FORMAT_KERNELBENCH;
  std::string tools =
      absl::StrCat(options_.cxx ? options_.cxx->version : "", "|", options_.nvcc ? options_.nvcc->version : "");
  if (python && options_.python) {
    absl::StrAppend(&tools, "|", options_.python->path, "|", options_.python->version, "|",
                    options_.python->torch_version, "|", support_);
  }
  const bool native_cpu = c.format() != v1::CANDIDATE_FORMAT_CUDA;
  return Sha256HexOfParts({absl::StrCat(c.format()), c.source(), python ? "" : absl::StrJoin(NativeArguments(c), "\n"),
                           tools, options_.device.arch(), native_cpu ? machine_ : "", kernel_header_, kVersion,
                           options_.cache_salt});
}

std::optional<TorchGlueOptions> Builder::GlueOptions() const {
  if (!options_.python || !options_.cxx) return std::nullopt;
  TorchGlueOptions glue{options_.libexec_dir, *options_.python, *options_.cxx, ""};
  if (options_.python->torch_cuda && options_.nvcc) glue.cuda_home = options_.nvcc->home;
  return glue;
}

std::string Builder::TorchGlue(const Note& note, double* seconds) {
  std::lock_guard<std::mutex> lock(glue_mutex_);
  if (glue_.has_value()) return *glue_;
  glue_ = "";
  if (auto options = GlueOptions(); options.has_value()) {
    absl::Time begin = absl::InfiniteFuture();
    auto made = FindOrMakeTorchGlue(*options, options_.glue_folders, [&] {
      begin = SteadyNow();
      const std::string what =
          "first use of load_inline on this machine: what extensions are linked with is compiled once";
      LogInfo("build", what);
      if (note) note(what);
    });
    *seconds = std::max(0.0, absl::ToDoubleSeconds(SteadyNow() - begin));
    if (made.ok()) {
      glue_ = *made;
    } else {
      LogWarning("build", "extensions are built with PyTorch's full headers, which is slow: ",
                 std::string(made.status().message()));
    }
  }
  return *glue_;
}

std::string Builder::Scrub(std::string log) const {
  std::vector<std::pair<std::string, std::string>> replacements = {{"/tmp/kernel.", "kernel."}, {"/tmp/", ""}};
  const auto hide = [&](const std::string& folder, const std::string& by) {
    if (folder.size() > 1) replacements.emplace_back(folder, by);
  };
  if (options_.nvcc) {
    hide(options_.nvcc->home, "<cuda>");
    for (const std::string& f : options_.nvcc->folders) hide(f, "<cuda>");
  }
  if (options_.cxx) {
    for (const std::string& f : options_.cxx->folders) hide(f, "<compiler>");
  }
  if (options_.python) {
    for (const std::string& f : options_.python->folders) hide(f, "<python>");
  }
  hide(options_.libexec_dir, "<grove>");
  return RepairUtf8(absl::StrReplaceAll(log, replacements));
}

absl::StatusOr<BuildOutcome> Builder::Build(const v1::Candidate& candidate, const v1::Limits& limits,
                                            const std::function<bool()>& cancelled, const Note& note) {
  if (std::string problem = CheckSource(candidate); !problem.empty()) return Failed(problem);
  const std::vector<std::string> flags(candidate.build_flags().begin(), candidate.build_flags().end());
  if (absl::Status status = CheckFlags(flags, candidate.format()); !status.ok()) {
    return Failed(std::string(status.message()));
  }
  const bool cuda_device = options_.device.kind() == v1::DEVICE_KIND_CUDA;
  switch (candidate.format()) {
    case v1::CANDIDATE_FORMAT_CUDA:
      if (!cuda_device) return Failed("a .cu candidate needs a CUDA device; this worker has the CPU device");
      if (!options_.nvcc) return absl::FailedPreconditionError(options_.nvcc_missing);
      break;
    case v1::CANDIDATE_FORMAT_CPP:
      if (cuda_device) return Failed("a .cpp candidate runs on the CPU device; this worker has a CUDA device");
      if (!options_.cxx) return absl::FailedPreconditionError(options_.cxx_missing);
      break;
    case v1::CANDIDATE_FORMAT_KERNELBENCH:
      if (!options_.python) return absl::FailedPreconditionError(options_.python_missing);
      break;
    default:
      return Failed("the candidate has no format; give .cu, .cpp or .py");
  }

  const std::string key = KeyOf(candidate);
  if (candidate.format() == v1::CANDIDATE_FORMAT_KERNELBENCH && !MentionsExtensions(candidate.source())) {
    BuildOutcome outcome;
    outcome.report.set_ok(true);
    outcome.report.set_key(key);
    outcome.report.set_command("none: plain Python");
    return outcome;
  }

  {
    std::unique_lock<std::mutex> lock(mutex_);
    while (building_.count(key) > 0) {
      changed_.wait_for(lock, std::chrono::milliseconds(50));
      if (cancelled && cancelled()) return absl::CancelledError("the build was cancelled");
    }
    building_.insert(key);
  }
  struct Done {
    Builder* builder;
    const std::string& key;
    ~Done() {
      std::lock_guard<std::mutex> lock(builder->mutex_);
      builder->building_.erase(key);
      builder->changed_.notify_all();
    }
  } done{this, key};

  if (std::optional<CachedBuild> cached = cache_.Get(key); cached.has_value()) {
    BuildOutcome outcome;
    outcome.report = std::move(cached->report);
    outcome.report.set_cached(true);
    outcome.objects = std::move(cached->objects);
    if (!outcome.report.ok()) {
      outcome.verdict = v1::VERDICT_BUILD_FAILED;
      outcome.reason = std::move(cached->reason);
    }
    return outcome;
  }

  const absl::Time begin = SteadyNow();
  double glue_seconds = 0;
  absl::StatusOr<BuildOutcome> outcome = candidate.format() == v1::CANDIDATE_FORMAT_KERNELBENCH
                                             ? BuildPython(candidate, limits, cancelled, key, note, &glue_seconds)
                                             : BuildNative(candidate, limits, cancelled, key);
  if (!outcome.ok()) return outcome;
  outcome->report.set_key(key);
  outcome->report.set_seconds(absl::ToDoubleSeconds(SteadyNow() - begin));
  // What time, memory or a fault of the machine ended says nothing of the source: only answers of the compiler are
  // kept.
  const bool by_compiler =
      outcome->report.ok() || (outcome->verdict == v1::VERDICT_BUILD_FAILED && outcome->fault.signal() == 0);
  if (by_compiler) {
    CachedBuild entry{outcome->report, outcome->reason, outcome->objects};
    if (absl::Status status = cache_.Put(key, entry); !status.ok()) {
      LogWarning("build", "not cached: ", std::string(status.message()));
    }
  }
  // Of this build alone, and so not of what is kept.
  if (glue_seconds > 0) {
    outcome->report.set_command(absl::StrCat(outcome->report.command(), "; ", std::lround(glue_seconds),
                                             " s of it once per machine, to compile what extensions are linked with"));
  }
  return outcome;
}

absl::StatusOr<BuildOutcome> Builder::BuildNative(const v1::Candidate& candidate, const v1::Limits& limits,
                                                  const std::function<bool()>& cancelled, const std::string& key) {
  (void)key;
  const bool cuda = candidate.format() == v1::CANDIDATE_FORMAT_CUDA;
  const device::Compiler& compiler = cuda ? *options_.nvcc : *options_.cxx;
  const std::string file = cuda ? "kernel.cu" : "kernel.cpp";
  sandbox::SandboxSpec spec = BaseSpec(limits);
  spec.argv = {compiler.path};
  const std::vector<std::string> arguments = NativeArguments(candidate);
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  std::string path = "/usr/bin:/bin";
  if (cuda) {
    path = absl::StrCat(std::filesystem::path(compiler.path).parent_path().string(), ":", path);
    if (options_.cxx) {
      spec.argv.push_back(absl::StrCat("-ccbin=", options_.cxx->path));
      AppendUnique(&spec.read_only, options_.cxx->folders);
    }
  }
  for (const char* a : {"-o", "/tmp/kernel.so"}) spec.argv.push_back(a);
  spec.argv.push_back(file);
  AppendUnique(&spec.read_only, compiler.folders);
  spec.env = {absl::StrCat("PATH=", path), "HOME=/tmp", "TMPDIR=/tmp", "LC_ALL=C.UTF-8"};
  spec.files = {{file, candidate.source()}, {"include/grove/kernel.h", kernel_header_}};

  auto process = sandbox::SandboxedProcess::Start(options_.host, std::move(spec));
  if (!process.ok()) return process.status();
  GROVE_ASSIGN_OR_RETURN(Ending ending, RunToEnd(**process, cancelled));

  BuildOutcome outcome;
  v1::BuildReport& report = outcome.report;
  report.set_command(absl::StrCat(cuda ? "nvcc " : "g++ ", absl::StrJoin(arguments, " "), " -o kernel.so ", file));
  std::string log = absl::StrCat(ending.err, ending.out);
  if (cuda) {
    for (v1::KernelResources& kernel : ParsePtxas(log)) *report.add_kernels() = std::move(kernel);
    log = WithoutPtxasLines(log);
  }
  report.set_log(Scrub(std::move(log)));
  report.set_log_truncated(ending.output_truncated);
  switch (ending.kind) {
    case Ending::Kind::kLimit:
      AddFault(ending, limits, &outcome);
      return outcome;
    case Ending::Kind::kKilled:
      return absl::CancelledError("the build was cancelled");
    case Ending::Kind::kSignaled:
      outcome.verdict = v1::VERDICT_BUILD_FAILED;
      outcome.reason = absl::StrCat("the compiler was ended by ", sandbox::SignalName(ending.signal));
      outcome.fault.set_stage("build");
      outcome.fault.set_signal(ending.signal);
      return outcome;
    case Ending::Kind::kExited:
      break;
  }
  if (ending.exit_code != 0) {
    // An assembler that fills its folder says so, takes its files away and ends: what was in use tells it from another
    // failure.
    if (ending.disk_fullest >= kFull) {
      Ending full;
      full.limit = "build_output_bytes";
      AddFault(full, limits, &outcome);
      return outcome;
    }
    outcome.verdict = v1::VERDICT_BUILD_FAILED;
    outcome.reason = FirstError(report.log());
    if (outcome.reason.empty()) outcome.reason = absl::StrCat("the compiler ended with exit code ", ending.exit_code);
    return outcome;
  }
  absl::StatusOr<std::string> object = (*process)->ReadTmpFile("kernel.so", limits.build_output_bytes());
  if (absl::IsResourceExhausted(object.status())) {
    Ending large;
    large.limit = "build_output_bytes";
    AddFault(large, limits, &outcome);
    return outcome;
  }
  if (!object.ok()) {
    outcome.verdict = v1::VERDICT_BUILD_FAILED;
    outcome.reason = absl::StrCat("the compiler left no object: ", object.status().message());
    return outcome;
  }
  absl::StatusOr<std::vector<std::string>> exported = ExportedFunctions(*object);
  std::string problem;
  if (!exported.ok()) {
    problem = std::string(exported.status().message());
  } else if (std::find(exported->begin(), exported->end(), "grove_kernel") == exported->end()) {
    problem =
        "the candidate has no entry point: it must define extern \"C\" int grove_kernel(const grove_args*), which "
        "GROVE_KERNEL(args) { ... } of <grove/kernel.h> writes for you";
    for (const std::string& name : *exported) {
      if (absl::StartsWith(name, "_Z") && absl::StrContains(name, "grove_kernel")) {
        problem = absl::StrCat("grove_kernel is defined as a C++ function (", name,
                               "); declare it extern \"C\", or use GROVE_KERNEL(args) of <grove/kernel.h>");
      }
    }
  }
  if (!problem.empty()) {
    outcome.verdict = v1::VERDICT_BUILD_FAILED;
    outcome.reason = problem;
    report.set_log(absl::StrCat(problem, report.log().empty() ? "" : "\n", report.log()));
    return outcome;
  }
  report.set_ok(true);
  outcome.objects.push_back({"", "", *std::move(object)});
  return outcome;
}

absl::StatusOr<BuildOutcome> Builder::BuildPython(const v1::Candidate& candidate, const v1::Limits& given,
                                                  const std::function<bool()>& cancelled, const std::string& key,
                                                  const Note& note, double* glue_seconds) {
  (void)key;
  const v1::Limits limits = sandbox::BuildLimits(given, candidate.format());
  const device::Python& python = *options_.python;
  sandbox::SandboxSpec spec = BaseSpec(limits);
  spec.identity = true;
  spec.argv = {python.path, absl::StrCat(options_.libexec_dir, "/record_extensions.py"), "/tmp/candidate.py",
               "/tmp/out"};
  spec.read_only = python.folders;
  spec.read_only.push_back(absl::StrCat(options_.libexec_dir, "/record_extensions.py"));
  spec.read_only.push_back(absl::StrCat(options_.libexec_dir, "/extension_key.py"));
  spec.read_only.push_back(absl::StrCat(options_.libexec_dir, "/torch_lite_build.py"));
  if (const std::string glue = WantsGlue(candidate.source()) ? TorchGlue(note, glue_seconds) : ""; !glue.empty()) {
    const std::string lite = absl::StrCat(options_.libexec_dir, "/torch_lite");
    spec.argv.push_back(lite);
    spec.argv.push_back(glue);
    spec.read_only.push_back(lite);
    spec.read_only.push_back(glue);
  }
  std::string path = std::filesystem::path(python.path).parent_path().string();
  spec.env = {"HOME=/tmp",
              "TMPDIR=/tmp",
              "LC_ALL=C.UTF-8",
              "TORCH_EXTENSIONS_DIR=/tmp/build",
              "PYTHONDONTWRITEBYTECODE=1",
              absl::StrCat("MAX_JOBS=", sandbox::UsableThreads())};
  if (options_.cxx) {
    AppendUnique(&spec.read_only, options_.cxx->folders);
    spec.env.push_back(absl::StrCat("CXX=", options_.cxx->path));
    absl::StrAppend(&path, ":", std::filesystem::path(options_.cxx->path).parent_path().string());
  }
  if (options_.nvcc) {
    AppendUnique(&spec.read_only, options_.nvcc->folders);
    spec.env.push_back(absl::StrCat("CUDA_HOME=", options_.nvcc->home));
    absl::StrAppend(&path, ":", std::filesystem::path(options_.nvcc->path).parent_path().string());
  }
  if (options_.device.kind() == v1::DEVICE_KIND_CUDA) {
    spec.env.push_back(absl::StrCat("TORCH_CUDA_ARCH_LIST=", TorchArch(options_.device.arch(), python.torch_version)));
  }
  if (const char* libraries = getenv("LD_LIBRARY_PATH"); libraries != nullptr) {
    spec.env.push_back(absl::StrCat("LD_LIBRARY_PATH=", libraries));
  }
  spec.env.push_back(absl::StrCat("PATH=", path, ":/usr/bin:/bin"));
  spec.files = {{"candidate.py", candidate.source()}};

  auto process = sandbox::SandboxedProcess::Start(options_.host, std::move(spec));
  if (!process.ok()) return process.status();
  GROVE_ASSIGN_OR_RETURN(Ending ending, RunToEnd(**process, cancelled));

  BuildOutcome outcome;
  v1::BuildReport& report = outcome.report;
  report.set_command(absl::StrCat("torch.utils.cpp_extension (torch ", python.torch_version, ")"));
  std::string log = absl::StrCat(ending.err, ending.out);
  for (v1::KernelResources& kernel : ParsePtxas(log)) *report.add_kernels() = std::move(kernel);
  report.set_log(Scrub(std::move(log)));
  report.set_log_truncated(ending.output_truncated);
  if (ending.kind == Ending::Kind::kLimit) {
    AddFault(ending, limits, &outcome);
    return outcome;
  }
  if (ending.kind == Ending::Kind::kKilled) return absl::CancelledError("the build was cancelled");
  if (ending.kind == Ending::Kind::kSignaled) {
    outcome.verdict = v1::VERDICT_BUILD_FAILED;
    outcome.reason = absl::StrCat("the build of the extensions was ended by ", sandbox::SignalName(ending.signal));
    outcome.fault.set_stage("build");
    outcome.fault.set_signal(ending.signal);
    return outcome;
  }
  if (ending.exit_code != 0) {
    outcome.verdict = v1::VERDICT_BUILD_FAILED;
    outcome.reason = ending.exit_code == kExitExtensionFailed
                         ? FirstError(report.log())
                         : absl::StrCat("the build of the extensions ended with exit code ", ending.exit_code);
    return outcome;
  }
  absl::StatusOr<std::string> manifest = (*process)->ReadTmpFile("out/manifest.json", 1 << 20);
  nlohmann::json parsed;
  if (manifest.ok()) parsed = nlohmann::json::parse(*manifest, nullptr, false);
  if (!manifest.ok() || !parsed.is_object() || !parsed.contains("extensions") || !parsed["extensions"].is_array()) {
    // The candidate's module ran in that process and can do as it likes there; this is its own doing.
    outcome.verdict = v1::VERDICT_BUILD_FAILED;
    outcome.reason = "the candidate's module ended the process in which its extensions were built";
    return outcome;
  }
  if (parsed["extensions"].size() > kMaxExtensions) {
    outcome.verdict = v1::VERDICT_BUILD_FAILED;
    outcome.reason =
        absl::StrCat(parsed["extensions"].size(), " extensions; at most ", kMaxExtensions, " are accepted");
    return outcome;
  }
  int64_t left = limits.build_output_bytes();
  std::vector<std::string> how;
  for (const nlohmann::json& item : parsed["extensions"]) {
    BuiltObject object;
    std::string file;
    if (item.is_object() && item.contains("key") && item["key"].is_string() && item.contains("name") &&
        item["name"].is_string() && item.contains("file") && item["file"].is_string()) {
      object.key = item["key"].get<std::string>();
      object.name = RepairUtf8(item["name"].get<std::string>().substr(0, 256));
      file = item["file"].get<std::string>();
    }
    if (!IsSha256Hex(object.key)) {
      outcome.verdict = v1::VERDICT_BUILD_FAILED;
      outcome.reason = "the candidate's module tampered with the list of its extensions";
      return outcome;
    }
    absl::StatusOr<std::string> content = (*process)->ReadTmpFile(absl::StrCat("out/", file), left);
    if (absl::IsResourceExhausted(content.status())) {
      Ending large;
      large.limit = "build_output_bytes";
      AddFault(large, limits, &outcome);
      outcome.objects.clear();
      return outcome;
    }
    if (!content.ok()) {
      outcome.verdict = v1::VERDICT_BUILD_FAILED;
      outcome.reason = absl::StrCat("extension ", object.name, ": ", content.status().message());
      outcome.objects.clear();
      return outcome;
    }
    left -= static_cast<int64_t>(content->size());
    if (item.contains("how") && item["how"].is_string()) {
      how.push_back(absl::StrCat(object.name, ": ", Scrub(item["how"].get<std::string>().substr(0, 400))));
    }
    object.content = *std::move(content);
    outcome.objects.push_back(std::move(object));
  }
  if (!how.empty()) report.set_command(absl::StrCat(report.command(), "; ", absl::StrJoin(how, "; ")));
  report.set_ok(true);
  return outcome;
}

}  // namespace grove::build
