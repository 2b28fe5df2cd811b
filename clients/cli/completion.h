// Completion scripts for bash and zsh, from a description of the command line. Pure: the description is taken from the
// parser itself (app.cc), so that a new flag is completed without anyone thinking of it.
#pragma once

#include <string>
#include <vector>

namespace grove::cli {

struct CompletionOption {
  std::vector<std::string> names;  // "--device", "-o"
  std::string description;
  bool takes_value = false;
  std::vector<std::string> values;  // what the value may be; empty = nothing to propose
  bool files = false;               // the value is a path
};

struct CompletionCommand {
  std::string name;
  std::string description;
  std::vector<CompletionOption> options;
  std::vector<CompletionCommand> commands;
  bool files = false;               // takes file names
  std::vector<std::string> values;  // words its arguments may be, besides
};

std::string BashCompletion(const CompletionCommand& root);
std::string ZshCompletion(const CompletionCommand& root);

}  // namespace grove::cli
