// Whose the processes on a GPU are: by rule, and by real processes that a false NVML lists.
#include "worker/device/foreign.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <map>

#include "tests/device/fake_nvml.h"
#include "worker/device/nvml.h"

namespace grove::device {
namespace {

TEST_CASE("Others are those that do not descend from the worker", "[foreign]") {
  // 1 -> 100 (the worker) -> 110 (a sandbox) -> 111 (the judge), 112 (the candidate); 1 -> 200 -> 201; 2 of the kernel.
  const std::map<int, int> parents = {{1, 0},     {2, 0},     {100, 1}, {110, 100},
                                      {111, 110}, {112, 110}, {200, 1}, {201, 200}};
  const auto parent_of = [&](int pid) {
    const auto it = parents.find(pid);
    return it == parents.end() ? -1 : it->second;
  };
  const auto foreign = [&](const std::vector<int>& pids) { return ForeignAmong(pids, 100, parent_of); };
  CHECK(foreign({111, 112}) == 0);
  CHECK(foreign({111, 112, 200, 201, 2}) == 3);
  CHECK(foreign({111, 201, 201}) == 1);  // a compute and a graphics context
  CHECK(foreign({111, 300}) == 0);       // ended since
  CHECK(foreign({100, 1}) == 1);
  // None of ours: the numbers are of another namespace, whatever they mean in this one.
  CHECK(foreign({200, 201}) == std::nullopt);
  CHECK(foreign({300, 0, -1}) == std::nullopt);
  CHECK(foreign({}) == std::nullopt);
}

TEST_CASE("Parents are what /proc says, whatever a process calls itself", "[foreign]") {
  CHECK(ParentOf(getpid()) == getppid());
  CHECK(ParentOf(1) == 0);
  CHECK(ParentOf(0) == -1);
  int ends[2], ready[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(ends[1]);
    const int name = open("/proc/self/comm", O_WRONLY);
    if (write(name, ") S 1 (", 7) < 0 || write(ready[1], &byte, 1) < 0) _exit(1);
    (void)!read(ends[0], &byte, 1);
    _exit(0);
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK(ParentOf(child) == getpid());
  close(ends[1]);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(ParentOf(child) == -1);
  for (int fd : {ends[0], ready[0], ready[1]}) close(fd);
}

TEST_CASE("Processes on a GPU come from NVML, and the others among them are counted", "[nvml][foreign]") {
  testing::FakeNvml fake;
  const unsigned self = static_cast<unsigned>(getpid());
  fake.Processes({self, 1});
  const auto pids = QueryProcesses("GPU-fake", absl::Seconds(60));
  INFO(pids.status());
  REQUIRE(pids.ok());
  CHECK(*pids == std::vector<int>{static_cast<int>(self), 1});
  CHECK(QueryProcesses("GPU-other", absl::Seconds(60)).status().code() == absl::StatusCode::kUnavailable);
  fake.Processes({1});
  CHECK(ForeignProcesses("GPU-fake") == std::nullopt);
}

TEST_CASE("An NVML that hangs while it lists processes costs its time limit, and nothing is known", "[nvml][foreign]") {
  testing::FakeNvml fake;
  fake.Hang("processes");
  const auto begin = std::chrono::steady_clock::now();
  CHECK(QueryProcesses("GPU-fake", absl::Milliseconds(50)).status().code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(ForeignProcesses("GPU-fake") == std::nullopt);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  fake.Hang("");
  CHECK(QueryProcesses("GPU-fake", absl::Seconds(60)).ok());
}

}  // namespace
}  // namespace grove::device
