// The real programs of the build, driven as a user drives them.
//
// A Scene is a folder of its own with home, data and files, so that nobody's configuration takes part and everything
// that the programs leave behind can be looked at. Waiting is polling with a deadline; deadlines are generous, because
// the machine may be busy with something else.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace grove::e2e {

inline constexpr double kPatience = 90;  // seconds; nothing here takes 10 on an idle machine

// Polls until the condition holds. False: it did not within so many seconds.
bool Eventually(const std::function<bool()>& condition, double seconds = kPatience);

bool Contains(const std::string& text, const std::string& part);
std::string ReadText(const std::string& path);  // "" when there is no such file

struct Ended {
  int code = -1;  // 128 + signal when one ended it; -1 when it was still running at the deadline, and was killed
  std::string out, err;
};

// A started program. Its streams go to files, so that it never waits for the test to read; it dies with the test.
class Process {
 public:
  Process(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment,
          const std::string& out_path, const std::string& err_path);
  ~Process();  // SIGKILL and reaped
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool Running();
  void Signal(int signal);
  void Kill();  // SIGKILL and reaped
  Ended Wait(double seconds = kPatience);
  std::string Out() const;
  std::string Err() const;

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  bool reaped_ = false;
  std::string out_path_, err_path_;
};

class Scene {
 public:
  Scene();
  ~Scene();
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) const;
  std::string data() const { return Path("data"); }
  std::map<std::string, std::string>& environment() { return environment_; }

  std::unique_ptr<Process> Start(const std::vector<std::string>& argv);
  // `grove --data DATA ...`, or with --coordinator where connected.
  std::unique_ptr<Process> StartGrove(const std::vector<std::string>& arguments);
  Ended Grove(const std::vector<std::string>& arguments);
  // With --json: the one document on stdout. Reports a failure of the test when it is none.
  nlohmann::json Document(const std::vector<std::string>& arguments, int code);

  // `grove up` with a worker on the CPU. Commands after this go to it.
  Process& Up();
  void ConnectTo(const std::string& address) { address_ = address; }
  const std::string& address() const { return address_; }

 private:
  std::string dir_;
  std::string address_;
  int started_ = 0;
  std::map<std::string, std::string> environment_;
  std::unique_ptr<Process> up_;
};

// A program of the build, or of the installation whose bin folder GROVE_E2E_BIN names.
std::string Program(const std::string& name);
// Sources that the tests judge: relu on [64,1024] and ways to get it wrong.
std::string TestCase(const std::string& name);  // path in tests/testcases
std::string Example(const std::string& name);   // path in docs/examples
// Flags that make an evaluation short: the verdict counts here, not the figures. Few samples, and time enough to get
// them on a busy machine.
std::vector<std::string> Quick(std::vector<std::string> arguments);

}  // namespace grove::e2e
