// NVML as it is when all is well, and as it is after a GPU fault: calls that do not return, a GPU that is gone, Xids.
#include "worker/device/nvml.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include "tests/device/fake_nvml.h"
#include "worker/device/device.h"
#include "worker/device/xid.h"
#include "worker/device/xid_watch.h"

namespace grove::device {
namespace {

using Seconds = std::chrono::duration<double>;

using Fake = testing::FakeNvml;

TEST_CASE("NVML names the GPU", "[nvml]") {
  Fake fake;
  const auto gpus = QueryGpus();
  INFO(gpus.status());
  REQUIRE(gpus.ok());
  REQUIRE(gpus->size() == 1);
  CHECK((*gpus)[0].name == "Fake GPU");
  CHECK((*gpus)[0].arch == "sm_90");
  CHECK((*gpus)[0].minor == 3);
  CHECK((*gpus)[0].memory_bytes == int64_t{1} << 34);
}

TEST_CASE("An NVML call that hangs costs its time limit, in every function, and goes on when it returns", "[nvml]") {
  const char* call = GENERATE("init", "handle", "name");
  CAPTURE(call);
  Fake fake;
  fake.Hang(call);
  const auto begin = std::chrono::steady_clock::now();
  const auto hung = QueryGpus(absl::Milliseconds(200));
  CHECK(hung.status().code() == absl::StatusCode::kDeadlineExceeded);
  // While it hangs, whoever asks next is told so, within the same time.
  CHECK(QueryGpus(absl::Milliseconds(200)).status().code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(Seconds(std::chrono::steady_clock::now() - begin).count() < 20);
  // A worker that starts then says what is wrong, and does not fall back on the CPU unasked.
  fake.Hang("");
  CHECK(QueryGpus(absl::Seconds(60)).ok());
}

TEST_CASE("A GPU that is lost is an error with NVML's words and no CPU in its place", "[nvml]") {
  Fake fake;
  fake.Lost();
  const auto found = Detect({});
  REQUIRE_FALSE(found.ok());
  CHECK(found.status().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(found.status().message()), Catch::Contains("GPU is lost"));
}

TEST_CASE("Without the library there is no GPU and the CPU is taken", "[nvml]") {
  setenv("GROVE_NVML_LIBRARY", "/nonexistent/libnvidia-ml.so.1", 1);
  CHECK(QueryGpus().status().code() == absl::StatusCode::kNotFound);
  const auto found = Detect({});
  unsetenv("GROVE_NVML_LIBRARY");
  REQUIRE(found.ok());
  CHECK(found->kind() == v1::DEVICE_KIND_CPU);
}

TEST_CASE("Xids come through NVML's events, in order and once", "[nvml][xid]") {
  Fake fake;
  auto watch = XidWatch::Start("GPU-fake");
  REQUIRE(watch->Status(absl::Seconds(60)).ok());
  CHECK(watch->Take().empty());
  fake.Xid(31);
  fake.Xid(79);
  std::vector<int> seen;
  while (seen.size() < 2 && watch->WaitForAny(absl::Seconds(60))) {
    for (const XidEvent& event : watch->Take()) seen.push_back(event.xid);
  }
  CHECK(seen == std::vector<int>{31, 79});
  CHECK(watch->Take().empty());
}

TEST_CASE("Whoever watches for Xids is not held up by an NVML that hangs", "[nvml][xid]") {
  Fake fake;
  fake.Hang("wait");
  const auto begin = std::chrono::steady_clock::now();
  {
    auto watch = XidWatch::Start("GPU-fake");
    CHECK(watch->Take().empty());
    CHECK_FALSE(watch->WaitForAny(absl::Milliseconds(50)));
  }
  CHECK(Seconds(std::chrono::steady_clock::now() - begin).count() < 20);
}

TEST_CASE("A GPU that is lost while it is watched is Xid 79, and one that is unknown is said", "[nvml][xid]") {
  Fake fake;
  auto watch = XidWatch::Start("GPU-fake");
  REQUIRE(watch->Status(absl::Seconds(60)).ok());
  fake.Lost();
  REQUIRE(watch->WaitForAny(absl::Seconds(60)));
  CHECK(watch->Take().front().xid == 79);
  auto other = XidWatch::Start("GPU-other");
  const absl::Status status = other->Status(absl::Seconds(60));
  CHECK(status.code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(status.message()), Catch::Contains("nvmlDeviceGetHandleByUUID"));
}

// Until `done`, or a time that no test takes.
template <typename Done>
bool Await(const Done& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST_CASE("A watch that NVML has failed listens anew, and a GPU that stays lost is reported once", "[nvml][xid]") {
  Fake fake;
  auto watch = XidWatch::Start("GPU-fake", absl::Milliseconds(1));
  REQUIRE(watch->Status(absl::Seconds(60)).ok());
  fake.Lost();
  REQUIRE(Await([&] { return watch->Status().code() == absl::StatusCode::kUnavailable; }));
  CHECK_THAT(std::string(watch->Status().message()), Catch::Contains("GPU is lost"));
  const int calls = fake.Calls("handle");
  REQUIRE(Await([&] { return fake.Calls("handle") > calls + 2; }));
  fake.Lost(false);
  REQUIRE(Await([&] { return watch->Status().ok(); }));
  std::vector<XidEvent> events = watch->Take();
  REQUIRE(events.size() == 1);
  CHECK(events[0].xid == 79);
  fake.Xid(31);
  REQUIRE(watch->WaitForAny(absl::Seconds(60)));
  CHECK(watch->Take()[0].xid == 31);
}

TEST_CASE("A watch that waits to listen anew ends at once", "[nvml][xid]") {
  Fake fake;
  const auto begin = std::chrono::steady_clock::now();
  {
    auto watch = XidWatch::Start("GPU-other", absl::Hours(1));
    REQUIRE(Await([&] { return watch->Status().code() == absl::StatusCode::kUnavailable; }));
  }
  CHECK(Seconds(std::chrono::steady_clock::now() - begin).count() < 20);
}

TEST_CASE("Xids are the application's or the device's as NVIDIA has them, and unknown ones the device's", "[xid]") {
  for (int xid : {13, 25, 31, 32, 39, 40, 41, 43, 45, 60, 68, 69, 70, 71, 72, 75, 76, 77, 82, 85, 86, 88, 109}) {
    CAPTURE(xid);
    CHECK(MeaningOf(xid).blame == XidBlame::kApplication);
  }
  for (int xid : {46, 48, 62, 64, 74, 79, 80, 94, 95, 119, 120, 140, 143, 154, 158}) {
    CAPTURE(xid);
    CHECK(MeaningOf(xid).blame == XidBlame::kDevice);
  }
  for (int xid : {37, 38, 44, 63, 66, 67, 92}) CHECK(MeaningOf(xid).blame == XidBlame::kNotice);
  for (int xid : {0, -1, 999}) CHECK(MeaningOf(xid).blame == XidBlame::kDevice);
  CHECK(XidText(31) == "Xid 31 (GPU memory page fault)");
  // The table is searched by halves.
  int last = -1;
  for (const XidMeaning& meaning : XidTable()) {
    CHECK(meaning.xid > last);
    last = meaning.xid;
  }
}

}  // namespace
}  // namespace grove::device
