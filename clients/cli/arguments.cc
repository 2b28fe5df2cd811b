#include "clients/cli/arguments.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/cli/suggest.h"
#include "clients/cli/text.h"

namespace grove::cli {
namespace {

using google::protobuf::FieldDescriptor;

// Splits "512MiB" into 512 and "MiB"; false when there is no number in front.
bool SplitNumber(absl::string_view text, double* number, absl::string_view* unit) {
  text = absl::StripAsciiWhitespace(text);
  size_t end = 0;
  while (end < text.size() && (absl::ascii_isdigit(text[end]) || text[end] == '.' ||
                               ((text[end] == 'e' || text[end] == 'E') && end + 1 < text.size() &&
                                (absl::ascii_isdigit(text[end + 1]) || text[end + 1] == '-')) ||
                               (text[end] == '-' && end > 0 && (text[end - 1] == 'e' || text[end - 1] == 'E')))) {
    ++end;
  }
  *unit = absl::StripAsciiWhitespace(text.substr(end));
  return end > 0 && absl::SimpleAtod(text.substr(0, end), number) && std::isfinite(*number);
}

}  // namespace

absl::StatusOr<double> ParseDuration(absl::string_view text) {
  double number = 0;
  absl::string_view unit;
  double scale = 0;
  if (SplitNumber(text, &number, &unit)) {
    if (unit.empty() || unit == "s") scale = 1;
    if (unit == "ms") scale = 1e-3;
    if (unit == "m" || unit == "min") scale = 60;
    if (unit == "h") scale = 3600;
  }
  if (scale == 0 || !(number > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a duration above zero; write for example 10, 10s, 500ms, 2m"));
  }
  return number * scale;
}

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  double number = 0;
  absl::string_view unit;
  double scale = 0;
  if (SplitNumber(text, &number, &unit)) {
    std::string lower = absl::AsciiStrToLower(unit);
    absl::string_view letter = lower;
    absl::ConsumeSuffix(&letter, "b");
    absl::ConsumeSuffix(&letter, "i");
    if (letter.empty()) scale = lower.empty() || lower == "b" ? 1 : 0;
    if (letter == "k") scale = 1024.0;
    if (letter == "m") scale = 1024.0 * 1024;
    if (letter == "g") scale = 1024.0 * 1024 * 1024;
    if (letter == "t") scale = 1024.0 * 1024 * 1024 * 1024;
  }
  const double bytes = number * scale;
  if (scale == 0 || !(bytes >= 1) || bytes > 9e18) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a size above zero; write for example 1048576, 512MiB, 4G"));
  }
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<v1::Tolerance> ParseTolerance(absl::string_view text) {
  v1::Tolerance tolerance;
  if (text == "scaled") {
    tolerance.set_mode(v1::TOLERANCE_MODE_SCALED);
    return tolerance;
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  double atol = 0, rtol = 0;
  if (parts.size() != 2 || !absl::SimpleAtod(parts[0], &atol) || !absl::SimpleAtod(parts[1], &rtol) ||
      !std::isfinite(atol) || !std::isfinite(rtol) || atol < 0 || rtol < 0 || atol + rtol == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tolerance: '", text, "' is neither 'scaled' nor ATOL,RTOL such as 1e-4,1e-4"));
  }
  tolerance.set_mode(v1::TOLERANCE_MODE_ABSOLUTE_RELATIVE);
  tolerance.set_atol(atol);
  tolerance.set_rtol(rtol);
  return tolerance;
}

absl::Status ParsePrecision(absl::string_view text, v1::EvaluationOptions* options) {
  if (text.empty()) return absl::OkStatus();
  if (text == "same") {
    options->set_precision(v1::PRECISION_POLICY_SAME);
    return absl::OkStatus();
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  double tolerance = 0;
  const bool given = parts.size() == 2;
  if (parts[0] != "reduced" || parts.size() > 2 ||
      (given &&
       (!absl::SimpleAtod(parts[1], &tolerance) || !std::isfinite(tolerance) || tolerance <= 0 || tolerance > 0.5))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--precision: '", text, "' is neither 'same' nor 'reduced' nor reduced,TOL such as reduced,1e-3"));
  }
  options->set_precision(v1::PRECISION_POLICY_REDUCED);
  options->set_precision_tolerance(tolerance);
  return absl::OkStatus();
}

std::vector<std::string> WorkPolicyNames() {
  std::vector<std::string> names;
  for (int i = v1::WORK_POLICY_ANYTHING; i <= v1::WorkPolicy_MAX; ++i) {
    names.push_back(WorkPolicyName(static_cast<v1::WorkPolicy>(i)));
  }
  return names;
}

absl::StatusOr<v1::WorkPolicy> ParseWork(absl::string_view text) {
  if (text.empty()) return v1::WORK_POLICY_UNSPECIFIED;
  const std::vector<std::string> names = WorkPolicyNames();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    return absl::InvalidArgumentError(absl::StrCat("--work: '", text, "' is not one of ", absl::StrJoin(names, ", ")));
  }
  return static_cast<v1::WorkPolicy>(v1::WORK_POLICY_ANYTHING + (found - names.begin()));
}

absl::StatusOr<v1::CachePolicy> ParseCache(absl::string_view text) {
  if (text.empty()) return v1::CACHE_POLICY_UNSPECIFIED;
  if (text == "cold") return v1::CACHE_POLICY_COLD;
  if (text == "warm") return v1::CACHE_POLICY_WARM;
  return absl::InvalidArgumentError(absl::StrCat("--cache: '", text, "' is not one of cold, warm"));
}

absl::StatusOr<std::vector<v1::InputDistribution>> ParseDistributions(const std::vector<std::string>& texts) {
  std::vector<v1::InputDistribution> distributions;
  for (const std::string& text : texts) {
    for (absl::string_view name : absl::StrSplit(text, ',')) {
      v1::InputDistribution distribution = v1::INPUT_DISTRIBUTION_UNSPECIFIED;
      if (!v1::InputDistribution_Parse(absl::StrCat("INPUT_DISTRIBUTION_", absl::AsciiStrToUpper(name)),
                                       &distribution) ||
          distribution == v1::INPUT_DISTRIBUTION_UNSPECIFIED) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--distributions: '", name, "' is not one of given, scaled, shifted, sparse, outliers, rare, integers"));
      }
      if (std::find(distributions.begin(), distributions.end(), distribution) == distributions.end()) {
        distributions.push_back(distribution);
      }
    }
  }
  return distributions;
}

absl::StatusOr<std::vector<v1::Baseline>> ParseBaselines(absl::string_view text) {
  if (text == "eager") return std::vector<v1::Baseline>{v1::BASELINE_EAGER};
  if (text == "compile") return std::vector<v1::Baseline>{v1::BASELINE_COMPILE};
  if (text == "all") return std::vector<v1::Baseline>{v1::BASELINE_EAGER, v1::BASELINE_COMPILE};
  return absl::InvalidArgumentError(absl::StrCat("--baseline: '", text, "' is not one of eager, compile, all"));
}

std::vector<std::string> LimitNames() {
  std::vector<std::string> names;
  const auto* descriptor = v1::Limits::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) names.push_back(descriptor->field(i)->name());
  return names;
}

absl::Status ApplyLimit(absl::string_view text, v1::Limits* limits) {
  const auto error = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("--limit ", text, ": ", parts...));
  };
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos) return error("write NAME=VALUE, such as run_wall_seconds=30");
  const std::string name(absl::StripAsciiWhitespace(text.substr(0, equals)));
  const absl::string_view value = text.substr(equals + 1);
  const FieldDescriptor* field = v1::Limits::descriptor()->FindFieldByName(name);
  if (field == nullptr) {
    const std::string near = ClosestName(name, LimitNames());
    return error("there is no limit '", name, "'", near.empty() ? "" : absl::StrCat("; did you mean '", near, "'?"),
                 "; the limits are ", absl::StrJoin(LimitNames(), ", "));
  }
  const auto* reflection = limits->GetReflection();
  if (absl::EndsWith(name, "_seconds")) {
    auto seconds = ParseDuration(value);
    if (!seconds.ok()) return error(seconds.status().message());
    reflection->SetDouble(limits, field, *seconds);
  } else if (absl::EndsWith(name, "_bytes")) {
    auto bytes = ParseBytes(value);
    if (!bytes.ok()) return error(bytes.status().message());
    reflection->SetInt64(limits, field, *bytes);
  } else {
    int32_t count = 0;
    if (!absl::SimpleAtoi(value, &count) || count <= 0) return error("'", value, "' is not a whole number above zero");
    reflection->SetInt32(limits, field, count);
  }
  return absl::OkStatus();
}

absl::StatusOr<DeviceArgument> ParseDevice(absl::string_view text) {
  DeviceArgument device;
  if (text.empty() || text == "auto") return device;
  if (text == "cpu") {
    device.kind = v1::DEVICE_KIND_CPU;
    return device;
  }
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "cuda")) {
    device.kind = v1::DEVICE_KIND_CUDA;
    if (rest.empty()) return device;
    if (absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest, &device.index) && device.index >= 0 &&
        device.index < 1024) {
      return device;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--device: '", text, "' is not a device; it is auto, cpu, cuda or cuda:N"));
}

absl::StatusOr<GeneratorArgument> ParseGenerator(absl::string_view text) {
  GeneratorArgument generator;
  if (text.empty() || text == "catalogue") return generator;
  if (text == "openai") {
    generator.kind = v1::GENERATOR_KIND_OPENAI;
    return generator;
  }
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "replay:") && !rest.empty()) {
    generator.kind = v1::GENERATOR_KIND_REPLAY;
    generator.recording_file = std::string(rest);
    return generator;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--generator: '", text, "' is not one of catalogue, openai, replay:FILE"));
}

}  // namespace grove::cli
