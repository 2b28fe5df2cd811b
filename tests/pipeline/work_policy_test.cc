#include "worker/pipeline/work_policy.h"

#include <catch2/catch.hpp>

namespace grove::worker {
namespace {

v1::EvaluationOptions Under(v1::WorkPolicy policy) {
  v1::EvaluationOptions options;
  options.set_work(policy);
  return options;
}

v1::Candidate Of(v1::CandidateFormat format) {
  v1::Candidate candidate;
  candidate.set_format(format);
  return candidate;
}

v1::EvaluationResult On(v1::DeviceKind device) {
  v1::EvaluationResult result;
  result.mutable_device()->set_kind(device);
  return result;
}

const std::set<std::string> kStart = {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/opt/grove/grove-candidate"};

std::set<std::string> With(std::initializer_list<std::string> more) {
  std::set<std::string> all = kStart;
  all.insert(more.begin(), more.end());
  return all;
}

void Saw(v1::EvaluationResult* result, const std::string& name, double share) {
  v1::KernelProfile* kernel = result->mutable_work()->add_kernels();
  kernel->set_name(name);
  kernel->set_share(share);
}

TEST_CASE("A native kernel that loads a compute library breaches the policy of own kernels", "[work]") {
  const auto file = GENERATE("/usr/lib/libopenblas.so.0", "/usr/local/cuda/lib64/libcublas.so.13",
                             "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so", "/tmp/mine.so", "/memfd:x (deleted)",
                             "/tmp/libc.so.6", "/dev/shm/libgomp.so.1", "/memfd:libc.so.6 (deleted)");
  CAPTURE(file);
  auto result = On(v1::DEVICE_KIND_CPU);
  const auto breach =
      JudgeWork(Of(v1::CANDIDATE_FORMAT_CPP), Under(v1::WORK_POLICY_OWN_KERNELS), kStart, With({file}), &result);
  REQUIRE(breach.has_value());
  CHECK(result.work().libraries_size() == 1);
  // Without a policy the same is only told.
  auto free = On(v1::DEVICE_KIND_CPU);
  CHECK_FALSE(JudgeWork(Of(v1::CANDIDATE_FORMAT_CPP), Under(v1::WORK_POLICY_ANYTHING), kStart, With({file}), &free));
  CHECK(free.work().libraries_size() == 1);
}

TEST_CASE("Its own object, the C runtime and threads are nobody's library", "[work]") {
  auto result = On(v1::DEVICE_KIND_CPU);
  CHECK_FALSE(JudgeWork(Of(v1::CANDIDATE_FORMAT_CPP), Under(v1::WORK_POLICY_OWN_KERNELS), kStart,
                        With({"/memfd:grove-object (deleted)", "/usr/lib/libgomp.so.1", "/usr/lib/libmvec.so.1"}),
                        &result));
  CHECK(result.work().own_share() == 1);
}

TEST_CASE("Libraries of vendors are allowed where the policy says so, torch is not", "[work]") {
  auto result = On(v1::DEVICE_KIND_CUDA);
  CHECK_FALSE(JudgeWork(Of(v1::CANDIDATE_FORMAT_CUDA), Under(v1::WORK_POLICY_LIBRARIES), kStart,
                        With({"/usr/local/cuda/lib64/libcublasLt.so.13"}), &result));
  CHECK(JudgeWork(Of(v1::CANDIDATE_FORMAT_CUDA), Under(v1::WORK_POLICY_LIBRARIES), kStart,
                  With({"/opt/torch/lib/libtorch_cuda.so"}), &result));
}

TEST_CASE("A Python candidate is judged by the share of kernels that are not its own", "[work]") {
  auto seen = [](double own, double library, double torch) {
    auto result = On(v1::DEVICE_KIND_CUDA);
    result.mutable_build()->add_kernels()->set_name("void my_softmax<4>(float const*, float*)");
    Saw(&result, "void my_softmax<4>(float const*, float*)", own);
    Saw(&result, "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>(Params)", library);
    Saw(&result, "void at::native::vectorized_elementwise_kernel<4>(int)", torch);
    return result;
  };
  const auto python = Of(v1::CANDIDATE_FORMAT_KERNELBENCH);
  auto honest = seen(0.98, 0, 0.02);
  CHECK_FALSE(JudgeWork(python, Under(v1::WORK_POLICY_OWN_KERNELS), kStart, kStart, &honest));
  CHECK(honest.work().own_share() == Approx(0.98));
  CHECK(honest.work().kernels(0).own());
  auto borrowed = seen(0.1, 0.9, 0);
  const auto breach = JudgeWork(python, Under(v1::WORK_POLICY_OWN_KERNELS), kStart, kStart, &borrowed);
  REQUIRE(breach.has_value());
  CHECK(breach->find("cutlass") != std::string::npos);
  auto library = seen(0.1, 0.9, 0);
  CHECK_FALSE(JudgeWork(python, Under(v1::WORK_POLICY_LIBRARIES), kStart, kStart, &library));
  auto torch = seen(0.5, 0, 0.5);
  CHECK(JudgeWork(python, Under(v1::WORK_POLICY_LIBRARIES), kStart, kStart, &torch));
  auto anything = seen(0, 0, 1);
  CHECK_FALSE(JudgeWork(python, Under(v1::WORK_POLICY_ANYTHING), kStart, kStart, &anything));
}

TEST_CASE("On the CPU torch's operators are told from the candidate's own and from bookkeeping", "[work]") {
  CHECK(OriginOfKernel("aten::mm", {}, true) == CodeOrigin::kTorch);
  CHECK(OriginOfKernel("aten::empty_strided", {}, true) == CodeOrigin::kHarmless);
  CHECK(OriginOfKernel("aten::view", {}, true) == CodeOrigin::kHarmless);
  CHECK(OriginOfKernel("aten::tanh", {}, true) == CodeOrigin::kTorch);
  CHECK(OriginOfKernel("mine::gelu", {}, true) == CodeOrigin::kOwn);
}

TEST_CASE("Kernels are told apart by the build's list and by the shape of their names", "[work]") {
  v1::BuildReport build;
  build.add_kernels()->set_name("(anonymous namespace)::mine<float>(float*)");
  auto origin = [&](const std::string& name) { return OriginOfKernel(name, build, false); };
  CHECK(origin("void (anonymous namespace)::mine<float>(float*)") == CodeOrigin::kOwn);
  CHECK(origin("void (anonymous namespace)::softmax_warp_forward<float, 10>(float*, int)") == CodeOrigin::kTorch);
  CHECK(origin("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3") == CodeOrigin::kLibrary);
  CHECK(origin("triton_softmax_kernel") == CodeOrigin::kOwn);
}

TEST_CASE("Where no kernel was seen nothing is proven on a GPU", "[work]") {
  auto result = On(v1::DEVICE_KIND_CUDA);
  CHECK(JudgeWork(Of(v1::CANDIDATE_FORMAT_KERNELBENCH), Under(v1::WORK_POLICY_OWN_KERNELS), kStart, kStart, &result));
}

}  // namespace
}  // namespace grove::worker
