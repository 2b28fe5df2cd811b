#include "clients/cli/progress.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/cli/samples.h"

namespace grove::cli {
namespace {

JobModel SearchModel(int ideas) {
  JobModel model;
  uint64_t seq = 0;
  const auto apply = [&](auto fill) {
    v1::Event event;
    event.set_seq(++seq);
    fill(&event);
    model.Apply(event);
  };
  apply([](v1::Event* e) {
    e->mutable_job_created()->mutable_spec()->mutable_search()->mutable_policy()->set_rounds(1);
  });
  apply([](v1::Event* e) { e->mutable_problem_described()->mutable_description(); });
  for (int i = 1; i <= ideas; ++i) {
    apply([&](v1::Event* e) {
      *e->mutable_ideas_proposed()->add_ideas() = Idea(absl::StrCat("j/i", i), "", absl::StrCat("Idea ", i)).idea();
    });
  }
  for (int i = 1; i <= 3; ++i) {
    apply([&](v1::Event* e) {
      *e->mutable_kernel_written()->mutable_kernel() =
          Kernel(absl::StrCat("j/k", i), absl::StrCat("j/i", i), {}).kernel();
    });
  }
  for (int i = 1; i <= 3; ++i) {
    apply([&](v1::Event* e) { e->mutable_evaluation_leased()->set_kernel(absl::StrCat("j/k", i)); });
  }
  apply([](v1::Event* e) {
    e->mutable_evaluation_finished()->set_kernel("j/k1");
    *e->mutable_evaluation_finished()->mutable_result() = CorrectResult(2, 1.9, 2.1);
  });
  apply([](v1::Event* e) {
    e->mutable_evaluation_finished()->set_kernel("j/k2");
    *e->mutable_evaluation_finished()->mutable_result() = WrongResult();
  });
  return model;
}

TEST_CASE("Progress shows counts, the best with its interval, the rate and the time left", "[cli]") {
  ProgressView view;
  view.width = 200;
  view.elapsed_seconds = 60;
  CHECK(absl::StrJoin(RenderProgress("j", SearchModel(4), view), "\n") ==
        "j 4 ideas, 3 kernels: 0 queued, 1 running, 2 judged (1 correct, 1 wrong)\n"
        "  best 2x [1.9, 2.1] vs eager  k1 Idea 1   1:00, 2/min, at most 3:00 left   1 starting\n"
        "  - Idea 1  2x [1.9, 2.1]\n"
        "  - Idea 2  1 wrong\n"
        "  - Idea 3  1 under way\n"
        "  - Idea 4  being written");
}

TEST_CASE("Progress keeps within its lines and width", "[cli]") {
  const int ideas = GENERATE(0, 1, 5, 40);
  const size_t max_lines = GENERATE(2u, 3u, 7u);
  ProgressView view;
  view.max_lines = max_lines;
  view.width = 30;
  JobModel model = SearchModel(std::max(3, ideas));
  const auto lines = RenderProgress("j", model, view);
  CHECK(lines.size() <= max_lines);
  for (const std::string& line : lines) CHECK(DisplayWidth(line) <= 30);
}

TEST_CASE("Without a terminal each verdict is a line, and leases are none", "[cli]") {
  JobModel model = SearchModel(3);
  v1::Event finished;
  finished.set_seq(100);
  finished.mutable_evaluation_finished()->set_kernel("j/k3");
  *finished.mutable_evaluation_finished()->mutable_result() = CorrectResult(3, 2.9, 3.1);
  model.Apply(finished);
  CHECK(PlainLine(finished, model) == "k3 CORRECT 3x [2.9, 3.1]  Idea 3  (best so far)");
  // What would lead is measured again: a second line about the same kernel that says so.
  v1::Event again = finished;
  again.set_seq(101);
  again.mutable_evaluation_finished()->set_confirmation(true);
  *again.mutable_evaluation_finished()->mutable_result() = CorrectResult(2.5, 2.4, 2.6);
  model.Apply(again);
  CHECK(PlainLine(again, model) == "k3 CORRECT 2.5x [2.4, 2.6]  Idea 3  (measured again, best of those)");
  v1::Event leased;
  leased.mutable_evaluation_leased()->set_kernel("j/k3");
  CHECK(PlainLine(leased, model).empty());
  v1::Event state;
  state.mutable_job_state()->set_state(v1::JOB_STATE_PAUSED);
  state.mutable_job_state()->set_reason("the provider\nis out");
  CHECK(PlainLine(state, model) == "job paused: the provider is out");
  // Why a job failed is the command's last word, and said once.
  state.mutable_job_state()->set_state(v1::JOB_STATE_FAILED);
  CHECK(PlainLine(state, model) == "job failed");
}

}  // namespace
}  // namespace grove::cli
