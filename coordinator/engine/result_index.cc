#include "coordinator/engine/result_index.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"

namespace grove::coordinator {

std::string ResultKey(const v1::Problem& problem, const v1::Candidate& candidate, const std::string& source_sha256,
                      const v1::EvaluationOptions& options, const std::string& salt) {
  v1::EvaluationOptions asked = options;
  asked.clear_reuse_result();  // how to answer, not what is asked
  std::string flags;
  for (const std::string& flag : candidate.build_flags()) absl::StrAppend(&flags, flag.size(), ":", flag);
  return Sha256HexOfParts({"result-2", salt, absl::StrCat(problem.format()), problem.source(),
                           absl::StrCat(candidate.format()), flags, source_sha256, asked.SerializeAsString()});
}

bool StandsForEqual(const v1::EvaluationResult& result) {
  const auto by_limit = [](v1::Verdict verdict) {
    return verdict == v1::VERDICT_TIMED_OUT || verdict == v1::VERDICT_LIMIT_EXCEEDED;
  };
  // A compiler that was killed may have been short of memory.
  const bool killed = result.verdict() == v1::VERDICT_BUILD_FAILED && result.fault().signal() != 0;
  return result.verdict() != v1::VERDICT_UNMEASURABLE && !by_limit(result.verdict()) && !killed &&
         std::none_of(result.combinations().begin(), result.combinations().end(),
                      [&](const v1::Combination& one) { return by_limit(one.verdict()); });
}

bool SameMachine(const v1::DeviceInfo& a, const v1::DeviceInfo& b) {
  return a.kind() == b.kind() && a.name() == b.name() && a.arch() == b.arch() && a.driver() == b.driver() &&
         a.toolkit() == b.toolkit() && a.torch() == b.torch() && a.memory_bytes() == b.memory_bytes();
}

void ResultIndex::Put(const std::string& key, uint64_t seq) {
  auto it = entries_.find(key);
  if (it != entries_.end()) {
    it->second.seq = seq;
    order_.splice(order_.begin(), order_, it->second.place);
    return;
  }
  order_.push_front(key);
  entries_[key] = {seq, order_.begin()};
  if (entries_.size() <= max_) return;
  entries_.erase(order_.back());
  order_.pop_back();
}

uint64_t ResultIndex::Get(const std::string& key) {
  auto it = entries_.find(key);
  if (it == entries_.end()) return 0;
  order_.splice(order_.begin(), order_, it->second.place);
  return it->second.seq;
}

}  // namespace grove::coordinator
