// One candidate judged: opened, checked on secret draws, then timed against the reference. The stages are in files of
// their own: conversation, slots, check, timing.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/wire/channel.h"
#include "worker/judge/device_ops.h"
#include "worker/judge/problem.h"
#include "worker/judge/settings.h"

namespace grove::judge {

struct EvaluationOutcome {
  nlohmann::json result;  // EvaluationResult
  bool candidate_gone = false, rival_gone = false;
  // It had run shapes that are held out: nothing that it wrote itself is to be told.
  bool candidate_quiet = false, rival_quiet = false;
};

// Throws std::exception when the environment is at fault; everything else is a verdict.
// `rival`: the other kernel of a comparison; what became of it is in the result's `rival`.
EvaluationOutcome Evaluate(LoadedProblem& problem, DeviceOps& ops, wire::Channel candidate,
                           std::optional<wire::Channel> rival, const EvaluationSettings& settings,
                           const Progress& progress);

}  // namespace grove::judge
