#include "worker/sandbox/mappings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace grove::sandbox {
namespace {

TEST_CASE("Files with code are read from a maps file, data and the kernel's pages are not", "[mappings]") {
  std::set<std::string> files;
  ParseMappings(
      "55d0-55d1 r--p 00000000 fd:00 1 /usr/bin/data-only\n"
      "55d1-55d2 r-xp 00001000 fd:00 2                          /usr/lib/with space.so\n"
      "7f00-7f01 r-xp 00000000 00:01 3 /memfd:grove-object (deleted)\n"
      "7f01-7f02 rwxp 00000000 00:00 0 \n"
      "7ffd-7ffe r-xp 00000000 00:00 0 [vdso]\n"
      "broken line\n\nr-xp\n",
      &files);
  CHECK(files == std::set<std::string>{"/usr/lib/with space.so", "/memfd:grove-object (deleted)", "[anonymous]"});
}

TEST_CASE("A process cannot hide the code that it maps", "[mappings]") {
  const std::set<std::string> before = ExecutableMappings({getpid()});
  CHECK(before.size() > 2);
  CHECK(before.count("[anonymous]") == 0);
  void* code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(code != MAP_FAILED);
  CHECK(ExecutableMappings({getpid()}).count("[anonymous]") == 1);
  munmap(code, 4096);
  CHECK(ExecutableMappings({}).empty());
}

}  // namespace
}  // namespace grove::sandbox
