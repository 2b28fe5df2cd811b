#include "coordinator/generate/prompts.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/generate/parse.h"
#include "coordinator/llm/text.h"
#include "tests/generate/fixtures.h"

namespace grove::generate {
namespace {

std::string Whole(const std::vector<llm::Message>& messages) {
  std::string out;
  for (const llm::Message& message : messages) absl::StrAppend(&out, message.content, "\n");
  return out;
}

v1::IdeaNode Tried(const std::string& title, v1::NodeState state, double credit) {
  v1::IdeaNode idea;
  idea.set_title(title);
  idea.set_category("memory");
  idea.set_predicted_speedup(1.5);
  idea.set_state(state);
  idea.set_credit(credit);
  return idea;
}

v1::KernelNode Kernel(const std::string& id, const std::string& source, v1::Verdict verdict) {
  v1::KernelNode kernel;
  kernel.set_id(id);
  kernel.mutable_candidate()->set_source(source);
  kernel.mutable_candidate()->set_format(v1::CANDIDATE_FORMAT_CPP);
  kernel.mutable_result()->set_verdict(verdict);
  return kernel;
}

TEST_CASE("A prompt for ideas tells the problem, the device, what was tried and what came of it", "[generate]") {
  Context context = SmallContext(v1::DEVICE_KIND_CUDA);
  context.tried = {Tried("Wide loads", v1::NODE_STATE_DONE, 1.23456),
                   Tried("Half precision", v1::NODE_STATE_REFUTED, 0),
                   Tried("Persistent kernel", v1::NODE_STATE_OPEN, 0)};
  IdeaRequest request;
  request.count = 4;
  request.parent = Kernel("j/k1", "int parent_source;", v1::VERDICT_CORRECT);
  v1::BaselineTiming* timing = request.parent.mutable_result()->mutable_timing()->add_baselines();
  timing->set_baseline(v1::BASELINE_EAGER);
  timing->set_speedup(2.34567);
  timing->set_speedup_low(2.3);
  timing->set_speedup_high(2.4);
  timing->set_candidate_median_seconds(0.00045678);
  const std::string text = Whole(IdeasPrompt(context, request));
  for (const char* part :
       {"torch.softmax(x, dim=1)", "0: input x float32[128, 4096]", "1: parameter ln.weight float32[4096]",
        "NVIDIA L40S", "sm_89", "142", "Wide loads (predicted 1.5x): best kernel 1.2346x",
        "Half precision (predicted 1.5x): refuted, no correct kernel",
        "Persistent kernel (predicted 1.5x): being tried", "int parent_source;", "2.3457x", "456.78 us",
        "Give 4 new ideas", "GROVE_KERNEL(args)", "memory, latency, precision, compute, parallelism, control",
        "predicted_speedup", ".cu"}) {
    CAPTURE(part);
    CHECK(absl::StrContains(text, part));
  }
}

TEST_CASE("A prompt tells whose code may do the work where the job says so", "[generate]") {
  Context context = SmallContext(v1::DEVICE_KIND_CUDA);
  const auto ideas = [&] { return Whole(IdeasPrompt(context, IdeaRequest{"r", {}, 2})); };
  CHECK_FALSE(absl::StrContains(ideas(), "your own kernels"));
  context.options.set_work(v1::WORK_POLICY_OWN_KERNELS);
  CHECK(absl::StrContains(ideas(), "your own kernels alone"));
  context.options.set_work(v1::WORK_POLICY_LIBRARIES);
  CHECK(absl::StrContains(ideas(), "torch's operators may not"));
}

TEST_CASE("A prompt tells what a profile of the parent says", "[generate]") {
  Context context = SmallContext(v1::DEVICE_KIND_CUDA);
  IdeaRequest request;
  request.count = 1;
  request.parent = Kernel("j/k1", "int x;", v1::VERDICT_CORRECT);
  v1::ProfileReport* profile = request.parent.mutable_result()->mutable_profile();
  for (int i = 0; i < 16; ++i) {
    v1::KernelProfile* kernel = profile->add_kernels();
    kernel->set_name("Norm" + std::to_string(i));
    kernel->set_seconds(20e-6);
    kernel->set_share(0.5);
    kernel->set_occupancy(0.73);
    kernel->set_dram_fraction(0.67);
    v1::StallShare* stall = kernel->add_stalls();
    stall->set_reason("long_scoreboard");
    stall->set_share(0.6);
  }
  for (int i = 0; i < 24; ++i) {
    v1::Rate* one = profile->add_instructions();
    one->set_precision("OP" + std::to_string(i));
    one->set_operations_per_second(1000 - i);
  }
  const std::string text = Whole(IdeasPrompt(context, request));
  for (const char* part :
       {"Profile of Norm0: 20 us (50 % of the call), occupancy 73 %, DRAM 67 % of peak", "stalled long_scoreboard 60 %",
        "Instructions in the machine code: 1000 OP0, 999 OP1", "989 OP11\n"}) {
    CAPTURE(part);
    CHECK(absl::StrContains(text, part));
  }
  CHECK_FALSE(absl::StrContains(text, "Norm4"));
  CHECK_FALSE(absl::StrContains(text, "OP12"));
}

TEST_CASE("A prompt holds no seed, no machine's identity and nothing held out", "[generate]") {
  Context context = SmallContext();
  context.problem.set_format(v1::PROBLEM_FORMAT_NATIVE);
  context.problem.set_source(
      "name = \"p\"\nreference = \"\"\"\ndef forward(self, x: Tensor) -> Tensor:\n  return torch.relu(x)\n\"\"\"\n"
      "[[inputs]]\nshape = [128, 4096]\n[[held_out]]\nshape = [777, 13]\n# held-out 777\n"
      "note = '''\ndef forward(777)\n'''\n[hidden]\ncode = \"\"\"def forward(777): pass\"\"\"\n[x]\n"
      "held_out_reference = \"\"\"\ndef forward(777)\n\"\"\"\n");
  context.problem.set_name("p");
  context.device.set_uuid("GPU-1234");
  KernelRequest request;
  request.idea.set_title("t");
  request.parent = Kernel("j-secret/k1", "int x;", v1::VERDICT_CORRECT);
  request.parent.mutable_result()->set_worker("worker-host-17");
  for (const std::string& text :
       {Whole(IdeasPrompt(context, IdeaRequest{"r", {}, 2})), Whole(KernelPrompt(context, request))}) {
    CHECK(absl::StrContains(text, "torch.relu(x)"));
    CHECK_FALSE(absl::StrContains(text, "777"));
    CHECK_FALSE(absl::StrContains(text, "918273645"));
    CHECK_FALSE(absl::StrContains(text, "GPU-1234"));
    CHECK_FALSE(absl::StrContains(text, "worker-host-17"));
  }
}

TEST_CASE("Prompts of one search share their beginning, so that it can be cached", "[generate]") {
  Context context = SmallContext();
  const auto first = IdeasPrompt(context, IdeaRequest{"a", {}, 2});
  context.tried = {Tried("One", v1::NODE_STATE_DONE, 1.1)};
  KernelRequest request;
  request.idea = Tried("One", v1::NODE_STATE_OPEN, 0);
  const auto second = KernelPrompt(context, request);
  CHECK(first[0].content == second[0].content);
  const size_t stable = first[1].content.find("# Ideas tried so far");
  REQUIRE(stable != std::string::npos);
  CHECK(first[1].content.substr(0, stable - 1) == second[1].content.substr(0, stable - 1));
}

TEST_CASE("A repair prompt shows the kernel and what the compiler said", "[generate]") {
  KernelRequest request;
  request.repair = 1;
  request.idea = Tried("Tile it", v1::NODE_STATE_OPEN, 0);
  request.failed = Kernel("j/k2", "int broken", v1::VERDICT_BUILD_FAILED);
  request.failed.mutable_result()->mutable_build()->set_log(
      "In file included from x\nnoise\nkernel.cpp:3:7: error: expected ';' before '}' token\n  3 | int broken\n    |   "
      "        ^\n");
  const std::string text = Whole(KernelPrompt(SmallContext(), request));
  CHECK(absl::StrContains(text, "int broken"));
  CHECK(absl::StrContains(text, "expected ';' before"));
  CHECK(absl::StrContains(text, "Verdict: BUILD_FAILED"));
  CHECK(absl::StrContains(text, "repair this kernel"));
  CHECK(absl::StrContains(text, ".cpp"));
}

TEST_CASE("Each verdict is described by what repairs it", "[generate]") {
  v1::EvaluationResult wrong;
  wrong.set_verdict(v1::VERDICT_WRONG);
  wrong.mutable_correctness()->set_trials(5);
  wrong.mutable_correctness()->set_trials_passed(2);
  wrong.mutable_correctness()->set_first_failing_trial(3);
  wrong.mutable_correctness()->set_inputs_modified(true);
  v1::OutputComparison* output = wrong.mutable_correctness()->add_outputs();
  output->set_expected_type("float32[4,8]");
  output->set_elements(32);
  output->set_mismatched(7);
  output->mutable_worst()->add_index(3);
  output->mutable_worst()->add_index(5);
  output->mutable_worst()->set_expected(1.5);
  output->mutable_worst()->set_got(-2.25);
  output->mutable_worst()->set_error(3.75);
  output->mutable_worst()->set_allowed(0.0001);
  const std::string text = DescribeOutcome(wrong);
  for (const char* part : {"WRONG", "wrote to its inputs", "first wrong one was number 3", "7 of 32", "[3, 5]",
                           "expected 1.5", "got -2.25", "allowed 0.0001"}) {
    CAPTURE(part);
    CHECK(absl::StrContains(text, part));
  }
  v1::EvaluationResult crashed;
  crashed.set_verdict(v1::VERDICT_CRASHED);
  crashed.mutable_fault()->set_signal(11);
  crashed.mutable_fault()->set_signal_name("SIGSEGV");
  crashed.mutable_fault()->set_cuda_error("cudaErrorIllegalAddress");
  CHECK(absl::StrContains(DescribeOutcome(crashed), "SIGSEGV"));
  CHECK(absl::StrContains(DescribeOutcome(crashed), "cudaErrorIllegalAddress"));
  v1::EvaluationResult slow;
  slow.set_verdict(v1::VERDICT_TIMED_OUT);
  slow.mutable_fault()->set_limit("call_wall_seconds");
  slow.mutable_fault()->set_limit_set(10);
  slow.mutable_fault()->set_limit_reached(10.5);
  CHECK(absl::StrContains(DescribeOutcome(slow), "call_wall_seconds, set to 10, reached 10.5"));
}

TEST_CASE("Feedback keeps the errors of a long build log and its own bound", "[generate]") {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_BUILD_FAILED);
  std::string log;
  for (int i = 0; i < 20000; ++i) log += "note: template instantiation " + std::to_string(i) + "\n";
  log += "kernel.cu(9): error: identifier \"blockSize\" is undefined\n";
  result.mutable_build()->set_log(log);
  const std::string text = DescribeOutcome(result);
  CHECK(absl::StrContains(text, "blockSize"));
  CHECK(text.size() <= kMaxFeedbackInPrompt);
}

TEST_CASE("However much was tried, prompts stay within their bounds and keep the newest ideas", "[generate]") {
  Context context = SmallContext();
  for (int i = 0; i < 5000; ++i)
    context.tried.push_back(Tried("Idea number " + std::to_string(i), v1::NODE_STATE_DONE, 1));
  context.problem.set_source(std::string(1 << 20, 'p'));
  for (int i = 0; i < 3; ++i) context.bank.emplace_back().mutable_candidate()->set_source(std::string(1 << 20, 'b'));
  KernelRequest request;
  request.repair = 1;
  request.failed = Kernel("j/k9", std::string(1 << 20, 'f'), v1::VERDICT_WRONG);
  const std::string ideas =
      Whole(IdeasPrompt(context, IdeaRequest{"r", Kernel("j/k1", std::string(1 << 20, 's'), v1::VERDICT_WRONG), 2}));
  CHECK(ideas.size() < (200u << 10));
  CHECK(Whole(KernelPrompt(context, request)).size() < (200u << 10));
  CHECK(absl::StrContains(ideas, "Idea number 4999"));
  CHECK_FALSE(absl::StrContains(ideas, "Idea number 0 "));
  CHECK(absl::StrContains(ideas, "oldest are left out"));
}

TEST_CASE("No text inside a prompt can close its own fence", "[generate]") {
  const std::string fenced = Fenced("cpp", "a\n```\n`````\nb");
  std::vector<FencedBlock> blocks = FencedBlocks(fenced, nullptr);
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0].text == "a\n```\n`````\nb\n");
  CHECK(blocks[0].closed);
}

TEST_CASE("Prompts made of hostile bytes are UTF-8", "[generate]") {
  Context context = SmallContext();
  context.problem.set_source("\xFF\xFE\0x");
  context.problem.set_name("\x80");
  KernelRequest request;
  request.idea.set_description("\xC0\xAF");
  CHECK(llm::IsUtf8(Whole(KernelPrompt(context, request))));
}

}  // namespace
}  // namespace grove::generate
