#include "worker/judge/arguments.h"

#include <getopt.h>
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
  constexpr option kOptions[] = {{"fd", required_argument, nullptr, 'f'},
                                 {"device", required_argument, nullptr, 'd'},
                                 {"threads", required_argument, nullptr, 't'},
                                 {"python", required_argument, nullptr, 'p'},
                                 {"ahead", required_argument, nullptr, 'a'},
                                 {"memory-bytes", required_argument, nullptr, 'm'},
                                 {"load-seconds", required_argument, nullptr, 'l'},
                                 {"call-seconds", required_argument, nullptr, 'c'},
                                 {}};
  Arguments arguments;
  ::opterr = 0;
  ::optind = 1;
  for (int option; (option = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    const std::string value = ::optarg != nullptr ? ::optarg : "";
    switch (option) {
      case 'f':
        arguments.fd = std::atoi(value.c_str());
        break;
      case 'd':
        arguments.device = value;
        break;
      case 't':
        arguments.threads = std::atoi(value.c_str());
        break;
      case 'p':
        arguments.python = value;
        break;
      case 'a':
        if (value != "python") Usage("--ahead knows python alone, not " + value);
        arguments.python_ahead = true;
        break;
      case 'm':
        arguments.memory_bytes = std::strtoull(value.c_str(), nullptr, 10);
        break;
      case 'l':
        arguments.load_seconds = std::atof(value.c_str());
        break;
      case 'c':
        arguments.call_seconds = std::atof(value.c_str());
        break;
      default:
        Usage("unknown option or missing value: " + std::string(argv[::optind - 1]));
    }
  }
  if (::optind < argc) Usage("what is " + std::string(argv[::optind]) + "? It takes options alone");
  if (arguments.threads <= 0) arguments.threads = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return arguments;
}

}  // namespace grove::judge
