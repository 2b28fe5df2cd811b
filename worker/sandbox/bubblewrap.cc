#include "worker/sandbox/bubblewrap.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace grove::sandbox {
namespace {

// The user inside. Not 0, so that programs which refuse or privilege root behave as for anyone.
constexpr char kInnerUid[] = "1000";

// True when the file, or anything below the folder (which is small), has a permission bit for writing.
bool HasWritable(const std::filesystem::path& path, int depth) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || S_ISLNK(info.st_mode)) return false;
  if (!S_ISDIR(info.st_mode)) return (info.st_mode & 0222) != 0;
  if (depth == 0) return true;  // not looked at, so covered
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (HasWritable(it->path(), depth - 1)) return true;
  }
  return false;
}

// The entries of /proc, other than processes, that someone may write to. A worker that runs as root is the owner of
// these files inside too, whatever its capabilities (/proc/sys/kernel/core_pattern runs a program as root outside), and
// bubblewrap covers only some of them. Each is bound read-only over itself.
const std::vector<std::string>& WritableInProc() {
  static const std::vector<std::string>* const found = [] {
    auto* paths = new std::vector<std::string>{"/proc/sys"};
    DIR* proc = opendir("/proc");
    while (dirent* entry = proc == nullptr ? nullptr : readdir(proc)) {
      const absl::string_view name = entry->d_name;
      if (name == "." || name == ".." || name == "sys" || name.find_first_not_of("0123456789") == name.npos) continue;
      const std::string path = absl::StrCat("/proc/", name);
      if (HasWritable(path, 3)) paths->push_back(path);
    }
    if (proc != nullptr) closedir(proc);
    std::sort(paths->begin(), paths->end());
    return paths;
  }();
  return *found;
}

}  // namespace

// On merged-usr systems /lib and its like are links.
void AddSystem(std::vector<std::string>* args) {
  const auto add = [&](std::initializer_list<std::string> more) { args->insert(args->end(), more); };
  add({"--ro-bind", "/usr", "/usr"});
  for (const char* path : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    struct stat info {};
    if (lstat(path, &info) != 0) continue;
    if (S_ISLNK(info.st_mode)) {
      std::error_code error;
      const std::string target = std::filesystem::read_symlink(path, error).string();
      if (!error) add({"--symlink", target, path});
    } else {
      add({"--ro-bind", path, path});
    }
  }
  for (const char* path : {"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"}) {
    add({"--ro-bind-try", path, path});
  }
  // exact nodes, not bubblewrap's --dev: no terminals, no pts, and nothing writable but /dev/shm
  add({"--tmpfs", "/dev"});
  for (const char* node : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
    add({"--dev-bind", node, node});
  }
  add({"--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/proc/self/fd/0", "/dev/stdin", "--symlink",
       "/proc/self/fd/1", "/dev/stdout", "--symlink", "/proc/self/fd/2", "/dev/stderr"});
  add({"--proc", "/proc"});
  for (const std::string& path : WritableInProc()) add({"--ro-bind-try", path, path});
}

std::vector<std::string> NamespaceArgs(bool user_namespace) {
  std::vector<std::string> args;
  if (user_namespace) {
    args = {"--unshare-user", "--uid", kInnerUid, "--gid", kInnerUid};
  }
  for (const char* a : {"--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
                        "--hostname", "sandbox", "--new-session", "--die-with-parent", "--cap-drop", "ALL"}) {
    args.push_back(a);
  }
  return args;
}

}  // namespace grove::sandbox
