// Where the worker's helper programs lie, and the environment that they get.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/toolchain.h"
#include "worker/pipeline/pipeline.h"

namespace grove::worker {

// libexec_dir, beside the installed programs; else what `grove-worker setup` built for this version of grove in
// RuntimeFolder(). The other way round when GROVE_RUNTIME is set: whoever names a folder means it.
// NOT_FOUND says to run `grove-worker setup`.
absl::StatusOr<std::string> FindProgram(const WorkerPaths& paths, const std::string& name);

// The folder that setup fills (its libexec/grove): $GROVE_RUNTIME, else $XDG_DATA_HOME/grove/runtime, else
// ~/.local/share/grove/runtime. Shared by all workers of a user, whatever their state folders.
std::string RuntimeFolder();
// The file in <runtime>/libexec/grove whose text is the version that it was built for.
inline constexpr char kSetupStamp[] = "built-for-version";
// What grove-judge loads, beside it: itself, and what `.py` problems need.
inline constexpr const char* kJudgeLibraries[] = {"libgrove-judge.so", "libgrove-judge-python.so"};
// Beside grove-candidate-python, where there is CUDA: the library that lets a script's results be read.
inline constexpr char kShareableMemory[] = "libgrove-shareable-memory.so";

// "PATH=...", HOME and the like for judge and candidates. CC, CXX and CUDA_HOME name the tools that were found, which
// the sandboxes of the judge and of Python candidates show; what these variables say outside may lie anywhere.
std::vector<std::string> ProgramEnvironment(bool cuda, int threads, const device::Tools& tools);

}  // namespace grove::worker
