#include "coordinator/engine/validate.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/measure/replicas.h"
#include "coordinator/engine/bounds.h"

namespace grove::coordinator {
namespace {

absl::Status Bad(absl::string_view where, absl::string_view what, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what, "; ", remedy));
}

absl::Status CheckText(const std::string& text, absl::string_view where, size_t max) {
  if (text.size() > max) {
    return Bad(where, absl::StrCat("has ", text.size(), " bytes"), absl::StrCat("at most ", max, " are accepted"));
  }
  const size_t nul = text.find('\0');
  if (nul != std::string::npos) {
    return Bad(where, absl::StrCat("has a NUL byte at offset ", nul), "it must be text, not a binary file");
  }
  if (!IsValidUtf8(text)) return Bad(where, "is not valid UTF-8", "save the file as UTF-8");
  return absl::OkStatus();
}

absl::Status CheckSource(const std::string& source, absl::string_view where) {
  if (source.empty()) return Bad(where, "the source is empty (0 bytes)", "give a file with content");
  return CheckText(source, where, kMaxSourceBytes);
}

absl::Status CheckProblem(const v1::Problem& problem) {
  if (absl::Status status = CheckText(problem.name(), "problem.name", 256); !status.ok()) return status;
  if (!v1::ProblemFormat_IsValid(problem.format()) || problem.format() == v1::PROBLEM_FORMAT_UNSPECIFIED) {
    return Bad("problem.format", absl::StrCat("unknown value ", static_cast<int>(problem.format())),
               "use KERNELBENCH for a .py file or NATIVE for a .toml file");
  }
  return CheckSource(problem.source(), absl::StrCat("problem ", problem.name()));
}

absl::Status CheckNumber(double value, absl::string_view where, double max) {
  if (std::isfinite(value) && value >= 0 && value <= max) return absl::OkStatus();
  return Bad(where, absl::StrCat("is ", value), absl::StrCat("it must be between 0 and ", max, " (0 = default)"));
}

// `rival`: they are of a comparison.
absl::Status CheckOptions(const v1::EvaluationOptions& options, bool rival = false) {
  constexpr double kDay = 86400;
  constexpr double kHuge = 1e15;
  if (!v1::DeviceKind_IsValid(options.device())) {
    return Bad("options.device", absl::StrCat("unknown value ", static_cast<int>(options.device())),
               "use CPU or CUDA, or leave it out for whatever the worker has");
  }
  if (options.trials() < 0 || options.trials() > 1000) {
    return Bad("options.trials", absl::StrCat("is ", options.trials()), "it must be between 1 and 1000 (0 = 5)");
  }
  const v1::Tolerance& tolerance = options.tolerance();
  if (!v1::ToleranceMode_IsValid(tolerance.mode())) {
    return Bad("options.tolerance.mode", absl::StrCat("unknown value ", static_cast<int>(tolerance.mode())),
               "use SCALED or ABSOLUTE_RELATIVE");
  }
  if (tolerance.mode() == v1::TOLERANCE_MODE_ABSOLUTE_RELATIVE) {
    if (absl::Status s = CheckNumber(tolerance.atol(), "options.tolerance.atol", kHuge); !s.ok()) return s;
    if (absl::Status s = CheckNumber(tolerance.rtol(), "options.tolerance.rtol", kHuge); !s.ok()) return s;
  } else if (tolerance.atol() != 0 || tolerance.rtol() != 0) {
    return Bad("options.tolerance", "atol and rtol are given, but the mode is SCALED",
               "use mode ABSOLUTE_RELATIVE, or leave them out");
  }
  if (!v1::PrecisionPolicy_IsValid(options.precision())) {
    return Bad("options.precision", absl::StrCat("unknown value ", static_cast<int>(options.precision())),
               "use SAME or REDUCED");
  }
  if (!v1::WorkPolicy_IsValid(options.work())) {
    return Bad("options.work", absl::StrCat("unknown value ", static_cast<int>(options.work())),
               "use ANYTHING, LIBRARIES or OWN_KERNELS");
  }
  if (options.precision() != v1::PRECISION_POLICY_REDUCED && options.precision_tolerance() != 0) {
    return Bad("options.precision_tolerance", "is given, but the precision is SAME", "use REDUCED, or leave it out");
  }
  if (absl::Status s = CheckNumber(options.precision_tolerance(), "options.precision_tolerance", 0.5); !s.ok()) {
    return s;
  }
  for (int distribution : options.distributions()) {
    if (!v1::InputDistribution_IsValid(distribution) || distribution == v1::INPUT_DISTRIBUTION_UNSPECIFIED) {
      return Bad("options.distributions", absl::StrCat("unknown value ", distribution),
                 "use GIVEN, SCALED, SHIFTED, SPARSE, OUTLIERS, RARE or INTEGERS");
    }
    if (options.only_given_inputs() && distribution != v1::INPUT_DISTRIBUTION_GIVEN) {
      return Bad("options.only_given_inputs", "contradicts options.distributions", "leave out one of the two");
    }
  }
  if (options.distributions_size() > 8)
    return Bad("options.distributions", "has more than 8 entries", "name each once");
  bool seen[3] = {false, false, false};
  for (int i = 0; i < options.baselines_size(); ++i) {
    const int baseline = options.baselines(i);
    if (baseline != v1::BASELINE_EAGER && baseline != v1::BASELINE_COMPILE) {
      return Bad("options.baselines", absl::StrCat("unknown value ", baseline), "use EAGER or COMPILE");
    }
    if (seen[baseline]) return Bad("options.baselines", "one baseline is named twice", "name each once");
    seen[baseline] = true;
  }
  if (options.skip_timing() && options.baselines_size() > 0) {
    return Bad("options.skip_timing", "contradicts options.baselines", "leave out one of the two");
  }
  if (absl::Status s = CheckNumber(options.min_time_seconds(), "options.min_time_seconds", kDay); !s.ok()) return s;
  if (absl::Status s = CheckNumber(options.max_time_seconds(), "options.max_time_seconds", kDay); !s.ok()) return s;
  if (options.max_time_seconds() > 0 && options.min_time_seconds() > options.max_time_seconds()) {
    return Bad("options.min_time_seconds", "is greater than options.max_time_seconds", "swap or leave out one");
  }
  if (options.min_samples() < 0 || options.max_samples() < 0 || options.min_samples() > 1'000'000 ||
      options.max_samples() > 1'000'000) {
    return Bad("options.min_samples, options.max_samples", "out of range", "use 1 to 1000000 (0 = default)");
  }
  if (options.max_samples() > 0 && options.min_samples() > options.max_samples()) {
    return Bad("options.min_samples", "is greater than options.max_samples", "swap or leave out one");
  }
  if (options.replicas() < 0 || options.replicas() > measure::kMostReplicas) {
    return Bad("options.replicas", absl::StrCat("is ", options.replicas()),
               absl::StrCat("use 1 to ", measure::kMostReplicas, " pairs of processes (0 = 1)"));
  }
  if (options.replicas() > 1 && !rival) {
    return Bad("options.replicas", absl::StrCat("is ", options.replicas(), ", but there is no rival"),
               "leave it out: only comparisons of two kernels are timed in several pairs of processes");
  }
  const v1::Limits& limits = options.limits();
  const std::pair<const char*, double> all[] = {
      {"build_wall_seconds", limits.build_wall_seconds()},
      {"build_cpu_seconds", limits.build_cpu_seconds()},
      {"build_memory_bytes", static_cast<double>(limits.build_memory_bytes())},
      {"build_output_bytes", static_cast<double>(limits.build_output_bytes())},
      {"run_wall_seconds", limits.run_wall_seconds()},
      {"run_cpu_seconds", limits.run_cpu_seconds()},
      {"call_wall_seconds", limits.call_wall_seconds()},
      {"memory_bytes", static_cast<double>(limits.memory_bytes())},
      {"device_memory_bytes", static_cast<double>(limits.device_memory_bytes())},
      {"processes", static_cast<double>(limits.processes())},
      {"disk_bytes", static_cast<double>(limits.disk_bytes())},
      {"output_bytes", static_cast<double>(limits.output_bytes())},
  };
  for (const auto& [name, value] : all) {
    if (absl::Status s = CheckNumber(value, absl::StrCat("options.limits.", name), kHuge); !s.ok()) return s;
  }
  return absl::OkStatus();
}

const char* DeviceName(v1::DeviceKind device) {
  return device == v1::DEVICE_KIND_CUDA ? "cuda" : device == v1::DEVICE_KIND_CPU ? "cpu" : "any";
}

}  // namespace

v1::DeviceKind DeviceOfFormat(v1::CandidateFormat format) {
  switch (format) {
    case v1::CANDIDATE_FORMAT_CUDA:
      return v1::DEVICE_KIND_CUDA;
    case v1::CANDIDATE_FORMAT_CPP:
      return v1::DEVICE_KIND_CPU;
    default:
      return v1::DEVICE_KIND_UNSPECIFIED;
  }
}

absl::Status ValidateCandidate(const v1::Candidate& candidate, v1::DeviceKind device, const std::string& where) {
  if (absl::Status s = CheckText(candidate.name(), absl::StrCat(where, ", name"), 256); !s.ok()) return s;
  if (!v1::CandidateFormat_IsValid(candidate.format()) || candidate.format() == v1::CANDIDATE_FORMAT_UNSPECIFIED) {
    return Bad(absl::StrCat(where, ", format"), absl::StrCat("unknown value ", static_cast<int>(candidate.format())),
               "use CUDA (.cu), CPP (.cpp) or KERNELBENCH (.py)");
  }
  if (absl::Status s = CheckSource(candidate.source(), where); !s.ok()) return s;
  const v1::DeviceKind needs = DeviceOfFormat(candidate.format());
  if (device != v1::DEVICE_KIND_UNSPECIFIED && needs != v1::DEVICE_KIND_UNSPECIFIED && needs != device) {
    return Bad(where,
               absl::StrCat("is for the device ", DeviceName(needs), ", but options.device is ", DeviceName(device)),
               absl::StrCat("ask for --device ", DeviceName(needs), ", or give a ",
                            device == v1::DEVICE_KIND_CPU ? ".cpp" : ".cu", " or .py candidate"));
  }
  if (candidate.build_flags_size() > 64) {
    return Bad(absl::StrCat(where, ", build_flags"), absl::StrCat(candidate.build_flags_size(), " flags"),
               "at most 64 are accepted");
  }
  for (const std::string& flag : candidate.build_flags()) {
    if (flag.empty()) return Bad(absl::StrCat(where, ", build_flags"), "an empty flag", "leave it out");
    if (absl::Status s = CheckText(flag, absl::StrCat(where, ", build_flags"), 256); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status ValidateSubmit(const v1::SubmitJobRequest& request, const PolicyCheck& check_policy) {
  const std::string& key = request.idempotency_key();
  if (key.size() < 16 || key.size() > 64) {
    return Bad("idempotency_key", absl::StrCat("has ", key.size(), " characters"),
               "make one of 16 to 64 characters for each job that is meant, and send it again with each retry");
  }
  for (char c : key) {
    if (c < 0x21 || c > 0x7e) return Bad("idempotency_key", "has a character that is not printable ASCII", "change it");
  }
  const v1::JobSpec& spec = request.spec();
  if (absl::Status s = CheckText(spec.name(), "spec.name", 256); !s.ok()) return s;
  switch (spec.kind_case()) {
    case v1::JobSpec::kSearch: {
      const v1::SearchSpec& search = spec.search();
      if (absl::Status s = CheckProblem(search.problem()); !s.ok()) return s;
      if (absl::Status s = CheckOptions(search.options()); !s.ok()) return s;
      if (search.options().skip_timing()) {
        return Bad("options.skip_timing", "a search ranks kernels by their time", "leave it out");
      }
      const v1::GeneratorSpec& generator = search.generator();
      if (!v1::GeneratorKind_IsValid(generator.kind())) {
        return Bad("generator.kind", absl::StrCat("unknown value ", static_cast<int>(generator.kind())),
                   "use CATALOGUE, OPENAI or REPLAY");
      }
      if (absl::Status s = CheckText(generator.model(), "generator.model", 256); !s.ok()) return s;
      if (absl::Status s = CheckText(generator.base_url(), "generator.base_url", 2048); !s.ok()) return s;
      if (absl::Status s = CheckText(generator.recording(), "generator.recording", kMaxRecordingBytes); !s.ok()) {
        return s;
      }
      if (absl::Status s = CheckNumber(generator.temperature(), "generator.temperature", 10); !s.ok()) return s;
      if (generator.kind() == v1::GENERATOR_KIND_REPLAY && generator.recording().empty()) {
        return Bad("generator.recording", "is empty", "a replay needs the text of a recording");
      }
      if (generator.kind() != v1::GENERATOR_KIND_REPLAY && !generator.recording().empty()) {
        return Bad("generator.recording", "is given, but the generator is not REPLAY", "leave out one of the two");
      }
      if (generator.kind() != v1::GENERATOR_KIND_OPENAI &&
          (!generator.model().empty() || !generator.base_url().empty())) {
        return Bad("generator.model, generator.base_url", "are given, but the generator is not OPENAI",
                   "leave them out, or use the generator openai");
      }
      const double seconds = search.policy().max_seconds();
      if (absl::Status s = CheckNumber(seconds, "policy.max_seconds", 1e9); !s.ok()) return s;
      if (check_policy) {
        if (std::optional<std::string> error = check_policy(search.policy())) {
          return absl::InvalidArgumentError(absl::StrCat("policy: ", *error));
        }
      }
      return absl::OkStatus();
    }
    case v1::JobSpec::kEval: {
      const v1::EvalSpec& eval = spec.eval();
      if (absl::Status s = CheckProblem(eval.problem()); !s.ok()) return s;
      if (absl::Status s = CheckOptions(eval.options(), eval.has_rival()); !s.ok()) return s;
      if (eval.candidates_size() == 0) return Bad("candidates", "there are none", "give 1 to 10000");
      if (eval.candidates_size() > kMaxCandidates) {
        return Bad("candidates", absl::StrCat("there are ", eval.candidates_size()),
                   absl::StrCat("at most ", kMaxCandidates, " are accepted in one job; submit several"));
      }
      size_t total = eval.problem().source().size();
      if (eval.has_rival()) {
        if (absl::Status s = ValidateCandidate(eval.rival(), eval.options().device(), "the rival"); !s.ok()) return s;
        if (eval.options().skip_timing()) {
          return Bad("options.skip_timing", "a rival is there to be timed against", "leave out one of the two");
        }
        total += eval.rival().source().size();
      }
      for (int i = 0; i < eval.candidates_size(); ++i) {
        const v1::Candidate& candidate = eval.candidates(i);
        std::string where = absl::StrCat("candidate ", i + 1);
        if (!candidate.name().empty()) absl::StrAppend(&where, " (", Utf8Prefix(candidate.name(), 64), ")");
        if (absl::Status s = ValidateCandidate(candidate, eval.options().device(), where); !s.ok()) return s;
        const v1::DeviceKind needs = DeviceOfFormat(candidate.format()), rival = DeviceOfFormat(eval.rival().format());
        if (needs != v1::DEVICE_KIND_UNSPECIFIED && rival != v1::DEVICE_KIND_UNSPECIFIED && needs != rival) {
          return Bad(where,
                     absl::StrCat("is for the device ", DeviceName(needs), ", and its rival for ", DeviceName(rival)),
                     "compare kernels for one device");
        }
        total += candidate.source().size();
      }
      if (total > kMaxJobBytes) {
        return absl::ResourceExhaustedError(absl::StrCat("candidates: their sources have ", total, " bytes together; ",
                                                         "at most ", kMaxJobBytes, " are accepted in one job"));
      }
      return absl::OkStatus();
    }
    case v1::JobSpec::kCalibrate: {
      const v1::CalibrateSpec& calibrate = spec.calibrate();
      if (!v1::DeviceKind_IsValid(calibrate.device())) {
        return Bad("calibrate.device", absl::StrCat("unknown value ", static_cast<int>(calibrate.device())),
                   "use CPU or CUDA, or leave it out");
      }
      if (absl::Status s = CheckNumber(calibrate.max_seconds(), "calibrate.max_seconds", 3600); !s.ok()) return s;
      if (calibrate.runs() < 0 || calibrate.runs() > kMaxCalibrationRuns) {
        return Bad("calibrate.runs", absl::StrCat("is ", calibrate.runs()),
                   absl::StrCat("it must be between 1 and ", kMaxCalibrationRuns, " (0 = 40)"));
      }
      return CheckText(calibrate.worker(), "calibrate.worker", 256);
    }
    case v1::JobSpec::kCheckProblem:
      if (absl::Status s = CheckProblem(spec.check_problem().problem()); !s.ok()) return s;
      return CheckOptions(spec.check_problem().options());
    default:
      return Bad("spec", "no search, evaluation, check of a problem or calibration", "set one of them");
  }
}

}  // namespace grove::coordinator
