#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <thread>

#include "tests/coordinator_core/harness.h"

namespace grove::testing {
namespace {

std::string Submitted(Harness& h, const v1::SubmitJobRequest& request) {
  auto response = h.Submit(request);
  INFO(response.status().ToString());
  REQUIRE(response.ok());
  return response->job().id();
}

// Waits until the job is in that state: each change is an event, so there is nothing to poll for.
v1::Job WaitFor(Harness& h, const std::string& id, v1::JobState state) {
  uint64_t after = 0;
  for (;;) {
    auto job = h.Get(id);
    REQUIRE(job.ok());
    if (job->state() == state) return *job;
    after = std::max(after, job->last_seq());
    auto batch = Wait<coordinator::EventBatch>([&](auto reply) { h.engine->NextEvents(id, after, -1, 100, reply); });
    INFO("waiting for " << v1::JobState_Name(state) << ", it is " << v1::JobState_Name(job->state()) << " "
                        << job->state_reason());
    REQUIRE(batch.ok());
    REQUIRE((!batch->ended || h.Get(id)->state() == state));
    after = batch->next_after_seq;
  }
}

// Plays the worker until the job has ended: the speedup of kernel k<n> is 1 + n / 10.
void Work(Harness& h, Worker& worker, const std::string& id, int at_most = 1000) {
  for (int done = 0; done < at_most; ++done) {
    const auto assignment = worker.NextAssignmentOf(id);
    if (!assignment.has_value()) return;
    if (assignment->has_describe()) {
      worker.Describe(assignment->lease(), "softmax");
      continue;
    }
    const std::string& node = assignment->lease().work();
    const int number = std::stoi(node.substr(node.find("/k") + 2));
    worker.Finish(assignment->lease(), Correct(1 + number / 10.0));
    h.Settle();
  }
}

v1::SubmitJobRequest CheckJob(const std::string& key) {
  v1::SubmitJobRequest request;
  request.set_idempotency_key(KeyOf(key));
  v1::CheckProblemSpec* check = request.mutable_spec()->mutable_check_problem();
  *check->mutable_problem() = SearchJob(key).spec().search().problem();
  return request;
}

TEST_CASE("A check of a problem is one description that looks for faults, and ends with it", "[search]") {
  Harness h;
  Worker worker(h, "w1", 2);
  worker.Connect();
  const std::string id = Submitted(h, CheckJob("a"));
  auto assignment = worker.NextAssignment();
  REQUIRE(assignment.has_describe());
  CHECK(assignment.describe().check());
  CHECK(assignment.describe().problem().source() == "class Model: pass\n");
  // A worker that fails is no finding: it is asked again.
  worker.Fail(assignment.lease(), "the machine is gone");
  CHECK(!worker.NextAck().stale());
  h.Settle();
  worker.Beat({});
  h.Advance(absl::Seconds(10));
  worker.Beat({});
  h.Advance(absl::Seconds(10));
  assignment = worker.NextAssignment();
  REQUIRE(assignment.has_describe());
  CHECK(assignment.lease().attempt() == 2);
  worker.Describe(assignment.lease(), "softmax");
  const v1::Job job = WaitFor(h, id, v1::JOB_STATE_DONE);
  CHECK(job.counts().kernels() == 0);
  CHECK(job.spec().check_problem().problem().name() == "softmax");
  auto batch = Wait<coordinator::EventBatch>([&](auto reply) { h.engine->NextEvents(id, 0, -1, 100, reply); });
  REQUIRE(batch.ok());
  int described = 0;
  for (const v1::Event& event : batch->events) described += event.has_problem_described() ? 1 : 0;
  CHECK(described == 1);
  v1::ResumeJobRequest resume;
  resume.set_id(id);
  CHECK_FALSE(Wait<v1::Job>([&](auto reply) { h.engine->ResumeJob(resume, reply); }).ok());
}

TEST_CASE("A search describes its problem, has ideas, writes kernels, measures them and ends", "[search]") {
  Harness h;
  Worker worker(h, "w1", 2);
  worker.Connect();
  const std::string id = Submitted(h, SearchJob("a"));
  Work(h, worker, id);
  const v1::Job job = WaitFor(h, id, v1::JOB_STATE_DONE);
  CHECK(job.counts().ideas() == 6);
  CHECK(job.counts().kernels() == 6);
  CHECK(job.counts().correct() == 6);
  CHECK(job.counts().model_calls() == 2);
  CHECK(job.counts().prompt_tokens() == 20);
  CHECK(job.best_node() == id + "/k6");
  // Each request was made once.
  const auto requests = h.generator->requests();
  CHECK(requests.size() == 8);
  CHECK(std::set<std::string>(requests.begin(), requests.end()).size() == 8);
  int survivors = 0;
  for (const v1::TreeNode& node : h.Tree(id)) {
    survivors += node.kernel().survivor() ? 1 : 0;
    if (node.has_kernel()) CHECK(!node.kernel().idea().empty());
  }
  CHECK(survivors == 1);
  CHECK(h.generator->cancelled());
  // Its best kernel is in the bank now, and the next search is shown it.
  v1::ListBankRequest list;
  auto bank = Wait<v1::ListBankResponse>([&](auto reply) { h.engine->ListBank(list, reply); });
  REQUIRE(bank->entries_size() == 1);
  CHECK(bank->entries(0).operation() == "softmax");
  CHECK(bank->entries(0).origin_node() == id + "/k6");
  CHECK(bank->entries(0).candidate().source().empty());
  h.Restart();
  auto entry = Wait<v1::BankEntry>([&](auto reply) { h.engine->GetBankEntry(bank->entries(0).id(), reply); });
  REQUIRE(entry.ok());
  CHECK(!entry->candidate().source().empty());
  Worker again(h, "w1", 2);
  again.Connect();
  const std::string second = Submitted(h, SearchJob("b"));
  Work(h, again, second);
  WaitFor(h, second, v1::JOB_STATE_DONE);
  CHECK(h.generator->bank_seen() == 1);
  CHECK(h.Stats().model_calls_total == 2);
}

TEST_CASE("A search goes on after a restart where it was, with nothing counted twice", "[search]") {
  // After each number of finished kernels.
  const int stop_after = GENERATE(range(0, 12));
  CAPTURE(stop_after);
  Harness h;
  std::string id;
  {
    Worker worker(h, "w1", 1);
    worker.Connect();
    id = Submitted(h, SearchJob("a"));
    Work(h, worker, id, 1 + stop_after);
  }
  h.Settle();
  h.Restart();
  Worker again(h, "w1", 1);
  again.Connect();
  Work(h, again, id);
  const v1::Job job = WaitFor(h, id, v1::JOB_STATE_DONE);
  CHECK(job.counts().finished() == 6);
  std::map<std::string, int> finished, requests, tokens;
  uint64_t seq = 0;
  for (const v1::Event& event : h.Watch(id)) {
    CHECK(event.seq() == ++seq);
    if (event.has_evaluation_finished()) {
      const v1::EvaluationFinished& end = event.evaluation_finished();
      ++finished[absl::StrCat(end.kernel(), end.confirmation() ? " again" : "")];
      CHECK(tokens[end.kernel()] < end.attempt());
      tokens[end.kernel()] = end.attempt();
    }
    if (event.has_kernel_written()) ++requests[event.kernel_written().request()];
    if (event.has_ideas_proposed()) ++requests[event.ideas_proposed().request()];
  }
  CHECK(finished.size() >= 6 + 1);
  CHECK(finished.count(job.best_node() + " again") == 1);
  CHECK(job.best_confirmed());
  CHECK(requests.size() == 8);
  for (const auto& [name, count] : finished) CHECK(count == 1);
  for (const auto& [name, count] : requests) CHECK(count == 1);
}

TEST_CASE("What earlier commands left stands still until it is resumed or submitted again", "[search]") {
  const bool by_key = GENERATE(false, true);
  Harness h;
  std::string search, eval, done;
  {
    Worker worker(h, "w1", 1);
    worker.Connect();
    search = Submitted(h, SearchJob("a"));
    Work(h, worker, search, 3);
    eval = Submitted(h, EvalJob("b", {"int b1;", "int b2;"}));
  }
  h.Settle();
  h.Advance(absl::Seconds(1));
  h.options.hold_before = h.clock.Now();
  h.Advance(absl::Seconds(1));
  h.Restart();
  Worker worker(h, "w1", 1);
  worker.Connect();
  const int generated = static_cast<int>(h.generator->requests().size());
  const std::string own = Submitted(h, EvalJob("c", {"int c1;"}));
  // Only its own work comes, and no model is asked.
  const v1::Assignment first = worker.NextAssignment();
  CHECK(absl::StartsWith(first.lease().work(), own));
  worker.Finish(first.lease(), Correct(2));
  WaitFor(h, own, v1::JOB_STATE_DONE);
  h.Settle();
  CHECK(static_cast<int>(h.generator->requests().size()) == generated);
  for (const std::string& id : {search, eval}) {
    const v1::Job job = WaitFor(h, id, v1::JOB_STATE_PAUSED);
    CHECK(absl::StrContains(job.state_reason(), absl::StrCat("`grove resume ", id, "`")));
  }
  // The coordinator of the command dies and is started again: what it was given since then goes on.
  if (by_key) {
    CHECK(Submitted(h, EvalJob("b", {"int b1;", "int b2;"})) == eval);
  } else {
    REQUIRE(h.Resume(eval).ok());
  }
  WaitFor(h, eval, v1::JOB_STATE_RUNNING);
  h.Settle();
  h.Restart();
  Worker again(h, "w1", 1);
  again.Connect();
  WaitFor(h, eval, v1::JOB_STATE_RUNNING);
  for (int i = 0; i < 2; ++i) {
    const v1::Assignment next = again.NextAssignment();
    CHECK(absl::StartsWith(next.lease().work(), eval));
    again.Finish(next.lease(), Correct(2));
  }
  WaitFor(h, eval, v1::JOB_STATE_DONE);
  CHECK(h.Get(search)->state() == v1::JOB_STATE_PAUSED);
  // A coordinator that holds nothing goes on with everything.
  h.options.hold_before = absl::InfinitePast();
  h.Restart();
  Worker last(h, "w1", 1);
  last.Connect();
  Work(h, last, search);
  CHECK(WaitFor(h, search, v1::JOB_STATE_DONE).counts().finished() == 6);
}

TEST_CASE("An outage of the generator pauses the search, uses nothing up, and ends by itself", "[search]") {
  Harness h;
  h.generator->set_failure(absl::UnavailableError("503 from the model"));
  Worker worker(h, "w1", 2);
  worker.Connect();
  const std::string id = Submitted(h, SearchJob("a"));
  worker.Describe(worker.NextAssignment().lease(), "softmax");
  v1::Job job = WaitFor(h, id, v1::JOB_STATE_PAUSED);
  CHECK(absl::StrContains(job.state_reason(), "503 from the model"));
  CHECK(h.generator->requests().size() == 1);
  h.Advance(absl::Milliseconds(900));
  CHECK(h.generator->requests().size() == 1);  // not before its time
  h.generator->set_failure(absl::OkStatus());
  h.Advance(absl::Milliseconds(200));
  WaitFor(h, id, v1::JOB_STATE_RUNNING);
  Work(h, worker, id);
  job = WaitFor(h, id, v1::JOB_STATE_DONE);
  CHECK(job.counts().kernels() == 6);
  CHECK(h.Stats().model_errors_total == 1);
  const auto requests = h.generator->requests();
  CHECK(requests[0] == requests[1]);  // the same request again
}

TEST_CASE("ResumeJob ends the waiting of an outage", "[search]") {
  Harness h;
  h.generator->set_failure(absl::ResourceExhaustedError("quota"));
  Worker worker(h, "w1", 2);
  worker.Connect();
  const std::string id = Submitted(h, SearchJob("a"));
  worker.Describe(worker.NextAssignment().lease(), "softmax");
  WaitFor(h, id, v1::JOB_STATE_PAUSED);
  h.generator->set_failure(absl::OkStatus());
  REQUIRE(h.Resume(id).ok());
  WaitFor(h, id, v1::JOB_STATE_RUNNING);
}

TEST_CASE("A generator that knows no such operation fails the search with its words", "[search]") {
  Harness h;
  h.generator->set_supports(absl::FailedPreconditionError("no such operation; use --generator openai"));
  Worker worker(h, "w1", 2);
  worker.Connect();
  const std::string id = Submitted(h, SearchJob("a"));
  worker.Describe(worker.NextAssignment().lease(), "softmax");
  const v1::Job job = WaitFor(h, id, v1::JOB_STATE_FAILED);
  CHECK(job.state_reason() == "no such operation; use --generator openai");
}

TEST_CASE("Requests without an answer are passed over, and a search without any kernel has failed", "[search]") {
  Harness h;
  h.generator->set_failure(absl::InvalidArgumentError("the model refused"));
  Worker worker(h, "w1", 2);
  worker.Connect();
  const std::string id = Submitted(h, SearchJob("a"));
  worker.Describe(worker.NextAssignment().lease(), "softmax");
  const v1::Job job = WaitFor(h, id, v1::JOB_STATE_FAILED);
  CHECK(absl::StrContains(job.state_reason(), "the model refused"));
}

TEST_CASE("An invalid problem fails the search", "[search]") {
  Harness h;
  Worker worker(h, "w1", 2);
  worker.Connect();
  const std::string id = Submitted(h, SearchJob("a"));
  v1::WorkerMessage message;
  *message.mutable_result()->mutable_lease() = worker.NextAssignment().lease();
  message.mutable_result()->set_problem_error("Model.forward raises");
  worker.Say(message);
  CHECK(absl::StrContains(WaitFor(h, id, v1::JOB_STATE_FAILED).state_reason(), "Model.forward raises"));
}

TEST_CASE("Kernels with equal source are measured once in a search", "[search]") {
  Harness h;
  h.generator->set_same_source(true);
  Worker worker(h, "w1", 8);
  worker.Connect();
  const std::string id = Submitted(h, SearchJob("a"));
  worker.Describe(worker.NextAssignment().lease(), "softmax");
  const auto only = worker.NextAssignment();
  worker.Finish(only.lease(), Correct(2));
  const auto again = worker.NextAssignment();
  CHECK(again.evaluate().confirmation());
  worker.Finish(again.lease(), Correct(2));
  const v1::Job job = WaitFor(h, id, v1::JOB_STATE_DONE);
  CHECK(job.counts().kernels() == 6);
  CHECK(job.counts().finished() == 6);
  CHECK(job.best_node() == id + "/k1");
}

TEST_CASE("A search that has ended is resumed with more rounds", "[search]") {
  Harness h;
  Worker worker(h, "w1", 2);
  worker.Connect();
  const std::string id = Submitted(h, SearchJob("a"));
  Work(h, worker, id);
  WaitFor(h, id, v1::JOB_STATE_DONE);
  CHECK(absl::IsFailedPrecondition(h.Resume(id).status()));
  REQUIRE(h.Resume(id, 1).ok());
  for (int i = 0; i < 3; ++i) {
    const auto assignment = worker.NextAssignment();
    CHECK(assignment.has_evaluate());  // the problem is known already
    worker.Finish(assignment.lease(), Correct(1.5));
  }
  const v1::Job job = WaitFor(h, id, v1::JOB_STATE_DONE);
  CHECK(job.counts().finished() == 9);
  h.Restart();
  CHECK(h.Get(id)->counts().finished() == 9);
  CHECK(h.Tree(id).size() == 18);
}

TEST_CASE("A search ends when its time is up", "[search]") {
  Harness h;
  Worker worker(h, "w1", 1);
  worker.Connect();
  v1::SubmitJobRequest request = SearchJob("a");
  request.mutable_spec()->mutable_search()->mutable_policy()->set_max_seconds(60);
  const std::string id = Submitted(h, request);
  worker.Describe(worker.NextAssignment().lease(), "softmax");
  worker.Finish(worker.NextAssignment().lease(), Correct(2));
  const auto lease = worker.NextAssignment().lease();
  h.Advance(absl::Seconds(61));
  const v1::Job job = WaitFor(h, id, v1::JOB_STATE_DONE);
  CHECK(absl::StrContains(job.state_reason(), "time"));
  CHECK(job.counts().finished() == 1);
  worker.Finish(lease, Correct(9));
  CHECK(worker.NextAck().stale());
}

TEST_CASE("Generation does not run ahead of the workers blindly", "[search]") {
  Harness h;
  Worker worker(h, "w1", 1);
  worker.Connect();
  v1::SubmitJobRequest request = SearchJob("a");
  request.mutable_spec()->mutable_search()->mutable_policy()->set_ideas(100);
  const std::string id = Submitted(h, request);
  worker.Describe(worker.NextAssignment().lease(), "softmax");
  worker.NextAssignment();
  // One slot, two ready ahead of it, and what the two generator threads had in hand.
  uint64_t after = 0;
  for (int kernels = 0; kernels < 4;) {
    auto batch = Wait<coordinator::EventBatch>([&](auto reply) { h.engine->NextEvents(id, after, -1, 1, reply); });
    REQUIRE(batch.ok());
    for (const v1::Event& event : batch->events) kernels += event.has_kernel_written() ? 1 : 0;
    after = batch->next_after_seq;
  }
  h.Settle();
  CHECK(h.Get(id)->counts().kernels() <= 1 + 3 + 2 + 2);
}

}  // namespace
}  // namespace grove::testing
