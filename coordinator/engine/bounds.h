// How much of a text or a result is kept where.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "grove/v1/tree.pb.h"
#include "grove/v1/types.pb.h"

namespace grove::coordinator {

bool IsValidUtf8(absl::string_view text);
// At most `max` bytes of `text` as valid UTF-8: broken sequences become '?', the cut is between characters.
std::string Utf8Prefix(absl::string_view text, size_t max);

// What of a result goes into the journal: everything that ranks, explains and repairs, at most a few kilobytes. Raw
// samples, long logs and the tails of lists are in the blob only.
v1::EvaluationResult BoundedResult(const v1::EvaluationResult& whole);

// A result as large as it may be stored whole (kMaxResultBytes): samples go first, then logs are cut.
inline constexpr size_t kMaxResultBytes = 4 << 20;
void LimitWholeResult(v1::EvaluationResult* result);

// For a generator's prompt: logs at most 32 KiB, no samples.
void LimitForPrompt(v1::EvaluationResult* result);

}  // namespace grove::coordinator
