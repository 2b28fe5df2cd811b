// What code the processes of a sandbox have in memory, from the kernel's own books (/proc/PID/maps): nothing that runs
// inside can forge it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace grove::sandbox {

// Which file it is, whatever it calls itself: st_dev and st_ino.
struct FileIdentity {
  dev_t device = 0;
  uint64_t inode = 0;
  bool operator<(const FileIdentity& other) const {
    return std::tie(device, inode) < std::tie(other.device, other.inode);
  }
  bool operator==(const FileIdentity& other) const { return device == other.device && inode == other.inode; }
};
// Of an open file. On file systems with devices of their own inside (btrfs, overlays) not what the kernel's books say;
// for files in memory it is.
FileIdentity IdentityOf(int fd);

// A file of which code is mapped.
struct MappedCode {
  // As the kernel names it: a path, "/memfd:name (deleted)", or "[anonymous]" for code that belongs to no file (a
  // compiler's output, or a library mapped by hand). Whoever makes a file in memory chooses its name.
  std::string path;
  FileIdentity file;
  // Pages of its code are no longer the file's: somebody wrote there. Known where it was asked for.
  bool changed = false;
  bool operator<(const MappedCode& other) const {
    return std::tie(path, file, changed) < std::tie(other.path, other.file, other.changed);
  }
  bool operator==(const MappedCode& other) const {
    return path == other.path && file == other.file && changed == other.changed;
  }
};
struct CodeRange {
  uint64_t begin = 0, end = 0;  // addresses
  MappedCode code;
};
using CodeSet = std::set<MappedCode>;

// All executable mappings of these processes. Processes that are gone are left out. `changes`: also whether their pages
// are still the files', which takes the kernel a walk through the page tables (30 ms for a process with torch).
CodeSet ExecutableMappings(const std::vector<pid_t>& pids, bool changes = false);

// Of one process, by address.
std::vector<CodeRange> CodeRanges(pid_t pid, bool changes = false);

// The parser of one maps or smaps file. The kernel's own code ([vdso] and its like) is left out, unless smaps says that
// pages of it were written to: then it is "[anonymous]".
std::vector<CodeRange> ParseMappings(std::string_view text);

}  // namespace grove::sandbox
