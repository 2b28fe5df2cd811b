#include "clients/cli/completion.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace grove::cli {
namespace {

std::string ShellQuote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// One arm per command path ("", "bank", "bank list") of: words that can follow.
void BashArms(const CompletionCommand& command, const std::string& path, std::string* words, std::string* values) {
  std::vector<std::string> all;
  for (const CompletionCommand& sub : command.commands) all.push_back(sub.name);
  for (const std::string& value : command.values) all.push_back(value);
  std::vector<std::string> flags;
  for (const CompletionOption& option : command.options) {
    for (const std::string& name : option.names) flags.push_back(name);
    if (!option.takes_value) continue;
    for (const std::string& name : option.names) {
      absl::StrAppend(values, "    ", ShellQuote(absl::StrCat(path, "|", name)), ") ",
                      option.files ? "files=1" : absl::StrCat("words=", ShellQuote(absl::StrJoin(option.values, " "))),
                      " ;;\n");
    }
  }
  absl::StrAppend(words, "    ", ShellQuote(path), ") words=", ShellQuote(absl::StrJoin(all, " ")),
                  "; flags=", ShellQuote(absl::StrJoin(flags, " ")), command.files ? "; files=1" : "", " ;;\n");
  for (const CompletionCommand& sub : command.commands) {
    BashArms(sub, path.empty() ? sub.name : absl::StrCat(path, " ", sub.name), words, values);
  }
}

void BashPaths(const CompletionCommand& command, const std::string& path, std::vector<std::string>* paths) {
  for (const CompletionCommand& sub : command.commands) {
    const std::string below = path.empty() ? sub.name : absl::StrCat(path, " ", sub.name);
    paths->push_back(ShellQuote(below));
    BashPaths(sub, below, paths);
  }
}

std::string ZshText(const std::string& text) {
  return absl::StrReplaceAll(text, {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"\\", "\\\\"}});
}

std::string ZshName(const std::string& path) {
  return absl::StrReplaceAll(path.empty() ? "_grove" : absl::StrCat("_grove_", path), {{" ", "_"}, {"-", "_"}});
}

// What completes a value. In a specification a colon separates fields unless it is escaped; after a value that goes on
// ("replay:", "memory_bytes=") no blank may be put.
std::string ZshValues(const CompletionOption& option) {
  if (option.files) return "_files";
  std::vector<std::string> whole, begun;
  for (const std::string& value : option.values) {
    const bool goes_on = absl::EndsWith(value, ":") || absl::EndsWith(value, "=");
    (goes_on ? begun : whole).push_back(absl::StrReplaceAll(value, {{":", "\\:"}}));
  }
  if (whole.empty() && begun.empty()) return " ";
  if (begun.empty()) return absl::StrCat("(", absl::StrJoin(whole, " "), ")");
  return absl::StrCat("{compadd -- ", absl::StrJoin(whole, " "), "; compadd -S \"\" -- ", absl::StrJoin(begun, " "),
                      "}");
}

void ZshFunctions(const CompletionCommand& command, const std::string& path, std::string* out) {
  std::string body = absl::StrCat(ZshName(path), "() {\n");
  if (!command.commands.empty()) {
    absl::StrAppend(&body, "  local line state\n");
  }
  absl::StrAppend(&body, "  _arguments -C -S \\\n");
  for (const CompletionOption& option : command.options) {
    for (const std::string& name : option.names) {
      std::string spec = absl::StrCat(name, option.takes_value ? (name.size() > 2 ? "=" : "+") : "", "[",
                                      ZshText(option.description), "]");
      if (option.takes_value) {
        absl::StrAppend(&spec, ":value:", ZshValues(option));
      }
      absl::StrAppend(&body, "    '*", spec, "' \\\n");
    }
  }
  if (!command.commands.empty()) {
    absl::StrAppend(&body,
                    "    '1: :->command' \\\n    '*:: :->argument'\n  case $state in\n  command)\n    local -a "
                    "commands\n    commands=(\n");
    for (const CompletionCommand& sub : command.commands) {
      absl::StrAppend(&body, "      '", sub.name, ":", ZshText(sub.description), "'\n");
    }
    absl::StrAppend(&body,
                    "    )\n    _describe -t commands command commands\n    ;;\n  argument)\n    case $line[1] in\n");
    for (const CompletionCommand& sub : command.commands) {
      const std::string below = path.empty() ? sub.name : absl::StrCat(path, " ", sub.name);
      absl::StrAppend(&body, "    ", sub.name, ") ", ZshName(below), " ;;\n");
    }
    absl::StrAppend(&body, "    esac\n    ;;\n  esac\n");
  } else if (!command.values.empty()) {
    absl::StrAppend(&body, "    '*:argument:(", absl::StrJoin(command.values, " "), ")'\n");
  } else {
    absl::StrAppend(&body, "    '*:argument:", command.files ? "_files" : "()", "'\n");
  }
  absl::StrAppend(&body, "}\n\n");
  absl::StrAppend(out, body);
  for (const CompletionCommand& sub : command.commands) {
    ZshFunctions(sub, path.empty() ? sub.name : absl::StrCat(path, " ", sub.name), out);
  }
}

}  // namespace

std::string BashCompletion(const CompletionCommand& root) {
  std::string words, values;
  BashArms(root, "", &words, &values);
  std::vector<std::string> paths;
  BashPaths(root, "", &paths);
  return absl::StrCat(R"(# bash completion for grove: source it, or put it where bash-completion looks.
_grove() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  local path= word words= flags= files= value= i
  # "--flag=value" comes as three words; the flag is two back.
  if [[ $cur == '=' ]]; then
    cur=
  elif [[ $prev == '=' && $COMP_CWORD -ge 2 ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case "${path:+$path }$word" in
    )",
                      absl::StrJoin(paths, "|"), R"() path="${path:+$path }$word" ;;
    esac
  done
  case "$path|$prev" in
)",
                      values, R"(    *) value=none ;;
  esac
  if [[ $value == none ]]; then
    case "$path" in
)",
                      words, R"(    esac
    [[ $cur == -* ]] && words=$flags files=
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  if [[ -n $files ]]; then
    local IFS=$'\n'
    COMPREPLY+=($(compgen -f -- "$cur"))
    compopt -o filenames 2>/dev/null
  fi
}
complete -F _grove grove
)");
}

std::string ZshCompletion(const CompletionCommand& root) {
  std::string out =
      "#compdef grove\n# zsh completion for grove: put it in a folder of $fpath as _grove, or source it.\n\n";
  ZshFunctions(root, "", &out);
  absl::StrAppend(&out,
                  "if [ \"$funcstack[1]\" = \"_grove\" ]; then\n  _grove \"$@\"\nelse\n  compdef _grove grove\nfi\n");
  return out;
}

}  // namespace grove::cli
