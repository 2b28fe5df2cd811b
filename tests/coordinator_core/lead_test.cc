// The lead of a search: what is measured again, what counts then, and that the journal gives the same.
#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "absl/strings/match.h"
#include "tests/coordinator_core/harness.h"

namespace grove::testing {
namespace {

// One round of three kernels.
v1::SubmitJobRequest OneRound(const std::string& key) {
  v1::SubmitJobRequest request = SearchJob(key);
  request.mutable_spec()->mutable_search()->mutable_policy()->set_rounds(1);
  return request;
}

// What the worker answers: by kernel number, and whether it is the second measurement.
using Answer = std::function<v1::EvaluationResult(int kernel, bool again)>;

// Serves one assignment. False when the job has ended.
bool Serve(Harness& h, Worker& worker, const std::string& id, const Answer& answer) {
  h.Settle();
  const auto assignment = worker.NextAssignmentOf(id);
  if (!assignment.has_value()) return false;
  if (assignment->has_describe()) {
    worker.Describe(assignment->lease(), "softmax");
    return true;
  }
  const std::string& node = assignment->lease().work();
  const int number = std::stoi(node.substr(node.find("/k") + 2));
  worker.Finish(assignment->lease(), answer(number, assignment->evaluate().confirmation()));
  CHECK(!worker.NextAck().stale());
  return true;
}

std::string Picture(Harness& h, const std::string& id) {
  std::string text = h.Get(id)->DebugString();
  for (const v1::TreeNode& node : h.Tree(id)) text += node.DebugString();
  return text;
}

int BankSize(Harness& h) {
  v1::ListBankRequest list;
  return Wait<v1::ListBankResponse>([&](auto reply) { h.engine->ListBank(list, reply); })->entries_size();
}

TEST_CASE("A kernel that would lead is measured again, and the less favourable measurement decides", "[lead]") {
  // Killed after so many answers, or not at all.
  const int stop_after = GENERATE(-1, 1, 2, 3, 4, 5, 6);
  CAPTURE(stop_after);
  Harness h;
  auto worker = std::make_unique<Worker>(h, "w1", 1);
  worker->Connect();
  auto submitted = h.Submit(OneRound("a"));
  REQUIRE(submitted.ok());
  const std::string id = submitted->job().id();
  std::map<int, int> first, second;
  // k1 is lucky the first time. The others are as fast as they seem.
  const Answer answer = [&](int kernel, bool again) {
    ++(again ? second : first)[kernel];
    if (kernel == 1) return Correct(again ? 1.2 : 3.0);
    return Correct(kernel == 2 ? 1.5 : 1.4);
  };
  for (int served = 0; Serve(h, *worker, id, answer); ++served) {
    if (served != stop_after) continue;
    while (h.Get(id)->counts().kernels() < 3)
      h.Settle();  // what generators still answer is in neither picture, or both
    h.Settle();
    const std::string before = Picture(h, id);
    worker.reset();
    h.Restart();
    CHECK(Picture(h, id) == before);
    worker = std::make_unique<Worker>(h, "w1", 1);
    worker->Connect();
  }
  const v1::Job job = *h.Get(id);
  CHECK(job.state() == v1::JOB_STATE_DONE);
  CHECK(job.best_node() == id + "/k2");
  CHECK(job.best_confirmed());
  CHECK(job.best_speedup() == 1.5);
  CHECK(job.counts().finished() == 3);
  CHECK(job.counts().correct() == 3);
  CHECK(second.count(1) == 1);
  CHECK(second.count(2) == 1);
  CHECK(second.count(3) == 0);  // never ahead of a kernel that had been measured twice
  const v1::KernelNode lucky = *h.Kernel(id + "/k1");
  CHECK(lucky.result().timing().baselines(0).speedup() == 1.2);
  REQUIRE(lucky.measured_size() == 2);
  CHECK(lucky.measured(0).speedup() == 3.0);
  CHECK(lucky.measured(1).speedup() == 1.2);
  CHECK(h.Kernel(id + "/k3")->measured_size() == 1);
  CHECK(BankSize(h) == 1);
  const std::string before = Picture(h, id);
  worker.reset();
  h.Restart();
  CHECK(Picture(h, id) == before);
}

TEST_CASE("What was chosen of declared parameters is what is measured again, shown and kept", "[lead]") {
  // The second measurement confirms the first or is slower; the journal takes as many combinations as there may be.
  const double second = GENERATE(3.0, 1.5);
  CAPTURE(second);
  Harness h;
  std::string declaration, chosen;
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) {
    names.push_back(absl::StrCat("a_parameter_with_a_long_name_", i));
    absl::StrAppend(&declaration, "\nint ", names.back(), " = 8;  // grove: try 8 16");
    absl::StrAppend(&chosen, "\nint ", names.back(), " = ", i == 2 ? 16 : 8, ";  // grove: tried 8 16");
  }
  h.generator->set_declaration(declaration);
  auto worker = std::make_unique<Worker>(h, "w1", 1);
  worker->Connect();
  const std::string id = h.Submit(OneRound("a"))->job().id();
  int confirmed = 0;
  const auto serve = [&] {
    h.Settle();
    const auto assignment = worker->NextAssignmentOf(id);
    if (!assignment.has_value()) return false;
    if (assignment->has_describe()) {
      worker->Describe(assignment->lease(), "softmax");
      return true;
    }
    const std::string& source = assignment->evaluate().candidate().source();
    v1::EvaluationResult result = Correct(assignment->evaluate().confirmation() ? second : 2);
    if (assignment->evaluate().confirmation()) {
      ++confirmed;
      CHECK(absl::StrContains(source, chosen));
    } else {
      CHECK(absl::StrContains(source, declaration));
      for (int i = 0; i < 64; ++i) {
        v1::Combination& one = *result.add_combinations();
        one.set_verdict(v1::VERDICT_CORRECT);
        one.set_chosen(i == 4);
        for (int k = 0; k < 6; ++k) {
          v1::Parameter& parameter = *one.add_parameters();
          parameter.set_name(names[k]);
          parameter.set_value((i >> k & 1) != 0 ? "16" : "8");
        }
      }
    }
    worker->Finish(assignment->lease(), std::move(result));
    CHECK(!worker->NextAck().stale());
    return true;
  };
  while (serve()) {
  }
  CHECK(confirmed > 0);
  const auto check = [&] {
    const v1::KernelNode best = *h.Kernel(h.Get(id)->best_node());
    CHECK(absl::StrContains(best.candidate().source(), chosen));
    REQUIRE(best.result().combinations_size() == 64);
    CHECK(best.result().combinations(4).chosen());
    CHECK(best.measured_size() == 2);
    v1::ListBankRequest list;
    const auto bank = Wait<v1::ListBankResponse>([&](auto reply) { h.engine->ListBank(list, reply); });
    REQUIRE(bank->entries_size() == 1);
    const auto entry = Wait<v1::BankEntry>([&](auto reply) { h.engine->GetBankEntry(bank->entries(0).id(), reply); });
    CHECK(absl::StrContains(entry->candidate().source(), chosen));
  };
  check();
  worker.reset();
  h.Restart();
  check();
}

TEST_CASE("A result whose chosen parameters do not fit counts for nothing", "[lead]") {
  Harness h;
  h.generator->set_declaration("\nint t = 8;  // grove: try 8 16");
  Worker worker(h, "w1", 1);
  worker.Connect();
  const std::string id = h.Submit(OneRound("a"))->job().id();
  while (Serve(h, worker, id, [](int, bool) {
    v1::EvaluationResult result = Correct(2);
    v1::Combination& one = *result.add_combinations();
    one.set_chosen(true);
    one.add_parameters()->set_value("rm -rf");
    return result;
  })) {
  }
  const v1::Job job = *h.Get(id);
  CHECK(job.counts().correct() == 0);
  CHECK(job.best_node().empty());
  const v1::KernelNode kernel = *h.Kernel(id + "/k1");
  CHECK(kernel.result().verdict() == v1::VERDICT_UNMEASURABLE);
  CHECK(absl::StrContains(kernel.result().reason(), "t declares no value rm -rf"));
  CHECK(kernel.result().timing().baselines().empty());
  CHECK(absl::StrContains(kernel.candidate().source(), "int t = 8;  // grove: try 8 16"));
}

TEST_CASE("A kernel that is wrong the second time does not lead and is not correct", "[lead]") {
  Harness h;
  Worker worker(h, "w1", 1);
  worker.Connect();
  const std::string id = h.Submit(OneRound("a"))->job().id();
  while (Serve(h, worker, id, [](int kernel, bool again) {
    return kernel == 1 && again ? Bad(v1::VERDICT_WRONG) : Correct(kernel == 1 ? 3.0 : 1.0 + 0.1 * kernel);
  })) {
  }
  const v1::Job job = *h.Get(id);
  CHECK(job.best_node() == id + "/k3");
  CHECK(job.counts().finished() == 3);
  CHECK(job.counts().correct() == 2);
  CHECK(job.counts().verdicts().at(v1::VERDICT_CORRECT) == 2);
  CHECK(job.counts().verdicts().at(v1::VERDICT_WRONG) == 1);
  CHECK(h.Kernel(id + "/k1")->result().verdict() == v1::VERDICT_WRONG);
}

TEST_CASE("Where a second measurement is not to be had, the search ends and says that its best was measured once",
          "[lead]") {
  Harness h;
  Worker worker(h, "w1", 1);
  worker.Connect();
  const std::string id = h.Submit(OneRound("a"))->job().id();
  while (Serve(h, worker, id, [](int kernel, bool again) {
    return again ? Bad(v1::VERDICT_UNMEASURABLE) : Correct(1.0 + 0.1 * kernel);
  })) {
  }
  const v1::Job job = *h.Get(id);
  CHECK(job.state() == v1::JOB_STATE_DONE);
  CHECK(job.best_node() == id + "/k3");
  CHECK_FALSE(job.best_confirmed());
  CHECK(job.counts().correct() == 3);
  CHECK(BankSize(h) == 0);
}

TEST_CASE("No kernel leads by less than the resolution", "[lead]") {
  Harness h;
  Worker worker(h, "w1", 1);
  worker.Connect();
  const std::string id = h.Submit(OneRound("a"))->job().id();
  int again_asked = 0;
  while (Serve(h, worker, id, [&](int kernel, bool again) {
    again_asked += again ? 1 : 0;
    v1::EvaluationResult result = Correct(2.0 + 0.01 * kernel);
    result.mutable_timing()->mutable_baselines(0)->set_resolution(0.05);
    return result;
  })) {
  }
  CHECK(h.Get(id)->best_node() == id + "/k1");
  CHECK(again_asked == 1);
}

TEST_CASE("A second measurement comes before kernels that wait for their first", "[lead]") {
  Harness h;
  Worker worker(h, "w1", 1);
  worker.Connect();
  const std::string id = h.Submit(OneRound("a"))->job().id();
  std::vector<std::string> order;
  while (Serve(h, worker, id, [&](int kernel, bool again) {
    // All are written, and those that wait are queued, before the first has its result.
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (!h.Kernel(id + "/k3").ok() && absl::Now() < deadline) std::this_thread::yield();
    order.push_back(absl::StrCat("k", kernel, again ? " again" : ""));
    return Correct(kernel == 1 ? 2.0 : 1.5);
  })) {
  }
  CHECK(order == std::vector<std::string>{"k1", "k1 again", "k2", "k3"});
}

v1::SubmitJobRequest Calibrate(const std::string& key, const std::string& worker) {
  v1::SubmitJobRequest request;
  request.set_idempotency_key(KeyOf(key));
  request.mutable_spec()->mutable_calibrate()->set_runs(7);
  request.mutable_spec()->mutable_calibrate()->set_max_seconds(30);
  request.mutable_spec()->mutable_calibrate()->set_worker(worker);
  return request;
}

TEST_CASE("A calibration is one piece of work for the worker that was named, and ends with what it found", "[lead]") {
  Harness h;
  Worker other(h, "w1", 4), worker(h, "w2", 1);
  worker.hello.set_name("box-2");
  other.Connect();
  worker.Connect();
  const std::string id = h.Submit(Calibrate("a", "box-2"))->job().id();
  const v1::Assignment assignment = worker.NextAssignment();
  CHECK(assignment.lease().work() == id + "/calibrate");
  CHECK(assignment.calibrate().runs() == 7);
  CHECK(assignment.calibrate().max_seconds() == 30);
  h.Settle();
  CHECK(!other.link->TryNext().has_value());
  // The coordinator dies meanwhile; the worker says its result to the next one.
  h.Restart();
  Worker back(h, "w2", 1);
  back.hello.set_name("box-2");
  *back.hello.add_unacknowledged() = assignment.lease();
  back.Connect();
  v1::WorkerMessage message;
  *message.mutable_result()->mutable_lease() = assignment.lease();
  message.mutable_result()->mutable_calibration()->set_resolution(0.012);
  message.mutable_result()->mutable_calibration()->set_runs(7);
  back.Say(message);
  CHECK(!back.NextAck().stale());
  h.Settle();
  const v1::Job job = *h.Get(id);
  CHECK(job.state() == v1::JOB_STATE_DONE);
  CHECK(job.spec().name() == "calibration");
  int found = 0;
  for (const v1::Event& event : h.Watch(id)) {
    if (!event.has_device_calibrated()) continue;
    ++found;
    CHECK(event.device_calibrated().worker() == "w2");
    CHECK(event.device_calibrated().calibration().resolution() == 0.012);
    CHECK(event.device_calibrated().device().name() == "test cpu");
  }
  CHECK(found == 1);
  auto workers = Wait<v1::ListWorkersResponse>([&](auto reply) { h.engine->ListWorkers(reply); });
  REQUIRE(workers->workers_size() == 1);
  CHECK(workers->workers(0).device().calibration().resolution() == 0.012);
  CHECK(!h.Resume(id).ok());
}

TEST_CASE("A calibration that cannot be done fails its job with the reason", "[lead]") {
  Harness h;
  Worker worker(h, "w1", 1);
  worker.Connect();
  const std::string id = h.Submit(Calibrate("a", ""))->job().id();
  v1::WorkerMessage message;
  *message.mutable_result()->mutable_lease() = worker.NextAssignment().lease();
  message.mutable_result()->set_problem_error("the calibration kernels do not build: no g++");
  worker.Say(message);
  h.Settle();
  CHECK(h.Get(id)->state() == v1::JOB_STATE_FAILED);
  CHECK(absl::StrContains(h.Get(id)->state_reason(), "no g++"));
}

TEST_CASE("A calibration for a worker that is not there says so while it waits", "[lead]") {
  Harness h;
  Worker worker(h, "w1", 1);
  worker.Connect();
  const std::string id = h.Submit(Calibrate("a", "box-9"))->job().id();
  h.Settle();
  for (int i = 0; i < 12; ++i) {
    worker.Beat({});
    h.Advance(absl::Seconds(1));
  }
  CHECK(h.Get(id)->state() == v1::JOB_STATE_PAUSED);
  CHECK(absl::StrContains(h.Get(id)->state_reason(), "'box-9'"));
}

TEST_CASE("Every candidate of a job with a rival is sent with it, also after a restart", "[lead]") {
  Harness h;
  v1::SubmitJobRequest request = EvalJob("a", {"int a;", "int b;"});
  v1::Candidate* rival = request.mutable_spec()->mutable_eval()->mutable_rival();
  rival->set_name("rival.cpp");
  rival->set_format(v1::CANDIDATE_FORMAT_CPP);
  rival->set_source("int rival;");
  auto submitted = h.Submit(request);
  REQUIRE(submitted.ok());
  const std::string id = submitted->job().id();
  {
    Worker worker(h, "w1", 1);
    worker.Connect();
    const v1::Assignment one = worker.NextAssignment();
    CHECK(one.evaluate().rival().source() == "int rival;");
    CHECK(one.evaluate().candidate().source() == "int a;");
    worker.Finish(one.lease(), Correct(1));
    CHECK(!worker.NextAck().stale());
  }
  h.Settle();
  h.Restart();
  Worker worker(h, "w2", 1);
  worker.Connect();
  h.Advance(absl::Seconds(20));
  worker.Beat({});
  const v1::Assignment two = worker.NextAssignment();
  CHECK(two.evaluate().rival().source() == "int rival;");
  CHECK(two.evaluate().candidate().source() == "int b;");
  worker.Finish(two.lease(), Correct(1));
  h.Settle();
  // The journal keeps its source once, beside the problem's.
  for (const v1::Event& event : h.Watch(id)) {
    if (event.has_job_created()) CHECK(event.job_created().spec().eval().rival().source().empty());
  }
  CHECK(h.Get(id)->spec().eval().rival().source() == "int rival;");
}

}  // namespace
}  // namespace grove::testing
