#include "clients/cli/job_model.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "tests/cli/samples.h"

namespace grove::cli {
namespace {

// Events with growing sequence numbers.
class Journal {
 public:
  v1::Event Next() {
    v1::Event event;
    event.set_seq(++seq_);
    event.set_time_unix_nanos(static_cast<int64_t>(seq_) * 1'000'000'000);
    return event;
  }
  v1::Event Written(const std::string& id, const std::string& idea = "") {
    v1::Event event = Next();
    event.mutable_kernel_written()->mutable_kernel()->set_id(id);
    event.mutable_kernel_written()->mutable_kernel()->set_idea(idea);
    return event;
  }
  v1::Event Leased(const std::string& id, int attempt) {
    v1::Event event = Next();
    event.mutable_evaluation_leased()->set_kernel(id);
    event.mutable_evaluation_leased()->set_attempt(attempt);
    return event;
  }
  v1::Event Finished(const std::string& id, const v1::EvaluationResult& result) {
    v1::Event event = Next();
    event.mutable_evaluation_finished()->set_kernel(id);
    *event.mutable_evaluation_finished()->mutable_result() = result;
    return event;
  }

 private:
  uint64_t seq_ = 0;
};

TEST_CASE("The model counts kernels through waiting, running and judged, and keeps the fastest", "[cli]") {
  Journal journal;
  JobModel model;
  for (const char* id : {"j/k1", "j/k2", "j/k3"}) model.Apply(journal.Written(id));
  CHECK(model.queued() == 3);
  model.Apply(journal.Leased("j/k1", 1));
  model.Apply(journal.Leased("j/k2", 1));
  CHECK(model.queued() == 1);
  CHECK(model.running().size() == 2);
  model.Apply(journal.Finished("j/k1", CorrectResult(2, 1.9, 2.1)));
  CHECK(model.best()->id() == "j/k1");
  model.Apply(journal.Finished("j/k2", WrongResult()));
  CHECK(model.best()->id() == "j/k1");
  CHECK(model.finished() == 2);
  CHECK(model.verdicts().at(v1::VERDICT_WRONG) == 1);
  v1::Event requeued = journal.Next();
  model.Apply(journal.Leased("j/k3", 1));
  requeued = journal.Next();
  requeued.mutable_evaluation_requeued()->set_kernel("j/k3");
  model.Apply(requeued);
  CHECK(model.queued() == 1);
  CHECK(model.requeued() == 1);
  model.Apply(journal.Leased("j/k3", 2));
  model.Apply(journal.Finished("j/k3", CorrectResult(5, 4.9, 5.1)));
  CHECK(model.best()->id() == "j/k3");
  CHECK(model.queued() == 0);
}

TEST_CASE("Events that come twice count once", "[cli]") {
  Journal journal;
  std::vector<v1::Event> events = {journal.Written("j/k1"), journal.Leased("j/k1", 1),
                                   journal.Finished("j/k1", CorrectResult(2, 1, 3))};
  JobModel model;
  for (int round = 0; round < 2; ++round) {
    for (const v1::Event& event : events) model.Apply(event);
  }
  CHECK(model.finished() == 1);
  CHECK(model.kernels().size() == 1);
  CHECK(model.verdicts().at(v1::VERDICT_CORRECT) == 1);
  CHECK(model.last_seq() == 3);
  v1::Event second = journal.Finished("j/k1", WrongResult());  // a result of a fenced attempt would change nothing
  model.Apply(second);
  CHECK(model.finished() == 1);
  CHECK(model.FindKernel("j/k1")->result().verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("Progress belongs to a running kernel and is never a fact", "[cli]") {
  Journal journal;
  JobModel model;
  v1::Event progress;
  progress.mutable_progress()->set_kernel("j/k1");
  progress.mutable_progress()->set_stage("check");
  model.Apply(progress);
  CHECK(model.running().empty());
  model.Apply(journal.Written("j/k1"));
  model.Apply(journal.Leased("j/k1", 1));
  model.Apply(progress);
  CHECK(model.running().at("j/k1").stage == "check");
}

TEST_CASE("The plan of a search is rounds of survivors within the evaluation budget", "[cli]") {
  Journal journal;
  JobModel model;
  v1::Event created = journal.Next();
  v1::SearchPolicy* policy = created.mutable_job_created()->mutable_spec()->mutable_search()->mutable_policy();
  SECTION("defaults") { CHECK((model.Apply(created), model.PlannedEvaluations()) == 4 * 2 + 2 * 3 * 4 * 2); }
  SECTION("given") {
    policy->set_rounds(2), policy->set_ideas(3), policy->set_variants(1), policy->set_keep(2);
    CHECK((model.Apply(created), model.PlannedEvaluations()) == 3 + 2 * 3);
  }
  SECTION("budget") {
    policy->set_max_evaluations(5);
    CHECK((model.Apply(created), model.PlannedEvaluations()) == 5);
  }
}

}  // namespace
}  // namespace grove::cli
