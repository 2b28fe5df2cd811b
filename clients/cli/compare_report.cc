#include "clients/cli/compare_report.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "clients/cli/json.h"
#include "clients/cli/report.h"
#include "common/measure/comparison.h"
#include "common/measure/replicas.h"

namespace grove::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string NameOf(const v1::Candidate& candidate, const std::string& otherwise) {
  return candidate.name().empty() ? otherwise : OneLine(candidate.name());
}

std::string Field(const std::string& name, const std::string& value) {
  return absl::StrFormat("  %-11s%s\n", name, value);
}

std::string Colour(v1::Comparison comparison, const std::string& text, const Style& style) {
  return comparison == v1::COMPARISON_FASTER   ? style.Green(text)
         : comparison == v1::COMPARISON_SLOWER ? style.Red(text)
         : comparison == v1::COMPARISON_SAME   ? style.Bold(text)
                                               : style.Yellow(text);
}

// The rival's speedup over a baseline, from the medians of the same run: it was not paired with it.
double RivalSpeedup(const v1::BaselineTiming& baseline, const v1::BaselineTiming& rival) {
  return rival.reference_median_seconds() > 0 ? baseline.reference_median_seconds() / rival.reference_median_seconds()
                                              : 0;
}

std::string FormatRate(double operations) {
  if (operations >= 1e12) return absl::StrFormat("%.4g T/s", operations * 1e-12);
  return absl::StrFormat("%.4g G/s", operations * 1e-9);
}

}  // namespace

std::string ComparisonName(v1::Comparison comparison) {
  if (comparison == v1::COMPARISON_UNSPECIFIED) return "";
  const std::string name = v1::Comparison_Name(comparison);
  return std::string(absl::StripPrefix(name, "COMPARISON_"));
}

std::string FormatPercent(double share) { return absl::StrFormat("%.3g %%", 100 * share); }

std::string ResolutionLine(const v1::DeviceInfo& device, int64_t now_unix_nanos) {
  const v1::Calibration& calibration = device.calibration();
  const std::string resolution = FormatPercent(measure::ResolutionOf(device));
  if (calibration.resolution() <= 0) {
    return absl::StrCat(resolution, " assumed: this device was never calibrated (grove calibrate)");
  }
  return absl::StrCat(resolution, ", calibrated ", FormatAge(calibration.time_unix_nanos(), now_unix_nanos));
}

std::string RenderComparison(const v1::Job& job, const v1::KernelNode& kernel, const Style& style) {
  const v1::EvaluationResult& result = kernel.result();
  const std::string rival = NameOf(job.spec().eval().rival(), "the rival");
  const std::string name = NameOf(kernel.candidate(), kernel.id());
  if (result.verdict() != v1::VERDICT_CORRECT) return RenderEvaluation(kernel, style);
  const v1::BaselineTiming* timing = measure::AgainstRival(result);
  if (timing == nullptr) {
    std::string out = absl::StrCat(style.Bold(rival), "  ", style.Verdict(result.rival().verdict()), "\n");
    absl::StrAppend(&out, Field("reason", OneLine(result.rival().reason())));
    if (!result.rival().build().ok() && !result.rival().build().log().empty()) {
      absl::StrAppend(&out, Field("compiler", ""),
                      Excerpt(result.rival().build().log(), 20, "    ", absl::StrCat("grove show ", kernel.id())));
    }
    absl::StrAppend(&out, Field("so", absl::StrCat(name, " is correct, and there is nothing to compare it with")),
                    RenderWork(result.work(), /*all=*/false));
    return out;
  }
  const std::string verdict = ComparisonName(timing->comparison());
  std::string out;
  switch (timing->comparison()) {
    case v1::COMPARISON_FASTER:
    case v1::COMPARISON_SLOWER:
      out = absl::StrCat(style.Bold(name), " is ", Colour(timing->comparison(), verdict, style), " than ",
                         style.Bold(rival));
      break;
    case v1::COMPARISON_SAME:
      out = absl::StrCat(style.Bold(name), " is the ", Colour(timing->comparison(), verdict, style), " as ",
                         style.Bold(rival));
      break;
    default:
      out = absl::StrCat(style.Bold(name), " against ", style.Bold(rival), ": ",
                         Colour(timing->comparison(), verdict, style));
  }
  absl::StrAppend(&out, "  ", FormatSpeedup(timing->speedup(), timing->speedup_low(), timing->speedup_high()), "  ",
                  style.Dim(kernel.id()), "\n");
  absl::StrAppend(&out, Field("times", absl::StrCat(rival, " ", FormatSeconds(timing->reference_median_seconds()), ", ",
                                                    name, " ", FormatSeconds(timing->candidate_median_seconds()),
                                                    " (medians of ", PairsText(*timing), ")")));
  absl::StrAppend(
      &out, Field("resolution", result.device().calibration().resolution() > 0
                                    ? FormatPercent(timing->resolution())
                                    : absl::StrCat(FormatPercent(timing->resolution()),
                                                   " assumed: this device was never calibrated (grove calibrate)")));
  if (timing->comparison() == v1::COMPARISON_UNCLEAR) {
    absl::StrAppend(&out, Field("so",
                                "the interval is too wide to say: more time (--max-time), a quieter machine or a "
                                "calibration may tell"));
  }
  for (const v1::BaselineTiming& baseline : result.timing().baselines()) {
    if (baseline.baseline() == v1::BASELINE_RIVAL || baseline.speedup() <= 0) continue;
    absl::StrAppend(
        &out, Field("against",
                    absl::StrCat(BaselineName(baseline.baseline()), ": ", name, " ",
                                 FormatSpeedup(baseline.speedup(), baseline.speedup_low(), baseline.speedup_high()),
                                 " ", ComparisonName(baseline.comparison()), "; ", rival,
                                 absl::StrFormat(" %.3gx by the medians", RivalSpeedup(baseline, *timing)))));
  }
  if (const std::string clocks = ClocksLine(result.timing()); !clocks.empty())
    absl::StrAppend(&out, Field("clocks", clocks));
  if (const std::string reruns = RerunsLine(result.timing()); !reruns.empty())
    absl::StrAppend(&out, Field("reruns", reruns));
  const std::string others = OthersLine(result.timing().device_state());
  if (!others.empty()) absl::StrAppend(&out, Field("others", others));
  absl::StrAppend(&out, RenderWork(result.work(), /*all=*/false));
  if (result.has_device()) absl::StrAppend(&out, Field("device", DeviceLine(result.device())));
  return out;
}

std::string CompareDocument(const v1::Job& job, absl::Span<const v1::KernelNode> kernels, ExitCode code) {
  Json document;
  document["schema"] = "grove.v1/compare";
  document["job"] = job.id();
  document["name"] = job.spec().name();
  document["state"] = JobStateName(job.state());
  document["state_reason"] = job.state_reason();
  document["exit_code"] = static_cast<int>(code);
  document["rival"] = job.spec().eval().rival().name();
  Json results = Json::array();
  for (const v1::KernelNode& kernel : kernels) {
    const v1::EvaluationResult& result = kernel.result();
    Json one;
    one["candidate"] = kernel.candidate().name();
    one["node"] = kernel.id();
    one.update(VerdictIn(job, result));
    one["rival_verdict"] = VerdictName(result.rival().verdict());
    one["rival_reason"] = result.rival().reason();
    if (const v1::BaselineTiming* timing = measure::AgainstRival(result)) {
      one["comparison"] = ComparisonName(timing->comparison());
      one["ratio"] = timing->speedup();
      one["ratio_low"] = timing->speedup_low();
      one["ratio_high"] = timing->speedup_high();
      one["resolution"] = timing->resolution();
      one["calibrated"] = result.device().calibration().resolution() > 0;
      one["rival_seconds"] = timing->reference_median_seconds();
      one["candidate_seconds"] = timing->candidate_median_seconds();
      one["samples"] = timing->samples();
      one["replicas"] = measure::ReplicasOf(*timing);
    } else {
      one["comparison"] = nullptr;
    }
    one["result"] = JsonOf(result);
    results.push_back(std::move(one));
  }
  document["results"] = std::move(results);
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string RenderCalibration(const v1::DeviceCalibrated& calibrated, const Style& style) {
  const v1::Calibration& c = calibrated.calibration();
  std::string out = absl::StrCat(style.Bold(DeviceLine(calibrated.device())), "  worker ", OneLine(calibrated.worker()),
                                 ", ", FormatSeconds(c.seconds()), "\n");
  absl::StrAppend(&out, Field("resolution", absl::StrCat(style.Bold(FormatPercent(c.resolution())),
                                                         " at worst: ", FormatPercent(c.same_share()), " of ", c.runs(),
                                                         " runs of a kernel against itself come out as SAME")));
  absl::StrAppend(
      &out, Field("intervals",
                  absl::StrCat(FormatPercent(c.coverage()), " of them hold the truth (nominal: 95 %); ",
                               FormatPercent(c.runs_coverage()), " where they know of their own pairs of runs alone")));
  if (c.detection_runs() > 0) {
    absl::StrAppend(&out,
                    Field("detection",
                          absl::StrCat("a slowdown of ", FormatPercent(c.detection_slowdown()), " was found in ",
                                       FormatPercent(c.detection_share()), " of ", c.detection_runs(), " runs",
                                       c.detection_sampling_seconds() > 0
                                           ? absl::StrCat(" of at most ", FormatSeconds(c.detection_sampling_seconds()))
                                           : "")));
  }
  absl::StrAppend(&out, Field("memory", absl::StrFormat("%.4g GB/s", c.bandwidth_bytes_per_second() * 1e-9)));
  if (c.rates_size() > 0) {
    absl::StrAppend(&out, Field("matrices", absl::StrJoin(c.rates(), ", ", [](std::string* s, const v1::Rate& rate) {
                                  absl::StrAppend(s, OneLine(rate.precision()), " ",
                                                  FormatRate(rate.operations_per_second()));
                                })));
  }
  if (c.launch_seconds() > 0) absl::StrAppend(&out, Field("launch", FormatSeconds(c.launch_seconds())));
  std::vector<std::vector<std::string>> rows;
  for (const v1::CalibrationKernel& kernel : c.kernels()) {
    rows.push_back({OneLine(kernel.name()), FormatSeconds(kernel.seconds()), absl::StrCat(kernel.runs()),
                    absl::StrCat(kernel.same()), absl::StrCat(kernel.covered()), FormatPercent(kernel.deviation()),
                    FormatPercent(kernel.width()), FormatPercent(kernel.resolution())});
  }
  absl::StrAppend(&out, "\n",
                  Table({"KERNEL", "TIME", "RUNS", "SAME", "COVERED", "LARGEST", "WIDTH", "RESOLUTION"}, rows));
  for (const std::string& warning : c.warnings()) {
    absl::StrAppend(&out, style.Yellow("warning"), ": ", OneLine(warning), "\n");
  }
  return out;
}

std::string CalibrateDocument(const v1::Job& job, const v1::DeviceCalibrated& calibrated, ExitCode code) {
  Json document;
  document["schema"] = "grove.v1/calibrate";
  document["job"] = job.id();
  document["state"] = JobStateName(job.state());
  document["state_reason"] = job.state_reason();
  document["exit_code"] = static_cast<int>(code);
  document["worker"] = calibrated.worker();
  document["device"] = JsonOf(calibrated.device());
  document["calibration"] = JsonOf(calibrated.calibration());
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace grove::cli
