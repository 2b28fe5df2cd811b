#include "worker/setup/setup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <filesystem>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "worker/build/torch_glue.h"
#include "worker/device/nvml.h"
#include "worker/device/toolchain.h"
#include "worker/pipeline/programs.h"
#include "worker/sandbox/limits.h"
#include "worker/sandbox/spawn.h"

namespace grove::worker {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTailLines = 40;
// Objects and programs, once built and once staged, are some 50 MiB; the rest is for what the compilers put aside. A
// compiler that meets a full disk says anything but that.
constexpr uint64_t kRoomBytes = uint64_t{256} << 20;

std::vector<std::string> Environment() {
  std::vector<std::string> env;
  for (char** e = environ; *e != nullptr; ++e) env.emplace_back(*e);
  return env;
}

// Runs a trusted build step, shows its progress lines, and keeps the last ones for the error.
absl::Status RunStep(const std::string& what, const std::vector<std::string>& argv, std::ostream& out) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  sandbox::SpawnRequest request;
  request.argv = argv;
  request.env = Environment();
  request.fds = {{fds[1], 1}, {fds[1], 2}};
  request.new_session = false;  // Ctrl-C ends it with us
  const absl::StatusOr<pid_t> pid = sandbox::Spawn(request);
  close(fds[1]);
  if (!pid.ok()) {
    close(fds[0]);
    return pid.status();
  }
  std::deque<std::string> tail;
  std::string line;
  char chunk[8192];
  for (;;) {
    const ssize_t n = read(fds[0], chunk, sizeof(chunk));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    for (ssize_t i = 0; i < n; ++i) {
      if (chunk[i] != '\n') {
        if (line.size() < 4096) line += chunk[i];
        continue;
      }
      if (absl::StartsWith(line, "[")) {
        out << "    " << line.substr(0, 110) << "\n";
        out.flush();
      }
      tail.push_back(std::move(line));
      line.clear();
      if (tail.size() > kTailLines) tail.pop_front();
    }
  }
  close(fds[0]);
  if (!line.empty()) tail.push_back(line);
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(what, " failed; the last lines:\n", absl::StrJoin(tail, "\n")));
}

absl::StatusOr<std::string> FindSources(const SetupOptions& options) {
  std::vector<std::string> places;
  if (!options.source_dir.empty()) {
    places = {options.source_dir};
  } else {
    places = {absl::StrCat(options.paths.bin_dir, "/../share/grove/src"), absl::StrCat(options.paths.bin_dir, "/../.."),
              absl::StrCat(options.paths.bin_dir, "/../../..")};
  }
  for (const std::string& place : places) {
    std::error_code error;
    const fs::path real = fs::canonical(place, error);
    if (!error && fs::exists(real / "CMakeLists.txt", error) && fs::exists(real / "worker/judge", error) &&
        fs::exists(real / "worker/candidate", error)) {
      return real.string();
    }
  }
  return absl::NotFoundError(absl::StrCat("the sources of judge and candidate were not found (looked in ",
                                          absl::StrJoin(places, ", "), "); give --source-dir"));
}

}  // namespace

absl::Status RunSetup(const SetupOptions& options, std::ostream& out) {
  // All that is missing is said at once, not one thing a try.
  std::vector<std::string> missing;
  const auto need = [&](const absl::Status& status) {
    if (!status.ok()) missing.push_back(std::string(status.message()));
  };
  const auto say = [&](const std::string& text) {
    out << text << "\n";
    out.flush();
  };

  const auto sources = FindSources(options);
  need(sources.status());
  const std::string cmake = device::FindOnPath("cmake");
  if (cmake.empty()) missing.push_back("cmake was not found; install it (apt-get install cmake, or pip install cmake)");
  const std::string ninja = device::FindOnPath("ninja");
  if (ninja.empty() && device::FindOnPath("make").empty()) {
    missing.push_back("neither ninja nor make was found; install one (apt-get install ninja-build)");
  }
  const auto cxx = device::FindCxx(options.cxx);
  need(cxx.status());
  const auto python = device::FindPython(options.python, "");
  need(python.status());
  if (python.ok() && python->include_dir.empty()) {
    missing.push_back(absl::StrCat("the headers of ", python->path,
                                   " (Python.h) are missing; install them (apt-get install python3-dev)"));
  }
  bool cuda = options.cuda == "on";
  absl::StatusOr<device::Compiler> nvcc = absl::NotFoundError("");
  if (options.cuda != "off") {
    nvcc = device::FindNvcc(options.nvcc);
    if (options.cuda == "auto") {
      const bool gpu = device::QueryGpus().ok();
      // A GPU without what it needs is an error and not quietly a CPU worker.
      cuda = gpu || (nvcc.ok() && python.ok() && python->torch_cuda);
    }
    if (cuda) {
      need(nvcc.status());
      if (python.ok() && !python->torch_cuda) {
        missing.push_back(
            absl::StrCat(python->path, " has torch ", python->torch_version,
                         ", built without CUDA; install one with it (pip install torch) or give --cuda off"));
      }
    }
  }
  if (!missing.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this machine lacks what judge and candidate need:\n  - ", absl::StrJoin(missing, "\n  - ")));
  }

  say(absl::StrCat("sources   ", *sources));
  say(absl::StrCat("compiler  ", cxx->version, " at ", cxx->path));
  say(absl::StrCat("python    ", python->version, " at ", python->path, ", torch ", python->torch_version));
  say(absl::StrCat("cuda      ", cuda ? absl::StrCat(nvcc->version, " at ", nvcc->path) : "off"));

  const std::string base = options.output_dir.empty() ? RuntimeFolder() : options.output_dir;
  if (base.empty()) return absl::InvalidArgumentError("setup needs an output folder");
  const std::string build = absl::StrCat(base, "/setup-build"), staged = absl::StrCat(base, "/setup-staged");
  GROVE_RETURN_IF_ERROR(MakeDirs(base));
  const absl::StatusOr<std::unique_ptr<FileLock>> alone = FileLock::Acquire(absl::StrCat(base, "/setup.lock"));
  if (absl::IsFailedPrecondition(alone.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("another grove-worker setup is at work in ", base, "; wait until it has ended"));
  }
  GROVE_RETURN_IF_ERROR(alone.status());
  std::error_code error;
  fs::remove_all(build, error);
  fs::remove_all(staged, error);
  GROVE_RETURN_IF_ERROR(MakeDirs(build));
  struct statvfs room {};
  if (statvfs(base.c_str(), &room) == 0) {
    const uint64_t free_bytes = static_cast<uint64_t>(room.f_bavail) * room.f_frsize;
    if (free_bytes < kRoomBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("there is no room in ", base, ": ", free_bytes >> 20,
                                                       " MiB are free and setup needs ", kRoomBytes >> 20,
                                                       "; make room, or give --output-dir on another disk"));
    }
  }

  say("configuring");
  std::vector<std::string> configure = {cmake,
                                        "-S",
                                        *sources,
                                        "-B",
                                        build,
                                        "-DCMAKE_BUILD_TYPE=Release",
                                        "-DGROVE_BUILD_SERVICES=OFF",
                                        "-DGROVE_BUILD_TESTS=OFF",
                                        absl::StrCat("-DGROVE_CUDA=", cuda ? "ON" : "OFF"),
                                        absl::StrCat("-DCMAKE_PREFIX_PATH=", python->torch_cmake),
                                        absl::StrCat("-DGROVE_PYTHON=", python->path),
                                        absl::StrCat("-DCMAKE_CXX_COMPILER=", cxx->path),
                                        absl::StrCat("-DCMAKE_INSTALL_PREFIX=", staged)};
  if (!ninja.empty()) {
    configure.push_back("-G");
    configure.push_back("Ninja");
  }
  if (cuda) {
    configure.push_back(absl::StrCat("-DCMAKE_CUDA_COMPILER=", nvcc->path));
    configure.push_back(absl::StrCat("-DCMAKE_CUDA_HOST_COMPILER=", cxx->path));
    configure.push_back(absl::StrCat("-DCUDAToolkit_ROOT=", nvcc->home));
    if (auto gpus = device::QueryGpus(); gpus.ok() && !gpus->empty()) {
      configure.push_back(absl::StrCat("-DCMAKE_CUDA_ARCHITECTURES=", gpus->front().arch.substr(3)));
    }
  }
  GROVE_RETURN_IF_ERROR(RunStep("configuring", configure, out));
  // Beside the rest: one file that takes as long as they do. Without it extensions build slowly, and all else works.
  absl::StatusOr<std::string> glue = absl::UnknownError("");
  std::thread glue_thread([&] {
    build::TorchGlueOptions wanted{options.paths.libexec_dir, *python, *cxx,
                                   python->torch_cuda && nvcc.ok() ? nvcc->home : ""};
    glue = build::FindOrMakeTorchGlue(wanted, {absl::StrCat(base, "/torch-glue")});
  });
  struct Join {
    std::thread& thread;
    ~Join() {
      if (thread.joinable()) thread.join();
    }
  } join{glue_thread};
  say("building");
  const int jobs = options.jobs > 0 ? options.jobs : sandbox::UsableThreads();
  GROVE_RETURN_IF_ERROR(RunStep("building", {cmake, "--build", build, "--parallel", absl::StrCat(jobs)}, out));
  say("installing");
  GROVE_RETURN_IF_ERROR(RunStep("installing", {cmake, "--install", build}, out));

  const std::string made = absl::StrCat(staged, "/libexec/grove");
  const auto left = [&](const char* name, int mode) {
    if (access(absl::StrCat(made, "/", name).c_str(), mode) == 0) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("the build left no ", name, " in ", made));
  };
  for (const char* program : {"grove-judge", "grove-candidate"}) GROVE_RETURN_IF_ERROR(left(program, X_OK));
  for (const char* library : kJudgeLibraries) GROVE_RETURN_IF_ERROR(left(library, R_OK));
  GROVE_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(made, "/", kSetupStamp), kVersion));
  const std::string final_dir = absl::StrCat(base, "/libexec/grove");
  GROVE_RETURN_IF_ERROR(MakeDirs(absl::StrCat(base, "/libexec")));
  const std::string old = absl::StrCat(final_dir, ".old");
  fs::remove_all(old, error);
  if (fs::exists(final_dir, error)) {
    fs::rename(final_dir, old, error);
    if (error) return absl::UnknownError(absl::StrCat("cannot move ", final_dir, " aside: ", error.message()));
  }
  fs::rename(made, final_dir, error);
  if (error) return absl::UnknownError(absl::StrCat("cannot move the build to ", final_dir, ": ", error.message()));
  fs::remove_all(old, error);
  fs::remove_all(build, error);
  fs::remove_all(staged, error);
  glue_thread.join();
  say(glue.ok() ? absl::StrCat("glue      ", *glue, " (extensions build with small headers)")
                : absl::StrCat("glue      none, extensions build slowly: ", std::string(glue.status().message())));
  say(absl::StrCat("done      ", final_dir));
  return absl::OkStatus();
}

}  // namespace grove::worker
