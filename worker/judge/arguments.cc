#include "worker/judge/arguments.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace grove::judge {
namespace {

[[noreturn]] void Usage(const std::string& what) {
  std::fprintf(stderr,
               "grove-judge: %s\nusage: grove-judge [--fd N] [--device cpu|cuda:N] [--threads N] [--python PATH] "
               "[--ahead python] [--memory-bytes N] [--load-seconds S] [--call-seconds S]\nStarted by grove-worker; "
               "docs/protocol.md says "
               "what it speaks.\n",
               what.c_str());
  std::exit(2);
}

}  // namespace

Arguments ParseArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i], value;
    if (auto at = name.find('='); at != std::string::npos) {
      value = name.substr(at + 1);
      name.resize(at);
    } else if (i + 1 < argc) {
      value = argv[++i];
    } else {
      Usage("unknown option or missing value: " + name);
    }
    if (name == "--fd") {
      arguments.fd = std::atoi(value.c_str());
    } else if (name == "--device") {
      arguments.device = value;
    } else if (name == "--threads") {
      arguments.threads = std::atoi(value.c_str());
    } else if (name == "--python") {
      arguments.python = value;
    } else if (name == "--ahead") {
      if (value != "python") Usage("--ahead knows python alone, not " + value);
      arguments.python_ahead = true;
    } else if (name == "--memory-bytes") {
      arguments.memory_bytes = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--load-seconds") {
      arguments.load_seconds = std::atof(value.c_str());
    } else if (name == "--call-seconds") {
      arguments.call_seconds = std::atof(value.c_str());
    } else {
      Usage("unknown option " + name);
    }
  }
  if (arguments.threads <= 0) arguments.threads = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return arguments;
}

}  // namespace grove::judge
