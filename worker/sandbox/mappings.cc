#include "worker/sandbox/mappings.h"

#include "absl/strings/str_cat.h"
#include "common/base/files.h"

namespace grove::sandbox {
namespace {
constexpr int64_t kMaxMapsBytes = 16 << 20;  // torch with CUDA has some 0.3 MiB
}

void ParseMappings(std::string_view text, std::set<std::string>* files) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    // address perms offset dev inode path; the first five have no spaces inside.
    size_t at = 0;
    std::string_view fields[5];
    bool whole = true;
    for (std::string_view& field : fields) {
      const size_t next = line.find(' ', at);
      if (next == std::string_view::npos && &field != &fields[4]) {
        whole = false;
        break;
      }
      field = line.substr(at, next == std::string_view::npos ? line.size() - at : next - at);
      at = next == std::string_view::npos ? line.size() : line.find_first_not_of(' ', next);
      if (at == std::string_view::npos) at = line.size();
    }
    if (!whole || fields[1].size() < 3 || fields[1][2] != 'x') continue;
    const std::string_view path = line.substr(at);
    if (path.empty()) {
      files->insert("[anonymous]");
    } else if (path.front() == '/') {
      files->insert(std::string(path));
    }  // [vdso], [vsyscall]: the kernel's
  }
}

std::set<std::string> ExecutableMappings(const std::vector<pid_t>& pids) {
  std::set<std::string> files;
  for (pid_t pid : pids) {
    auto text = ReadFile(absl::StrCat("/proc/", pid, "/maps"), kMaxMapsBytes);
    if (text.ok()) ParseMappings(*text, &files);
  }
  return files;
}

}  // namespace grove::sandbox
