#include "worker/build/sass.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "worker/build/ptxas.h"

namespace grove::build {
namespace {

constexpr size_t kMaxOpcode = 24, kMaxKinds = 4096;

// "/*0010*/  @!P0 IMAD.MOV.U32 R1, ..." -> "IMAD"; empty where the line is no instruction.
absl::string_view OpcodeOf(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "/*")) return {};
  const size_t digits = line.find_first_not_of("0123456789abcdefABCDEF");
  if (digits == 0 || digits == absl::string_view::npos || digits > 16) return {};
  line.remove_prefix(digits);
  if (!absl::ConsumePrefix(&line, "*/")) return {};
  line = absl::StripLeadingAsciiWhitespace(line);
  if (absl::ConsumePrefix(&line, "{")) line = absl::StripLeadingAsciiWhitespace(line);  // issued as a pair (Maxwell)
  if (absl::StartsWith(line, "@")) {
    line.remove_prefix(std::min(line.find_first_of(" \t"), line.size()));
    line = absl::StripLeadingAsciiWhitespace(line);
  }
  size_t end = 0;
  while (end < line.size() && (absl::ascii_isupper(static_cast<unsigned char>(line[end])) ||
                               absl::ascii_isdigit(static_cast<unsigned char>(line[end])) || line[end] == '_')) {
    ++end;
  }
  if (end == 0 || end > kMaxOpcode || !absl::ascii_isupper(static_cast<unsigned char>(line[0]))) return {};
  if (end < line.size() && absl::StrContains(".;, \t\r", absl::string_view(&line[end], 1)) == false) return {};
  return line.substr(0, end);
}

}  // namespace

InstructionMix ParseSass(absl::string_view text) {
  InstructionMix mix;
  std::map<std::string, int64_t, std::less<>> counts;
  std::string code;
  std::set<std::string> seen;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const absl::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const absl::string_view words = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(words, "Function :")) {
      absl::StrAppend(&code, words, "\n");
      const std::string name(absl::StripLeadingAsciiWhitespace(words.substr(10, 4096)));
      if (mix.functions.size() < kMaxFunctions && seen.insert(name).second) mix.functions.push_back(Demangle(name));
      continue;
    }
    const absl::string_view opcode = OpcodeOf(line);
    if (opcode.empty()) continue;
    absl::StrAppend(&code, words, "\n");
    if (opcode == "NOP") continue;
    ++mix.total;
    auto it = counts.find(opcode);
    if (it == counts.end()) {
      if (counts.size() >= kMaxKinds) continue;
      it = counts.emplace(std::string(opcode), 0).first;
    }
    ++it->second;
  }
  if (mix.total > 0) mix.sha256 = Sha256Hex(code);
  mix.counts.assign(counts.begin(), counts.end());
  std::stable_sort(mix.counts.begin(), mix.counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (mix.counts.size() > kMaxOpcodes) mix.counts.resize(kMaxOpcodes);
  return mix;
}

std::string FindCuobjdump(const device::Compiler& nvcc) {
  const std::string beside = absl::StrCat(std::filesystem::path(nvcc.path).parent_path().string(), "/cuobjdump");
  return access(beside.c_str(), X_OK) == 0 ? beside : device::FindOnPath("cuobjdump");
}

absl::StatusOr<InstructionMix> CountInstructions(std::shared_ptr<sandbox::SandboxHost> host,
                                                 const device::Compiler& nvcc, const std::vector<BuiltObject>& objects,
                                                 const std::function<bool()>& cancelled) {
  const std::string tool = FindCuobjdump(nvcc);
  const std::string beside = std::filesystem::path(nvcc.path).parent_path().string();
  if (tool.empty()) {
    return absl::NotFoundError(absl::StrCat("cuobjdump is neither in ", beside,
                                            " nor on PATH; it comes with the CUDA toolkit (cuda-cuobjdump)"));
  }
  std::string all;
  for (const BuiltObject& object : objects) {
    sandbox::SandboxSpec spec;
    spec.label = "sass";
    spec.argv = {tool, "-sass", "/tmp/kernel.so"};
    spec.read_only = nvcc.folders;
    // What is in /usr is there; and nothing can be bound below a link of it, such as /usr/local/cuda.
    for (const std::string& path : {tool, beside}) {
      if (!absl::StartsWith(path, "/usr/")) spec.read_only.push_back(path);
    }
    // It starts nvdisasm, which lies beside it.
    spec.env = {
        absl::StrCat("PATH=", std::filesystem::path(tool).parent_path().string(), ":", beside, ":/usr/bin:/bin"),
        "HOME=/tmp", "TMPDIR=/tmp", "LC_ALL=C.UTF-8"};
    spec.files = {{"kernel.so", object.content}};
    spec.bounds.wall = absl::Seconds(kSassSeconds);
    spec.bounds.memory_bytes = int64_t{4} << 30;
    spec.bounds.processes = 64;
    spec.bounds.disk_bytes = 4 * (static_cast<int64_t>(object.content.size()) + kMaxSassBytes);
    spec.bounds.output_bytes = kMaxSassBytes;
    spec.kept_output_bytes = 2 * kMaxSassBytes;
    auto process = sandbox::SandboxedProcess::Start(host, std::move(spec));
    if (!process.ok()) return process.status();
    while (!(*process)->WaitFor(absl::Milliseconds(20))) {
      if (cancelled && cancelled()) return absl::CancelledError("cancelled");
    }
    const sandbox::Ending& ending = (*process)->Wait();
    if (ending.kind == sandbox::Ending::Kind::kLimit) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the object could not be disassembled: ", ending.limit, " is ", ending.limit_set));
    }
    if (ending.kind != sandbox::Ending::Kind::kExited) {
      return absl::InternalError("the object could not be disassembled: cuobjdump was ended");
    }
    // Without code for a GPU it says so and ends with an error.
    if (ending.exit_code != 0 &&
        !absl::StrContains(absl::StrCat(ending.out, ending.err), "does not contain device code")) {
      return absl::InternalError(
          absl::StrCat("cuobjdump ended with exit code ", ending.exit_code, ": ", ending.err.substr(0, 300)));
    }
    if (static_cast<int64_t>(all.size() + ending.out.size()) > kMaxSassBytes) {
      return absl::ResourceExhaustedError("the objects' disassembly is too long to count");
    }
    absl::StrAppend(&all, ending.out);
  }
  return ParseSass(all);
}

}  // namespace grove::build
