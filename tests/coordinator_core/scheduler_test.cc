#include "coordinator/scheduler/scheduler.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"

namespace grove::scheduler {
namespace {

constexpr absl::Duration kT0 = absl::Seconds(100);

v1::WorkerHello Hello(const std::string& id, int capacity, v1::DeviceKind device = v1::DEVICE_KIND_CPU) {
  v1::WorkerHello hello;
  hello.set_worker_id(id);
  hello.set_capacity(capacity);
  hello.mutable_device()->set_kind(device);
  return hello;
}

Work Item(const std::string& id, v1::DeviceKind device = v1::DEVICE_KIND_UNSPECIFIED) {
  Work work;
  work.id = id;
  work.job = id.substr(0, id.find('/'));
  work.device = device;
  return work;
}

v1::Lease LeaseOf(const std::string& work, int attempt) {
  v1::Lease lease;
  lease.set_work(work);
  lease.set_attempt(attempt);
  return lease;
}

v1::WorkerHeartbeat Beat(const std::vector<v1::Lease>& running, bool draining = false,
                         const std::string& state = "idle") {
  v1::WorkerHeartbeat heartbeat;
  for (const v1::Lease& lease : running) *heartbeat.add_running() = lease;
  heartbeat.set_draining(draining);
  heartbeat.set_slot_state(state);
  return heartbeat;
}

std::vector<std::string> Works(const std::vector<Grant>& grants) {
  std::vector<std::string> works;
  for (const Grant& grant : grants) works.push_back(grant.work);
  return works;
}

TEST_CASE("Slots go round the jobs and each job is served in order", "[scheduler]") {
  Scheduler scheduler{Options()};
  for (const char* id : {"a/k1", "a/k2", "a/k3", "b/k1", "c/k1", "c/k2"}) REQUIRE(scheduler.Add(Item(id), kT0));
  CHECK(!scheduler.Add(Item("a/k1"), kT0));
  scheduler.Connect(1, Hello("w", 4), kT0);
  CHECK(Works(scheduler.Match(kT0)) == std::vector<std::string>{"a/k1", "b/k1", "c/k1", "a/k2"});
  CHECK(scheduler.queued() == 2);
  CHECK(scheduler.leased() == 4);
  scheduler.Finish("a/k1", "w");
  scheduler.Finish("b/k1", "w");
  // Job a was served last, so c is next.
  CHECK(Works(scheduler.Match(kT0)) == std::vector<std::string>{"c/k2", "a/k3"});
}

TEST_CASE("What other work hangs on goes before what its job has waiting, and before no other job", "[scheduler]") {
  Scheduler scheduler{Options()};
  for (const char* id : {"a/k1", "a/k2", "b/k1", "b/k2"}) scheduler.Add(Item(id), kT0);
  Work urgent = Item("b/k0");
  urgent.front = true;
  scheduler.Add(urgent, kT0);
  scheduler.Connect(1, Hello("w", 5), kT0);
  CHECK(Works(scheduler.Match(kT0)) == std::vector<std::string>{"a/k1", "b/k0", "a/k2", "b/k1", "b/k2"});
}

TEST_CASE("Work goes to a worker whose device fits", "[scheduler]") {
  Scheduler scheduler{Options()};
  scheduler.Add(Item("a/k1", v1::DEVICE_KIND_CUDA), kT0);
  scheduler.Add(Item("a/k2", v1::DEVICE_KIND_CPU), kT0);
  scheduler.Connect(1, Hello("cpu", 4), kT0);
  auto grants = scheduler.Match(kT0);
  REQUIRE(grants.size() == 1);
  CHECK(grants[0].work == "a/k2");
  CHECK(scheduler.FittingCapacity(v1::DEVICE_KIND_CUDA, kT0) == 0);
  scheduler.Connect(2, Hello("gpu", 1, v1::DEVICE_KIND_CUDA), kT0);
  CHECK(Works(scheduler.Match(kT0)) == std::vector<std::string>{"a/k1"});
}

TEST_CASE("A lease ends exactly at its expiry and a heartbeat that names it moves that", "[scheduler]") {
  Scheduler scheduler{Options()};
  scheduler.Connect(1, Hello("w", 2), kT0);
  scheduler.Add(Item("a/k1"), kT0);
  scheduler.Add(Item("a/k2"), kT0);
  REQUIRE(scheduler.Match(kT0).size() == 2);
  scheduler.Heartbeat(1, Beat({LeaseOf("a/k1", 1)}), kT0 + absl::Seconds(10));
  CHECK(scheduler.NextDeadline(kT0 + absl::Seconds(10)) == kT0 + absl::Seconds(15));
  CHECK(scheduler.Expire(kT0 + absl::Seconds(15) - absl::Nanoseconds(1)).empty());
  auto losses = scheduler.Expire(kT0 + absl::Seconds(15));
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].work == "a/k2");
  CHECK(losses[0].expired);
  CHECK(!losses[0].given_up);
  CHECK(scheduler.Expire(kT0 + absl::Seconds(24)).empty());
  CHECK(scheduler.Expire(kT0 + absl::Seconds(25)).size() == 1);
}

TEST_CASE("An old token is stale once there is a newer one, and the newest stays good until then", "[scheduler]") {
  Scheduler scheduler{Options()};
  scheduler.Connect(1, Hello("slow", 1), kT0);
  scheduler.Add(Item("a/k1"), kT0);
  REQUIRE(scheduler.Match(kT0).size() == 1);
  absl::Duration now = kT0 + absl::Seconds(15);
  REQUIRE(scheduler.Expire(now).size() == 1);
  SECTION("a worker that is back in time takes it up again under the same token") {
    CHECK(scheduler.Holds("slow", LeaseOf("a/k1", 1)));
    CHECK(!scheduler.Holds("other", LeaseOf("a/k1", 1)));
    auto outcome = scheduler.Heartbeat(1, Beat({LeaseOf("a/k1", 1)}), now);
    CHECK(outcome.revoked.empty());
    REQUIRE(outcome.taken_up.size() == 1);
    CHECK(outcome.taken_up[0].attempt == 1);
    CHECK(scheduler.queued() == 0);
    CHECK(scheduler.LeasedOf("a") == 1);
  }
  SECTION("after somebody else got it the old token is revoked") {
    scheduler.Connect(2, Hello("fast", 1), now);
    now += absl::Seconds(1);
    auto grants = scheduler.Match(now);
    REQUIRE(grants.size() == 1);
    CHECK(grants[0].worker == "fast");
    CHECK(grants[0].attempt == 2);
    CHECK(!scheduler.Holds("slow", LeaseOf("a/k1", 1)));
    CHECK(!scheduler.Holds("slow", LeaseOf("a/k1", 2)));
    auto outcome = scheduler.Heartbeat(1, Beat({LeaseOf("a/k1", 1)}), now);
    CHECK(outcome.revoked.size() == 1);
    CHECK(outcome.taken_up.empty());
  }
}

TEST_CASE("A worker that comes back keeps what it restates and loses the rest", "[scheduler]") {
  Scheduler scheduler{Options()};
  scheduler.Connect(1, Hello("w", 3), kT0);
  for (const char* id : {"a/k1", "a/k2", "a/k3"}) scheduler.Add(Item(id), kT0);
  REQUIRE(scheduler.Match(kT0).size() == 3);
  v1::WorkerHello hello = Hello("w", 3);
  *hello.add_running() = LeaseOf("a/k1", 1);
  *hello.add_running() = LeaseOf("a/k9", 1);
  *hello.add_unacknowledged() = LeaseOf("a/k2", 1);
  auto outcome = scheduler.Connect(2, hello, kT0 + absl::Seconds(3));
  CHECK(outcome.replaced_session == 1);
  REQUIRE(outcome.revoked.size() == 1);
  CHECK(outcome.revoked[0].work() == "a/k9");
  REQUIRE(outcome.lost.size() == 1);
  CHECK(outcome.lost[0].work == "a/k3");
  CHECK(scheduler.LeasedOf("a") == 2);
  // What belongs to the old session no longer counts.
  scheduler.Disconnect(1, kT0 + absl::Seconds(4));
  CHECK(scheduler.FittingCapacity(v1::DEVICE_KIND_CPU, kT0 + absl::Seconds(4)) == 3);
}

TEST_CASE("A lease of the journal is honoured for one lease time after a restart", "[scheduler]") {
  Scheduler scheduler{Options()};
  Work work = Item("a/k1");
  work.attempts = 3;
  scheduler.AddLeased(work, "w", kT0);
  SECTION("the worker restates it") {
    v1::WorkerHello hello = Hello("w", 1);
    *hello.add_running() = LeaseOf("a/k1", 3);
    CHECK(scheduler.Connect(1, hello, kT0 + absl::Seconds(5)).lost.empty());
    CHECK(scheduler.Holds("w", LeaseOf("a/k1", 3)));
    scheduler.Add(Item("a/k2"), kT0);
    CHECK(scheduler.Match(kT0 + absl::Seconds(5)).empty());  // its one slot is taken
  }
  SECTION("nobody does") {
    CHECK(scheduler.Expire(kT0 + absl::Seconds(14)).empty());
    CHECK(scheduler.Expire(kT0 + absl::Seconds(15)).size() == 1);
    scheduler.Connect(1, Hello("v", 1), kT0 + absl::Seconds(30));
    auto grants = scheduler.Match(kT0 + absl::Seconds(30));
    REQUIRE(grants.size() == 1);
    CHECK(grants[0].attempt == 4);
  }
}

TEST_CASE("Work that failed for the machine's sake goes to another worker while there is one", "[scheduler]") {
  Scheduler scheduler{Options()};
  scheduler.Connect(1, Hello("bad", 1), kT0);
  scheduler.Add(Item("a/k1"), kT0);
  REQUIRE(scheduler.Match(kT0).size() == 1);
  absl::Duration now = kT0 + absl::Seconds(1);
  scheduler.Connect(2, Hello("good", 1), now);
  scheduler.Add(Item("b/k1"), now);
  REQUIRE(Works(scheduler.Match(now)) == std::vector<std::string>{"b/k1"});
  CHECK(!scheduler.Fail("bad", LeaseOf("a/k1", 1), "xid 79", now).given_up);
  now += absl::Seconds(1);
  CHECK(scheduler.Match(now).empty());  // waits for the good one, though the bad one is free
  scheduler.Finish("b/k1", "good");
  auto grants = scheduler.Match(now);
  REQUIRE(grants.size() == 1);
  CHECK(grants[0].worker == "good");
  // And back to the bad one when it is alone.
  scheduler.Fail("good", LeaseOf("a/k1", 2), "xid 80", now);
  scheduler.Disconnect(2, now);
  grants = scheduler.Match(now + absl::Seconds(20));
  REQUIRE(grants.size() == 0);  // not heard of since the start: nothing for a worker that may be dead
  scheduler.Heartbeat(1, Beat({}), now + absl::Seconds(20));
  grants = scheduler.Match(now + absl::Seconds(20));
  REQUIRE(grants.size() == 1);
  CHECK(grants[0].worker == "bad");
}

TEST_CASE("Poisonous work is given up after its attempts with all reasons", "[scheduler]") {
  Options options;
  options.max_attempts = 3;
  Scheduler scheduler{options};
  scheduler.Connect(1, Hello("w", 1), kT0);
  scheduler.Add(Item("a/k1"), kT0);
  absl::Duration now = kT0;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    now += absl::Seconds(40);
    scheduler.Heartbeat(1, Beat({}), now);
    auto grants = scheduler.Match(now);
    REQUIRE(grants.size() == 1);
    CHECK(grants[0].attempt == attempt);
    Loss loss = scheduler.Fail("w", LeaseOf("a/k1", attempt), absl::StrCat("reason ", attempt), now);
    CHECK(loss.given_up == (attempt == 3));
    if (attempt == 3) CHECK(loss.reasons == std::vector<std::string>{"reason 1", "reason 2", "reason 3"});
  }
  CHECK(!scheduler.Has("a/k1"));
  CHECK(scheduler.NextDeadline(now) == absl::InfiniteDuration());
}

TEST_CASE("One broken worker does not use up the attempts of a whole queue", "[scheduler]") {
  Scheduler scheduler{Options()};
  scheduler.Connect(1, Hello("broken", 1), kT0);
  for (int i = 0; i < 100; ++i) scheduler.Add(Item(absl::StrCat("a/k", i)), kT0);
  int failures = 0;
  for (absl::Duration now = kT0; now < kT0 + absl::Seconds(60); now += absl::Milliseconds(100)) {
    scheduler.Heartbeat(1, Beat({}), now);
    for (const Grant& grant : scheduler.Match(now)) {
      ++failures;
      CHECK(!scheduler.Fail(grant.worker, LeaseOf(grant.work, grant.attempt), "no driver", now).given_up);
    }
  }
  CHECK(failures <= 8);  // 0.5 + 1 + 2 + 4 + 8 + 16 + 30 s
}

TEST_CASE("Nor those of a short one", "[scheduler]") {
  Scheduler scheduler{Options()};
  scheduler.Connect(1, Hello("broken", 1), kT0);
  for (int i = 0; i < 5; ++i) scheduler.Add(Item(absl::StrCat("a/k", i)), kT0);
  for (absl::Duration now = kT0; now < kT0 + absl::Seconds(60); now += absl::Milliseconds(100)) {
    scheduler.Heartbeat(1, Beat({}), now);
    for (const Grant& grant : scheduler.Match(now)) {
      CHECK(!scheduler.Fail(grant.worker, LeaseOf(grant.work, grant.attempt), "no driver", now).given_up);
    }
  }
}

TEST_CASE("Work that fails by itself does not keep its worker from others", "[scheduler]") {
  Scheduler scheduler{Options()};
  scheduler.Connect(1, Hello("w", 1), kT0);
  scheduler.Add(Item("a/k1"), kT0);
  absl::Duration now = kT0;
  for (int attempt = 1; attempt <= 4; ++attempt) {
    now += absl::Seconds(40);
    scheduler.Heartbeat(1, Beat({}), now);
    REQUIRE(scheduler.Match(now).size() == 1);
    scheduler.Fail("w", LeaseOf("a/k1", attempt), "the problem's file cannot be looked at", now);
  }
  // Once it waited half a second for what may have been its own fault.
  scheduler.Add(Item("b/k1"), now);
  CHECK(Works(scheduler.Match(now + absl::Milliseconds(1))) == std::vector<std::string>{"b/k1"});
}

TEST_CASE("A draining, quarantined or silent worker gets nothing", "[scheduler]") {
  Scheduler scheduler{Options()};
  scheduler.Connect(1, Hello("w", 1), kT0);
  scheduler.Add(Item("a/k1"), kT0);
  scheduler.Heartbeat(1, Beat({}, /*draining=*/true), kT0);
  CHECK(scheduler.Match(kT0).empty());
  scheduler.Heartbeat(1, Beat({}, false, "quarantined"), kT0);
  CHECK(scheduler.Match(kT0).empty());
  scheduler.Heartbeat(1, Beat({}), kT0);
  CHECK(scheduler.Match(kT0 + absl::Seconds(15)).empty());
  CHECK(scheduler.Match(kT0 + absl::Seconds(14)).size() == 1);
}

TEST_CASE("A job that is removed leaves nothing behind", "[scheduler]") {
  Scheduler scheduler{Options()};
  scheduler.Connect(1, Hello("w", 2), kT0);
  for (int i = 0; i < 50; ++i) scheduler.Add(Item(absl::StrCat("a/k", i)), kT0);
  scheduler.Add(Item("b/k1"), kT0);
  auto grants = scheduler.Match(kT0);
  REQUIRE(grants.size() == 2);
  scheduler.Fail("w", LeaseOf("a/k0", 1), "waits for its pause", kT0);
  auto held = scheduler.RemoveJob("a");
  CHECK(held.empty());
  CHECK(scheduler.QueuedOf("a") == 0);
  CHECK(scheduler.queued() == 0);
  CHECK(scheduler.leased() == 1);
  CHECK(scheduler.RemoveJob("b").size() == 1);
  CHECK(scheduler.leased() == 0);
  CHECK(scheduler.NextDeadline(kT0 + absl::Hours(1)) == absl::InfiniteDuration());
}

TEST_CASE("Under random schedules no token is given twice and no work is lost", "[scheduler]") {
  const unsigned seed = GENERATE(range(1u, 41u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto roll = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Options options;
  options.max_attempts = 4;
  Scheduler scheduler{options};
  absl::Duration now = kT0;
  struct Fake {
    uint64_t session = 0;
    std::vector<v1::Lease> running;
  };
  std::map<std::string, Fake> workers;
  std::map<std::string, int> tokens;
  std::set<std::string> open, ended;
  uint64_t sessions = 0;
  int made = 0;
  const auto lost = [&](const Loss& loss) {
    if (!loss.given_up) return;
    CHECK(tokens[loss.work] == 4);
    REQUIRE(open.erase(loss.work) == 1);
    ended.insert(loss.work);
  };
  for (int step = 0; step < 600; ++step) {
    Fake& worker = workers[absl::StrCat("w", roll(3))];
    const std::string name = [&] {
      for (auto& [id, one] : workers) {
        if (&one == &worker) return id;
      }
      return std::string();
    }();
    switch (roll(8)) {
      case 0: {
        const std::string id = absl::StrCat("j", roll(3), "/k", ++made);
        scheduler.Add(Item(id), now);
        open.insert(id);
        break;
      }
      case 1: {
        v1::WorkerHello hello = Hello(name, 2);
        if (roll(3) == 0) worker.running.clear();
        for (const v1::Lease& lease : worker.running) *hello.add_running() = lease;
        worker.session = ++sessions;
        auto outcome = scheduler.Connect(worker.session, hello, now);
        for (const Loss& loss : outcome.lost) lost(loss);
        for (const v1::Lease& revoked : outcome.revoked) {
          std::erase_if(worker.running, [&](const v1::Lease& one) { return one.work() == revoked.work(); });
        }
        break;
      }
      case 2:
        if (worker.session != 0) scheduler.Disconnect(worker.session, now);
        worker.session = 0;
        break;
      case 3:
        if (worker.session != 0) scheduler.Heartbeat(worker.session, Beat(worker.running), now);
        break;
      case 4:
        now += absl::Milliseconds(roll(9000));
        for (const Loss& loss : scheduler.Expire(now)) lost(loss);
        break;
      default: {
        if (worker.running.empty()) break;
        const size_t which = static_cast<size_t>(roll(static_cast<int>(worker.running.size())));
        const v1::Lease lease = worker.running[which];
        worker.running.erase(worker.running.begin() + static_cast<std::ptrdiff_t>(which));
        const bool newest = tokens[lease.work()] == lease.attempt() && open.contains(lease.work());
        CHECK(scheduler.Holds(name, lease) == newest);
        if (!newest) break;
        if (roll(4) == 0) {
          lost(scheduler.Fail(name, lease, "bad luck", now));
        } else {
          scheduler.Finish(lease.work(), name);
          open.erase(lease.work());
          ended.insert(lease.work());
        }
      }
    }
    for (const Grant& grant : scheduler.Match(now)) {
      CHECK(open.contains(grant.work));
      CHECK(grant.attempt == ++tokens[grant.work]);
      REQUIRE(workers[grant.worker].session == grant.session);
      workers[grant.worker].running.push_back(LeaseOf(grant.work, grant.attempt));
    }
    REQUIRE(scheduler.queued() + scheduler.leased() == static_cast<int64_t>(open.size()));
    for (const std::string& id : open) REQUIRE(scheduler.Has(id));
    for (const WorkerView& view : scheduler.Workers()) CHECK(view.running.size() <= 2 + 0u);
  }
}

}  // namespace
}  // namespace grove::scheduler
