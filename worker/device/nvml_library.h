// NVIDIA's management library, loaded at run time by its stable C interface. For worker/device alone.
//
// Every call into it may hang after a GPU fault, for good: never call on a thread that somebody waits for without a
// limit. nvml.cc and XidWatch show how.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace grove::device {

using NvmlDevice = void*;
using NvmlEventSet = void*;

// Codes of nvmlReturn_t (nvml.h) that are told apart here.
inline constexpr int kNvmlOk = 0, kNvmlNotSupported = 3, kNvmlTimeout = 10, kNvmlGpuIsLost = 15;

// $GROVE_NVML_LIBRARY, a path for installations where the loader does not find it, or the driver's own.
class NvmlLibrary {
 public:
  NvmlLibrary() {
    const char* path = std::getenv("GROVE_NVML_LIBRARY");
    path_ = path != nullptr && *path != 0 ? path : "libnvidia-ml.so.1";
    handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  // Never unloaded: NVML keeps threads of its own.

  bool ok() const { return handle_ != nullptr; }
  const std::string& path() const { return path_; }

  // Null when the library lacks it.
  template <typename F>
  F Find(const char* name) const {
    return reinterpret_cast<F>(dlsym(handle_, name));
  }

  absl::Status Error(const char* what, int code) const {
    const auto text_of = Find<const char* (*)(int)>("nvmlErrorString");
    return absl::UnavailableError(
        absl::StrCat("NVML: ", what, ": ", text_of != nullptr ? text_of(code) : "error", " (", code, ")"));
  }

 private:
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace grove::device
