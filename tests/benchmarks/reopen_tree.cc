// How long a coordinator takes to reopen a search of N kernels (default 100,000) that has not ended: the journal is
// read and folded, the policy told again. Prints the figures; asserts nothing about time.
//   reopen_tree [N]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "coordinator/engine/engine_impl.h"
#include "coordinator/search/policy.h"
#include "coordinator/store/sqlite_store.h"
#include "tests/support/temp_dir.h"

namespace grove {
namespace {

int64_t ResidentKib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::atoll(line.c_str() + 6);
  }
  return 0;
}

// One idea for every four kernels; each kernel written, leased and judged, with results as large as workers send them.
void Fill(store::Store& store, int kernels) {
  uint64_t seq = 0;
  const std::string job = "j-bench234";
  store::WriteBatch batch;
  const auto add = [&](v1::Event event) {
    event.set_seq(++seq);
    event.set_job(job);
    event.set_time_unix_nanos(1'700'000'000'000'000'000 + static_cast<int64_t>(seq));
    batch.events.push_back(
        {seq, job, static_cast<int>(event.body_case()), event.time_unix_nanos(), event.SerializeAsString()});
    if (batch.events.size() < 5000) return;
    if (!store.Commit(batch).ok()) std::abort();
    batch = store::WriteBatch();
  };
  v1::JobSpec spec;
  spec.mutable_search()->mutable_problem()->set_format(v1::PROBLEM_FORMAT_KERNELBENCH);
  spec.mutable_search()->mutable_problem()->set_source("class Model: pass\n");
  v1::SearchPolicy* policy = spec.mutable_search()->mutable_policy();
  policy->set_rounds(100);
  policy->set_ideas(1000);
  policy->set_variants(4);
  policy->set_max_evaluations(kernels * 2);
  *policy = search::WithDefaults(*policy);
  v1::Event created;
  *created.mutable_job_created()->mutable_spec() = spec;
  created.mutable_job_created()->set_idempotency_key("benchmark-benchmark");
  const std::string text = spec.SerializeAsString();
  created.mutable_job_created()->set_spec_sha256(Sha256Hex(text));
  batch.blobs.push_back({Sha256Hex(text), text});
  batch.jobs.push_back({job, "benchmark-benchmark", 1'700'000'000'000'000'000, false, ""});
  add(created);
  v1::Event described;
  described.mutable_problem_described()->mutable_description()->mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
  add(described);
  for (int k = 1; k <= kernels; ++k) {
    const std::string idea = absl::StrCat(job, "/i", (k - 1) / 4 + 1);
    const std::string id = absl::StrCat(job, "/k", k);
    if (k % 4 == 1) {
      v1::Event proposed;
      proposed.mutable_ideas_proposed()->set_request(absl::StrCat("r0/p/ideas", k));
      v1::IdeaNode* node = proposed.mutable_ideas_proposed()->add_ideas();
      node->set_id(idea);
      node->set_title("Load four values at a time");
      node->set_description(
          "Vectorised loads use the memory bus better; the rows are aligned, so that is always possible.");
      node->set_recipe("{\"base\":\"row\",\"set\":{\"vector\":4,\"threads\":256}}");
      node->set_state(v1::NODE_STATE_OPEN);
      add(proposed);
    }
    v1::Event written;
    written.mutable_kernel_written()->set_request(absl::StrCat(idea, "/v", (k - 1) % 4));
    written.mutable_kernel_written()->set_idea(idea);
    v1::KernelNode* kernel = written.mutable_kernel_written()->mutable_kernel();
    kernel->set_id(id);
    kernel->set_idea(idea);
    kernel->mutable_candidate()->set_format(v1::CANDIDATE_FORMAT_CPP);
    kernel->set_source_sha256(Sha256Hex(id));
    kernel->set_program_sha256(Sha256Hex(id + "n"));
    kernel->set_recipe("{\"base\":\"row\",\"set\":{\"vector\":4,\"threads\":256}}");
    add(written);
    v1::Event leased;
    leased.mutable_evaluation_leased()->set_kernel(id);
    leased.mutable_evaluation_leased()->set_attempt(1);
    leased.mutable_evaluation_leased()->set_worker("worker-23456789");
    add(leased);
    v1::Event finished;
    v1::EvaluationFinished* end = finished.mutable_evaluation_finished();
    end->set_kernel(id);
    end->set_attempt(1);
    end->set_result_sha256(Sha256Hex(id + "r"));
    v1::EvaluationResult* result = end->mutable_result();
    result->set_verdict(k % 5 == 0 ? v1::VERDICT_WRONG : v1::VERDICT_CORRECT);
    result->set_reason("correct in 5 of 5 trials");
    result->mutable_build()->set_command("g++ -O3 -march=native -fopenmp -shared -fPIC");
    result->mutable_build()->set_key(Sha256Hex(id + "b"));
    result->mutable_correctness()->set_rule("error at most 1e-4 of the output's magnitude");
    v1::BaselineTiming* baseline = result->mutable_timing()->add_baselines();
    baseline->set_speedup(1 + (k % 1000) / 500.0);
    baseline->set_speedup_low(1 + (k % 1000) / 510.0);
    baseline->set_speedup_high(1 + (k % 1000) / 490.0);
    baseline->set_samples(100);
    result->mutable_timing()->set_method("duet, cold L2, CUDA events checked by slope");
    result->mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
    result->mutable_device()->set_name("AMD EPYC 9554 64-Core Processor");
    result->mutable_device()->set_arch("x86-64/avx512");
    for (const char* stage : {"build", "prepare", "check", "time"}) result->add_stages()->set_stage(stage);
    add(finished);
  }
  if (!store.Commit(batch).ok()) std::abort();
}

int Main(int kernels) {
  SetLogLevel(LogLevel::kError);
  testing::TempDir dir;
  Fill(**store::OpenSqliteStore(dir.path()), kernels);
  const int64_t before = ResidentKib();
  const auto start = std::chrono::steady_clock::now();
  coordinator::EngineDependencies deps;
  deps.clock = &SystemClock::Get();
  deps.store = *store::OpenSqliteStore(dir.path());
  const int64_t bytes = deps.store->SizeBytes();
  deps.make_generator = [](const v1::GeneratorSpec&) {
    return absl::StatusOr<std::shared_ptr<generate::Generator>>(absl::FailedPreconditionError("none here"));
  };
  deps.make_policy = search::MakeBranchingPolicy;
  deps.with_defaults = search::WithDefaults;
  auto engine = coordinator::CreateEngine(coordinator::EngineOptions{.data_dir = dir.path()}, std::move(deps));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!engine.ok()) {
    fprintf(stderr, "%s\n", engine.status().ToString().c_str());
    return 1;
  }
  printf(
      "{\"benchmark\":\"reopen_tree\",\"kernels\":%d,\"journal_bytes\":%lld,\"seconds\":%.3f,\"rss_growth_kib\":%lld}"
      "\n",
      kernels, static_cast<long long>(bytes), seconds, static_cast<long long>(ResidentKib() - before));
  return 0;
}

}  // namespace
}  // namespace grove

int main(int argc, char** argv) { return grove::Main(argc > 1 ? std::atoi(argv[1]) : 100'000); }
