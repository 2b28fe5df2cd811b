// Runs a program with its output caught.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace grove::cli {

struct ProgramResult {
  int exit_code = -1;  // 128 + signal when one ended it
  std::string out, err;
};

// A started program; its streams go to files, so that it never waits for the test to read.
class Program {
 public:
  Program(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment);
  ~Program();  // SIGKILL if it still runs
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void Signal(int signal);
  ProgramResult Wait();
  std::string Err() const;  // so far
  // Blocks until stderr holds the text, at most 20 s.
  bool WaitForErr(const std::string& text) const;

 private:
  std::string dir_;
  pid_t pid_ = -1;
};

ProgramResult RunProgram(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment);

}  // namespace grove::cli
