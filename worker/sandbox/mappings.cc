#include "worker/sandbox/mappings.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"

namespace grove::sandbox {
namespace {
constexpr int64_t kMaxMapsBytes = 16 << 20;  // torch with CUDA has some 0.3 MiB, ten times that as smaps

bool ReadNumber(std::string_view text, int base, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return error == std::errc() && end == text.data() + text.size();
}

// "55d0-55d1 r-xp 00001000 fd:00 2      /path": false when it is no such line.
bool ParseHeader(std::string_view line, std::string_view* permissions, CodeRange* range) {
  // The first five have no spaces inside.
  size_t at = 0;
  std::string_view fields[5];
  for (std::string_view& field : fields) {
    const size_t next = line.find(' ', at);
    if (next == std::string_view::npos && &field != &fields[4]) return false;
    field = line.substr(at, next == std::string_view::npos ? line.size() - at : next - at);
    at = next == std::string_view::npos ? line.size() : line.find_first_not_of(' ', next);
    if (at == std::string_view::npos) at = line.size();
  }
  const size_t dash = fields[0].find('-'), colon = fields[3].find(':');
  uint64_t major = 0, minor = 0;
  if (dash == std::string_view::npos || colon == std::string_view::npos || fields[1].size() < 3 ||
      !ReadNumber(fields[0].substr(0, dash), 16, &range->begin) ||
      !ReadNumber(fields[0].substr(dash + 1), 16, &range->end) || !ReadNumber(fields[3].substr(0, colon), 16, &major) ||
      !ReadNumber(fields[3].substr(colon + 1), 16, &minor) || !ReadNumber(fields[4], 10, &range->code.file.inode)) {
    return false;
  }
  range->code.file.device = makedev(static_cast<unsigned>(major), static_cast<unsigned>(minor));
  *permissions = fields[1];
  const std::string_view path = line.substr(at);
  range->code.path = path.empty() ? "[anonymous]" : std::string(path);
  return true;
}

}  // namespace

FileIdentity IdentityOf(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

std::vector<CodeRange> ParseMappings(std::string_view text) {
  std::vector<CodeRange> ranges;
  bool listed = false;               // the mapping whose lines these are is in `ranges`
  std::optional<CodeRange> kernels;  // or it is the kernel's own, listed once it turns out to have been written to
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    constexpr std::string_view kAnonymous = "Anonymous:";
    if (line.substr(0, kAnonymous.size()) == kAnonymous) {
      if (line.find_first_of("123456789") == std::string_view::npos) continue;
      if (kernels.has_value()) {
        ranges.push_back(*std::exchange(kernels, std::nullopt));
      } else if (listed) {
        MappedCode& code = ranges.back().code;
        code.changed = code.path != "[anonymous]";
      }
      continue;
    }
    CodeRange range;
    std::string_view permissions;
    if (!ParseHeader(line, &permissions, &range)) continue;
    std::string& path = range.code.path;
    const bool code = permissions[2] == 'x';
    const bool own = path == "[vdso]" || path == "[vsyscall]" || path == "[uprobes]";
    listed = code && !own;
    // Code on a heap or a stack, or in memory to which its owner gave a name ("[anon:x]"), is no file's either.
    if (path.front() == '[') path = "[anonymous]";
    kernels.reset();
    if (listed) {
      ranges.push_back(std::move(range));
    } else if (code) {
      kernels = std::move(range);
    }
  }
  return ranges;
}

std::vector<CodeRange> CodeRanges(pid_t pid, bool changes) {
  auto text = ReadFile(absl::StrCat("/proc/", pid, changes ? "/smaps" : "/maps"), kMaxMapsBytes);
  return text.ok() ? ParseMappings(*text) : std::vector<CodeRange>();
}

CodeSet ExecutableMappings(const std::vector<pid_t>& pids, bool changes) {
  CodeSet files;
  for (pid_t pid : pids) {
    for (CodeRange& range : CodeRanges(pid, changes)) files.insert(std::move(range.code));
  }
  return files;
}

}  // namespace grove::sandbox
