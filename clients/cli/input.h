// Reading what a user names on the command line: problems and candidates. Everything wrong with a file is said here,
// before anything is sent: what, where and what to do about it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "grove/v1/types.pb.h"

namespace grove::cli {

inline constexpr int64_t kMaxSourceBytes = 1 << 20;      // the protocol's bound on a problem or candidate
inline constexpr int64_t kMaxRecordingBytes = 16 << 20;  // the protocol's bound on a replay recording

// All errors are INVALID_ARGUMENT with one line that names the file.

// .py is a KernelBench problem, .toml a native one.
absl::StatusOr<v1::Problem> ReadProblem(const std::string& path);

// .cu is a CUDA candidate, .cpp (.cc, .cxx) a C++ one, .py one with ModelNew.
absl::StatusOr<v1::Candidate> ReadCandidate(const std::string& path);

// A text file of at most max_bytes: not a folder, not empty, UTF-8 without NUL. `what` opens the message: "problem".
absl::StatusOr<std::string> ReadTextFile(const std::string& path, int64_t max_bytes, absl::string_view what);

// A job's name: what --name said, or the problem's. INVALID_ARGUMENT where it is no text.
absl::StatusOr<std::string> JobName(const std::string& said, const std::string& problem);

// The byte offset of the first byte that is not UTF-8, or npos.
size_t FindInvalidUtf8(absl::string_view text);

}  // namespace grove::cli
