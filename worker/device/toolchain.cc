#include "worker/device/toolchain.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "worker/sandbox/spawn.h"

namespace grove::device {
namespace {

constexpr size_t kMaxToolOutput = 1 << 20;

std::string Env(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

std::string Resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

bool IsExecutable(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

bool OutsideUsr(const std::string& path) {
  return !absl::StartsWith(path, "/usr/") && path != "/usr" && path.size() > 1;
}

// Drops what is in /usr (bound anyway), what does not exist, and what lies below another.
std::vector<std::string> NeededFolders(std::set<std::string> all) {
  std::vector<std::string> needed;
  for (const std::string& path : all) {  // sorted: parents come before what lies below
    if (path.empty() || path[0] != '/' || !OutsideUsr(path)) continue;
    if (access(path.c_str(), F_OK) != 0) continue;
    const bool below = std::any_of(needed.begin(), needed.end(),
                                   [&](const std::string& n) { return absl::StartsWith(path, absl::StrCat(n, "/")); });
    if (!below) needed.push_back(path);
  }
  return needed;
}

std::string FirstLine(absl::string_view text) {
  return std::string(absl::StripAsciiWhitespace(text.substr(0, text.find('\n'))));
}

std::vector<std::string> ToolEnv() {
  std::vector<std::string> env = {"LC_ALL=C", "HOME=/tmp",
                                  absl::StrCat("PATH=", Env("PATH").empty() ? "/usr/bin:/bin" : Env("PATH"))};
  if (!Env("LD_LIBRARY_PATH").empty()) env.push_back(absl::StrCat("LD_LIBRARY_PATH=", Env("LD_LIBRARY_PATH")));
  return env;
}

// Last number-like word of a text: "13.0.88".
std::string VersionIn(const std::string& text, absl::string_view after) {
  const size_t at = text.find(std::string(after));
  if (at == std::string::npos) return "";
  const size_t begin = at + after.size();
  const size_t end = text.find_first_not_of("0123456789.", begin);
  return text.substr(begin, end == std::string::npos ? end : end - begin);
}

// /opt/gcc/bin/g++-13 -> /opt/gcc/bin/gcc-13, where that is there.
std::string CBeside(const std::string& cxx) {
  const std::filesystem::path path(cxx);
  const std::string name = path.filename().string();
  for (const auto& [plus, plain] :
       {std::pair<const char*, const char*>{"clang++", "clang"}, {"g++", "gcc"}, {"c++", "cc"}}) {
    const size_t at = name.find(plus);
    if (at == std::string::npos) continue;
    const std::string c = (path.parent_path() / absl::StrReplaceAll(name, {{plus, plain}})).string();
    if (IsExecutable(c)) return c;
  }
  return cxx;
}

}  // namespace

std::string FindOnPath(const std::string& name) {
  if (absl::StrContains(name, "/")) return IsExecutable(name) ? name : "";
  const std::string path = Env("PATH").empty() ? "/usr/bin:/bin" : Env("PATH");
  for (absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    const std::string candidate = absl::StrCat(folder, "/", name);
    if (IsExecutable(candidate)) return candidate;
  }
  return "";
}

absl::StatusOr<ToolOutput> RunTool(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                                   absl::Duration timeout) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  if (pipe2(err, O_CLOEXEC) != 0) {
    const int error = errno;
    close(out[0]);
    close(out[1]);
    return ErrnoStatus(error, "cannot make a pipe");
  }
  sandbox::SpawnRequest request;
  request.argv = argv;
  request.env = env;
  request.fds = {{out[1], 1}, {err[1], 2}};
  absl::StatusOr<pid_t> pid = sandbox::Spawn(request);
  close(out[1]);
  close(err[1]);
  if (!pid.ok()) {
    close(out[0]);
    close(err[0]);
    return pid.status();
  }
  ToolOutput output;
  const absl::Time deadline = absl::Now() + timeout;
  bool late = false;
  pollfd fds[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* texts[2] = {&output.out, &output.err};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left <= 0) {
      late = true;
      break;
    }
    if (poll(fds, 2, static_cast<int>(std::min<int64_t>(left, 1000))) < 0 && errno != EINTR) break;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char chunk[16384];
      const ssize_t n = read(fds[i].fd, chunk, sizeof(chunk));
      if (n > 0 && texts[i]->size() < kMaxToolOutput) texts[i]->append(chunk, static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) fds[i].fd = -1;
    }
  }
  // It may have closed its output and go on.
  int status = 0;
  for (;;) {
    const pid_t done = waitpid(*pid, &status, WNOHANG);
    if (done == *pid || (done < 0 && errno != EINTR)) break;
    if (late || absl::Now() > deadline) {
      late = true;
      kill(-*pid, SIGKILL);
      while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
      }
      break;
    }
    absl::SleepFor(absl::Milliseconds(2));
  }
  close(out[0]);
  close(err[0]);
  if (late) {
    return absl::DeadlineExceededError(absl::StrCat(argv[0], " did not end within ", absl::FormatDuration(timeout)));
  }
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

absl::StatusOr<Compiler> FindCxx(const std::string& name) {
  Compiler compiler;
  std::vector<std::string> names =
      name.empty() ? std::vector<std::string>{Env("CXX"), "g++"} : std::vector<std::string>{name};
  if (name == "g++") names.push_back(Env("CXX"));
  for (const std::string& n : names) {
    if (!n.empty() && compiler.path.empty()) compiler.path = FindOnPath(n);
  }
  if (compiler.path.empty()) {
    return absl::NotFoundError(absl::StrCat("no C++ compiler: ", name.empty() ? "g++" : name,
                                            " was not found; install it (apt-get install g++) or give --cxx"));
  }
  GROVE_ASSIGN_OR_RETURN(ToolOutput version,
                         RunTool({compiler.path, "-dumpfullversion"}, ToolEnv(), absl::Seconds(30)));
  if (version.exit_code != 0) {
    return absl::FailedPreconditionError(absl::StrCat(compiler.path, " does not work: ", FirstLine(version.err)));
  }
  compiler.c_path = CBeside(compiler.path);
  compiler.version = absl::StrCat("g++ ", FirstLine(version.out));
  std::set<std::string> folders = {};
  const std::string real = Resolved(compiler.path);
  if (OutsideUsr(real)) {
    // /opt/gcc/bin/g++ -> /opt/gcc: its libexec, lib and include lie beside bin.
    folders.insert(std::filesystem::path(real).parent_path().parent_path().string());
    folders.insert(std::filesystem::path(compiler.path).parent_path().string());
  }
  for (const char* program : {"cc1plus", "as", "ld", "collect2"}) {
    auto found = RunTool({compiler.path, absl::StrCat("-print-prog-name=", program)}, ToolEnv(), absl::Seconds(30));
    const std::string line = found.ok() ? FirstLine(found->out) : "";
    if (!line.empty() && line[0] == '/') folders.insert(std::filesystem::path(Resolved(line)).parent_path().string());
  }
  for (const char* file : {"libstdc++.so", "libgomp.so", "libgcc_s.so.1"}) {
    auto found = RunTool({compiler.path, absl::StrCat("-print-file-name=", file)}, ToolEnv(), absl::Seconds(30));
    const std::string line = found.ok() ? FirstLine(found->out) : "";
    if (!line.empty() && line[0] == '/') folders.insert(std::filesystem::path(Resolved(line)).parent_path().string());
  }
  compiler.folders = NeededFolders(std::move(folders));
  return compiler;
}

absl::StatusOr<Compiler> FindNvcc(const std::string& name) {
  Compiler compiler;
  std::vector<std::string> names;
  if (!name.empty()) {
    names = {name};
  } else {
    if (!Env("CUDA_HOME").empty()) names.push_back(absl::StrCat(Env("CUDA_HOME"), "/bin/nvcc"));
    names.push_back("nvcc");
    names.push_back("/usr/local/cuda/bin/nvcc");
  }
  for (const std::string& n : names) {
    if (compiler.path.empty()) compiler.path = FindOnPath(n);
  }
  if (compiler.path.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no CUDA compiler: ",
                     name.empty() ? "nvcc was not found in $CUDA_HOME/bin, on PATH or in /usr/local/cuda/bin"
                                  : name + " was not found",
                     "; install the CUDA toolkit or give --nvcc"));
  }
  GROVE_ASSIGN_OR_RETURN(ToolOutput version, RunTool({compiler.path, "--version"}, ToolEnv(), absl::Seconds(30)));
  if (version.exit_code != 0) {
    return absl::FailedPreconditionError(absl::StrCat(compiler.path, " does not work: ", FirstLine(version.err)));
  }
  std::string number = VersionIn(version.out, ", V");
  if (number.empty()) number = VersionIn(version.out, "release ");
  compiler.version = absl::StrCat("nvcc ", number);
  const std::string real = Resolved(compiler.path);
  compiler.home = std::filesystem::path(real).parent_path().parent_path().string();
  compiler.folders = NeededFolders({compiler.home, std::filesystem::path(compiler.path).parent_path().string()});
  return compiler;
}

absl::StatusOr<Python> FindPython(const std::string& name, const std::string& cache_dir) {
  std::vector<std::string> names;
  if (!name.empty()) {
    names = {name};
  } else {
    for (const std::string& n : {Env("GROVE_PYTHON"), std::string("/usr/bin/python3"), std::string("python3")}) {
      if (!n.empty()) names.push_back(n);
    }
  }
  static constexpr char kQuestion[] = R"py(
import sys, os, sysconfig, site
import torch
folders = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.realpath(sys.executable)}
for module in (torch,):
    folders.add(os.path.dirname(os.path.realpath(module.__file__)))
try:
    import numpy
    folders.add(os.path.dirname(os.path.realpath(numpy.__file__)))
except ImportError:
    pass
for path in sys.path:
    if path and os.path.isdir(path):
        folders.add(os.path.realpath(path)); folders.add(path)
folders.add(os.path.dirname(sys.executable))
include = sysconfig.get_paths().get("include", "")
print("version=%d.%d.%d" % sys.version_info[:3])
print("torch=" + torch.__version__)
print("cuda=%d" % (torch.version.cuda is not None))
print("compile=%d" % (hasattr(torch, "compile")))
print("cmake=" + torch.utils.cmake_prefix_path)
with open("/proc/self/maps") as maps:
    mapped = ["/" + line.rstrip("\n").partition("/")[2] for line in maps]
blas = [p for name in ("libopenblas", "libmkl", "libblis", "libblas.") for p in mapped if os.path.basename(p).startswith(name)]
print("blas=" + (blas[0] if blas else ""))
print("include=" + (include if os.path.exists(os.path.join(include, "Python.h")) else ""))
for folder in sorted(folders):
    print("folder=" + folder)
)py";
  std::vector<std::string> tried;
  for (const std::string& n : names) {
    const std::string path = FindOnPath(n);
    if (path.empty()) {
      tried.push_back(absl::StrCat(n, ": not there"));
      continue;
    }
    struct stat info {};
    stat(path.c_str(), &info);
    std::string text, cache;
    if (!cache_dir.empty()) {
      cache = absl::StrCat(
          cache_dir, "/python-",
          Sha256HexOfParts({path, Resolved(path), absl::StrCat(info.st_size), absl::StrCat(info.st_mtime), kQuestion})
              .substr(0, 16));
      if (auto kept = ReadFile(cache, 1 << 20); kept.ok()) text = *std::move(kept);
      // torch may have been replaced since: its folder's time of change is part of what was kept.
      const size_t stamp = text.find("stamp=");
      if (stamp != std::string::npos) {
        std::vector<std::string> parts =
            absl::StrSplit(text.substr(stamp + 6, text.find('\n', stamp) - stamp - 6), ' ');
        struct stat torch_info {};
        if (parts.size() != 2 || stat(parts[0].c_str(), &torch_info) != 0 ||
            absl::StrCat(torch_info.st_mtime) != parts[1]) {
          text.clear();
        }
      }
    }
    if (text.empty()) {
      // 60 s: importing torch takes 3 s warm and up to 30 s from a cold disk.
      auto answer = RunTool({path, "-c", kQuestion}, ToolEnv(), absl::Seconds(60));
      if (!answer.ok() || answer->exit_code != 0) {
        std::string why = answer.ok() ? answer->err : std::string(answer.status().message());
        absl::StripAsciiWhitespace(&why);
        const size_t last = why.rfind('\n');
        tried.push_back(absl::StrCat(path, ": ", last == std::string::npos ? why : why.substr(last + 1)));
        continue;
      }
      text = answer->out;
      if (!cache.empty() && MakeDirs(cache_dir).ok()) {
        std::string torch_init;
        for (absl::string_view line : absl::StrSplit(text, '\n')) {
          if (absl::StartsWith(line, "folder=") && absl::EndsWith(line, "/torch")) {
            torch_init = absl::StrCat(line.substr(7), "/__init__.py");
          }
        }
        struct stat torch_info {};
        if (!torch_init.empty() && stat(torch_init.c_str(), &torch_info) == 0) {
          (void)WriteFileAtomically(cache, absl::StrCat(text, "stamp=", torch_init, " ", torch_info.st_mtime, "\n"));
        }
      }
    }
    Python python;
    python.path = path;
    std::set<std::string> folders;
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      std::pair<std::string, std::string> kv = absl::StrSplit(line, absl::MaxSplits('=', 1));
      if (kv.first == "version") python.version = kv.second;
      if (kv.first == "torch") python.torch_version = kv.second;
      if (kv.first == "cuda") python.torch_cuda = kv.second == "1";
      if (kv.first == "compile") python.torch_compile = kv.second == "1";
      if (kv.first == "blas") python.blas = kv.second;
      if (kv.first == "cmake") python.torch_cmake = kv.second;
      if (kv.first == "include") python.include_dir = kv.second;
      if (kv.first == "folder") folders.insert(kv.second);
    }
    folders.insert(path);
    python.folders = NeededFolders(std::move(folders));
    return python;
  }
  return absl::NotFoundError(
      absl::StrCat("no Python with torch was found (", absl::StrJoin(tried, "; "),
                   "); install it (apt-get install python3-torch, or pip install torch) or give --python"));
}

}  // namespace grove::device
