// When two sources are the same program but for comments and spacing.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "grove/v1/types.pb.h"

namespace grove::coordinator {

// C++ and CUDA: comments gone, spacing between tokens reduced to what tells them apart; preprocessor lines keep their
// line ends. Python: comments, trailing blanks and empty lines gone; indentation and strings stay as they are.
// Careful rather than clever: different programs never get the same text, the same program may get two.
std::string NormaliseSource(v1::CandidateFormat format, absl::string_view source);

// SHA-256 of format, build flags and normalised source.
std::string NormalisedSha256(const v1::Candidate& candidate);

}  // namespace grove::coordinator
