#include "tests/architecture/rules.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace grove::architecture {
namespace {

bool Under(absl::string_view file, const std::vector<std::string>& folders) {
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& f) { return absl::StartsWith(file, f); });
}

// A library that only some folders may include. A pattern ending in '*' is a prefix, one beginning with '*' a suffix.
struct LibraryRule {
  std::string name;
  std::vector<std::string> patterns;
  std::vector<std::string> allowed;
};

const std::vector<LibraryRule>& LibraryRules() {
  static const auto* const rules = new std::vector<LibraryRule>{
      {"gRPC",
       {"grpc/*", "grpcpp/*", "grpc++/*", "*.grpc.pb.h"},
       {"common/rpc/", "coordinator/rpc/", "worker/rpc/", "clients/"}},
      {"CUDA",
       {"cuda.h", "cuda_*", "cuda/*", "cublas*", "cudnn*", "curand*", "cufft*", "cusparse*", "nvrtc*", "nvml.h",
        "mma.h", "cooperative_groups*", "cub/*", "thrust/*", "cutlass/*"},
       {"worker/candidate/", "worker/judge/", "worker/device/"}},
      {"torch", {"torch/*", "ATen/*", "c10/*", "caffe2/*"}, {"worker/judge/", "worker/candidate/torch_lite/"}},
      {"Python", {"Python.h", "pybind11/*"}, {"worker/judge/"}},
      {"libcurl", {"curl/*"}, {"coordinator/llm/"}},
      {"SQLite", {"sqlite3.h", "sqlite3ext.h"}, {"coordinator/store/"}},
      {"prometheus-cpp", {"prometheus/*"}, {"common/metrics/", "coordinator/web/", "worker/rpc/"}},
      {"civetweb", {"civetweb.h", "CivetServer.h"}, {"common/metrics/", "coordinator/web/"}},
      {"OpenSSL", {"openssl/*"}, {"common/base/", "common/tls/"}},
      {"libseccomp", {"seccomp.h"}, {"worker/sandbox/"}},
      {"Catch2", {"catch2/*"}, {}},
  };
  return *rules;
}

// A folder that includes of the project only what is listed. The first row that fits a file counts.
struct FolderRule {
  std::string folder;
  std::vector<std::string> may_include;  // prefixes
  std::string why;
};

const std::vector<FolderRule>& FolderRules() {
  static const auto* const rules = new std::vector<FolderRule>{
      {"common/wire/", {"common/wire/"}, "it is compiled against a GPU host's PyTorch, where nothing else of ours is"},
      {"common/base/", {"common/base/"}, "it is the bottom"},
      {"common/", {"common/", "grove/v1/"}, "common knows nobody above it"},
      {"coordinator/search/", {"coordinator/search/", "common/base/", "grove/v1/"}, "a policy is a pure state machine"},
      {"coordinator/scheduler/", {"coordinator/scheduler/", "common/base/", "grove/v1/"}, "it is logic without I/O"},
      {"coordinator/llm/", {"coordinator/llm/", "common/base/"}, "it knows models, not searches"},
      {"coordinator/store/",
       {"coordinator/store/", "common/base/", "grove/v1/"},
       "it knows events, not what they mean"},
      {"coordinator/generate/",
       {"coordinator/generate/", "coordinator/llm/", "common/base/", "grove/v1/"},
       "a generator knows no engine"},
      {"coordinator/rpc/",
       {"coordinator/rpc/", "coordinator/engine/", "common/", "grove/v1/"},
       "an adapter sees the engine only"},
      {"coordinator/web/",
       {"coordinator/web/", "coordinator/engine/", "common/", "grove/v1/"},
       "an adapter sees the engine only"},
      {"coordinator/main", {"coordinator/", "common/", "grove/v1/"}, "it wires the coordinator"},
      {"coordinator/",
       {"coordinator/engine/", "coordinator/bank/", "coordinator/scheduler/", "coordinator/search/",
        "coordinator/store/", "coordinator/generate/", "coordinator/llm/", "common/base/", "common/measure/",
        "common/tuning/", "grove/v1/"},
       "logic knows no adapter, and the coordinator no worker"},
      {"worker/sandbox/", {"worker/sandbox/", "common/base/", "grove/v1/"}, "it is the boundary and stays small"},
      {"worker/candidate/",
       {"worker/candidate/", "common/wire/", "grove/kernel.h"},
       "it is built from the bundle's sources alone"},
      {"worker/judge/", {"worker/judge/", "common/wire/"}, "it is built from the bundle's sources alone"},
      {"worker/rpc/", {"worker/", "common/", "grove/v1/"}, "it is the worker's adapter"},
      {"worker/main", {"worker/", "common/", "grove/v1/"}, "it wires the worker"},
      {"worker/",
       {"worker/build/", "worker/device/", "worker/pipeline/", "worker/sandbox/", "worker/setup/", "common/base/",
        "common/measure/", "common/tuning/", "common/wire/", "grove/v1/"},
       "logic knows no adapter, the daemon includes no sandboxed program, and the worker no coordinator"},
      {"clients/", {"clients/", "common/", "grove/v1/"}, "a client speaks the protocol and includes no daemon"},
  };
  return *rules;
}

// Where judge and candidate are built there is no Abseil and no protobuf, or PyTorch's own.
constexpr absl::string_view kBuiltOnGpuHosts[] = {"common/wire/", "worker/judge/", "worker/candidate/"};

bool Fits(absl::string_view include, absl::string_view pattern) {
  if (absl::ConsumeSuffix(&pattern, "*")) return absl::StartsWith(include, pattern);
  if (absl::ConsumePrefix(&pattern, "*")) return absl::EndsWith(include, pattern);
  return include == pattern;
}

bool IsOurs(absl::string_view include) {
  for (absl::string_view folder : {"common/", "coordinator/", "worker/", "clients/", "tests/", "grove/"}) {
    if (absl::StartsWith(include, folder)) return true;
  }
  return false;
}

bool IsProduct(absl::string_view file) { return Under(file, {"common/", "coordinator/", "worker/", "clients/"}); }

bool IsWordChar(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Whether what stands before s[i] is the beginning of the line's token or an encoding prefix of a literal (u8, u, U,
// L).
bool IsEncodingPrefix(absl::string_view s, size_t i) {
  size_t begin = i;
  while (begin > 0 && IsWordChar(s[begin - 1])) --begin;
  const absl::string_view prefix = s.substr(begin, i - begin);
  return prefix.empty() || prefix == "u8" || prefix == "u" || prefix == "U" || prefix == "L";
}

bool HasWord(absl::string_view line, absl::string_view word) {
  for (size_t at = line.find(word); at != absl::string_view::npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !IsWordChar(line[at - 1])) && (end == line.size() || !IsWordChar(line[end]))) return true;
  }
  return false;
}

}  // namespace

std::vector<Include> IncludesOf(absl::string_view s) {
  std::vector<Include> out;
  int line = 1;
  bool line_start = true;  // only blanks so far on this line
  size_t i = 0;
  const auto skip_to = [&](size_t end) {
    line += static_cast<int>(std::count(s.begin() + i, s.begin() + std::min(end, s.size()), '\n'));
    i = std::min(end, s.size());
  };
  const auto after = [&](absl::string_view what, size_t from) {
    const size_t found = s.find(what, from);
    return found == absl::string_view::npos ? s.size() : found + what.size();
  };
  while (i < s.size()) {
    const char c = s[i];
    if (c == '\n') {
      ++line;
      ++i;
      line_start = true;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++i;
    } else if (s.substr(i, 2) == "//") {
      skip_to(std::min(s.find('\n', i), s.size()));
    } else if (s.substr(i, 2) == "/*") {
      skip_to(after("*/", i + 2));
    } else if (c == '#' && line_start) {
      const absl::string_view text = s.substr(i, std::min(s.find('\n', i), s.size()) - i);
      absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(1));
      line_start = false;
      if (absl::ConsumePrefix(&rest, "include")) {
        rest = absl::StripLeadingAsciiWhitespace(rest);
        if (!rest.empty() && (rest[0] == '<' || rest[0] == '"')) {
          const size_t close = rest.find(rest[0] == '<' ? '>' : '"', 1);
          if (close != absl::string_view::npos) out.push_back({std::string(rest.substr(1, close - 1)), line});
        }
        skip_to(i + text.size());
      } else {
        ++i;  // its line may hold a string that is begun here
      }
    } else if (c == 'R' && s.substr(i, 2) == "R\"" && IsEncodingPrefix(s, i)) {
      const size_t open = s.find('(', i);
      const std::string close =
          open == absl::string_view::npos ? "\"" : absl::StrCat(")", s.substr(i + 2, open - i - 2), "\"");
      skip_to(after(close, open == absl::string_view::npos ? i + 2 : open));
      line_start = false;
    } else if (c == '"' || (c == '\'' && (i == 0 || !absl::ascii_isalnum(s[i - 1])))) {  // 1'000 is no character
      size_t end = i + 1;
      while (end < s.size() && s[end] != c && s[end] != '\n') end += s[end] == '\\' ? 2 : 1;
      skip_to(end + 1 > s.size() || s[std::min(end, s.size() - 1)] == '\n' ? end : end + 1);
      line_start = false;
    } else {
      ++i;
      line_start = false;
    }
  }
  return out;
}

std::vector<Violation> CheckIncludes(const std::string& file, absl::string_view source) {
  std::vector<Violation> out;
  if (!IsProduct(file)) return out;
  const auto folder = std::find_if(FolderRules().begin(), FolderRules().end(),
                                   [&](const FolderRule& rule) { return absl::StartsWith(file, rule.folder); });
  for (const Include& include : IncludesOf(source)) {
    const auto violates = [&](absl::string_view why) {
      out.push_back({file, include.line, absl::StrCat("includes <", include.path, ">: ", why)});
    };
    for (const LibraryRule& rule : LibraryRules()) {
      const bool fits = std::any_of(rule.patterns.begin(), rule.patterns.end(),
                                    [&](const std::string& pattern) { return Fits(include.path, pattern); });
      if (fits && !Under(file, rule.allowed)) {
        violates(absl::StrCat(rule.name, " belongs in ",
                              rule.allowed.empty() ? "tests" : absl::StrJoin(rule.allowed, ", ")));
      }
    }
    if (std::any_of(std::begin(kBuiltOnGpuHosts), std::end(kBuiltOnGpuHosts),
                    [&](absl::string_view f) { return absl::StartsWith(file, f); }) &&
        (absl::StartsWith(include.path, "absl/") || absl::StartsWith(include.path, "google/protobuf/") ||
         absl::EndsWith(include.path, ".pb.h"))) {
      violates("judge and candidate are built where neither Abseil nor protobuf is");
    }
    if (IsOurs(include.path) && folder != FolderRules().end() && !Under(include.path, folder->may_include)) {
      violates(absl::StrCat(folder->folder, " may include ", absl::StrJoin(folder->may_include, ", "),
                            " only: ", folder->why));
    }
    if (absl::StrContains(include.path, "../")) violates("includes are written from the source root");
  }
  return out;
}

std::vector<Violation> CheckStandardIncludes(const std::string& file, absl::string_view source,
                                             const std::function<std::string(const std::string&)>& text_of) {
  static const auto* const headers = new std::map<std::string, std::string>{
      {"accumulate", "numeric"},
      {"all_of", "algorithm"},
      {"ceil", "cmath"},
      {"exception", "exception"},
      {"initializer_list", "initializer_list"},
      {"int32_t", "cstdint"},
      {"intptr_t", "cstdint"},
      {"isfinite", "cmath"},
      {"llround", "cmath"},
      {"none_of", "algorithm"},
      {"remove_pointer_t", "type_traits"},
      {"strlen", "cstring"},
      {"strncmp", "cstring"},
      {"strstr", "cstring"},
      {"uint16_t", "cstdint"},
      {"uintptr_t", "cstdint"},
      {"any_of", "algorithm"},
      {"array", "array"},
      {"atomic", "atomic"},
      {"chrono", "chrono"},
      {"clamp", "algorithm"},
      {"condition_variable", "condition_variable"},
      {"deque", "deque"},
      {"exchange", "utility"},
      {"exp", "cmath"},
      {"find_if", "algorithm"},
      {"function", "functional"},
      {"hypot", "cmath"},
      {"ifstream", "fstream"},
      {"int64_t", "cstdint"},
      {"iota", "numeric"},
      {"isnan", "cmath"},
      {"lock_guard", "mutex"},
      {"logic_error", "stdexcept"},
      {"make_shared", "memory"},
      {"make_unique", "memory"},
      {"map", "map"},
      {"max", "algorithm"},
      {"memcpy", "cstring"},
      {"memset", "cstring"},
      {"min", "algorithm"},
      {"move", "utility"},
      {"mutex", "mutex"},
      {"numeric_limits", "limits"},
      {"optional", "optional"},
      {"ostringstream", "sstream"},
      {"pair", "utility"},
      {"prev", "iterator"},
      {"runtime_error", "stdexcept"},
      {"set", "set"},
      {"shared_ptr", "memory"},
      {"snprintf", "cstdio"},
      {"sort", "algorithm"},
      {"span", "span"},
      {"sqrt", "cmath"},
      {"strcmp", "cstring"},
      {"string", "string"},
      {"string_view", "string_view"},
      {"system_error", "system_error"},
      {"thread", "thread"},
      {"to_string", "string"},
      {"tuple", "tuple"},
      {"uint32_t", "cstdint"},
      {"uint64_t", "cstdint"},
      {"uint8_t", "cstdint"},
      {"unique_ptr", "memory"},
      {"unordered_map", "unordered_map"},
      {"unordered_set", "unordered_set"},
      {"variant", "variant"},
      {"vector", "vector"},
  };
  std::vector<Violation> out;
  if (std::none_of(std::begin(kBuiltOnGpuHosts), std::end(kBuiltOnGpuHosts),
                   [&](absl::string_view folder) { return absl::StartsWith(file, folder); })) {
    return out;
  }
  std::set<std::string> included;
  std::vector<std::string> texts = {std::string(source)};
  while (!texts.empty()) {
    const std::string text = std::move(texts.back());
    texts.pop_back();
    for (const Include& include : IncludesOf(text)) {
      if (included.insert(include.path).second && IsOurs(include.path)) texts.push_back(text_of(include.path));
    }
  }
  int line = 0;
  for (absl::string_view text : absl::StrSplit(source, '\n')) {
    ++line;
    text = text.substr(0, text.find("//"));
    constexpr absl::string_view kStandard = "std::";
    for (size_t at = text.find(kStandard); at != absl::string_view::npos; at = text.find(kStandard, at + 1)) {
      size_t end = at + kStandard.size();
      while (end < text.size() && IsWordChar(text[end])) ++end;
      const std::string name(text.substr(at + kStandard.size(), end - at - kStandard.size()));
      const auto header = headers->find(name);
      if (header == headers->end() || included.count(header->second) > 0) continue;
      out.push_back({file, line, absl::StrCat("std::", name, " without <", header->second, ">")});
    }
  }
  return out;
}

std::vector<Violation> CheckPython(const std::string& file, absl::string_view source) {
  std::vector<Violation> out;
  // record_extensions.py has a candidate's load_inline build itself, inside the build sandbox.
  if (!IsProduct(file) || Under(file, {"worker/judge/", "worker/candidate/", "worker/build/record_extensions.py",
                                       "worker/build/torch_lite_build.py"}))
    return out;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(source, '\n')) {
    ++number;
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if ((absl::StartsWith(text, "import ") || absl::StartsWith(text, "from ")) && HasWord(text, "torch")) {
      out.push_back({file, number, "torch is imported in worker/judge and worker/candidate only"});
    }
  }
  return out;
}

std::vector<Violation> CheckText(const std::string& file, absl::string_view text) {
  // Put together from halves, so that this file does not hold what it looks for.
  static const auto* const paths = new std::vector<std::string>{
      "/wo"
      "rk/",
      "/tmp"
      "/w/",
      "/home/ub"
      "untu",
      "/home/de"
      "v/",
      "/Us"
      "ers/",
      "/root/g"
      "it"};
  static const auto* const notes = new std::vector<std::string>{
      "TO"
      "DO",
      "FIX"
      "ME",
      "XX"
      "X",
      "HA"
      "CK"};
  static const auto* const merges = new std::vector<std::string>{
      "<<<"
      "<<<< ",
      ">>>"
      ">>>> "};
  std::vector<Violation> out;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    for (const std::string& path : *paths) {
      // "./work/" and "$HOME/work/" are relative; a URL's path follows its host.
      const size_t at = line.find(path);
      if (at != absl::string_view::npos &&
          (at == 0 || (!IsWordChar(line[at - 1]) && line[at - 1] != '.' && line[at - 1] != '}'))) {
        out.push_back({file, number, absl::StrCat("holds '", path, "', a path of the machine it was written on")});
      }
    }
    for (const std::string& note : *notes) {
      if (HasWord(line, note))
        out.push_back({file, number, absl::StrCat("holds '", note, "': finish it, or say what is missing in words")});
    }
    for (const std::string& merge : *merges) {
      if (absl::StartsWith(line, merge)) out.push_back({file, number, "holds the marks of an unresolved merge"});
    }
  }
  return out;
}

}  // namespace grove::architecture
