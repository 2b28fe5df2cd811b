// The compilers and the Python of this machine: found once, with their versions and the folders that they need inside
// a sandbox.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace grove::device {

struct Compiler {
  std::string path;                  // absolute, links resolved where the real place matters
  std::string c_path;                // g++: the C compiler beside it; without one, itself
  std::string version;               // "g++ 12.2.0", "nvcc 13.0.88"
  std::vector<std::string> folders;  // outside of /usr that it reads
  std::string home;                  // nvcc: the toolkit's root
};

// What programs find by their environment: torch.compile and Triton build what they generate.
struct Tools {
  std::optional<Compiler> cxx, nvcc;
};

// `name` is a path or a name on PATH. NOT_FOUND says what to install or which flag to give.
absl::StatusOr<Compiler> FindCxx(const std::string& name);
// Empty `name`: $CUDA_HOME/bin/nvcc, PATH, /usr/local/cuda/bin/nvcc.
absl::StatusOr<Compiler> FindNvcc(const std::string& name);

struct Python {
  std::string path;
  std::string version;        // "3.11.2"
  std::string torch_version;  // "1.13.0a0", "2.11.0+cu130"
  bool torch_cuda = false;    // built with CUDA
  bool torch_compile = false;
  std::string blas;         // the shared library that multiplies matrices on the CPU; empty = torch itself does
  std::string torch_cmake;  // torch.utils.cmake_prefix_path
  std::string include_dir;  // of Python.h; empty = headers are not installed
  std::vector<std::string> folders;  // outside of /usr that it reads
};

// Empty `name`: $GROVE_PYTHON, /usr/bin/python3, python3 on PATH; the first that imports torch. The answer is kept in
// `cache_dir` (empty = not kept), by the interpreter's path, size and time of change.
absl::StatusOr<Python> FindPython(const std::string& name, const std::string& cache_dir);

// Runs a trusted program of this machine with a time limit. (exit code, or 128 + signal; stdout; stderr), each bounded.
struct ToolOutput {
  int exit_code = 0;
  std::string out, err;
};
absl::StatusOr<ToolOutput> RunTool(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                                   absl::Duration timeout);

std::string FindOnPath(const std::string& name);

}  // namespace grove::device
