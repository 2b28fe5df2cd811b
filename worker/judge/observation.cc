#include "worker/judge/observation.h"

#include <algorithm>

#include "worker/judge/verdict.h"

namespace grove::judge {

using nlohmann::json;

std::optional<json> ParseObservation(const json& work, std::string* error) {
  if (!work.is_array() || work.size() > kMaxObserved) {
    *error = "observed work that is no list of at most " + std::to_string(kMaxObserved);
    return std::nullopt;
  }
  json kernels = json::array();
  double total = 0, whole = 0;
  bool device = false;
  for (const json& item : work) {
    if (!item.is_array() || item.size() != 3 || !item[0].is_string() || !item[1].is_number() || !item[2].is_string() ||
        !(item[1] >= 0) || !(item[1] <= 1e12)) {
      *error = "observed work that is not [name, microseconds, kind]";
      return std::nullopt;
    }
    const double seconds = 1e-6 * item[1].get<double>();
    const std::string kind = item[2];
    if (kind == "call") {
      whole = seconds;
      continue;
    }
    device = device || kind == "kernel";
    total += seconds;
    kernels.push_back({{"name", Bounded(item[0].get<std::string>(), 200)}, {"seconds", seconds}});
  }
  // On the CPU what is in no operator is the candidate's own code; on a GPU all kernels are seen.
  const double base = device ? total : std::max(whole, total);
  for (json& kernel : kernels) kernel["share"] = base > 0 ? kernel["seconds"].get<double>() / base : 0.0;
  return json{{"kernels", kernels},
              {"how", device ? "torch.profiler in the candidate's process over one checked call: kernels by name"
                             : "torch.profiler in the candidate's process over one checked call: torch operators by "
                               "name, the rest is the candidate's own code"}};
}

}  // namespace grove::judge
