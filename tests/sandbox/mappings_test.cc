#include "worker/sandbox/mappings.h"

#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace grove::sandbox {
namespace {

const MappedCode* Find(const CodeSet& all, const std::string& path) {
  for (const MappedCode& code : all) {
    if (code.path == path) return &code;
  }
  return nullptr;
}

TEST_CASE("Files with code are read from a maps file, data and the kernel's pages are not", "[mappings]") {
  const std::vector<CodeRange> ranges = ParseMappings(
      "55d0-55d1 r--p 00000000 fd:00 1 /usr/bin/data-only\n"
      "55d1-55d2 r-xp 00001000 fd:00 2                          /usr/lib/with space.so\n"
      "7f00-7f01 r-xp 00000000 00:01 3 /memfd:grove-object (deleted)\n"
      "7f01-7f02 rwxp 00000000 00:00 0 \n"
      "7f02-7f03 rwxp 00000000 00:00 0                          [heap]\n"
      "7f03-7f04 r-xp 00000000 00:00 0                          [anon:vdso]\n"
      "7ffd-7ffe r-xp 00000000 00:00 0 [vdso]\n"
      "broken line\n\nr-xp\n");
  REQUIRE(ranges.size() == 5);
  CHECK(ranges[0].begin == 0x55d1);
  CHECK(ranges[0].end == 0x55d2);
  CHECK(ranges[0].code == MappedCode{"/usr/lib/with space.so", {makedev(0xfd, 0), 2}, false});
  CHECK(ranges[1].code == MappedCode{"/memfd:grove-object (deleted)", {makedev(0, 1), 3}, false});
  CHECK(ranges[2].code.path == "[anonymous]");
  CHECK(ranges[3].code.path == "[anonymous]");
  CHECK(ranges[4].code.path == "[anonymous]");
}

TEST_CASE("In smaps a file's code with pages of its own is told from one that is as it was", "[mappings]") {
  const std::vector<CodeRange> ranges = ParseMappings(
      "55d1-55d2 r-xp 00001000 fd:00 2      /usr/lib/a.so\nSize: 4 kB\nAnonymous:             0 kB\nVmFlags: rd ex\n"
      "55d2-55d3 r-xp 00001000 fd:00 3      /usr/lib/b.so\nSize: 4 kB\nAnonymous:             4 kB\n"
      "55d3-55d4 rw-p 00001000 fd:00 2      /usr/lib/a.so\nAnonymous:             8 kB\n"
      "55d4-55d5 rwxp 00000000 00:00 0 \nAnonymous:             8 kB\n");
  REQUIRE(ranges.size() == 3);
  CHECK_FALSE(ranges[0].code.changed);
  CHECK(ranges[1].code.changed);
  CHECK_FALSE(ranges[2].code.changed);  // it has no file that it could differ from
}

TEST_CASE("In smaps the kernel's own code that was written to is code of no file", "[mappings]") {
  const std::string vdso = "7ffd000-7fff000 r-xp 00000000 00:00 0      [vdso]\nSize: 8 kB\n";
  const std::string next = "7fff000-8000000 r--p 00000000 00:00 0      [vvar]\nAnonymous:             4 kB\n";
  CHECK(ParseMappings(vdso + "Anonymous:             0 kB\n" + next).empty());
  const std::vector<CodeRange> ranges = ParseMappings(vdso + "Anonymous:             4 kB\n" + next);
  REQUIRE(ranges.size() == 1);
  CHECK(ranges[0].begin == 0x7ffd000);
  CHECK(ranges[0].end == 0x7fff000);
  CHECK(ranges[0].code == MappedCode{"[anonymous]", {makedev(0, 0), 0}, false});
  // Once for each mapping, and whatever stands before it is as it was.
  const std::string file = "55d1-55d2 r-xp 00001000 fd:00 2      /usr/lib/a.so\nAnonymous:             0 kB\n";
  const std::vector<CodeRange> both =
      ParseMappings(file + vdso + "Anonymous:             8 kB\nAnonymous:             8 kB\n");
  REQUIRE(both.size() == 2);
  CHECK_FALSE(both[0].code.changed);
}

TEST_CASE("Code that a process wrote into the kernel's pages is seen", "[mappings]") {
  uint64_t begin = 0, end = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("[vdso]") != std::string::npos) sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &begin, &end);
  }
  int ends[2], ready[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char answer = 'n', byte = 0;
    void* code = reinterpret_cast<void*>(begin);  // as a whole: it cannot be split
    if (begin != 0 && mprotect(code, end - begin, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) {
      auto* last = reinterpret_cast<volatile unsigned char*>(end - 1);
      *last = *last;
      if (mprotect(code, end - begin, PROT_READ | PROT_EXEC) == 0) answer = 'y';
    }
    (void)!write(ready[1], &answer, 1);
    close(ends[1]);
    (void)!read(ends[0], &byte, 1);
    _exit(0);
  }
  char answer = 0;
  CHECK(read(ready[0], &answer, 1) == 1);
  const CodeSet own = ExecutableMappings({getpid()}, true), seen = ExecutableMappings({child}, true);
  for (int fd : {ends[0], ends[1], ready[0], ready[1]}) close(fd);
  waitpid(child, nullptr, 0);
  CHECK(Find(own, "[anonymous]") == nullptr);
  if (answer != 'y') {
    WARN("this kernel lets nobody write there");
    return;
  }
  CHECK(Find(seen, "[anonymous]") != nullptr);
}

TEST_CASE("A process cannot hide the code that it maps", "[mappings]") {
  const CodeSet before = ExecutableMappings({getpid()});
  CHECK(before.size() > 2);
  CHECK(Find(before, "[anonymous]") == nullptr);
  void* code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(code != MAP_FAILED);
  CHECK(Find(ExecutableMappings({getpid()}), "[anonymous]") != nullptr);
  munmap(code, 4096);
  CHECK(ExecutableMappings({}).empty());
}

TEST_CASE("Two files in memory of one name are two files, and code that was written over is seen", "[mappings]") {
  constexpr size_t kBytes = 4096;
  int files[2];
  void* mapped[2];
  for (int i = 0; i < 2; ++i) {
    files[i] = memfd_create("one-name", MFD_CLOEXEC);
    REQUIRE(ftruncate(files[i], kBytes) == 0);
    mapped[i] = mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, files[i], 0);
    REQUIRE(mapped[i] != MAP_FAILED);
  }
  const FileIdentity first = IdentityOf(files[0]), second = IdentityOf(files[1]);
  CHECK_FALSE(first == second);
  const std::string name = "/memfd:one-name (deleted)";
  const auto seen = [&](bool changes) { return ExecutableMappings({getpid()}, changes); };
  CHECK(seen(false).count({name, first, false}) == 1);
  CHECK(seen(true).count({name, second, false}) == 1);
  REQUIRE(mprotect(mapped[1], kBytes, PROT_READ | PROT_WRITE) == 0);
  memset(mapped[1], 0xc3, 8);
  REQUIRE(mprotect(mapped[1], kBytes, PROT_READ | PROT_EXEC) == 0);
  CHECK(seen(true).count({name, first, false}) == 1);
  CHECK(seen(true).count({name, second, true}) == 1);
  for (int i = 0; i < 2; ++i) {
    munmap(mapped[i], kBytes);
    close(files[i]);
  }
}

}  // namespace
}  // namespace grove::sandbox
