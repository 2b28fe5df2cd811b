// What is wrong with a problem, and whether what went wrong was for want of memory.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace grove::judge {

// The problem is at fault: what, where and what to do about it; the detail is a traceback or compiler text.
class __attribute__((visibility("default"))) ProblemError : public std::runtime_error {
 public:
  explicit ProblemError(const std::string& message, std::string detail_text = "")
      : std::runtime_error(message), detail(std::move(detail_text)) {}
  std::string detail;
};

// Whether an error says that there was no memory, in the words of torch, of the driver, of a library or of Python.
inline bool TellsOfMemory(const std::exception& error) {
  std::string text = error.what();
  if (const auto* problem = dynamic_cast<const ProblemError*>(&error)) text += "\n" + problem->detail;
  for (const char* words : {"out of memory", "not enough memory", "allocate memory", "bad_alloc", "MemoryError",
                            "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

// Whether an error says that the device has no memory left. Want of the host's is another matter.
inline bool TellsOfDeviceMemory(const std::exception& error) {
  const std::string text = error.what();
  for (const char* words : {"out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace grove::judge
