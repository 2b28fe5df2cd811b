#include "coordinator/rpc/validate.h"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>

#include "absl/strings/match.h"

namespace grove::coordinator {
namespace {

v1::SubmitJobRequest GoodEval() {
  v1::SubmitJobRequest request;
  request.set_idempotency_key("0123456789abcdef");
  auto* eval = request.mutable_spec()->mutable_eval();
  eval->mutable_problem()->set_name("softmax");
  eval->mutable_problem()->set_format(v1::PROBLEM_FORMAT_KERNELBENCH);
  eval->mutable_problem()->set_source("class Model: pass\n");
  auto* candidate = eval->add_candidates();
  candidate->set_format(v1::CANDIDATE_FORMAT_CPP);
  candidate->set_source("int main;\n");
  return request;
}

TEST_CASE("A sound request passes", "[validate]") {
  CHECK(ValidateSubmit(GoodEval()).ok());
  v1::SubmitJobRequest search;
  search.set_idempotency_key("0123456789abcdef");
  *search.mutable_spec()->mutable_search()->mutable_problem() = GoodEval().spec().eval().problem();
  CHECK(ValidateSubmit(search).ok());
}

TEST_CASE("Each fault of a request is named", "[validate]") {
  struct Case {
    std::string word;
    std::function<void(v1::SubmitJobRequest&)> spoil;
  };
  const std::vector<Case> cases = {
      {"idempotency_key", [](auto& r) { r.set_idempotency_key("short"); }},
      {"idempotency_key", [](auto& r) { r.set_idempotency_key(std::string(65, 'x')); }},
      {"printable", [](auto& r) { r.set_idempotency_key(std::string(16, '\n')); }},
      {"neither search nor eval", [](auto& r) { r.mutable_spec()->clear_eval(); }},
      {"precision is unknown",
       [](auto& r) {
         r.mutable_spec()->mutable_eval()->mutable_options()->set_precision(static_cast<v1::PrecisionPolicy>(9));
       }},
      {"work is unknown",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->set_work(static_cast<v1::WorkPolicy>(9)); }},
      {"distributions has an unknown entry",
       [](auto& r) {
         r.mutable_spec()->mutable_eval()->mutable_options()->add_distributions(v1::INPUT_DISTRIBUTION_UNSPECIFIED);
       }},
      {"format", [](auto& r) { r.mutable_spec()->mutable_check_problem(); }},
      {"empty", [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_problem()->clear_source(); }},
      {"format", [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_problem()->clear_format(); }},
      {"bytes",
       [](auto& r) {
         r.mutable_spec()->mutable_eval()->mutable_problem()->set_source(std::string(kMaxSourceBytes + 1, 'x'));
       }},
      {"candidates is empty", [](auto& r) { r.mutable_spec()->mutable_eval()->clear_candidates(); }},
      {"candidate 1", [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_candidates(0)->clear_source(); }},
      {"NUL",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_candidates(0)->set_source(std::string("a\0b", 3)); }},
      {"candidate 1",
       [](auto& r) {
         r.mutable_spec()->mutable_eval()->mutable_candidates(0)->set_source(std::string(kMaxSourceBytes + 1, 'x'));
       }},
      {"format",
       [](auto& r) {
         r.mutable_spec()->mutable_eval()->mutable_candidates(0)->set_format(static_cast<v1::CandidateFormat>(77));
       }},
      {"min_time_seconds",
       [](auto& r) {
         r.mutable_spec()->mutable_eval()->mutable_options()->set_min_time_seconds(
             std::numeric_limits<double>::quiet_NaN());
       }},
      {"memory_bytes",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->mutable_limits()->set_memory_bytes(-1); }},
      {"the least is 16 MiB",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->mutable_limits()->set_memory_bytes(1); }},
      {"the least is 16 MiB",
       [](auto& r) {
         r.mutable_spec()->mutable_eval()->mutable_options()->mutable_limits()->set_build_memory_bytes(4096);
       }},
      {"the least is 64 KiB",
       [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->mutable_limits()->set_disk_bytes(1); }},
      {"trials", [](auto& r) { r.mutable_spec()->mutable_eval()->mutable_options()->set_trials(-5); }},
      {"device",
       [](auto& r) {
         r.mutable_spec()->mutable_eval()->mutable_options()->set_device(static_cast<v1::DeviceKind>(9));
       }},
      {"name", [](auto& r) { r.mutable_spec()->set_name(std::string(10'000, 'n')); }},
      {"10000",
       [](auto& r) {
         for (int i = 0; i < kMaxCandidates; ++i)
           *r.mutable_spec()->mutable_eval()->add_candidates() = r.spec().eval().candidates(0);
       }},
  };
  for (const Case& one : cases) {
    v1::SubmitJobRequest request = GoodEval();
    one.spoil(request);
    const absl::Status status = ValidateSubmit(request);
    CAPTURE(one.word, status.message());
    CHECK_FALSE(status.ok());
    CHECK((absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status)));
    CHECK(absl::StrContains(status.message(), one.word));
    CHECK(status.message().size() < 600);
  }
}

TEST_CASE("Beside a node for the bank its operation and a note may be said, and nothing else", "[validate]") {
  v1::AddBankEntryRequest request;
  request.set_node("j-abcdefgh/k1");
  CHECK(ValidateAddBankEntry(request).ok());
  request.mutable_entry()->set_operation("softmax");
  request.mutable_entry()->set_note("by hand");
  CHECK(ValidateAddBankEntry(request).ok());
  request.mutable_entry()->set_note(std::string(5000, 'n'));
  CHECK_FALSE(ValidateAddBankEntry(request).ok());
  request.mutable_entry()->set_note("");
  request.mutable_entry()->mutable_candidate()->set_source("int x;");
  CHECK_FALSE(ValidateAddBankEntry(request).ok());
}

TEST_CASE("Ids are ids", "[validate]") {
  CHECK(ValidateJobId("j-4k2m9x7p").ok());
  CHECK(ValidateJobId("j-4").ok());
  CHECK(ValidateNodeId("j-4k2m9x7p/k3").ok());
  CHECK(ValidateNodeId("j-4k2m9x7p/i12").ok());
  CHECK(ValidateSha256(std::string(64, 'a')).ok());
  const std::string bad =
      GENERATE(as<std::string>{}, "", "j-", "J-ABC", "../../x", "j-x/k", "j-x/q1", "j-x/k1/k2", "j-x/k99999999999999",
               "x'; drop table", std::string(1 << 20, 'a'), std::string("j-a\0b", 5));
  CHECK_FALSE(ValidateJobId(bad).ok());
  CHECK_FALSE(ValidateNodeId(bad).ok());
  CHECK_FALSE(ValidateBankId(bad).ok());
  CHECK_FALSE(ValidateSha256(bad).ok());
  CHECK(ValidateJobId(bad).message().size() < 300);
}

TEST_CASE("A worker of another protocol is told to match versions", "[validate]") {
  v1::WorkerHello hello;
  hello.set_worker_id("w-abcdefgh");
  hello.set_protocol(2);
  hello.mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
  CHECK(absl::IsFailedPrecondition(ValidateHello(hello)));
  hello.set_protocol(1);
  CHECK(ValidateHello(hello).ok());
  hello.set_worker_id("../x");
  CHECK(absl::IsInvalidArgument(ValidateHello(hello)));
}

}  // namespace
}  // namespace grove::coordinator
