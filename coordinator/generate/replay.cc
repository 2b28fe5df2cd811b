#include "coordinator/generate/replay.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "coordinator/generate/model_generator.h"
#include "coordinator/generate/parse.h"
#include "coordinator/llm/text.h"

namespace grove::generate {

absl::StatusOr<std::unique_ptr<ReplayGenerator>> ReplayGenerator::Create(absl::string_view recording) {
  GROVE_ASSIGN_OR_RETURN(std::vector<Exchange> exchanges, ParseRecording(recording));
  return std::unique_ptr<ReplayGenerator>(new ReplayGenerator(std::move(exchanges)));
}

ReplayGenerator::ReplayGenerator(std::vector<Exchange> exchanges)
    : exchanges_(std::move(exchanges)), used_(exchanges_.size(), false) {
  for (size_t i = 0; i < exchanges_.size(); ++i) {
    if (!exchanges_[i].request.empty()) by_key_[{exchanges_[i].kind, exchanges_[i].request}] = i;
  }
}

absl::Status ReplayGenerator::Supports(const Context& context) { return SupportsNativeKernels(context); }

absl::StatusOr<const Exchange*> ReplayGenerator::Find(const std::string& kind, const std::string& request) {
  std::lock_guard<std::mutex> lock(mu_);
  if (const auto known = by_key_.find({kind, request}); known != by_key_.end()) {
    used_[known->second] = true;
    return &exchanges_[known->second];
  }
  size_t& next = next_[kind];
  while (next < exchanges_.size() && (used_[next] || exchanges_[next].kind != kind)) ++next;
  if (next == exchanges_.size()) {
    const auto recorded =
        std::count_if(exchanges_.begin(), exchanges_.end(), [&](const Exchange& e) { return e.kind == kind; });
    return absl::NotFoundError(
        absl::StrCat("the recording has no answer for the request '", llm::OneLine(request, 100), "': its ", recorded,
                     " answers of the kind '", kind,
                     "' are used up; record a longer search, or ask for fewer rounds, ideas or variants"));
  }
  used_[next] = true;
  if (!request.empty()) by_key_[{kind, request}] = next;
  return &exchanges_[next];
}

absl::StatusOr<IdeasAnswer> ReplayGenerator::ProposeIdeas(const Context&, const IdeaRequest& request) {
  GROVE_ASSIGN_OR_RETURN(const Exchange* exchange, Find("ideas", request.request));
  GROVE_ASSIGN_OR_RETURN(std::vector<v1::IdeaNode> ideas, ParseIdeas(exchange->answer, request.count));
  return IdeasAnswer{std::move(ideas), Usage{}};
}

absl::StatusOr<KernelAnswer> ReplayGenerator::WriteKernel(const Context& context, const KernelRequest& request) {
  GROVE_ASSIGN_OR_RETURN(const Exchange* exchange, Find("kernel", request.request));
  GROVE_ASSIGN_OR_RETURN(v1::KernelNode kernel, ParseKernel(exchange->answer, context.device.kind()));
  return KernelAnswer{std::move(kernel), Usage{}};
}

}  // namespace grove::generate
