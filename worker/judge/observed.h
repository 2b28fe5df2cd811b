// Looking at the operations of a program while it runs on this thread.
#pragma once

#include <ATen/record_function.h>

namespace grove::judge {

// Calls `Begin` and `End` (at::RecordFunctionCallback) for each operation that this thread runs while it lives.
template <auto Begin, auto End>
class Observed {
 public:
  Observed()
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(Begin, End)
                                               .needsInputs(true)
                                               .needsOutputs(true)
                                               .scopes({at::RecordScope::FUNCTION}))) {}
  ~Observed() { at::removeCallback(handle_); }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace grove::judge
