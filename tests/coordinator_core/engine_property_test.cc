// Random schedules of everything that can happen to a coordinator, with what must hold after each of them.
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "tests/coordinator_core/harness.h"

namespace grove::testing {
namespace {

// A worker with a spool, as the real one has: results stay until they are acknowledged.
struct SimWorker {
  std::string id;
  std::unique_ptr<Worker> wire;  // null = not connected
  std::map<std::string, v1::Lease> running;
  std::map<std::string, v1::WorkResult> spool;
};

struct Simulation {
  explicit Simulation(unsigned seed) : random(seed) {
    h.options.max_attempts = seed % 2 == 0 ? 1000 : 3;
    h.engine.reset();
    h.Open();
    for (int i = 0; i < 3; ++i) workers.push_back(SimWorker{absl::StrCat("w", i), nullptr, {}, {}});
  }
  int Roll(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

  void Connect(SimWorker& worker) {
    auto wire = std::make_unique<Worker>(h, worker.id, 2);
    for (const auto& [key, lease] : worker.running) *wire->hello.add_running() = lease;
    for (const auto& [key, result] : worker.spool) *wire->hello.add_unacknowledged() = result.lease();
    wire->link = std::make_shared<FakeWorkerLink>();
    wire->session = h.engine->WorkerConnected(wire->hello, wire->link);
    worker.wire = std::move(wire);
    for (const auto& [key, result] : worker.spool) Tell(worker, result);
  }
  void Disconnect(SimWorker& worker) {
    if (worker.wire == nullptr) return;
    worker.wire->Close();
    worker.wire.reset();
  }
  void Tell(SimWorker& worker, const v1::WorkResult& result) {
    if (worker.wire == nullptr) return;
    v1::WorkerMessage message;
    *message.mutable_result() = result;
    worker.wire->Say(std::move(message));
  }
  void Read(SimWorker& worker) {
    if (worker.wire == nullptr) return;
    while (auto message = worker.wire->link->TryNext()) {
      if (message->has_assignment()) {
        const v1::Lease& lease = message->assignment().lease();
        // No token is ever given twice.
        CHECK(tokens[lease.work()].insert(lease.attempt()).second);
        worker.running[Key(lease)] = lease;
      } else if (message->has_ack()) {
        const std::string key = Key(message->ack().lease());
        auto it = worker.spool.find(key);
        if (it != worker.spool.end() && !message->ack().stale() && it->second.has_evaluation()) accepted.insert(key);
        worker.spool.erase(key);
      } else if (message->has_revoke()) {
        worker.running.erase(Key(message->revoke().lease()));
      } else if (message->has_welcome()) {
        for (const v1::Lease& lease : message->welcome().revoked()) worker.running.erase(Key(lease));
      }
    }
  }
  void Finish(SimWorker& worker) {
    if (worker.running.empty()) return;
    auto it = std::next(worker.running.begin(), Roll(static_cast<int>(worker.running.size())));
    v1::WorkResult result;
    *result.mutable_lease() = it->second;
    if (Roll(6) == 0) {
      result.set_infrastructure_failure("bad luck");
    } else {
      *result.mutable_evaluation() = Correct(1 + Roll(100) / 10.0);
      result.mutable_evaluation()->set_reason(absl::StrCat(it->first, " by ", worker.id));
    }
    worker.spool[it->first] = result;
    worker.running.erase(it);
    Tell(worker, result);
  }
  void Submit() {
    std::vector<std::string> sources;
    for (int i = 1 + Roll(4); i > 0; --i) sources.push_back(absl::StrCat("int x", Roll(5), ";"));
    const std::string key = absl::StrCat("job", Roll(12));
    auto known = submitted.find(key);
    if (known != submitted.end()) sources = known->second;
    submitted[key] = sources;
    Submit(key, sources);
  }
  void Submit(const std::string& key, const std::vector<std::string>& sources) {
    auto response = h.Submit(EvalJob(key, sources));
    if (!response.ok()) {
      CHECK(absl::IsUnavailable(response.status()));
      return;
    }
    auto [it, added] = acknowledged.emplace(key, response->job().id());
    CHECK(it->second == response->job().id());  // one key, one job, for ever
    if (added) sizes[response->job().id()] = sources.size();
  }
  void Crash() {
    for (SimWorker& worker : workers) worker.wire.reset();
    h.engine.reset();
    h.faults->mode = StoreFaults::Mode::kNone;
    h.Open();
  }
  void Beat(SimWorker& worker) {
    if (worker.wire == nullptr) return;
    std::vector<v1::Lease> leases;
    for (const auto& [key, lease] : worker.running) leases.push_back(lease);
    worker.wire->Beat(leases);
  }
  void Step() {
    SimWorker& worker = workers[static_cast<size_t>(Roll(3))];
    switch (Roll(14)) {
      case 0:
        Submit();
        break;
      case 1:
        Connect(worker);
        break;
      case 2:
        Disconnect(worker);
        break;
      case 3:  // the worker dies: what ran is gone, the spool is not
        Disconnect(worker);
        worker.running.clear();
        break;
      case 4:
        h.clock.Advance(absl::Milliseconds(Roll(9000)));
        break;
      case 5:
        if (Roll(3) == 0) Crash();
        break;
      case 6:
        h.faults->mode = static_cast<StoreFaults::Mode>(Roll(3));
        break;
      case 7:
        h.faults->mode = StoreFaults::Mode::kNone;
        h.clock.Advance(absl::Seconds(6));
        break;
      case 8:  // said again
        for (const auto& [key, result] : worker.spool) Tell(worker, result);
        break;
      case 9:
      case 10:
        Beat(worker);
        break;
      default:
        Finish(worker);
    }
    h.Settle();
    for (SimWorker& one : workers) Read(one);
  }
  // Everything works again: all that was acknowledged comes to its end.
  void ComeToRest() {
    h.faults->mode = StoreFaults::Mode::kNone;
    h.Advance(absl::Seconds(6));
    // Submissions whose answer was an error are made again, as a client does: some of them are known already.
    for (const auto& [key, sources] : submitted) Submit(key, sources);
    for (int round = 0; round < 2000; ++round) {
      h.clock.Advance(absl::Seconds(2));
      for (SimWorker& worker : workers) {
        if (worker.wire == nullptr || worker.wire->link->closed().has_value()) Connect(worker);
        Beat(worker);
        while (!worker.running.empty()) Finish(worker);
      }
      h.Settle();
      for (SimWorker& worker : workers) Read(worker);
      bool all = true;
      for (const auto& [key, id] : acknowledged) all = all && h.Get(id)->state() == v1::JOB_STATE_DONE;
      if (all) return;
    }
    FAIL("some job never ended");
  }
  static std::string Key(const v1::Lease& lease) { return absl::StrCat(lease.work(), "#", lease.attempt()); }

  std::mt19937 random;
  Harness h;
  std::vector<SimWorker> workers;
  std::map<std::string, std::vector<std::string>> submitted;
  std::map<std::string, std::string> acknowledged;  // key -> job
  std::map<std::string, size_t> sizes;
  std::map<std::string, std::set<int>> tokens;
  std::set<std::string> accepted;  // evaluations acknowledged as stored
};

std::string Picture(Harness& h, const std::string& id) {
  std::string text = h.Get(id)->DebugString();
  for (const v1::TreeNode& node : h.Tree(id)) text += node.DebugString();
  return text;
}

TEST_CASE("Whatever happens, each acknowledged evaluation ends in one verdict of its newest token", "[property]") {
  const unsigned seed = GENERATE(range(1u, 25u));
  CAPTURE(seed);
  Simulation sim(seed);
  for (int step = 0; step < 120; ++step) sim.Step();
  sim.ComeToRest();

  std::map<std::string, std::string> pictures;
  std::set<std::string> stored;
  for (const auto& [key, id] : sim.acknowledged) {
    CAPTURE(id);
    pictures[id] = Picture(sim.h, id);
    CHECK(sim.h.Get(id)->counts().finished() == static_cast<int>(sim.sizes[id]));
    CHECK(sim.h.Get(id)->counts().queued() == 0);
    CHECK(sim.h.Get(id)->counts().running() == 0);
    std::map<std::string, int> finished, newest;
    uint64_t seq = 0;
    for (const v1::Event& event : sim.h.Watch(id)) {
      CHECK(event.seq() > seq);
      seq = event.seq();
      if (event.has_evaluation_leased()) {
        CHECK(!finished.contains(event.evaluation_leased().kernel()));
        newest[event.evaluation_leased().kernel()] = event.evaluation_leased().attempt();
      }
      if (!event.has_evaluation_finished()) continue;
      const v1::EvaluationFinished& end = event.evaluation_finished();
      ++finished[end.kernel()];
      if (end.attempt() == 0) continue;  // shared with an equal kernel
      CHECK(end.attempt() == newest[end.kernel()]);
      const std::string lease = absl::StrCat(end.kernel(), "#", end.attempt());
      if (end.result().verdict() == v1::VERDICT_CORRECT) {
        CHECK(absl::StartsWith(end.result().reason(), lease + " by "));
        stored.insert(lease);
      } else {
        CHECK(end.result().verdict() == v1::VERDICT_UNMEASURABLE);
      }
    }
    CHECK(finished.size() == sim.sizes[id]);
    for (const auto& [kernel, count] : finished) CHECK(count == 1);
  }
  // What was acknowledged as stored is what counts.
  for (const std::string& lease : sim.accepted) CHECK(stored.contains(lease));
  // The journal has no gap.
  sim.h.engine.reset();
  {
    auto store = store::OpenSqliteStore(sim.h.dir.path());
    const uint64_t last = *(*store)->LastSeq();
    for (uint64_t seq = 1; seq <= last; ++seq) REQUIRE((*store)->ReadEvent(seq).ok());
  }
  // And what is rebuilt from it is what was there.
  sim.h.Open();
  for (const auto& [id, picture] : pictures) CHECK(Picture(sim.h, id) == picture);
}

TEST_CASE("The state rebuilt from the journal is the state that was live", "[property]") {
  const unsigned seed = GENERATE(range(100u, 112u));
  CAPTURE(seed);
  Simulation sim(seed);
  for (int step = 0; step < 80; ++step) {
    sim.Step();
    if (step % 20 != 19) continue;
    // Let every commit through, then look, die, and look again.
    sim.h.faults->mode = StoreFaults::Mode::kNone;
    sim.h.Advance(absl::Seconds(6));
    for (SimWorker& worker : sim.workers) sim.Read(worker);
    std::map<std::string, std::string> pictures;
    for (const auto& [key, id] : sim.acknowledged) pictures[id] = Picture(sim.h, id);
    sim.Crash();
    for (const auto& [id, picture] : pictures) CHECK(Picture(sim.h, id) == picture);
  }
}

}  // namespace
}  // namespace grove::testing
