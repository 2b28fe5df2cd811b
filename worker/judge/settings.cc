#include "worker/judge/settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <type_traits>

namespace grove::judge {

using nlohmann::json;

namespace {
constexpr double kReducedTolerance = 1e-2;  // the CRFM authors'
constexpr double kMostReplicas = 16;        // as common/measure/replicas.h, which the judge does not know
}  // namespace

EvaluationSettings ParseSettings(const json& options, bool python_candidate) {
  EvaluationSettings settings;
  settings.python_candidate = python_candidate;
  if (!options.is_object()) return settings;
  auto number = [](const json& object, const char* name) -> double {
    auto member = object.find(name);
    if (member == object.end() || member->is_null()) return 0;
    double value = 0;
    if (member->is_number()) {
      value = member->get<double>();
    } else if (member->is_string()) {
      value = std::strtod(member->get<std::string>().c_str(), nullptr);
    }
    if (!std::isfinite(value) || value < 0)
      throw std::runtime_error(std::string("option ") + name + " must be a number from 0");
    return value;
  };
  auto set = [](double value, auto* field) {
    if (value > 0) *field = static_cast<std::remove_pointer_t<decltype(field)>>(value);
  };
  set(std::min(number(options, "trials"), 1000.0), &settings.trials);
  set(number(options, "min_time_seconds"), &settings.min_time);
  set(number(options, "max_time_seconds"), &settings.max_time);
  set(std::min(number(options, "min_samples"), 100000.0), &settings.min_samples);
  set(std::min(number(options, "max_samples"), 100000.0), &settings.max_samples);
  set(std::min(number(options, "replicas"), kMostReplicas), &settings.replicas);
  settings.replicas = std::max(settings.replicas, 1);
  settings.least_accused = settings.min_samples;
  settings.min_time /= settings.replicas;
  settings.max_time /= settings.replicas;
  settings.min_samples = (settings.min_samples + settings.replicas - 1) / settings.replicas;
  settings.max_samples = (settings.max_samples + settings.replicas - 1) / settings.replicas;
  settings.max_time = std::max(settings.max_time, settings.min_time);
  // An interval needs two.
  settings.max_samples = std::max(settings.max_samples, 2);
  settings.min_samples = std::clamp(settings.min_samples, 2, settings.max_samples);
  settings.skip_timing = options.value("skip_timing", false);
  settings.keep_samples = options.value("keep_samples", false);
  const json cache = options.value("cache", json(0));
  if (cache == "CACHE_POLICY_WARM" || cache == 2) settings.cache = "CACHE_POLICY_WARM";
  const json work = options.value("work", json(0));
  settings.observe = python_candidate &&
                     (work == "WORK_POLICY_OWN_KERNELS" || work == "WORK_POLICY_LIBRARIES" || work == 2 || work == 3);
  if (auto baselines = options.find("baselines"); baselines != options.end() && baselines->is_array()) {
    for (const json& item : *baselines) {
      std::string name = item.is_string() ? item.get<std::string>() : item == 2 ? "BASELINE_COMPILE" : "BASELINE_EAGER";
      if (name == "BASELINE_UNSPECIFIED") name = "BASELINE_EAGER";
      if (std::find(settings.baselines.begin(), settings.baselines.end(), name) == settings.baselines.end()) {
        settings.baselines.push_back(name);
      }
    }
  }
  if (settings.baselines.empty()) settings.baselines.push_back("BASELINE_EAGER");
  if (auto tolerance = options.find("tolerance"); tolerance != options.end() && tolerance->is_object()) {
    const json mode = tolerance->value("mode", json("TOLERANCE_MODE_UNSPECIFIED"));
    if (mode == "TOLERANCE_MODE_ABSOLUTE_RELATIVE" || mode == 2) {
      settings.rule = Rule{RuleMode::kAbsoluteRelative, number(*tolerance, "atol"), number(*tolerance, "rtol")};
    } else if (mode == "TOLERANCE_MODE_SCALED" || mode == 1) {
      settings.rule = Rule{};
    }
  }
  const json precision = options.value("precision", json(0));
  if (precision == "PRECISION_POLICY_REDUCED" || precision == 2) {
    settings.reduced = kReducedTolerance;
    set(number(options, "precision_tolerance"), &settings.reduced);
  }
  if (auto wanted = options.find("distributions"); wanted != options.end() && wanted->is_array() && !wanted->empty()) {
    settings.distributions.emplace();
    for (const json& item : *wanted) {
      const Distribution one = ParseDistribution(item.is_string() ? item.get<std::string>() : item.dump());
      auto& list = *settings.distributions;
      if (one != Distribution::kGiven && std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
    }
  }
  if (options.value("only_given_inputs", false)) settings.distributions.emplace();
  if (auto limits = options.find("limits"); limits != options.end() && limits->is_object()) {
    set(number(*limits, "call_wall_seconds"), &settings.call_wall);
    set(number(*limits, "run_wall_seconds"), &settings.run_wall);
    set(number(*limits, "device_memory_bytes"), &settings.device_memory);
  }
  return settings;
}

}  // namespace grove::judge
