#include "coordinator/rpc/validate.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"

namespace grove::coordinator {
namespace {

// A process that does nothing but load the C++ runtime takes some 4 MiB, and its sandbox as much.
constexpr int64_t kLeastMemoryBytes = int64_t{16} << 20;
constexpr int64_t kLeastDiskBytes = int64_t{64} << 10;

template <typename... Args>
absl::Status Invalid(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

// What a message may show of a text from outside.
std::string Quoted(absl::string_view text) {
  constexpr std::size_t kShown = 40;
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(text.substr(0, kShown)), text.size() > kShown ? "..." : "", "\"");
}

bool IsIdText(absl::string_view text, std::size_t min, std::size_t max) {
  if (text.size() < min || text.size() > max) return false;
  for (char c : text) {
    if (!absl::ascii_islower(static_cast<unsigned char>(c)) && !absl::ascii_isdigit(static_cast<unsigned char>(c)) &&
        c != '-') {
      return false;
    }
  }
  return true;
}

absl::Status CheckName(absl::string_view where, absl::string_view name) {
  if (name.size() > kMaxNameBytes)
    return Invalid(where, " has ", name.size(), " bytes; a name has at most ", kMaxNameBytes);
  return absl::OkStatus();
}

absl::Status CheckSource(absl::string_view where, absl::string_view source) {
  if (source.empty()) return Invalid(where, " is empty: the file has no content");
  if (source.size() > kMaxSourceBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(where, " has ", source.size(), " bytes; at most ", kMaxSourceBytes, " are accepted"));
  }
  const std::size_t nul = source.find('\0');
  if (nul != absl::string_view::npos) return Invalid(where, " has a NUL at byte ", nul, "; it must be a text file");
  return absl::OkStatus();
}

absl::Status CheckProblem(const v1::Problem& problem) {
  GROVE_RETURN_IF_ERROR(CheckName("the problem's name", problem.name()));
  if (problem.format() != v1::PROBLEM_FORMAT_KERNELBENCH && problem.format() != v1::PROBLEM_FORMAT_NATIVE) {
    return Invalid("the problem's format is missing or unknown (", static_cast<int>(problem.format()),
                   "); known are KERNELBENCH (.py) and NATIVE (.toml)");
  }
  return CheckSource("the problem's source", problem.source());
}

absl::Status CheckCandidate(absl::string_view where, const v1::Candidate& candidate) {
  GROVE_RETURN_IF_ERROR(CheckName(absl::StrCat(where, "'s name"), candidate.name()));
  if (candidate.format() == v1::CANDIDATE_FORMAT_UNSPECIFIED || !v1::CandidateFormat_IsValid(candidate.format())) {
    return Invalid(where, "'s format is missing or unknown (", static_cast<int>(candidate.format()),
                   "); known are CUDA (.cu), CPP (.cpp) and KERNELBENCH (.py)");
  }
  if (candidate.build_flags_size() > kMaxBuildFlags) {
    return Invalid(where, " has ", candidate.build_flags_size(), " build flags; at most ", kMaxBuildFlags,
                   " are accepted");
  }
  for (const std::string& flag : candidate.build_flags()) {
    if (flag.size() > kMaxBuildFlagBytes || flag.find('\0') != std::string::npos) {
      return Invalid(where, ": the build flag ", Quoted(flag), " is too long or holds a NUL");
    }
  }
  return CheckSource(absl::StrCat(where, "'s source"), candidate.source());
}

absl::Status NotNegative(absl::string_view where, double value) {
  if (!std::isfinite(value) || value < 0)
    return Invalid(where, " is ", value, "; it must be a number from 0 (0 = the default)");
  return absl::OkStatus();
}

absl::Status CheckOptions(const v1::EvaluationOptions& options) {
  if (!v1::DeviceKind_IsValid(options.device())) return Invalid("options.device is unknown; known are CPU and CUDA");
  if (!v1::ToleranceMode_IsValid(options.tolerance().mode())) return Invalid("options.tolerance.mode is unknown");
  if (!v1::PrecisionPolicy_IsValid(options.precision())) {
    return Invalid("options.precision is unknown; known are SAME and REDUCED");
  }
  if (!v1::WorkPolicy_IsValid(options.work())) {
    return Invalid("options.work is unknown; known are ANYTHING, LIBRARIES and OWN_KERNELS");
  }
  if (options.distributions_size() > 8) {
    return Invalid("options.distributions has ", options.distributions_size(), " entries; at most 8 are accepted");
  }
  for (int distribution : options.distributions()) {
    if (!v1::InputDistribution_IsValid(distribution) || distribution == v1::INPUT_DISTRIBUTION_UNSPECIFIED) {
      return Invalid("options.distributions has an unknown entry (", distribution,
                     "); known are GIVEN, SCALED, SHIFTED, SPARSE, OUTLIERS, RARE and INTEGERS");
    }
  }
  for (int baseline : options.baselines()) {
    if (!v1::Baseline_IsValid(baseline) || baseline == v1::BASELINE_UNSPECIFIED) {
      return Invalid("options.baselines has an unknown entry (", baseline, "); known are EAGER and COMPILE");
    }
  }
  if (options.baselines_size() > 8) return Invalid("options.baselines has ", options.baselines_size(), " entries");
  const v1::Limits& limits = options.limits();
  const std::pair<absl::string_view, double> numbers[] = {
      {"options.trials", options.trials()},
      {"options.tolerance.atol", options.tolerance().atol()},
      {"options.tolerance.rtol", options.tolerance().rtol()},
      {"options.precision_tolerance", options.precision_tolerance()},
      {"options.min_time_seconds", options.min_time_seconds()},
      {"options.max_time_seconds", options.max_time_seconds()},
      {"options.min_samples", options.min_samples()},
      {"options.max_samples", options.max_samples()},
      {"options.replicas", options.replicas()},
      {"options.limits.build_wall_seconds", limits.build_wall_seconds()},
      {"options.limits.build_cpu_seconds", limits.build_cpu_seconds()},
      {"options.limits.build_memory_bytes", static_cast<double>(limits.build_memory_bytes())},
      {"options.limits.build_output_bytes", static_cast<double>(limits.build_output_bytes())},
      {"options.limits.run_wall_seconds", limits.run_wall_seconds()},
      {"options.limits.run_cpu_seconds", limits.run_cpu_seconds()},
      {"options.limits.call_wall_seconds", limits.call_wall_seconds()},
      {"options.limits.memory_bytes", static_cast<double>(limits.memory_bytes())},
      {"options.limits.device_memory_bytes", static_cast<double>(limits.device_memory_bytes())},
      {"options.limits.processes", limits.processes()},
      {"options.limits.disk_bytes", static_cast<double>(limits.disk_bytes())},
      {"options.limits.output_bytes", static_cast<double>(limits.output_bytes())},
  };
  for (const auto& [where, value] : numbers) GROVE_RETURN_IF_ERROR(NotNegative(where, value));
  for (const auto& [where, value] : {std::pair<absl::string_view, int64_t>("memory_bytes", limits.memory_bytes()),
                                     {"build_memory_bytes", limits.build_memory_bytes()}}) {
    if (value > 0 && value < kLeastMemoryBytes) {
      return Invalid("options.limits.", where, " is ", value, "; the least is ", kLeastMemoryBytes >> 20,
                     " MiB, below which no process starts");
    }
  }
  if (limits.disk_bytes() > 0 && limits.disk_bytes() < kLeastDiskBytes) {
    return Invalid("options.limits.disk_bytes is ", limits.disk_bytes(), "; the least is ", kLeastDiskBytes >> 10,
                   " KiB, below which there is no file system");
  }
  if (options.min_samples() > 0 && options.max_samples() > 0 && options.min_samples() > options.max_samples()) {
    return Invalid("options.min_samples (", options.min_samples(), ") is above options.max_samples (",
                   options.max_samples(), ")");
  }
  if (options.min_time_seconds() > 0 && options.max_time_seconds() > 0 &&
      options.min_time_seconds() > options.max_time_seconds()) {
    return Invalid("options.min_time_seconds is above options.max_time_seconds");
  }
  return absl::OkStatus();
}

absl::Status CheckGenerator(const v1::GeneratorSpec& generator) {
  if (!v1::GeneratorKind_IsValid(generator.kind())) {
    return Invalid("generator.kind is unknown; known are CATALOGUE, OPENAI and REPLAY");
  }
  if (generator.recording().size() > kMaxRecordingBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the recording has ", generator.recording().size(),
                                                     " bytes; at most ", kMaxRecordingBytes, " are accepted"));
  }
  GROVE_RETURN_IF_ERROR(CheckName("generator.model", generator.model()));
  if (generator.base_url().size() > 2048) return Invalid("generator.base_url is longer than 2048 characters");
  return NotNegative("generator.temperature", generator.temperature());
}

}  // namespace

absl::Status ValidateSubmit(const v1::SubmitJobRequest& request) {
  const std::string& key = request.idempotency_key();
  if (key.size() < 16 || key.size() > 64) {
    return Invalid("idempotency_key has ", key.size(),
                   " characters; make a random one of 16 to 64 for each intended job");
  }
  for (char c : key) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) {
      return Invalid("idempotency_key ", Quoted(key), " has characters other than printable ASCII");
    }
  }
  const v1::JobSpec& spec = request.spec();
  GROVE_RETURN_IF_ERROR(CheckName("spec.name", spec.name()));
  switch (spec.kind_case()) {
    case v1::JobSpec::kSearch:
      GROVE_RETURN_IF_ERROR(CheckProblem(spec.search().problem()));
      GROVE_RETURN_IF_ERROR(CheckGenerator(spec.search().generator()));
      GROVE_RETURN_IF_ERROR(NotNegative("policy.max_seconds", spec.search().policy().max_seconds()));
      if (!std::isfinite(spec.search().policy().explore_ratio()))
        return Invalid("policy.explore_ratio is not a number");
      return CheckOptions(spec.search().options());
    case v1::JobSpec::kEval: {
      const v1::EvalSpec& eval = spec.eval();
      GROVE_RETURN_IF_ERROR(CheckProblem(eval.problem()));
      if (eval.candidates_size() == 0) return Invalid("eval.candidates is empty: there is nothing to evaluate");
      if (eval.candidates_size() > kMaxCandidates) {
        return absl::ResourceExhaustedError(absl::StrCat("eval.candidates has ", eval.candidates_size(),
                                                         " entries; at most ", kMaxCandidates,
                                                         " are accepted in one job"));
      }
      for (int i = 0; i < eval.candidates_size(); ++i) {
        const v1::Candidate& candidate = eval.candidates(i);
        GROVE_RETURN_IF_ERROR(CheckCandidate(
            absl::StrCat("candidate ", i + 1,
                         candidate.name().empty() ? "" : absl::StrCat(" (", Quoted(candidate.name()), ")")),
            candidate));
      }
      if (eval.has_rival()) GROVE_RETURN_IF_ERROR(CheckCandidate("the rival", eval.rival()));
      return CheckOptions(eval.options());
    }
    case v1::JobSpec::kCalibrate:
      GROVE_RETURN_IF_ERROR(CheckName("calibrate.worker", spec.calibrate().worker()));
      GROVE_RETURN_IF_ERROR(NotNegative("calibrate.runs", spec.calibrate().runs()));
      return NotNegative("calibrate.max_seconds", spec.calibrate().max_seconds());
    case v1::JobSpec::kCheckProblem:
      GROVE_RETURN_IF_ERROR(CheckProblem(spec.check_problem().problem()));
      return CheckOptions(spec.check_problem().options());
    default:
      break;
  }
  return Invalid("spec has neither search nor eval nor check_problem: there is nothing to do");
}

absl::Status ValidateJobId(absl::string_view id) {
  if (IsIdText(id, 3, 64)) return absl::OkStatus();
  return Invalid(Quoted(id),
                 " is not a job id: give one such as \"j-4k2m9x7p\", or the first 3 or more characters of one");
}

absl::Status ValidateNodeId(absl::string_view id) {
  const std::size_t slash = id.find('/');
  bool good = slash != absl::string_view::npos && IsIdText(id.substr(0, slash), 3, 64) && id.size() > slash + 2 &&
              id.size() <= slash + 12 && (id[slash + 1] == 'k' || id[slash + 1] == 'i');
  for (std::size_t i = slash + 2; good && i < id.size(); ++i)
    good = absl::ascii_isdigit(static_cast<unsigned char>(id[i]));
  if (good) return absl::OkStatus();
  return Invalid(Quoted(id),
                 " is not a node id: give one such as \"j-4k2m9x7p/k3\" (a kernel) or \"j-4k2m9x7p/i1\" (an idea)");
}

absl::Status ValidateBankId(absl::string_view id) {
  if (IsIdText(id, 3, 64)) return absl::OkStatus();
  return Invalid(Quoted(id), " is not the id of a bank entry: give one such as \"b-4k2m9x7p\"");
}

absl::Status ValidateSha256(absl::string_view hash) {
  if (IsSha256Hex(hash)) return absl::OkStatus();
  return Invalid(Quoted(hash), " is not a SHA-256 of 64 lower-case hexadecimal digits");
}

absl::Status ValidateListJobs(const v1::ListJobsRequest& request) {
  if (request.limit() < 0 || request.limit() > kMaxListed) {
    return Invalid("limit is ", request.limit(), "; it must be from 0 (= 50) to ", kMaxListed);
  }
  if (!v1::JobState_IsValid(request.state())) return Invalid("state is unknown");
  return absl::OkStatus();
}

absl::Status ValidateResume(const v1::ResumeJobRequest& request) {
  GROVE_RETURN_IF_ERROR(ValidateJobId(request.id()));
  constexpr int kMaxExtra = 1'000'000;
  if (request.extra_rounds() < 0 || request.extra_rounds() > kMaxExtra || request.extra_evaluations() < 0 ||
      request.extra_evaluations() > kMaxExtra) {
    return Invalid("extra_rounds and extra_evaluations must be from 0 to ", kMaxExtra);
  }
  return absl::OkStatus();
}

absl::Status ValidateAddBankEntry(const v1::AddBankEntryRequest& request) {
  if (!request.node().empty()) {
    // The node brings its kernel along; what the operation is called and a note may be said with it.
    v1::BankEntry rest = request.entry();
    rest.clear_operation();
    rest.clear_note();
    if (rest.ByteSizeLong() > 0) {
      return Invalid("beside a node to take over, an entry may have an operation and a note, and nothing else");
    }
    if (request.entry().operation().size() > kMaxNameBytes || request.entry().note().size() > 4096) {
      return Invalid("entry.operation has at most ", kMaxNameBytes, " bytes, entry.note at most 4096");
    }
    return ValidateNodeId(request.node());
  }
  if (!request.has_entry()) return Invalid("give a kernel node to take over, or an entry");
  const v1::BankEntry& entry = request.entry();
  if (entry.operation().empty() || entry.operation().size() > kMaxNameBytes) {
    return Invalid("entry.operation must name the operation, such as \"softmax\" (at most ", kMaxNameBytes, " bytes)");
  }
  if (entry.device() != v1::DEVICE_KIND_CPU && entry.device() != v1::DEVICE_KIND_CUDA) {
    return Invalid("entry.device must be CPU or CUDA");
  }
  if (entry.note().size() > 4096 || entry.recipe().size() > kMaxSourceBytes) {
    return Invalid("entry.note has at most 4096 bytes, entry.recipe at most ", kMaxSourceBytes);
  }
  return CheckCandidate("entry.candidate", entry.candidate());
}

absl::Status ValidateHello(const v1::WorkerHello& hello) {
  if (!IsIdText(hello.worker_id(), 3, 64))
    return Invalid("worker_id ", Quoted(hello.worker_id()), " is not a worker id");
  GROVE_RETURN_IF_ERROR(CheckName("the worker's name", hello.name()));
  if (hello.protocol() != 1) {
    return absl::FailedPreconditionError(absl::StrCat("this coordinator speaks worker protocol 1, the worker (version ",
                                                      Quoted(hello.version()), ") speaks ", hello.protocol(),
                                                      "; install the same version of grove on both"));
  }
  if (hello.device().kind() == v1::DEVICE_KIND_UNSPECIFIED || !v1::DeviceKind_IsValid(hello.device().kind())) {
    return Invalid("the worker does not say what device it has");
  }
  // A worker holds at most a few leases per hardware thread; its spool is bounded at 1024 (worker/rpc/spool.h).
  constexpr int kMaxLeases = 4096;
  if (hello.capacity() < 0 || hello.capacity() > kMaxLeases || hello.running_size() > kMaxLeases ||
      hello.unacknowledged_size() > kMaxLeases || hello.tags_size() > 256 || hello.sandbox_layers_size() > 256) {
    return Invalid("the worker's hello names more than ", kMaxLeases, " leases, or more than 256 tags or layers");
  }
  return absl::OkStatus();
}

}  // namespace grove::coordinator
