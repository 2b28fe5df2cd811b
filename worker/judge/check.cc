#include "worker/judge/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// NaN may be what was there before: then the kernel did not write it.
std::string Unwritten(const at::Tensor& got) {
  if (!got.is_floating_point()) return "";
  const std::int64_t count = at::isnan(got).sum().item<std::int64_t>();
  return " (" + std::to_string(count) +
         " elements are NaN; outputs are filled with NaN before the kernel runs, so these "
         "may never have been written)";
}

}  // namespace

Check::Check(LoadedProblem& problem, DeviceOps& ops, const EvaluationSettings& settings, bool high_fits)
    : problem_(problem),
      reference_(*problem.reference),
      ops_(ops),
      settings_(settings),
      rule_(settings.rule.value_or(problem.reference->DefaultRule())),
      high_fits_(high_fits),
      paths_(problem.reference->OutputPaths()) {}

Expected Check::Compute(const std::vector<Leaf>& leaves, bool high) {
  Expected expected;
  auto call = reference_.Prepare(leaves, Mode::kEager);
  call->Run();
  expected.plain = call->Outputs();
  if (high && high_fits_ && problem_.double_seconds >= 0) {
    try {
      auto exact = reference_.Prepare(leaves, Mode::kDouble);
      exact->Run();
      expected.high = exact->Outputs();
      if (expected.high.size() != expected.plain.size()) expected.high.clear();
      for (std::size_t i = 0; i < expected.high.size(); ++i) {
        if (expected.high[i].sizes() != expected.plain[i].sizes()) expected.high.clear();
      }
    } catch (const std::exception&) {
      expected.high.clear();
      problem_.double_seconds = -1;
    }
  }
  return expected;
}

void Check::Verify(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                   const Expected& expected, int trial) {
  ++trials_;
  // Out of the candidate's reach first: what is compared can no longer change.
  std::vector<at::Tensor> got;
  const auto copy_begin = Clock::now();
  for (std::size_t i = 0; i < slot->out.places.size(); ++i) {
    at::Tensor copy = at::empty_like(expected.plain[i], at::MemoryFormat::Contiguous);
    const Place& place = slot->out.places[i];
    if (place.bytes > 0) ops_.Copy(copy.data_ptr(), slot->outputs->data() + place.offset, place.bytes);
    got.push_back(copy);
  }
  copies_.push_back(Since(copy_begin));
  if (copies_.size() > 15) copies_.erase(copies_.begin());
  if (!arena->InputsIntact(slot) || !arena->ParametersIntact(reference_.Parameters())) {
    inputs_modified_ = true;
    first_failing_ = trial;
    throw Verdict{"VERDICT_WRONG", "the candidate wrote to its inputs, which must stay as they are", {}};
  }
  std::vector<json> outputs;
  std::string failure;
  if (settings_.python_candidate) CheckTypes(conversation, reply, expected, &outputs, &failure);
  if (failure.empty() && !arena->OutputGuardsIntact(slot)) {
    failure = "the candidate wrote outside of its output";
  }
  if (failure.empty()) {
    outputs.clear();
    noise_.resize(got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const at::Tensor high = i < expected.high.size() ? expected.high[i] : at::Tensor();
      Comparison compared = CompareTensors(got[i], expected.plain[i], high, problem_.reduction, noise_[i], rule_);
      if (compared.noise.known) noise_[i] = compared.noise;
      also_1e4_ = also_1e4_ && compared.passes_1e4;
      also_1e2_ = also_1e2_ && compared.passes_1e2;
      also_scaled_ = also_scaled_ && compared.passes_scaled;
      outputs.push_back(Describe(i, expected.plain[i], compared));
      if (compared.scaled_allowed > worst_allowed_) worst_allowed_ = compared.scaled_allowed;
      if (!compared.ok && failure.empty()) failure = Explain(i, got.size(), got[i], expected.plain[i], compared, trial);
    }
  }
  if (!failure.empty()) {
    first_failing_ = trial;
    outputs_ = outputs;
    throw Verdict{"VERDICT_WRONG", failure, {}};
  }
  ++trials_passed_;
  KeepWorst(outputs);
}

void Check::KeepWorst(const std::vector<json>& outputs) {
  if (outputs_.empty()) {
    outputs_ = outputs;
    return;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto error = [](const json& o) { return o["scaled_error"].is_number() ? o["scaled_error"].get<double>() : 0.0; };
    if (error(outputs[i]) > error(outputs_[i])) outputs_[i] = outputs[i];
  }
}

void Check::CheckTypes(const Conversation& conversation, const Reply& reply, const Expected& expected,
                       std::vector<json>* outputs, std::string* failure) const {
  if (!reply.outputs.is_array()) throw conversation.Protocol("\"done\" without its outputs");
  const std::string device = ops_.cuda() ? "cuda" : "cpu";
  for (std::size_t i = 0; i < expected.plain.size(); ++i) {
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
    const std::string wanted = TypeText(expected.plain[i]);
    json description{
        {"index", i}, {"path", Path(i)}, {"expected_type", wanted}, {"elements", expected.plain[i].numel()}};
    const bool scalar = where == "scalar" && expected.plain[i].dim() == 0;
    if (got != wanted || (where != device && !scalar)) {
      const std::string on = where != device && where != "scalar" ? " on " + where : "";
      description["got_type"] = got + on;
      description["mismatched"] = expected.plain[i].numel();
      if (failure->empty()) {
        *failure = Output(i, expected.plain.size()) + " is " + got + on + ", and the reference's is " + wanted +
                   (on.empty() ? "" : " on " + device);
      }
    }
    outputs->push_back(description);
  }
  if (failure->empty() && reply.outputs.size() > expected.plain.size()) {
    *failure = "the candidate returns " + std::to_string(reply.outputs.size()) + " outputs, and the reference " +
               std::to_string(expected.plain.size());
  }
}

std::string Check::Path(std::size_t i) const { return i < paths_.size() ? paths_[i] : ""; }

std::string Check::Output(std::size_t i, std::size_t count) const {
  return count == 1 ? "the output" : "output " + (Path(i).empty() ? std::to_string(i) : Path(i));
}

json Check::Describe(std::size_t i, const at::Tensor& expected, const Comparison& compared) const {
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

std::string Check::Explain(std::size_t i, std::size_t count, const at::Tensor& got, const at::Tensor& expected,
                           const Comparison& compared, int trial) const {
  std::string text = Output(i, count) + " (" + TypeText(expected) + ") is wrong in trial " + std::to_string(trial) +
                     ": " + compared.why + "; " + std::to_string(compared.mismatched) + " of " +
                     std::to_string(compared.elements) + " elements";
  if (compared.worst >= 0) {
    char figures[200];
    std::snprintf(figures, sizeof figures, ", worst at %s: expected %.9g, got %.9g",
                  json(Unravel(compared.worst, expected.sizes().vec())).dump().c_str(), compared.expected,
                  compared.got);
    text += figures;
    if (std::isnan(compared.got) && compared.mismatched > 0) text += Unwritten(got);
  }
  return text;
}

void Check::Run(Conversation* conversation, Arena* arena, std::size_t timed_slots, Random* random,
                const Progress& progress) {
  const std::size_t sets = reference_.ShapeSets();
  const int trials = std::max<int>(settings_.trials, static_cast<int>(sets));
  for (int trial = 1; trial <= trials; ++trial) {
    progress("check", "trial " + std::to_string(trial) + " of " + std::to_string(trials));
    const std::size_t set = static_cast<std::size_t>(trial - 1) % sets;
    const std::size_t index = set == 0 ? random->Below(timed_slots) : timed_slots + set - 1;
    Slot* slot = &arena->at(index);
    reference_.SelectShapeSet(set);
    slot->leaves.clear();  // the last draw's memory serves the next
    std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
    // A float64 evaluation that is slow is done for the first trial alone: its noise figures serve the others.
    const bool high = trial <= static_cast<int>(sets) || problem_.double_seconds < 0.5;
    Expected expected = Compute(leaves, high);
    reference_.SelectShapeSet(0);
    arena->Fill(slot, std::move(leaves));
    arena->Poison(slot);
    ops_.Synchronize();
    Reply reply = conversation->Run({index}, "all", settings_.observe && trial == trials);
    if (!reply.work.is_null()) work_ = std::move(reply.work);
    first_claims_.push_back(reply.claims[0]);
    Verify(*conversation, arena, slot, reply, expected, trial);
  }
}

std::string Check::RuleText() const {
  char text[400];
  if (rule_.mode == RuleMode::kAbsoluteRelative) {
    std::snprintf(text, sizeof text, "|got - expected| <= %g + %g * |expected|, integers and bool exact", rule_.atol,
                  rule_.rtol);
  } else {
    std::snprintf(text, sizeof text,
                  "scaled: rms error at most %.3g of the output's rms, no element beyond %g times that plus its slack, "
                  "against %s; integers and bool exact",
                  worst_allowed_, kTailFactor,
                  high_fits_ && problem_.double_seconds >= 0 ? "the reference in float64" : "the reference as written");
  }
  return text;
}

json Check::Report() const {
  json report{{"trials", trials_}, {"trials_passed", trials_passed_}, {"rule", RuleText()}, {"outputs", outputs_}};
  json tolerance{
      {"mode", rule_.mode == RuleMode::kScaled ? "TOLERANCE_MODE_SCALED" : "TOLERANCE_MODE_ABSOLUTE_RELATIVE"}};
  if (rule_.mode == RuleMode::kAbsoluteRelative) {
    tolerance["atol"] = rule_.atol;
    tolerance["rtol"] = rule_.rtol;
  }
  report["tolerance"] = tolerance;
  if (first_failing_ > 0) report["first_failing_trial"] = first_failing_;
  if (inputs_modified_) report["inputs_modified"] = true;
  json also = json::array();
  if (!inputs_modified_ && trials_ > 0 && !outputs_.empty() && !outputs_[0].contains("got_type")) {
    if (also_1e4_) also.push_back("1e-4");
    if (also_1e2_) also.push_back("1e-2");
    if (also_scaled_) also.push_back("scaled");
  }
  report["also_passes"] = also;
  return report;
}

}  // namespace grove::judge
