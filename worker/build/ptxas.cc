#include "worker/build/ptxas.h"

#include <cxxabi.h>

#include <cstdlib>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace grove::build {
namespace {

constexpr size_t kMaxKernels = 256, kMaxName = 1024;

// The number right before `what` in a line such as "Used 40 registers, 380 bytes cmem[0]".
int64_t NumberBefore(absl::string_view line, absl::string_view what) {
  const size_t at = line.find(what);
  if (at == absl::string_view::npos) return 0;
  absl::string_view head = absl::StripTrailingAsciiWhitespace(line.substr(0, at));
  const size_t begin = head.find_last_not_of("0123456789");
  int64_t value = 0;
  return absl::SimpleAtoi(head.substr(begin == absl::string_view::npos ? 0 : begin + 1), &value) ? value : 0;
}

std::string Quoted(absl::string_view line) {
  const size_t first = line.find('\'');
  const size_t last = line.rfind('\'');
  return first == absl::string_view::npos || last <= first ? "" : std::string(line.substr(first + 1, last - first - 1));
}

bool IsResourceLine(absl::string_view line) {
  return absl::StartsWith(line, "ptxas info") || absl::StrContains(line, "bytes stack frame,");
}

}  // namespace

std::string Demangle(const std::string& name) {
  if (!absl::StartsWith(name, "_Z") || name.size() > kMaxName) return name.substr(0, kMaxName);
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? std::string(text) : name;
  free(text);
  return result.substr(0, kMaxName);
}

std::vector<v1::KernelResources> ParsePtxas(const std::string& log) {
  std::vector<v1::KernelResources> kernels;
  std::map<std::string, v1::KernelResources> functions;  // "Function properties for X" may come before or after
  std::string compiling, properties_of;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StrContains(line, "Compiling entry function")) {
      compiling = Quoted(line);
      // 'name' for 'sm_90': the quotes of both.
      compiling = compiling.substr(0, compiling.find('\''));
    } else if (absl::StrContains(line, "Function properties for")) {
      properties_of = std::string(absl::StripAsciiWhitespace(line.substr(line.find("for") + 3)));
    } else if (absl::StrContains(line, "bytes stack frame")) {
      if (properties_of.empty() || functions.size() >= 4 * kMaxKernels) continue;
      v1::KernelResources& f = functions[properties_of];
      f.set_stack_bytes(NumberBefore(line, " bytes stack frame"));
      f.set_spill_store_bytes(NumberBefore(line, " bytes spill stores"));
      f.set_spill_load_bytes(NumberBefore(line, " bytes spill loads"));
    } else if (absl::StrContains(line, "Used ") && absl::StrContains(line, " registers") && !compiling.empty()) {
      if (kernels.size() >= kMaxKernels) break;
      v1::KernelResources kernel = functions.count(compiling) ? functions[compiling] : v1::KernelResources();
      kernel.set_name(Demangle(compiling));
      kernel.set_registers(static_cast<int32_t>(NumberBefore(line, " registers")));
      kernel.set_shared_bytes(NumberBefore(line, " bytes smem"));
      kernels.push_back(std::move(kernel));
      compiling.clear();
    }
  }
  return kernels;
}

std::string WithoutPtxasLines(const std::string& log) {
  std::string kept;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    if (!IsResourceLine(line)) absl::StrAppend(&kept, line, "\n");
  }
  while (!kept.empty() && kept.back() == '\n') kept.pop_back();
  return kept;
}

}  // namespace grove::build
