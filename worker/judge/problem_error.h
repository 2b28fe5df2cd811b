// What is wrong with a problem, and whether what went wrong was for want of memory.
#pragma once

#include <algorithm>
#include <exception>
#include <initializer_list>
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

inline bool Tells(const std::exception& error, std::initializer_list<const char*> of) {
  std::string text = error.what();
  if (const auto* problem = dynamic_cast<const ProblemError*>(&error)) text += "\n" + problem->detail;
  return std::any_of(of.begin(), of.end(), [&](const char* words) { return text.find(words) != std::string::npos; });
}

// Whether an error says that the device has no memory left. Want of the host's is another matter.
inline bool TellsOfDeviceMemory(const std::exception& error) {
  return Tells(error, {"out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"});
}

// Whether an error says that there was no memory, in the words of torch, of the driver, of a library or of Python.
inline bool TellsOfMemory(const std::exception& error) {
  return TellsOfDeviceMemory(error) ||
         Tells(error, {"not enough memory", "allocate memory", "bad_alloc", "MemoryError"});
}

}  // namespace grove::judge
