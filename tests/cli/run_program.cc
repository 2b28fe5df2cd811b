#include "tests/cli/run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace grove::cli {
namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Program::Program(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment) {
  char name[] = "/tmp/grove-run-XXXXXX";
  dir_ = mkdtemp(name);
  const std::string out = dir_ + "/out", err = dir_ + "/err";
  std::vector<std::string> variables;
  for (const auto& [key, value] : environment) variables.push_back(key + "=" + value);
  std::vector<char*> args, env;
  for (const std::string& word : argv) args.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& variable : variables) env.push_back(const_cast<char*>(variable.c_str()));
  args.push_back(nullptr);
  env.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), 2);
    execve(args[0], args.data(), env.data());
    _exit(127);
  }
}

Program::~Program() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    Wait();
  }
  std::filesystem::remove_all(dir_);
}

void Program::Signal(int signal) { kill(pid_, signal); }

ProgramResult Program::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  ProgramResult result;
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.out = Read(dir_ + "/out");
  result.err = Read(dir_ + "/err");
  return result;
}

std::string Program::Err() const { return Read(dir_ + "/err"); }

bool Program::WaitForErr(const std::string& text) const {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (Err().find(text) == std::string::npos) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

ProgramResult RunProgram(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment) {
  Program program(argv, environment);
  return program.Wait();
}

}  // namespace grove::cli
