#include "worker/judge/candidate_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <vector>

namespace grove::judge {
namespace {

CandidateMemory Ours() {
  return {wire::UniqueFd(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC)),
          wire::UniqueFd(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC))};
}

std::uint64_t AddressOf(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

TEST_CASE("Own memory is private and no file's, and neighbours are one piece", "[candidate_memory]") {
  const OwnMemory own(
      "00001000-00003000 rw-p 00000000 00:00 0 \n"
      "00003000-00004000 ---p 00000000 00:00 0                                  [heap]\n"
      "00004000-00005000 rw-s 00000000 00:01 1024                               /memfd:rows (deleted)\n"
      "00005000-00006000 rw-p 00000000 00:01 1024                               /memfd:rows (deleted)\n"
      "00006000-00007000 rw-s 00000000 00:01 0                                  /dev/zero (deleted)\n"
      "no line of this kind\n"
      "7fff0000-7fff8000 rw-p 00000000 00:00 0                                  [stack]");
  CHECK(own.Has(0x1000, 0x3000));
  CHECK(own.Has(0x2ff0, 0x20));
  CHECK(own.Has(0x7fff7fff, 1));
  CHECK_FALSE(own.Has(0xfff, 2));
  CHECK_FALSE(own.Has(0x3fff, 2));  // into what is shared
  CHECK_FALSE(own.Has(0x4000, 1));
  CHECK_FALSE(own.Has(0x5000, 1));
  CHECK_FALSE(own.Has(0x6000, 1));
  CHECK_FALSE(own.Has(0x7fff7fff, 2));
  CHECK_FALSE(own.Has(0x7fff8000, 1));
  CHECK_FALSE(own.Has(0x1000, SIZE_MAX));
  CHECK_FALSE(OwnMemory("").Has(0x1000, 1));
}

TEST_CASE("A process's memory is read as it is now, and what is not there is not", "[candidate_memory]") {
  const CandidateMemory memory = Ours();
  std::vector<int> values(1 << 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(3 * i);
  std::vector<int> read(values.size());
  REQUIRE(memory.Read(AddressOf(values.data()), reinterpret_cast<char*>(read.data()), 4 * read.size()));
  CHECK(read == values);
  CHECK_FALSE(memory.Read(0, reinterpret_cast<char*>(read.data()), 4));
  CHECK_FALSE(memory.Read(16, reinterpret_cast<char*>(read.data()), 4));
  CHECK_FALSE(memory.Read(UINT64_MAX - 2, reinterpret_cast<char*>(read.data()), 4));

  constexpr std::size_t kBytes = 8192;
  void* shared = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  void* own = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  REQUIRE(own != MAP_FAILED);
  const auto now = memory.Own();
  REQUIRE(now.has_value());
  CHECK(now->Has(AddressOf(values.data()), 4 * values.size()));
  CHECK(now->Has(AddressOf(own), kBytes));
  CHECK_FALSE(now->Has(AddressOf(shared), 1));
  CHECK_FALSE(CandidateMemory(wire::UniqueFd(), wire::UniqueFd()).Own().has_value());
  ::munmap(shared, kBytes);
  ::munmap(own, kBytes);
}

}  // namespace
}  // namespace grove::judge
