// The layering of docs/ARCHITECTURE.md as rules over include lines, and what no file may hold.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace grove::architecture {

struct Violation {
  std::string file;  // relative to the source root
  int line = 0;
  std::string what;
};

struct Include {
  std::string path;
  int line = 0;
};

// The #include lines that the preprocessor would see: not those in comments, strings or raw strings (the catalogue's
// kernels are raw strings full of them).
std::vector<Include> IncludesOf(absl::string_view source);

// What the layering says of a C, C++ or CUDA file. `file` is its path relative to the source root, with '/'.
std::vector<Violation> CheckIncludes(const std::string& file, absl::string_view source);

// Names of the standard library in a file that is built on GPU hosts, where neither it nor a header of ours that it
// includes has the standard header: another compiler's headers do not bring it along. `text_of`: a file of ours by its
// path, empty where there is none.
std::vector<Violation> CheckStandardIncludes(const std::string& file, absl::string_view source,
                                             const std::function<std::string(const std::string&)>& text_of);

// torch in Python files outside of the judge, the Python candidate, tests and examples.
std::vector<Violation> CheckPython(const std::string& file, absl::string_view source);

// Paths of the machine it was written on, notes of unfinished work, and marks of an unresolved merge.
std::vector<Violation> CheckText(const std::string& file, absl::string_view text);

}  // namespace grove::architecture
