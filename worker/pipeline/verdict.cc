#include "worker/pipeline/verdict.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/base/hash.h"
#include "common/measure/comparison.h"
#include "common/measure/replicas.h"

namespace grove::worker {
namespace {

using sandbox::Ending;

constexpr size_t kMaxReason = 2000, kMaxMessage = 64 << 10, kStderrTail = 8 << 10;
// 16 MiB is the largest frame; raw samples are the bulk of it.
constexpr size_t kMaxResultJson = size_t{16} << 20;

template <typename Message>
absl::StatusOr<Message> Parse(const nlohmann::json& body, const char* what) {
  std::string text;
  try {
    text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the judge's ", what, " is malformed: ", error.what()));
  }
  if (text.size() > kMaxResultJson) return absl::InternalError(absl::StrCat("the judge's ", what, " is too large"));
  Message message;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &message, options);
  if (!status.ok()) {
    return absl::InternalError(absl::StrCat("the judge's ", what, " is malformed: ", std::string(status.message())));
  }
  return message;
}

std::string NameOf(v1::Verdict verdict) {
  const std::string name = v1::Verdict_Name(verdict);
  return name.substr(std::min<size_t>(name.size(), 8));  // without VERDICT_
}

std::string Amount(double value) { return absl::StrFormat("%.6g", value); }

}  // namespace

absl::StatusOr<v1::EvaluationResult> ParseResult(const nlohmann::json& body) {
  auto result = Parse<v1::EvaluationResult>(body, "result");
  if (result.ok() && (result->verdict() == v1::VERDICT_UNSPECIFIED || !v1::Verdict_IsValid(result->verdict()))) {
    return absl::InternalError("the judge gave a result without a verdict");
  }
  return result;
}

absl::StatusOr<v1::ProblemDescription> ParseDescription(const nlohmann::json& body) {
  return Parse<v1::ProblemDescription>(body, "description of the problem");
}

absl::StatusOr<nlohmann::json> ToJson(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) return absl::InvalidArgumentError(std::string(status.message()));
  nlohmann::json body = nlohmann::json::parse(text, nullptr, false);
  if (body.is_discarded()) return absl::InternalError("a message did not survive its JSON mapping");
  return body;
}

void MergeEnding(const Ending& ending, bool gone, bool quiet, v1::EvaluationResult* result) {
  v1::FaultReport* fault = nullptr;
  const auto touch = [&]() -> v1::FaultReport& {
    if (fault == nullptr) fault = result->mutable_fault();
    return *fault;
  };
  const bool judged_bad = result->verdict() == v1::VERDICT_CRASHED || result->verdict() == v1::VERDICT_TIMED_OUT ||
                          result->verdict() == v1::VERDICT_LIMIT_EXCEEDED;
  if (gone || result->verdict() == v1::VERDICT_CRASHED) {
    const std::string stage = result->fault().stage();
    const std::string during = stage.empty() ? "" : absl::StrCat(" during ", stage);
    switch (ending.kind) {
      case Ending::Kind::kLimit: {
        const bool time = ending.limit == "run_wall_seconds" || ending.limit == "call_wall_seconds";
        result->set_verdict(time ? v1::VERDICT_TIMED_OUT : v1::VERDICT_LIMIT_EXCEEDED);
        touch().set_limit(ending.limit);
        touch().set_limit_set(ending.limit_set);
        touch().set_limit_reached(ending.limit_reached);
        result->set_reason(absl::StrCat(
            "the candidate was ended", during, ": ", ending.limit, " is ", Amount(ending.limit_set), ", reached ",
            Amount(ending.limit_reached),
            ending.limit == "disk_bytes" ? " in one of /tmp and /dev/shm, which have half of it each" : ""));
        break;
      }
      case Ending::Kind::kSignaled:
        if (!gone) break;
        result->set_verdict(v1::VERDICT_CRASHED);
        touch().set_signal(ending.signal);
        touch().set_signal_name(sandbox::SignalName(ending.signal));
        result->set_reason(
            absl::StrCat("the candidate's process was ended by ", sandbox::SignalName(ending.signal), during));
        break;
      case Ending::Kind::kExited:
        if (!gone) break;
        result->set_verdict(v1::VERDICT_CRASHED);
        touch().set_exit_code(ending.exit_code);
        result->set_reason(absl::StrCat("the candidate's process exited with code ", ending.exit_code, during,
                                        " before it had answered"));
        break;
      case Ending::Kind::kKilled:
        if (!gone) break;
        result->set_verdict(v1::VERDICT_CRASHED);
        result->set_reason(absl::StrCat("the candidate closed its channel to the judge", during));
        touch().set_message("the process went on running without its channel and was killed");
        break;
    }
  }
  if (gone || judged_bad) {
    touch();
    if (!ending.err.empty() && !quiet) {
      const size_t begin = ending.err.size() > kStderrTail ? ending.err.size() - kStderrTail : 0;
      fault->set_stderr_tail(RepairUtf8(ending.err.substr(begin), kStderrTail));
    }
    result->clear_timing();
  }
}

bool IsFault(v1::Verdict verdict) {
  switch (verdict) {
    case v1::VERDICT_BUILD_FAILED:
    case v1::VERDICT_CRASHED:
    case v1::VERDICT_TIMED_OUT:
    case v1::VERDICT_LIMIT_EXCEEDED:
    case v1::VERDICT_CHEATED:
      return true;
    default:
      return false;
  }
}

bool IsDoubtful(v1::Verdict verdict) { return verdict == v1::VERDICT_WRONG || verdict == v1::VERDICT_UNMEASURABLE; }

void MergeXids(const XidFindings& xids, v1::EvaluationResult* result) {
  const std::string text = xids.Text();
  if (text.empty() || !IsFault(result->verdict())) return;
  std::string* error = result->mutable_fault()->mutable_cuda_error();
  absl::StrAppend(error, error->empty() ? "" : "; ", text);
  if (result->verdict() == v1::VERDICT_CRASHED) result->set_reason(absl::StrCat(result->reason(), "; ", text));
}

void MergeForeign(int foreign, v1::EvaluationResult* result) {
  if (result->has_timing()) {
    result->mutable_timing()->mutable_device_state()->set_foreign_processes(foreign);
  } else if (foreign > 0 && result->verdict() == v1::VERDICT_UNMEASURABLE) {
    result->set_reason(absl::StrCat(result->reason(), "; ", foreign, foreign == 1 ? " process" : " processes",
                                    " of others held the device"));
  }
}

void MergeRival(const build::BuildOutcome* built, const Ending* ending, bool gone, bool quiet,
                v1::EvaluationResult* result) {
  v1::RivalReport& rival = *result->mutable_rival();
  if (built != nullptr) *rival.mutable_build() = built->report;
  if (built != nullptr && !built->report.ok()) {
    rival.set_verdict(built->verdict);
    rival.set_reason(built->reason);
  } else if (ending != nullptr && rival.verdict() != v1::VERDICT_UNSPECIFIED) {
    // As for a candidate: the sandbox knows signals and limits.
    v1::EvaluationResult own;
    own.set_verdict(rival.verdict());
    own.set_reason(rival.reason());
    *own.mutable_fault() = rival.fault();
    MergeEnding(*ending, gone, quiet, &own);
    rival.set_verdict(own.verdict());
    rival.set_reason(own.reason());
    if (own.verdict() != v1::VERDICT_CORRECT) *rival.mutable_fault() = own.fault();
  }
  if (rival.verdict() == v1::VERDICT_CORRECT || rival.verdict() == v1::VERDICT_UNSPECIFIED || !result->has_timing()) {
    return;
  }
  v1::BaselineTiming* timing = nullptr;
  for (v1::BaselineTiming& one : *result->mutable_timing()->mutable_baselines()) {
    if (one.baseline() == v1::BASELINE_RIVAL) timing = &one;
  }
  if (timing == nullptr) timing = result->mutable_timing()->add_baselines();
  timing->Clear();
  timing->set_baseline(v1::BASELINE_RIVAL);
  timing->set_unavailable(
      RepairUtf8(absl::StrCat("the rival is ", NameOf(rival.verdict()), ": ", rival.reason()), 500));
}

void FinishRival(const v1::Candidate& candidate, v1::EvaluationResult* result) {
  v1::RivalReport& rival = *result->mutable_rival();
  rival.set_name(candidate.name());
  rival.set_sha256(Sha256Hex(candidate.source()));
  rival.set_reason(RepairUtf8(rival.reason(), kMaxReason));
  if (result->verdict() != v1::VERDICT_CORRECT) {
    if (rival.reason().empty()) rival.set_reason("not compared: the candidate is not correct");
    return;
  }
  for (const v1::BaselineTiming& timing : result->timing().baselines()) {
    if (timing.baseline() != v1::BASELINE_RIVAL) continue;
    if (timing.unavailable().empty()) {
      std::string name = v1::Comparison_Name(timing.comparison());
      result->set_reason(absl::StrFormat("%s; against the rival %s: %.3gx [%.3g, %.3g], resolution %.2g %%",
                                         result->reason(), name.substr(std::min<size_t>(name.size(), 11)),
                                         timing.speedup(), timing.speedup_low(), timing.speedup_high(),
                                         100 * timing.resolution()));
    } else {
      result->set_reason(
          absl::StrCat(result->reason(), "; there is no figure against the rival: ", timing.unavailable()));
    }
  }
}

void WidenIntervals(bool script, v1::EvaluationResult* result) {
  const v1::BaselineTiming* ranking = measure::Ranking(*result);
  const bool known = script && result->device().kind() == v1::DEVICE_KIND_CUDA;  // measure::kScriptResolutionCuda
  if ((!known && !(result->device().calibration().resolution() > 0)) || ranking == nullptr) return;
  const auto interval = [](double low, double high) { return absl::StrFormat("[%.3g, %.3g]", low, high); };
  // Declared parameters were tried under the same circumstances as the one that was chosen.
  for (v1::Combination& one : *result->mutable_combinations()) {
    double low = one.speedup_low(), high = one.speedup_high();
    if (!(one.speedup() > 0) || !measure::Widen(one.speedup(), ranking->resolution(), &low, &high)) continue;
    one.set_reason(
        absl::StrReplaceAll(one.reason(), {{interval(one.speedup_low(), one.speedup_high()), interval(low, high)}}));
    one.set_speedup_low(low);
    one.set_speedup_high(high);
  }
  const std::string before = interval(ranking->speedup_low(), ranking->speedup_high());
  for (v1::BaselineTiming& timing : *result->mutable_timing()->mutable_baselines()) {
    double low = timing.speedup_low(), high = timing.speedup_high();
    if (measure::ReplicasOf(timing) > 1 || timing.comparison() == v1::COMPARISON_UNSPECIFIED ||
        !measure::Widen(timing.speedup(), timing.resolution(), &low, &high)) {
      continue;
    }
    timing.set_runs_low(timing.speedup_low());
    timing.set_runs_high(timing.speedup_high());
    timing.set_speedup_low(low);
    timing.set_speedup_high(high);
  }
  result->set_reason(
      absl::StrReplaceAll(result->reason(), {{before, interval(ranking->speedup_low(), ranking->speedup_high())}}));
}

absl::StatusOr<v1::Calibration> ParseCalibration(const nlohmann::json& body) {
  return Parse<v1::Calibration>(body, "rates");
}

v1::EvaluationResult ResultOfFailedBuild(const build::BuildOutcome& outcome) {
  v1::EvaluationResult result;
  result.set_verdict(outcome.verdict);
  result.set_reason(outcome.reason);
  *result.mutable_build() = outcome.report;
  if (outcome.verdict != v1::VERDICT_BUILD_FAILED || outcome.fault.signal() != 0) {
    *result.mutable_fault() = outcome.fault;
  }
  return result;
}

std::string RepairUtf8(std::string text, size_t max_bytes) {
  if (text.size() > max_bytes) {
    text.resize(max_bytes);
    // Not in the middle of a character.
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
    if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.pop_back();
  }
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0x80                  ? 1
                          : (c >= 0xC2 && c < 0xE0) ? 2
                          : (c & 0xF0) == 0xE0      ? 3
                          : (c >= 0xF0 && c < 0xF5) ? 4
                                                    : 0;
    bool good = length > 0 && i + length <= text.size();
    for (size_t k = 1; good && k < length; ++k) good = (static_cast<unsigned char>(text[i + k]) & 0xC0) == 0x80;
    if (good && length == 3) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      good = !(c == 0xE0 && second < 0xA0) && !(c == 0xED && second >= 0xA0);
    }
    if (good && length == 4) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      good = !(c == 0xF0 && second < 0x90) && !(c == 0xF4 && second >= 0x90);
    }
    if (good) {
      out.append(text, i, length);
      i += length;
    } else {
      out += '?';
      ++i;
    }
  }
  return out;
}

void Sanitise(v1::EvaluationResult* result) {
  result->set_reason(RepairUtf8(result->reason(), kMaxReason));
  if (result->has_fault()) {
    v1::FaultReport& fault = *result->mutable_fault();
    fault.set_message(RepairUtf8(fault.message(), kMaxMessage));
    fault.set_evidence(RepairUtf8(fault.evidence(), kMaxMessage));
    fault.set_stderr_tail(RepairUtf8(fault.stderr_tail(), kStderrTail));
  }
}

}  // namespace grove::worker
