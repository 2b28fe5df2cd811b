// grove-judge: says where threads are bound, because libgomp reads that when it is loaded, and becomes the judge, which
// is libgrove-judge.so: within the python3 that runs scripts, so that a reference and a script that are compared have
// one interpreter. (The same one as a shared library took 13 % longer for a model of small operators, and scripts
// won against themselves: docs/results/kernelbench-h200.md.) Without a Python it is the judge itself, of native
// problems alone.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/wire/places.h"
#include "worker/judge/arguments.h"

namespace {

namespace wire = grove::wire;

// Given the library and the arguments for it. The path of imports is an interpreter's without a script, before anything
// is imported that is not built in: nothing is found in the working directory. PyDLL: the interpreter's lock stays with
// who calls.
constexpr char kStart[] = R"(import sys
if sys.path[:1] == [""]:
    del sys.path[0]
import ctypes, os
given = [os.fsencode(value) for value in sys.argv[1:]]
sys.argv = [""]
library = ctypes.PyDLL(os.fsdecode(given[0]), mode=ctypes.RTLD_GLOBAL)
library.grove_judge_main(len(given), (ctypes.c_char_p * (len(given) + 1))(*given))
)";

void SayPlaces(const grove::judge::Arguments& arguments) {
  std::vector<std::pair<std::string, std::string>> wanted{{"OMP_WAIT_POLICY", "passive"},
                                                          {"OMP_NUM_THREADS", std::to_string(arguments.threads)}};
  if (arguments.device == "cpu") {
    const auto places = wire::JudgePlaces(arguments.threads, wire::Processors());
    wanted.insert(wanted.end(), places.begin(), places.end());
  }
  ::unsetenv(wire::kJudgePlaces);
  for (const auto& [name, value] : wanted) ::setenv(name.c_str(), value.c_str(), 1);
}

}  // namespace

int main(int argc, char** argv) {
  const grove::judge::Arguments arguments = grove::judge::ParseArguments(argc, argv);
  SayPlaces(arguments);
  std::string library = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libgrove-judge.so";
  if (!arguments.python.empty()) {
    std::string python = arguments.python, no_bytecode = "-B", command = "-c", start = kStart;
    std::vector<char*> line{python.data(), no_bytecode.data(), command.data(), start.data(), library.data()};
    line.insert(line.end(), argv + 1, argv + argc + 1);  // with the null pointer at its end
    ::execv(python.c_str(), line.data());
    std::fprintf(stderr, "grove-judge: %s: %s; Python problems are not to be had\n", python.c_str(),
                 std::strerror(errno));
  }
  void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  const auto judge =
      loaded != nullptr ? reinterpret_cast<void (*)(int, char**)>(::dlsym(loaded, "grove_judge_main")) : nullptr;
  if (judge == nullptr) {
    std::fprintf(stderr, "grove-judge: %s\n", ::dlerror());
    return 1;
  }
  judge(argc, argv);
  return 1;  // it does not come back
}
