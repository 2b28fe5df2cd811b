// One child process: started with its output in a log file, watched, ended.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace grove::cli {

// What a child gets of our environment.
struct Inherit {
  // Variables that hold credentials, by their names (HoldsCredential). A worker runs other people's programs and needs
  // none; the coordinator has the model's key there.
  bool credentials = false;
  std::vector<std::string> without;  // and these never
};

// Whether a variable of this name is taken to hold a credential: a word of it is KEY, TOKEN, SECRET, PASSWORD,
// CREDENTIALS, AUTH or the like (OPENAI_API_KEY, HF_TOKEN, AWS_SECRET_ACCESS_KEY, SSH_AUTH_SOCK).
bool HoldsCredential(absl::string_view variable);

// Owned by one thread, but for pid().
class Child {
 public:
  // argv[0] is the program's path. stdin is /dev/null; stdout and stderr go to `log_path`, appended. The child leads a
  // process group of its own, so that the terminal's Ctrl-C reaches only the one who decides what to do about it, and
  // starts with no signal blocked. NOT_FOUND: there is no such program.
  static absl::StatusOr<std::unique_ptr<Child>> Start(const std::vector<std::string>& argv, const std::string& log_path,
                                                      const Inherit& inherit);
  ~Child();  // SIGKILL if it still runs, and reaps it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool Running();                         // reaps it when it has ended
  std::string HowItEnded() const;         // "exit code 1", "signal 9 (Killed)"; "" while it runs
  int ExitCode() const;                   // -1 while it runs, or when a signal ended it
  void Signal(int signal);                // nothing once it has been reaped
  bool WaitFor(absl::Duration patience);  // true when it has ended

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  pid_t pid_;
  bool reaped_ = false;
  int status_ = 0;
};

// Runs a program to its end with our stdin and stderr and without credentials; what it wrote on stdout (at most 1 MiB),
// and its exit code (128
// + signal when one ended it).
struct Finished {
  std::string output;
  int exit_code = 0;
};
absl::StatusOr<Finished> RunAndCapture(const std::vector<std::string>& argv);

// The last lines of a file, "" when there is none. `from` skips what was there before.
std::string TailOfFile(const std::string& path, int64_t from, size_t lines);
int64_t FileSize(const std::string& path);  // 0 when there is none

// The folder of this executable, by /proc/self/exe.
std::string ExecutableDir();

}  // namespace grove::cli
