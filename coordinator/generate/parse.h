// What a model answered, made into nodes. The text is untrusted: bounded, never executed here, and no answer throws.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grove/v1/tree.pb.h"
#include "grove/v1/types.pb.h"

namespace grove::generate {

inline constexpr size_t kMaxAnswerBytes = 4 << 20;  // more is refused unread; a kernel is at most 1 MiB
inline constexpr size_t kMaxSourceBytes = 1 << 20;  // types.proto, Candidate.source
inline constexpr size_t kMaxTitleBytes = 200;
inline constexpr size_t kMaxDescriptionBytes = 4000;
inline constexpr size_t kMaxNotesBytes = 2000;

// A fenced block of Markdown (CommonMark 4.5).
struct FencedBlock {
  std::string info;  // the word after the fence, lower case
  std::string text;
  bool closed = false;  // false: the answer ended inside it
};
// The blocks in order, and in `outside` (may be null) the text between them. A leading "<think>...</think>" is dropped.
std::vector<FencedBlock> FencedBlocks(absl::string_view answer, std::string* outside);

// At most max_ideas ideas with title, description, category and predicted_speedup, from a JSON list (or an object with
// "ideas") in a fence or anywhere in the text. Elements without a title are skipped; unknown categories become
// "compute"; predictions outside (0, 1000] become 0. DATA_LOSS, with the answer's beginning, when there is none.
absl::StatusOr<std::vector<v1::IdeaNode>> ParseIdeas(absl::string_view answer, int max_ideas);

// candidate (format and source) and notes of a kernel, from the last fenced block that has the entry point, else from
// the longest one that is code. DATA_LOSS when there is none, when it was cut off, or when it is no text.
absl::StatusOr<v1::KernelNode> ParseKernel(absl::string_view answer, v1::DeviceKind device);

}  // namespace grove::generate
