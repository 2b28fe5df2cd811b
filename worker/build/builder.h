// Turns a candidate's source into shared objects, in a sandbox without network, device or files of the host.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grove/v1/types.pb.h"
#include "worker/build/build_cache.h"
#include "worker/build/sass.h"
#include "worker/build/torch_glue.h"
#include "worker/device/toolchain.h"
#include "worker/sandbox/sandbox.h"

namespace grove::build {

struct BuilderOptions {
  std::shared_ptr<sandbox::SandboxHost> host;
  v1::DeviceInfo device;
  std::optional<device::Compiler> cxx;  // absent: what needs it fails with `cxx_missing`
  std::optional<device::Compiler> nvcc;
  std::optional<device::Python> python;
  std::string cxx_missing, nvcc_missing, python_missing;  // why, for people
  std::string include_dir;                                // holds grove/kernel.h
  std::string libexec_dir;                // record_extensions.py, extension_key.py, torch_lite_build.py, torch_lite/
  std::vector<std::string> glue_folders;  // torch_glue.h; empty = one in cache_dir
  std::string cache_dir;
  std::string cache_salt;  // part of every key; of the operator, may be empty
  int64_t cache_bytes = int64_t{4} << 30;
};

struct BuildOutcome {
  v1::BuildReport report;
  std::vector<BuiltObject> objects;  // native: one; Python: extensions in the order of the calls, may be none
  // Not report.ok: BUILD_FAILED, TIMED_OUT or LIMIT_EXCEEDED with reason and, for the last two, fault.
  v1::Verdict verdict = v1::VERDICT_UNSPECIFIED;
  std::string reason;
  v1::FaultReport fault;
};

// Thread-safe; each Build blocks its caller. The same key asked for twice at once is built once.
class Builder {
 public:
  using Note = std::function<void(const std::string& what)>;

  // INVALID_ARGUMENT: kernel.h cannot be read.
  static absl::StatusOr<std::unique_ptr<Builder>> Create(BuilderOptions options);

  // `limits` has every field set. `cancelled` is asked now and then; when true, CANCELLED is returned. Any other error
  // is a fault of this machine (no verdict): the sandbox could not be made, the compiler is missing.
  // `note` is told, in words for people, what takes long for another reason than the candidate; may be empty.
  absl::StatusOr<BuildOutcome> Build(const v1::Candidate& candidate, const v1::Limits& limits,
                                     const std::function<bool()>& cancelled, const Note& note = nullptr);

  // What machine code these objects hold, for a CUDA device: see sass.h.
  absl::StatusOr<InstructionMix> Instructions(const std::vector<BuiltObject>& objects,
                                              const std::function<bool()>& cancelled) const;

  // Compiler and version used for native candidates of this device, for DeviceInfo.toolkit.
  std::string Toolkit() const;

 private:
  explicit Builder(BuilderOptions options);
  absl::StatusOr<BuildOutcome> BuildNative(const v1::Candidate& candidate, const v1::Limits& limits,
                                           const std::function<bool()>& cancelled, const std::string& key);
  absl::StatusOr<BuildOutcome> BuildPython(const v1::Candidate& candidate, const v1::Limits& limits,
                                           const std::function<bool()>& cancelled, const std::string& key,
                                           const Note& note, double* glue_seconds);
  std::vector<std::string> NativeArguments(const v1::Candidate& candidate) const;
  std::string Scrub(std::string log) const;
  std::string KeyOf(const v1::Candidate& candidate) const;
  std::optional<TorchGlueOptions> GlueOptions() const;
  // Path of the small headers' glue, made at the first call; empty where there is none, which the log says once.
  // `seconds`: what making it took, 0 where it was there.
  std::string TorchGlue(const Note& note, double* seconds);

  BuilderOptions options_;  // not changed after Create
  std::string kernel_header_;
  std::string machine_;  // what -march=native depends on
  std::string support_;  // hash of the files that build extensions
  BuildCache cache_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> building_;
  std::mutex glue_mutex_;
  std::optional<std::string> glue_;
};

// True when the text makes a build of extensions worth trying. Only decides whether one is tried.
bool MentionsExtensions(const std::string& python_source);

}  // namespace grove::build
