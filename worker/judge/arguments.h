// The command line of grove-judge.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace grove::judge {

struct Arguments {
  int fd = 3;
  std::string device = "cpu";
  int threads = 0;  // as many as there are processors, once it is parsed
  std::string python;
  bool python_ahead = false;     // it is started before hello is said: the problem will be a Python one
  std::size_t memory_bytes = 0;  // of the host's that it may have; 0 = any
  double load_seconds = 300;
  double call_seconds = 60;     // one call of the reference while it is loaded; a thousand times what problems take
  std::vector<int> processors;  // that threads are bound to; empty = they are not
};

// Ends the program with exit code 2 and what is wrong, on stderr.
Arguments ParseArguments(int argc, char** argv);

}  // namespace grove::judge
