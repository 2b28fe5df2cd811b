// A generator that plays a recording: the same answers for the same requests, without a model.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/generate/generator.h"
#include "coordinator/generate/recording.h"

namespace grove::generate {

// An answer is found by the request's key; a request that the recording does not know (another policy, another number
// of rounds) gets the next answer of its kind that nobody has had. A key that was recorded more than once has its last
// answer: the one that the search went on with. The same request asked again gets the same answer. NOT_FOUND when the
// recording has run out. Costs nothing. Thread-safe.
class ReplayGenerator : public Generator {
 public:
  // `recording` is the text of a recording. INVALID_ARGUMENT when it is none.
  static absl::StatusOr<std::unique_ptr<ReplayGenerator>> Create(absl::string_view recording);

  absl::Status Supports(const Context& context) override;
  absl::StatusOr<IdeasAnswer> ProposeIdeas(const Context& context, const IdeaRequest& request) override;
  absl::StatusOr<KernelAnswer> WriteKernel(const Context& context, const KernelRequest& request) override;

 private:
  explicit ReplayGenerator(std::vector<Exchange> exchanges);
  absl::StatusOr<const Exchange*> Find(const std::string& kind, const std::string& request);

  const std::vector<Exchange> exchanges_;
  std::mutex mu_;
  std::map<std::pair<std::string, std::string>, size_t> by_key_;  // kind, request; grows by what was found in order
  std::vector<bool> used_;
  std::map<std::string, size_t> next_;  // kind -> where to look for the next unused one
};

}  // namespace grove::generate
