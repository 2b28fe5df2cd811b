#include "tests/e2e/scene.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace grove::e2e {

bool Eventually(const std::function<bool()>& condition, double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Process::Process(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment,
                 const std::string& out_path, const std::string& err_path)
    : out_path_(out_path), err_path_(err_path) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  std::vector<char*> words, env;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& variable : variables) env.push_back(const_cast<char*>(variable.c_str()));
  words.push_back(nullptr);
  env.push_back(nullptr);
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = open(out_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const int err = open(err_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  pid_ = fork();
  if (pid_ == 0) {  // async-signal-safe calls only: the test may have threads
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    execve(words[0], words.data(), env.data());
    _exit(127);
  }
  for (int fd : {in, out, err}) close(fd);
}

Process::~Process() { Kill(); }

bool Process::Running() {
  if (reaped_) return false;
  const pid_t result = waitpid(pid_, &status_, WNOHANG);
  if (result == pid_ || (result < 0 && errno != EINTR)) reaped_ = true;
  return !reaped_;
}

void Process::Signal(int signal) {
  if (Running()) kill(pid_, signal);
}

void Process::Kill() {
  if (!Running()) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
}

Ended Process::Wait(double seconds) {
  const bool ended = Eventually([this] { return !Running(); }, seconds);
  if (!ended) Kill();
  Ended result;
  result.out = Out();
  result.err = Err();
  if (ended) result.code = WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  UNSCOPED_INFO("exit " << result.code << "\nstdout: " << result.out.substr(0, 4000)
                        << "\nstderr: " << result.err.substr(0, 4000));
  return result;
}

std::string Process::Out() const { return ReadText(out_path_); }
std::string Process::Err() const { return ReadText(err_path_); }

Scene::Scene() {
  char name[] = "/tmp/grove-e2e-XXXXXX";
  if (mkdtemp(name) == nullptr) FAIL("mkdtemp: " << strerror(errno));
  dir_ = name;
  environment_ = {{"HOME", dir_}, {"PATH", "/usr/bin:/bin"}, {"LANG", "C.UTF-8"}, {"TERM", "dumb"}};
  // Where a PyTorch other than the system's is used, its way there is kept.
  for (const char* variable : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH", "GROVE_RUNTIME"}) {
    if (const char* value = getenv(variable)) environment_[variable] = value;
  }
}

Scene::~Scene() {
  up_.reset();
  if (getenv("GROVE_E2E_KEEP") != nullptr) return;  // to look at afterwards
  std::error_code error;
  std::filesystem::remove_all(dir_, error);
}

std::string Scene::Write(const std::string& name, const std::string& text) const {
  std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
  std::ofstream(Path(name), std::ios::binary) << text;
  return Path(name);
}

std::unique_ptr<Process> Scene::Start(const std::vector<std::string>& argv) {
  const std::string stem = Path("run" + std::to_string(++started_));
  return std::make_unique<Process>(argv, environment_, stem + ".out", stem + ".err");
}

std::unique_ptr<Process> Scene::StartGrove(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {Program("grove")};
  if (address_.empty()) {
    argv.insert(argv.end(), {"--data", data()});
  } else {
    argv.insert(argv.end(), {"--coordinator", address_});
  }
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return Start(argv);
}

Ended Scene::Grove(const std::vector<std::string>& arguments) { return StartGrove(arguments)->Wait(); }

nlohmann::json Scene::Document(const std::vector<std::string>& arguments, int code) {
  std::vector<std::string> words = arguments;
  words.push_back("--json");
  const Ended ended = Grove(words);
  CHECK(ended.code == code);
  nlohmann::json document = nlohmann::json::parse(ended.out, nullptr, /*allow_exceptions=*/false);
  REQUIRE(document.is_object());
  CHECK(document.value("schema", "").rfind("grove.v1/", 0) == 0);
  return document;
}

Process& Scene::Up() {
  up_ = StartGrove({"up", "--device", "cpu", "--listen", "127.0.0.1:0"});
  const std::string record = data() + "/coordinator.addr";
  const bool up = Eventually([&] { return !up_->Running() || !ReadText(record).empty(); });
  INFO(up_->Err());
  REQUIRE((up && up_->Running()));
  const std::string text = ReadText(record);
  ConnectTo(text.substr(0, text.find(' ')));
  return *up_;
}

std::string Program(const std::string& name) {
  if (const char* bin = getenv("GROVE_E2E_BIN")) return std::string(bin) + "/" + name;
  return std::string(GROVE_BIN) + "/" + name;
}

std::string TestCase(const std::string& name) { return std::string(GROVE_SOURCE_DIR) + "/tests/testcases/" + name; }
std::string Example(const std::string& name) { return std::string(GROVE_SOURCE_DIR) + "/docs/examples/" + name; }

std::vector<std::string> Quick(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(),
                   {"--device", "cpu", "--trials", "2", "--samples", "40", "--min-time", "0.01", "--max-time", "5"});
  return arguments;
}

}  // namespace grove::e2e
