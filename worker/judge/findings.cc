#include "worker/judge/findings.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "worker/judge/tensor_type.h"
#include "worker/judge/verdict.h"

namespace grove::judge {
namespace {

using nlohmann::json;

// NaN may be what was there before: then the kernel did not write it.
std::string Unwritten(const at::Tensor& got) {
  if (!got.is_floating_point()) return "";
  const std::int64_t count = at::isnan(got).sum().item<std::int64_t>();
  return " (" + std::to_string(count) +
         " elements are NaN; outputs are filled with NaN before the kernel runs, so these "
         "may never have been written)";
}

std::string RuleText(const Rule& rule, double worst_allowed, bool has_high) {
  char text[400];
  if (rule.mode == RuleMode::kAbsoluteRelative) {
    std::snprintf(text, sizeof text, "|got - expected| <= %g + %g * |expected|, integers and bool exact", rule.atol,
                  rule.rtol);
  } else {
    std::snprintf(text, sizeof text,
                  "scaled: rms error at most %.3g of the output's rms, no element beyond %g times that plus its slack, "
                  "against %s; integers and bool exact",
                  worst_allowed, kTailFactor, has_high ? "the reference in float64" : "the reference as written");
  }
  return text;
}

std::string Precision(const Findings::Figures& figures) {
  if (!(figures.error_found > figures.error_same)) {
    return figures.reference_noise > 1e-4 && figures.error_same >= kNoiseFactor * figures.reference_noise
               ? "as the reference, which itself works in reduced precision"
               : "as the reference";
  }
  // Rounding both factors of a product to 11 bits is off by 4e-4 of it, to 8 bits by 3e-3; three times as much is
  // ascribed to the same.
  const double error = figures.error_found / figures.condition;
  if (error <= 3e-6) return "reduced (single precision or a rough approximation inside)";
  if (error <= 1.2e-3) return "reduced (TF32 or half precision inside)";
  if (error <= 1e-2) return "reduced (bfloat16 or coarser inside)";
  return "far from the reference";
}

}  // namespace

const char* Word(Distribution distribution) {
  switch (distribution) {
    case Distribution::kScaled:
      return "scaled";
    case Distribution::kShifted:
      return "shifted";
    case Distribution::kSparse:
      return "sparse";
    case Distribution::kOutliers:
      return "outlier";
    case Distribution::kRare:
      return "rare";
    case Distribution::kIntegers:
      return "integer";
    default:
      return "given";
  }
}

std::string OnTheseInputs(const Outcome& there, int right, const std::string& failure) {
  return std::string("on ") + Word(there.distribution) + " inputs (" + there.how + ") " + failure +
         (failure.ends_with('.') ? "" : ".") + " It was right on all " + std::to_string(right) +
         " draws of the problem's own values; --only-given-inputs judges by those alone";
}

std::string OutputWords::Path(std::size_t i) const { return i < paths_.size() ? paths_[i] : ""; }

std::string OutputWords::Name(std::size_t i, std::size_t count) const {
  return count == 1 ? "the output" : "output " + (Path(i).empty() ? std::to_string(i) : Path(i));
}

void OutputWords::CheckTypes(const Conversation& conversation, const Reply& reply,
                             const std::vector<at::Tensor>& expected, const std::string& device, Secrecy secret,
                             std::vector<json>* outputs, std::string* failure) const {
  if (!reply.outputs.is_array()) throw conversation.Protocol("\"done\" without its outputs");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::string got = "nothing", where = device;
    if (i < reply.outputs.size()) {
      const json& item = reply.outputs[i];
      auto dtype = item.find("dtype"), shape = item.find("shape"), place = item.find("device");
      if (!item.is_object() || dtype == item.end() || !dtype->is_string() || shape == item.end() ||
          !shape->is_array() || place == item.end() || !place->is_string()) {
        throw conversation.Protocol("an output without dtype, shape and device");
      }
      got = Bounded(dtype->get<std::string>(), 40) + Bounded(shape->dump(), 200);
      where = *place;
    }
    const std::string wanted = TypeText(expected[i]);
    const bool scalar = where == "scalar" && expected[i].dim() == 0;
    const bool fits = got == wanted && (where == device || scalar);
    if (secret.quiet) {
      const std::string type = secret.held_out ? ShortType(expected[i].scalar_type()) + kHidden : wanted;
      outputs->push_back({{"index", i}, {"path", Path(i)}, {"expected_type", type}});
      if (failure->empty() && !fits) {
        *failure = Name(i, expected.size()) + " has another type, shape or place than the reference's, " + type;
      }
      continue;
    }
    json description{{"index", i}, {"path", Path(i)}, {"expected_type", wanted}, {"elements", expected[i].numel()}};
    if (!fits) {
      const std::string on = where != device && where != "scalar" && !where.empty() ? " on " + where : "";
      description["got_type"] = got + on;
      description["mismatched"] = expected[i].numel();
      if (failure->empty()) {
        *failure = Name(i, expected.size()) + " is " + got + on + ", and the reference's is " + wanted +
                   (on.empty() ? "" : " on " + device);
      }
    }
    outputs->push_back(description);
  }
  if (failure->empty() && reply.outputs.size() > expected.size()) {
    *failure = "the candidate returns " + (secret.quiet ? "more" : std::to_string(reply.outputs.size())) +
               " outputs, and the reference " + std::to_string(expected.size());
  }
}

json OutputWords::Describe(std::size_t i, const at::Tensor& expected, const Comparison& compared,
                           Secrecy secret) const {
  // What it writes may be a shape that it was not to tell, and every figure of that tells what it wrote.
  if (secret.quiet) {
    return {{"index", i},
            {"path", Path(i)},
            {"expected_type", secret.held_out ? ShortType(expected.scalar_type()) + kHidden : TypeText(expected)},
            {"elements", 0},
            {"mismatched", 0},
            {"max_abs_error", 0},
            {"max_rel_error", 0},
            {"scaled_error", 0}};
  }
  json output{{"index", i},
              {"path", Path(i)},
              {"expected_type", TypeText(expected)},
              {"elements", compared.elements},
              {"mismatched", compared.mismatched},
              {"max_abs_error", Number(compared.max_abs_error)},
              {"max_rel_error", Number(compared.max_rel_error)},
              {"scaled_error", Number(compared.scaled_error)}};
  if (compared.worst >= 0) {
    output["worst"] = {{"index", Unravel(compared.worst, expected.sizes().vec())},
                       {"expected", Number(compared.expected)},
                       {"got", Number(compared.got)},
                       {"error", Number(compared.error)},
                       {"allowed", Number(compared.allowed)}};
  }
  return output;
}

std::string OutputWords::Explain(std::size_t i, std::size_t count, const at::Tensor& got, const at::Tensor& expected,
                                 const Comparison& compared, int trial, Secrecy secret) const {
  const std::string in = " is wrong in trial " + std::to_string(trial);
  // How many elements there are, and where the worst stands, would tell the shape; so may what was written.
  if (secret.quiet) {
    return Name(i, count) + " (" +
           (secret.held_out ? ShortType(expected.scalar_type()) + kHidden : TypeText(expected)) + ")" + in +
           (secret.held_out ? "" : "; no figures are told, for it has run shapes that are held out");
  }
  std::string text = Name(i, count) + " (" + TypeText(expected) + ")" + in + ": " + compared.why + "; " +
                     std::to_string(compared.mismatched) + " of " + std::to_string(compared.elements) + " elements";
  if (compared.worst >= 0) {
    const std::string at = json(Unravel(compared.worst, expected.sizes().vec())).dump();
    char figures[200];
    std::snprintf(figures, sizeof figures, ", worst at %s: expected %.9g, got %.9g", at.c_str(), compared.expected,
                  compared.got);
    text += figures;
    if (std::isnan(compared.got) && compared.mismatched > 0) text += Unwritten(got);
  }
  return text;
}

void Findings::Figures::Add(const Comparison& compared, bool leaning, bool quiet) {
  also_1e4 = also_1e4 && compared.passes_1e4;
  also_1e2 = also_1e2 && compared.passes_1e2;
  // What leaning values make of rounding, and are allowed, says nothing of precision.
  if (leaning) return;
  also_scaled = also_scaled && compared.passes_scaled && !(compared.scaled_error > compared.scaled_same);
  worst_allowed = std::max(worst_allowed, compared.scaled_allowed);
  if (!quiet) error_found = std::max(error_found, compared.scaled_error);
  error_same = std::max(error_same, compared.scaled_same);
  condition = std::max(condition, compared.noise.condition);
  reference_noise = std::max(reference_noise, compared.noise.rms);
}

void Findings::KeepWorst(const std::vector<json>& worse) {
  if (outputs.empty()) {
    outputs = worse;
    return;
  }
  for (std::size_t i = 0; i < worse.size(); ++i) {
    auto error = [](const json& o) { return o["scaled_error"].is_number() ? o["scaled_error"].get<double>() : 0.0; };
    if (error(worse[i]) > error(outputs[i])) outputs[i] = worse[i];
  }
}

json Findings::Report(const Rule& rule, bool has_high) const {
  json report{{"trials", trials},
              {"trials_passed", passed},
              {"rule", RuleText(rule, figures.worst_allowed, has_high)},
              {"outputs", outputs}};
  json tolerance{
      {"mode", rule.mode == RuleMode::kScaled ? "TOLERANCE_MODE_SCALED" : "TOLERANCE_MODE_ABSOLUTE_RELATIVE"}};
  if (rule.mode == RuleMode::kAbsoluteRelative) {
    tolerance["atol"] = rule.atol;
    tolerance["rtol"] = rule.rtol;
  }
  report["tolerance"] = tolerance;
  if (first_failing > 0) report["first_failing_trial"] = first_failing;
  if (inputs_modified) report["inputs_modified"] = true;
  json also = json::array();
  if (!inputs_modified && trials > 0 && !outputs.empty() && !outputs[0].contains("got_type")) {
    if (figures.also_1e4) also.push_back("1e-4");
    if (figures.also_1e2) also.push_back("1e-2");
    if (figures.also_scaled) also.push_back("scaled");
  }
  report["also_passes"] = also;
  json distributions = json::array();
  for (const Outcome& outcome : outcomes) {
    json item{{"distribution", EnumName(outcome.distribution)}, {"trials", outcome.trials}, {"passed", outcome.passed}};
    if (!outcome.skipped.empty()) item["skipped"] = outcome.skipped;
    if (outcome.trials > 0) item["scaled_error"] = Number(outcome.error);
    distributions.push_back(item);
  }
  report["distributions"] = distributions;
  if (outcomes.front().passed > 0) {
    report["error_found"] = Number(figures.error_found);
    report["error_same_precision"] = Number(figures.error_same);
    report["precision"] = Precision(figures);
  }
  return report;
}

}  // namespace grove::judge
