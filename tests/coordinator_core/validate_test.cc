#include "coordinator/engine/validate.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/coordinator_core/harness.h"

namespace grove::coordinator {
namespace {

using grove::testing::EvalJob;
using grove::testing::SearchJob;

TEST_CASE("A submission that makes no sense is refused with the field and the remedy", "[validate]") {
  struct Case {
    const char* what;
    std::function<void(v1::SubmitJobRequest&)> spoil;
    const char* part;  // of the message
  };
  const Case cases[] = {
      {"no key", [](auto& r) { r.clear_idempotency_key(); }, "idempotency_key"},
      {"a key with a blank", [](auto& r) { r.set_idempotency_key("0123456789 0123456789"); }, "idempotency_key"},
      {"no kind", [](auto& r) { r.mutable_spec()->clear_kind(); }, "set one of them"},
      {"no problem", [](auto& r) { r.mutable_spec()->mutable_eval()->clear_problem(); }, "problem.format"},
      {"an empty problem", [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_problem()->clear_source(); },
       "problem softmax"},
      {"an unknown format",
       [](auto& r) {
         r.mutable_spec()->mutable_eval()->mutable_problem()->set_format(static_cast<v1::ProblemFormat>(77));
       },
       "unknown value 77"},
      {"no candidates", [](auto& r) { r.mutable_spec()->mutable_eval()->clear_candidates(); }, "candidates"},
      {"an empty candidate", [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_candidates(1)->clear_source(); },
       "candidate 2 (c.cpp): the source is empty"},
      {"a NUL",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_candidates(1)->set_source(std::string("ab\0c", 4)); },
       "candidate 2 (c.cpp): has a NUL byte at offset 2"},
      {"no UTF-8", [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_candidates(0)->set_source("\xff"); },
       "UTF-8"},
      {"more than 1 MiB",
       [](auto& r) {
         r.mutable_spec()->mutable_eval()->mutable_candidates(0)->set_source(std::string((1 << 20) + 1, 'x'));
       },
       "at most 1048576"},
      {"an unknown device",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->set_device(static_cast<v1::DeviceKind>(9)); },
       "options.device"},
      {"a .cpp on a GPU",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->set_device(v1::DEVICE_KIND_CUDA); },
       "candidate 1 (c.cpp): is for the device cpu"},
      {"no trials make sense", [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->set_trials(-1); },
       "options.trials"},
      {"pairs of processes without a rival",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->set_replicas(4); },
       "options.replicas: is 4, but there is no rival"},
      {"too many pairs of processes",
       [](auto& r) {
         v1::EvalSpec* eval = r.mutable_spec()->mutable_eval();
         *eval->mutable_rival() = eval->candidates(0);
         eval->mutable_options()->set_replicas(17);
       },
       "use 1 to 16 pairs of processes"},
      {"fewer than none of them",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->set_replicas(-1); }, "options.replicas"},
      {"an unknown policy of work",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->set_work(static_cast<v1::WorkPolicy>(9)); },
       "options.work"},
      {"a tolerance without its mode",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->mutable_tolerance()->set_atol(1); },
       "ABSOLUTE_RELATIVE"},
      {"a tolerance that is no number",
       [](auto& r) {
         auto* tolerance = r.mutable_spec()->mutable_eval()->mutable_options()->mutable_tolerance();
         tolerance->set_mode(v1::TOLERANCE_MODE_ABSOLUTE_RELATIVE);
         tolerance->set_rtol(std::nan(""));
       },
       "options.tolerance.rtol"},
      {"a minimum above its maximum",
       [](auto& r) {
         r.mutable_spec()->mutable_eval()->mutable_options()->set_min_time_seconds(3);
         r.mutable_spec()->mutable_eval()->mutable_options()->set_max_time_seconds(2);
       },
       "min_time_seconds"},
      {"a negative limit",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->mutable_limits()->set_memory_bytes(-1); },
       "options.limits.memory_bytes"},
      {"a flag with a NUL",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_candidates(0)->add_build_flags(std::string("-\0", 2)); },
       "build_flags"},
  };
  for (const Case& one : cases) {
    v1::SubmitJobRequest request = EvalJob("x", {"int a;", "int b;"});
    REQUIRE(ValidateSubmit(request, nullptr).ok());
    one.spoil(request);
    const absl::Status status = ValidateSubmit(request, nullptr);
    INFO(one.what << ": " << status.ToString());
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), one.part));
  }
}

TEST_CASE("A search with a contradiction is refused", "[validate]") {
  v1::SubmitJobRequest request = SearchJob("x");
  REQUIRE(ValidateSubmit(request, nullptr).ok());
  v1::GeneratorSpec* generator = request.mutable_spec()->mutable_search()->mutable_generator();
  generator->set_kind(v1::GENERATOR_KIND_REPLAY);
  CHECK(absl::IsInvalidArgument(ValidateSubmit(request, nullptr)));
  generator->set_recording("{}");
  CHECK(ValidateSubmit(request, nullptr).ok());
  generator->set_kind(v1::GENERATOR_KIND_CATALOGUE);
  CHECK(absl::IsInvalidArgument(ValidateSubmit(request, nullptr)));
  generator->clear_recording();
  generator->set_model("a model");
  CHECK(absl::IsInvalidArgument(ValidateSubmit(request, nullptr)));
  generator->clear_model();
  request.mutable_spec()->mutable_search()->mutable_options()->set_skip_timing(true);
  CHECK(absl::IsInvalidArgument(ValidateSubmit(request, nullptr)));
  request.mutable_spec()->mutable_search()->clear_options();
  const auto refuse = [](const v1::SearchPolicy&) { return std::optional<std::string>("too many rounds"); };
  CHECK(absl::StrContains(ValidateSubmit(request, refuse).message(), "policy: too many rounds"));
}

}  // namespace
}  // namespace grove::coordinator
