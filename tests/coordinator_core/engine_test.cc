#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "coordinator/engine/job_tree.h"
#include "coordinator/engine/result_index.h"
#include "tests/coordinator_core/harness.h"

namespace grove::testing {
namespace {

std::string Submitted(Harness& h, const std::string& key, const std::vector<std::string>& sources) {
  auto response = h.Submit(EvalJob(key, sources));
  INFO(response.status().ToString());
  REQUIRE(response.ok());
  return response->job().id();
}

TEST_CASE("An evaluation goes from submission to verdict", "[engine]") {
  Harness h;
  Worker worker(h, "w1");
  worker.Connect();
  CHECK(worker.welcome.lease_seconds() == 15);
  const std::string id = Submitted(h, "a", {"int one;"});
  CHECK(absl::StartsWith(id, "j-"));
  const v1::Assignment assignment = worker.NextAssignment();
  CHECK(assignment.lease().work() == id + "/k1");
  CHECK(assignment.lease().attempt() == 1);
  CHECK(assignment.evaluate().candidate().source() == "int one;");
  CHECK(assignment.evaluate().problem().source() == "class Model: pass\n");
  CHECK(h.Get(id)->counts().running() == 1);

  v1::EvaluationResult result = Correct(3);
  result.mutable_build()->set_log(std::string(100'000, 'x'));
  worker.Finish(assignment.lease(), result);
  CHECK(!worker.NextAck().stale());
  h.Settle();
  auto job = h.Get(id);
  CHECK(job->state() == v1::JOB_STATE_DONE);
  CHECK(job->best_node() == id + "/k1");
  CHECK(job->best_speedup() == 3);
  CHECK(job->counts().finished() == 1);
  CHECK(job->counts().verdicts().at(v1::VERDICT_CORRECT) == 1);
  CHECK(job->spec().eval().problem().source() == "class Model: pass\n");
  auto kernel = h.Kernel(id + "/k1");
  REQUIRE(kernel.ok());
  CHECK(kernel->state() == v1::NODE_STATE_DONE);
  CHECK(kernel->candidate().source() == "int one;");
  CHECK(kernel->result().build().log().size() == 100'000);
  CHECK(kernel->result().worker() == "w1");
  const auto tree = h.Tree(id);
  REQUIRE(tree.size() == 1);
  CHECK(tree[0].kernel().candidate().source().empty());
  CHECK(tree[0].kernel().result().build().log().empty());
  const auto events = h.Watch(id);
  REQUIRE(events.size() == 5);
  CHECK(events[0].has_job_created());
  CHECK(events[0].job_created().spec().eval().problem().source().empty());
  CHECK(events[1].has_kernel_written());
  CHECK(events[2].has_evaluation_leased());
  CHECK(events[3].has_evaluation_finished());
  CHECK(events[3].evaluation_finished().result().build().log().size() <= 1024);
  CHECK(events[4].job_state().state() == v1::JOB_STATE_DONE);
}

TEST_CASE("The same idempotency key gives the same job, also after a restart", "[engine]") {
  Harness h;
  const std::string id = Submitted(h, "a", {"int one;"});
  auto again = h.Submit(EvalJob("a", {"int one;"}));
  CHECK(again->existed());
  CHECK(again->job().id() == id);
  h.Restart();
  again = h.Submit(EvalJob("a", {"int one;"}));
  CHECK(again->existed());
  CHECK(again->job().id() == id);
  CHECK(Submitted(h, "b", {"int one;"}) != id);
}

TEST_CASE("The same idempotency key for other work is refused, also after a restart", "[engine]") {
  Harness h;
  const std::string id = Submitted(h, "a", {"int one;", "int two;", "int  one;"});
  v1::SubmitJobRequest other_options = EvalJob("a", {"int one;", "int two;", "int  one;"});
  other_options.mutable_spec()->mutable_eval()->mutable_options()->set_trials(7);
  v1::SubmitJobRequest other_problem = EvalJob("a", {"int one;", "int two;", "int  one;"});
  other_problem.mutable_spec()->mutable_eval()->mutable_problem()->mutable_source()->append("\n# changed\n");
  for (int round = 0; round < 2; ++round) {
    for (const v1::SubmitJobRequest& other :
         {EvalJob("a", {"int one;", "int three;", "int  one;"}), EvalJob("a", {"int two;", "int one;", "int two;"}),
          EvalJob("a", {"int one;", "int two;"}), other_options, other_problem}) {
      const absl::Status refused = h.Submit(other).status();
      CHECK(absl::IsFailedPrecondition(refused));
      CHECK(absl::StrContains(refused.message(), id));
    }
    CHECK(h.Submit(EvalJob("a", {"int one;", "int two;", "int  one;"}))->job().id() == id);
    h.Restart();
  }
}

TEST_CASE("A bad submission is refused and leaves nothing behind", "[engine]") {
  Harness h;
  CHECK(absl::IsInvalidArgument(h.Submit(EvalJob("a", {""})).status()));
  v1::ListJobsRequest request;
  CHECK(Wait<v1::ListJobsResponse>([&](auto reply) { h.engine->ListJobs(request, reply); })->jobs().empty());
}

TEST_CASE("Jobs are listed newest first and found by a unique prefix", "[engine]") {
  Harness h;
  const std::string first = Submitted(h, "a", {"int one;"});
  const std::string second = Submitted(h, "b", {"int one;"});
  v1::ListJobsRequest request;
  auto jobs = Wait<v1::ListJobsResponse>([&](auto reply) { h.engine->ListJobs(request, reply); });
  REQUIRE(jobs->jobs_size() == 2);
  CHECK(jobs->jobs(0).id() == second);
  CHECK(jobs->jobs(0).spec().eval().problem().source().empty());
  request.set_limit(1);
  CHECK(Wait<v1::ListJobsResponse>([&](auto reply) { h.engine->ListJobs(request, reply); })->jobs_size() == 1);
  CHECK(h.Get(first.substr(0, 8))->id() == first);
  CHECK(absl::IsNotFound(h.Get("j-").status()));
  CHECK(absl::IsNotFound(h.Get("j-zzzzzzzzz").status()));
  CHECK(absl::IsNotFound(h.Kernel(first + "/k2").status()));
  CHECK(absl::IsNotFound(h.Kernel(first + "/k01").status()));
  CHECK(absl::IsInvalidArgument(h.Kernel("nonsense").status()));
}

TEST_CASE("Sources equal byte for byte are run once and share the verdict", "[engine]") {
  Harness h;
  Worker worker(h, "w1", 8);
  // The second is another program: `__LINE__` would be 2 there.
  const std::string id = Submitted(h, "a", {"int one;", "\nint one;", "int two;", "int one;"});
  worker.Connect();
  const auto a = worker.NextAssignment();
  const auto b = worker.NextAssignment();
  const auto c = worker.NextAssignment();
  CHECK(a.lease().work() == id + "/k1");
  CHECK(b.lease().work() == id + "/k2");
  CHECK(c.lease().work() == id + "/k3");
  worker.Finish(a.lease(), Correct(2));
  worker.Finish(b.lease(), Bad(v1::VERDICT_WRONG));
  worker.Finish(c.lease(), Bad(v1::VERDICT_WRONG));
  for (int i = 0; i < 3; ++i) worker.NextAck();
  h.Settle();
  CHECK(!worker.link->TryNext().has_value());
  auto job = h.Get(id);
  CHECK(job->state() == v1::JOB_STATE_DONE);
  CHECK(job->counts().finished() == 4);
  CHECK(job->counts().correct() == 2);
  CHECK(job->best_node() == id + "/k1");
  CHECK(h.Kernel(id + "/k4")->duplicate_of() == id + "/k1");
  CHECK(h.Kernel(id + "/k4")->result().timing().baselines(0).speedup() == 2);
}

TEST_CASE("Build flags and format make another program of the same source", "[engine]") {
  v1::Candidate one;
  one.set_format(v1::CANDIDATE_FORMAT_CPP);
  one.set_source("int one;");
  v1::Candidate other = one;
  CHECK(coordinator::ProgramSha256(one) == coordinator::ProgramSha256(other));
  other.add_build_flags("-O1");
  CHECK(coordinator::ProgramSha256(one) != coordinator::ProgramSha256(other));
  other = one;
  other.set_format(v1::CANDIDATE_FORMAT_CUDA);
  CHECK(coordinator::ProgramSha256(one) != coordinator::ProgramSha256(other));
}

TEST_CASE("A restart gives back every queued evaluation and keeps the lease of a worker that returns", "[engine]") {
  Harness h;
  auto worker = std::make_unique<Worker>(h, "w1", 1);
  const std::string id = Submitted(h, "a", {"int one;", "int two;"});
  worker->Connect();
  const auto first = worker->NextAssignment();
  h.Restart();
  CHECK(h.Get(id)->counts().running() == 1);
  CHECK(h.Get(id)->counts().queued() == 1);
  Worker again(h, "w1", 1);
  *again.hello.add_running() = first.lease();
  again.Connect();
  CHECK(again.welcome.revoked_size() == 0);
  again.Finish(first.lease(), Correct(2));
  CHECK(!again.NextAck().stale());
  const auto second = again.NextAssignment();
  CHECK(second.lease().work() == id + "/k2");
  CHECK(second.lease().attempt() == 1);
  again.Finish(second.lease(), Correct(4));
  again.NextAck();
  h.Settle();
  CHECK(h.Get(id)->state() == v1::JOB_STATE_DONE);
  CHECK(h.Get(id)->best_speedup() == 4);
}

TEST_CASE("After a restart a lease that nobody restates is given to another worker under a newer token", "[engine]") {
  Harness h;
  auto gone = std::make_unique<Worker>(h, "gone", 1);
  const std::string id = Submitted(h, "a", {"int one;"});
  gone->Connect();
  const auto lease = gone->NextAssignment().lease();
  h.Restart();
  Worker other(h, "other", 1);
  other.Connect();
  h.Advance(absl::Seconds(14));
  CHECK(!other.link->TryNext().has_value());
  other.Beat({});
  h.Advance(absl::Seconds(2));  // the lease is over, the work waits half a second
  other.Beat({});
  h.Advance(absl::Seconds(1));
  const auto second = other.NextAssignment();
  CHECK(second.lease().attempt() == 2);
  // The lost one returns with its result: too late.
  Worker back(h, "gone", 1);
  *back.hello.add_unacknowledged() = lease;
  back.Connect();
  back.Finish(lease, Correct(9));
  CHECK(back.NextAck().stale());
  other.Finish(second.lease(), Correct(2));
  CHECK(!other.NextAck().stale());
  // And once more, after the verdict: an answer to a question that is closed. The right one is known to be stored.
  other.Finish(second.lease(), Correct(2));
  CHECK(other.NextAck().stale());  // the job has ended meanwhile: nothing counts any more
  h.Settle();
  CHECK(h.Get(id)->best_speedup() == 2);
  CHECK(h.Get(id)->counts().finished() == 1);
  CHECK(h.Stats().stale_results_total >= 1);
  CHECK(h.Stats().leases_expired_total == 1);
}

TEST_CASE("A result told twice is acknowledged twice and counted once", "[engine]") {
  Harness h;
  Worker worker(h, "w1", 1);
  const std::string id = Submitted(h, "a", {"int one;", "int two;"});
  worker.Connect();
  const auto lease = worker.NextAssignment().lease();
  worker.Finish(lease, Correct(2));
  worker.Finish(lease, Correct(2));
  CHECK(!worker.NextAck().stale());
  CHECK(!worker.NextAck().stale());
  h.Settle();
  CHECK(h.Get(id)->counts().finished() == 1);
}

TEST_CASE("An evaluation that no worker can finish ends unmeasurable with the reasons", "[engine]") {
  Harness h;
  Worker worker(h, "w1", 1);
  const std::string id = Submitted(h, "a", {"int poison;"});
  worker.Connect();
  for (int attempt = 1; attempt <= 5; ++attempt) {
    const auto lease = worker.NextAssignment().lease();
    CHECK(lease.attempt() == attempt);
    worker.Fail(lease, absl::StrCat("gpu fell off ", attempt));
    CHECK(!worker.NextAck().stale());
    h.Settle();
    worker.Beat({});
    h.Advance(absl::Seconds(10));
    worker.Beat({});
    h.Advance(absl::Seconds(10));
    worker.Beat({});
    h.Settle();
  }
  h.Settle();
  CHECK(h.Get(id)->state() == v1::JOB_STATE_DONE);
  auto kernel = h.Kernel(id + "/k1");
  CHECK(kernel->result().verdict() == v1::VERDICT_UNMEASURABLE);
  CHECK(absl::StrContains(kernel->result().reason(), "gpu fell off 1"));
  CHECK(absl::StrContains(kernel->result().reason(), "gpu fell off 5"));
}

TEST_CASE("A problem that is invalid fails the job with what the judge says", "[engine]") {
  Harness h;
  Worker worker(h, "w1", 1);
  const std::string id = Submitted(h, "a", {"int one;", "int two;"});
  worker.Connect();
  v1::WorkerMessage message;
  *message.mutable_result()->mutable_lease() = worker.NextAssignment().lease();
  message.mutable_result()->set_problem_error("line 3: no class Model; add one");
  worker.Say(message);
  CHECK(!worker.NextAck().stale());
  h.Settle();
  auto job = h.Get(id);
  CHECK(job->state() == v1::JOB_STATE_FAILED);
  CHECK(absl::StrContains(job->state_reason(), "no class Model"));
  CHECK(job->counts().queued() == 0);
  CHECK(h.Tree(id)[1].kernel().state() == v1::NODE_STATE_ABANDONED);
}

TEST_CASE("Cancelling revokes what runs, and resuming runs what had not finished", "[engine]") {
  Harness h;
  Worker worker(h, "w1", 1);
  const std::string id = Submitted(h, "a", {"int one;", "int two;"});
  worker.Connect();
  const auto first = worker.NextAssignment().lease();
  worker.Finish(first, Correct(2));
  worker.NextAck();
  const auto second = worker.NextAssignment().lease();
  auto cancelled = h.Cancel(id);
  REQUIRE(cancelled.ok());
  CHECK(cancelled->state() == v1::JOB_STATE_CANCELLED);
  CHECK(h.Cancel(id)->state() == v1::JOB_STATE_CANCELLED);
  auto revoke = worker.link->Next();
  REQUIRE(revoke->has_revoke());
  CHECK(revoke->revoke().lease().work() == second.work());
  worker.Finish(second, Correct(9));
  CHECK(worker.NextAck().stale());
  h.Restart();
  CHECK(h.Get(id)->state() == v1::JOB_STATE_CANCELLED);
  auto resumed = h.Resume(id);
  REQUIRE(resumed.ok());
  CHECK(resumed->state() == v1::JOB_STATE_RUNNING);
  Worker again(h, "w1", 1);
  again.Connect();
  const auto third = again.NextAssignment().lease();
  CHECK(third.work() == second.work());
  CHECK(third.attempt() == 2);
  again.Finish(third, Correct(3));
  again.NextAck();
  h.Settle();
  CHECK(h.Get(id)->state() == v1::JOB_STATE_DONE);
  CHECK(h.Get(id)->best_speedup() == 3);
  CHECK(absl::IsFailedPrecondition(h.Resume(id).status()));
  CHECK(absl::IsFailedPrecondition(h.Cancel(id).status()));
}

TEST_CASE("A watcher gets every event once, waits for new ones, and hears the end", "[engine]") {
  Harness h;
  const std::string id = Submitted(h, "a", {"int one;"});
  auto batch = Wait<coordinator::EventBatch>([&](auto reply) { h.engine->NextEvents(id, 0, 0, 100, reply); });
  REQUIRE(batch->events.size() == 2);
  CHECK(!batch->ended);
  std::promise<absl::StatusOr<coordinator::EventBatch>> next;
  auto future = next.get_future();
  h.engine->NextEvents(id, batch->next_after_seq, 0, 100, [&](auto value) { next.set_value(std::move(value)); });
  h.Settle();
  CHECK(future.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  Worker worker(h, "w1", 1);
  worker.Connect();
  const auto lease = worker.NextAssignment().lease();
  auto leased = future.get();
  REQUIRE(leased->events.size() == 1);
  CHECK(leased->events[0].has_evaluation_leased());
  v1::WorkerMessage message;
  *message.mutable_progress()->mutable_lease() = lease;
  message.mutable_progress()->set_stage("check");
  worker.Say(message);
  auto progress = Wait<coordinator::EventBatch>(
      [&](auto reply) { h.engine->NextEvents(id, leased->next_after_seq, 0, 100, reply); });
  REQUIRE(progress->events.size() == 1);
  CHECK(progress->events[0].progress().stage() == "check");
  CHECK(progress->events[0].seq() == 0);
  // Without a progress cursor there is nothing new.
  std::promise<absl::StatusOr<coordinator::EventBatch>> cancelled;
  auto cancelled_future = cancelled.get_future();
  const uint64_t ticket = h.engine->NextEvents(id, leased->next_after_seq, -1, 100,
                                               [&](auto value) { cancelled.set_value(std::move(value)); });
  h.engine->CancelWait(ticket);
  CHECK(absl::IsCancelled(cancelled_future.get().status()));
  worker.Finish(lease, Correct(2));
  worker.NextAck();
  h.Settle();
  auto last = Wait<coordinator::EventBatch>(
      [&](auto reply) { h.engine->NextEvents(id, leased->next_after_seq, progress->next_progress, 100, reply); });
  CHECK(last->ended);
  CHECK(last->events.size() == 2);
  auto after = Wait<coordinator::EventBatch>(
      [&](auto reply) { h.engine->NextEvents(id, last->next_after_seq, last->next_progress, 100, reply); });
  CHECK(after->ended);
  CHECK(after->events.empty());
}

TEST_CASE("While the store cannot be written nothing is acknowledged and everything can be read", "[engine][faults]") {
  const StoreFaults::Mode mode = GENERATE(StoreFaults::Mode::kRefuse, StoreFaults::Mode::kMakeAndRefuse);
  Harness h;
  Worker worker(h, "w1", 1);
  const std::string id = Submitted(h, "a", {"int one;", "int two;"});
  worker.Connect();
  const auto lease = worker.NextAssignment().lease();
  h.faults->mode = mode;
  worker.Finish(lease, Correct(2));
  h.Settle();
  REQUIRE(h.faults->failed > 0);
  CHECK(!worker.link->TryNext().has_value());  // no acknowledgement, no next assignment
  CHECK(h.Get(id)->counts().finished() == 0);  // the verdict is not pretended
  CHECK(h.Kernel(id + "/k1")->state() == v1::NODE_STATE_OPEN);
  auto refused = h.Submit(EvalJob("b", {"int x;"}));
  CHECK(absl::IsUnavailable(refused.status()));
  CHECK(absl::StrContains(refused.status().message(), "no space left"));
  CHECK(absl::IsUnavailable(h.Cancel(id).status()));
  CHECK(!h.Stats().store_error.empty());
  SECTION("it comes back") {
    h.Advance(absl::Seconds(30));
    CHECK(!worker.link->TryNext().has_value());
    h.faults->mode = StoreFaults::Mode::kNone;
    h.Advance(absl::Seconds(30));
    CHECK(!worker.NextAck().stale());
    CHECK(worker.NextAssignment().lease().work() == id + "/k2");
    CHECK(h.Get(id)->counts().finished() == 1);
    CHECK(h.Stats().store_error.empty());
    CHECK(h.Submit(EvalJob("b", {"int x;"})).ok());
  }
  SECTION("the coordinator dies first, and the worker tells its result again") {
    h.engine.reset();
    h.faults->mode = StoreFaults::Mode::kNone;
    h.Open();
    Worker again(h, "w1", 1);
    *again.hello.add_unacknowledged() = lease;
    again.Connect();
    again.Finish(lease, Correct(2));
    CHECK(!again.NextAck().stale());
    h.Settle();
    CHECK(h.Get(id)->counts().finished() == 1);
  }
}

TEST_CASE("A submission whose commit fails is answered UNAVAILABLE, and the same key is safe to retry",
          "[engine][faults]") {
  const StoreFaults::Mode mode = GENERATE(StoreFaults::Mode::kRefuse, StoreFaults::Mode::kMakeAndRefuse);
  Harness h;
  h.faults->mode = mode;
  CHECK(absl::IsUnavailable(h.Submit(EvalJob("a", {"int one;"})).status()));
  v1::ListJobsRequest request;
  CHECK(Wait<v1::ListJobsResponse>([&](auto reply) { h.engine->ListJobs(request, reply); })->jobs().empty());
  h.faults->mode = StoreFaults::Mode::kNone;
  h.Advance(absl::Seconds(30));
  auto retried = h.Submit(EvalJob("a", {"int one;"}));
  REQUIRE(retried.ok());
  CHECK(retried->existed());
  CHECK(Wait<v1::ListJobsResponse>([&](auto reply) { h.engine->ListJobs(request, reply); })->jobs_size() == 1);
}

TEST_CASE("A worker that speaks another protocol or says no id is turned away", "[engine]") {
  Harness h;
  auto link = std::make_shared<FakeWorkerLink>();
  v1::WorkerHello hello;
  hello.set_worker_id("w");
  hello.set_protocol(2);
  h.engine->WorkerConnected(hello, link);
  h.Settle();
  REQUIRE(link->closed().has_value());
  CHECK(absl::StrContains(link->closed()->message(), "protocol 2"));
  auto second = std::make_shared<FakeWorkerLink>();
  hello.set_protocol(1);
  hello.clear_worker_id();
  h.engine->WorkerConnected(hello, second);
  h.Settle();
  CHECK(second->closed().has_value());
}

TEST_CASE("A second session of a worker closes the first and keeps its lease", "[engine]") {
  Harness h;
  Worker first(h, "w1", 1);
  const std::string id = Submitted(h, "a", {"int one;"});
  first.Connect();
  const auto lease = first.NextAssignment().lease();
  Worker second(h, "w1", 1);
  *second.hello.add_running() = lease;
  second.Connect();
  CHECK(first.link->closed().has_value());
  first.Finish(lease, Correct(7));  // through the old session: not heard
  second.Finish(lease, Correct(2));
  CHECK(!second.NextAck().stale());
  h.Settle();
  CHECK(h.Get(id)->best_speedup() == 2);
}

TEST_CASE("Nonsense from a worker is no verdict", "[engine]") {
  Harness h;
  Worker worker(h, "w1", 1);
  const std::string id = Submitted(h, "a", {"int one;"});
  worker.Connect();
  const auto lease = worker.NextAssignment().lease();
  v1::Lease other = lease;
  other.set_work("no/such/work");
  worker.Finish(other, Correct(2));
  CHECK(worker.NextAck().stale());
  other = lease;
  other.set_attempt(7);
  worker.Finish(other, Correct(2));
  CHECK(worker.NextAck().stale());
  worker.Finish(lease, v1::EvaluationResult());  // no verdict in it
  CHECK(!worker.NextAck().stale());
  h.Settle();
  CHECK(h.Get(id)->counts().finished() == 0);
  CHECK(h.Get(id)->counts().queued() == 1);
}

TEST_CASE("A job without a worker that fits is paused after a while and goes on by itself", "[engine]") {
  Harness h;
  v1::SubmitJobRequest request = EvalJob("a", {"__global__ void f();"});
  request.mutable_spec()->mutable_eval()->mutable_candidates(0)->set_format(v1::CANDIDATE_FORMAT_CUDA);
  const std::string id = h.Submit(request)->job().id();
  Worker cpu(h, "cpu", 1);
  cpu.Connect();
  h.Settle();
  CHECK(h.Get(id)->state() == v1::JOB_STATE_RUNNING);
  h.Advance(absl::Seconds(11));
  CHECK(h.Get(id)->state() == v1::JOB_STATE_PAUSED);
  CHECK(absl::StrContains(h.Get(id)->state_reason(), "cuda"));
  Worker gpu(h, "gpu", 1);
  gpu.hello.mutable_device()->set_kind(v1::DEVICE_KIND_CUDA);
  gpu.Connect();
  gpu.NextAssignment();
  h.Settle();
  CHECK(h.Get(id)->state() == v1::JOB_STATE_RUNNING);
}

TEST_CASE("A draining coordinator finishes what runs and takes nothing new", "[engine]") {
  Harness h;
  Worker worker(h, "w1", 1);
  const std::string id = Submitted(h, "a", {"int one;", "int two;"});
  worker.Connect();
  const auto lease = worker.NextAssignment().lease();
  h.engine->Drain();
  CHECK(absl::IsUnavailable(h.Submit(EvalJob("b", {"int x;"})).status()));
  worker.Finish(lease, Correct(2));
  CHECK(!worker.NextAck().stale());
  h.Settle();
  CHECK(!worker.link->TryNext().has_value());
  CHECK(h.Get(id)->counts().finished() == 1);
}

TEST_CASE("Stopping answers whoever waits, and calls after it", "[engine]") {
  Harness h;
  const std::string id = Submitted(h, "a", {"int one;"});
  std::promise<absl::Status> waiting;
  h.engine->NextEvents(id, 2, -1, 10, [&](auto value) { waiting.set_value(value.status()); });
  h.Settle();
  h.engine->Stop();
  h.engine->Stop();
  CHECK(absl::IsCancelled(waiting.get_future().get()));
  CHECK(absl::IsCancelled(h.Get(id).status()));
}

TEST_CASE("A data folder whose journal makes no sense is refused with the event's number", "[engine]") {
  Harness h;
  Submitted(h, "a", {"int one;"});
  h.engine.reset();
  {
    auto store = store::OpenSqliteStore(h.dir.path());
    v1::Event event;
    event.set_seq(3);
    auto jobs = (*store)->ReadJobs();
    event.set_job((*jobs)[0].id);
    event.mutable_evaluation_finished()->set_kernel((*jobs)[0].id + "/k77");
    store::WriteBatch batch;
    batch.events = {{3, event.job(), 17, 0, event.SerializeAsString()}};
    REQUIRE((*store)->Commit(batch).ok());
  }
  const absl::Status status = h.TryOpen();
  CHECK(absl::IsDataLoss(status));
  CHECK(absl::StrContains(status.message(), "event 3"));
}

TEST_CASE("Statistics tell the state", "[engine]") {
  Harness h;
  Worker worker(h, "w1", 1);
  Submitted(h, "a", {"int one;", "int two;", "int three;"});
  worker.Connect();
  const auto lease = worker.NextAssignment().lease();
  h.Advance(absl::Seconds(3));
  auto stats = h.Stats();
  CHECK(stats.queue_depth == 2);
  CHECK(stats.queue_oldest_age_seconds == 3);
  CHECK(stats.leases_active == 1);
  v1::EvaluationResult result = Bad(v1::VERDICT_CRASHED);
  v1::StageTime* stage = result.add_stages();
  stage->set_stage("build");
  stage->set_seconds(0.5);
  result.mutable_build()->set_cached(true);
  worker.Finish(lease, result);
  worker.NextAck();
  h.Settle();
  // Settle has taken the stage samples; the counters stay.
  stats = h.Stats();
  CHECK(stats.verdicts_total == std::vector<std::pair<std::string, int64_t>>{{"crashed", 1}});
  CHECK(stats.build_cache_hits_total == 1);
  CHECK(stats.store_bytes > 0);
  std::map<std::string, int64_t> jobs(stats.jobs_by_state.begin(), stats.jobs_by_state.end());
  CHECK(jobs["running"] == 1);
}

TEST_CASE("An equal evaluation's result is given where it is asked for, and never else", "[engine][reuse]") {
  Harness h;
  Worker worker(h, "w1", 1);
  worker.hello.set_version("1.2.3");
  worker.hello.mutable_device()->set_driver("580");
  worker.Connect();
  const auto result = [&](double speedup) {
    v1::EvaluationResult one = Correct(speedup);
    *one.mutable_device() = worker.hello.device();
    one.mutable_device()->mutable_calibration()->set_resolution(0.01);  // of that day: no part of the machine
    one.set_grove_version("1.2.3");
    return one;
  };
  const auto submit = [&](const std::string& key, const std::string& source, bool reuse, const std::string& flag = "",
                          int trials = 5) {
    v1::SubmitJobRequest request = EvalJob(key, {source});
    v1::EvalSpec& eval = *request.mutable_spec()->mutable_eval();
    eval.mutable_options()->set_reuse_result(reuse);
    eval.mutable_options()->set_trials(trials);
    if (!flag.empty()) eval.mutable_candidates(0)->add_build_flags(flag);
    auto response = h.Submit(request);
    INFO(response.status());
    REQUIRE(response.ok());
    return response->job().id();
  };
  // Nothing is there yet, so it is run; then it is run again because nobody said otherwise.
  for (const auto& [key, reuse] : {std::pair<std::string, bool>{"a", true}, {"b", false}}) {
    submit(key, "int one;", reuse);
    const auto assignment = worker.NextAssignment();
    worker.Finish(assignment.lease(), result(key == "a" ? 2 : 3));
    worker.NextAck();
  }
  const std::string reused = submit("c", "int one;", true);
  h.Settle();
  CHECK(!worker.link->TryNext().has_value());
  auto job = h.Get(reused);
  CHECK(job->state() == v1::JOB_STATE_DONE);
  const auto kernel = h.Kernel(reused + "/k1");
  CHECK(kernel->result().reused());
  CHECK(kernel->result().attempt() == 0);
  CHECK(kernel->result().timing().baselines(0).speedup() == 3);  // the newest

  // Whatever else it depends on makes it another evaluation.
  const std::vector<std::string> others = {submit("d", "int two;", true), submit("e", "int one;", true, "-O1"),
                                           submit("f", "int one;", true, "", 6)};
  for (size_t i = 0; i < others.size(); ++i) {
    const auto assignment = worker.NextAssignment();
    worker.Finish(assignment.lease(), i == 0 ? Bad(v1::VERDICT_UNMEASURABLE) : result(4));
    worker.NextAck();
  }
  for (const std::string& id : others) CHECK_FALSE(h.Kernel(id + "/k1")->result().reused());
  // What could not be measured is tried again.
  submit("g", "int two;", true);
  worker.Finish(worker.NextAssignment().lease(), result(5));
  worker.NextAck();
  // Another driver is another machine.
  worker.hello.mutable_device()->set_driver("581");
  worker.Connect();
  submit("h", "int one;", true);
  worker.Finish(worker.NextAssignment().lease(), result(6));
  worker.NextAck();
  h.Settle();
  CHECK(h.Get(reused)->counts().finished() == 1);
}

TEST_CASE("What a limit ended is no answer for an equal evaluation: the limit may be another one by now",
          "[engine][reuse]") {
  Harness h;
  Worker worker(h, "w1", 1);
  worker.Connect();
  const auto of_machine = [&](v1::EvaluationResult result) {
    *result.mutable_device() = worker.hello.device();
    return result;
  };
  v1::EvaluationResult killed = Bad(v1::VERDICT_BUILD_FAILED);
  killed.mutable_fault()->set_signal(9);
  v1::EvaluationResult slow_combination = Correct(2);
  slow_combination.add_combinations()->set_verdict(v1::VERDICT_CORRECT);
  slow_combination.add_combinations()->set_verdict(v1::VERDICT_TIMED_OUT);
  const std::vector<std::pair<v1::EvaluationResult, bool>> all = {{Bad(v1::VERDICT_TIMED_OUT), false},
                                                                  {Bad(v1::VERDICT_LIMIT_EXCEEDED), false},
                                                                  {Bad(v1::VERDICT_UNMEASURABLE), false},
                                                                  {killed, false},
                                                                  {slow_combination, false},
                                                                  {Bad(v1::VERDICT_BUILD_FAILED), true},
                                                                  {Bad(v1::VERDICT_WRONG), true},
                                                                  {Bad(v1::VERDICT_CRASHED), true},
                                                                  {Correct(2), true}};
  const auto submit = [&](const std::string& key, const std::string& source) {
    v1::SubmitJobRequest request = EvalJob(key, {source});
    request.mutable_spec()->mutable_eval()->mutable_options()->set_reuse_result(true);
    auto response = h.Submit(request);
    REQUIRE(response.ok());
    return response->job().id();
  };
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].first.ShortDebugString());
    const std::string source = absl::StrCat("int n", i, ";");
    submit(absl::StrCat("first", i), source);
    worker.Finish(worker.NextAssignment().lease(), of_machine(all[i].first));
    worker.NextAck();
    const std::string again = submit(absl::StrCat("again", i), source);
    h.Settle();
    CHECK(h.Kernel(again + "/k1")->result().reused() == all[i].second);
    if (h.Get(again)->state() == v1::JOB_STATE_DONE) continue;
    worker.Finish(worker.NextAssignment().lease(), of_machine(Correct(2)));
    worker.NextAck();
  }
}

TEST_CASE("Results under another salt are others", "[engine][reuse]") {
  const v1::Problem problem;
  const v1::Candidate candidate;
  const v1::EvaluationOptions options;
  const auto key = [&](const std::string& salt) {
    return coordinator::ResultKey(problem, candidate, "abc", options, salt);
  };
  CHECK(key("") == key(""));
  CHECK(key("") != key("2026-11"));
  CHECK(key("2026-11") != key("2026-12"));
}

TEST_CASE("The time in the queue is counted to the moment of the lease", "[engine]") {
  Harness h;
  Submitted(h, "a", {"int one;", "int two;"});
  h.clock.Advance(absl::Seconds(3));
  Worker worker(h, "w1", 1);
  worker.Connect();
  worker.Finish(worker.NextAssignment().lease(), Correct(2));
  worker.NextAck();
  h.clock.Advance(absl::Seconds(2));
  worker.NextAssignment();
  double waited = 0;
  for (const auto& [stage, seconds] : h.Stats().stage_seconds) {
    if (stage == "queue") waited = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  }
  CHECK(waited >= 6);
}

}  // namespace
}  // namespace grove::testing
