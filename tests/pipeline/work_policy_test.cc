#include "worker/pipeline/work_policy.h"

#include <catch2/catch.hpp>
#include <cmath>

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

const sandbox::FileIdentity kObject{1, 77};

sandbox::MappedCode File(const std::string& path) { return {path, {2, std::hash<std::string>()(path)}, false}; }
const sandbox::MappedCode kOwn{"/memfd:grove-object (deleted)", kObject, false};

// What is there from the start, and what comes.
SeenCode With(std::initializer_list<sandbox::MappedCode> more) {
  SeenCode code;
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/opt/grove/grove-candidate", "/usr/bin/python3.11",
        "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13.0", "/usr/lib/x86_64-linux-gnu/libtorch_python.so.1.13.0"}) {
    code.before.insert(File(path));
  }
  code.after = code.before;
  code.after.insert(more.begin(), more.end());
  code.objects.insert(kObject);
  return code;
}

// A thread in this file for so long, in looks of one millisecond.
void Stand(pid_t thread, const sandbox::MappedCode& file, double seconds, WatchedWork* work) {
  for (int i = 0; i < static_cast<int>(std::lround(1000 * seconds)); ++i) {
    work->looks.push_back({{thread, file, 1e-3}});
    work->squares += 1e-6;
    ++work->seen;
  }
}

// Its own object and seconds in each file.
SeenCode Watched(std::initializer_list<std::pair<sandbox::MappedCode, double>> seconds) {
  SeenCode code = With({kOwn});
  code.watched.emplace();
  for (const auto& [file, each] : seconds) Stand(1, file, each, &*code.watched);
  return code;
}

void Saw(v1::EvaluationResult* result, const std::string& name, double share) {
  v1::KernelProfile* kernel = result->mutable_work()->add_kernels();
  kernel->set_name(name);
  kernel->set_share(share);
}

TEST_CASE("A native kernel that loads a compute library breaches the policy of own kernels", "[work]") {
  const auto file = GENERATE(
      "/usr/lib/libopenblas.so.0", "/usr/local/cuda/lib64/libcublas.so.13", "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so",
      "/tmp/mine.so", "/memfd:x (deleted)", "/tmp/libc.so.6", "/dev/shm/libgomp.so.1", "/memfd:libc.so.6 (deleted)",
      "/memfd:x/libm.so.6 (deleted)", "/memfd:/usr/lib/libm.so.6", "/usr/lib/libm.so.6 (deleted)");
  CAPTURE(file);
  auto result = On(v1::DEVICE_KIND_CPU);
  const auto breach =
      JudgeWork(Of(v1::CANDIDATE_FORMAT_CPP), Under(v1::WORK_POLICY_OWN_KERNELS), With({kOwn, File(file)}), &result);
  REQUIRE(breach.has_value());
  CHECK(result.work().libraries_size() == 1);
  // Without a policy the same is only told.
  auto free = On(v1::DEVICE_KIND_CPU);
  CHECK_FALSE(
      JudgeWork(Of(v1::CANDIDATE_FORMAT_CPP), Under(v1::WORK_POLICY_ANYTHING), With({kOwn, File(file)}), &free));
  CHECK(free.work().libraries_size() == 1);
}

TEST_CASE("Its own object, the C runtime and threads are nobody's library", "[work]") {
  auto result = On(v1::DEVICE_KIND_CPU);
  CHECK_FALSE(JudgeWork(Of(v1::CANDIDATE_FORMAT_CPP), Under(v1::WORK_POLICY_OWN_KERNELS),
                        With({kOwn, File("/usr/lib/libgomp.so.1"), File("/usr/lib/libmvec.so.1")}), &result));
  // What was there is known, and not for how long it ran.
  CHECK(result.work().own_share() == 0);
  CHECK_THAT(result.work().how(), Catch::Contains("its own object") && Catch::Contains("how long each ran was not"));
}

TEST_CASE("An object of the candidate's own is known by its file and not by its name", "[work]") {
  const auto judge = [](const SeenCode& code, v1::WorkPolicy policy = v1::WORK_POLICY_OWN_KERNELS) {
    auto result = On(v1::DEVICE_KIND_CPU);
    return JudgeWork(Of(v1::CANDIDATE_FORMAT_CPP), Under(policy), code, &result).value_or("");
  };
  CHECK(judge(With({kOwn})).empty());
  const sandbox::MappedCode another{kOwn.path, {1, 78}, false};
  CHECK(judge(With({kOwn, another})).find("not its own object: memfd:grove-object") != std::string::npos);
  // Nor is what was written over the file's own code, there or in a library.
  CHECK(judge(With({{kOwn.path, kObject, true}})).find("over that of the object") != std::string::npos);
  sandbox::MappedCode changed = File("/usr/lib/x86_64-linux-gnu/libc.so.6");
  changed.changed = true;
  CHECK(judge(With({kOwn, changed})).find("over that of libc.so.6") != std::string::npos);
  CHECK(judge(With({kOwn, another, changed}), v1::WORK_POLICY_ANYTHING).empty());
}

TEST_CASE("On the CPU a script's work is looked at from outside too", "[work]") {
  const auto torch = File("/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13.0");
  const auto bindings = File("/usr/lib/x86_64-linux-gnu/libtorch_python.so.1.13.0"),
             python = File("/usr/bin/python3.11");
  const auto blas = File("/usr/lib/x86_64-linux-gnu/libopenblas.so.0"), c = File("/usr/lib/x86_64-linux-gnu/libc.so.6");
  const auto judge = [](const SeenCode& code, v1::WorkPolicy policy = v1::WORK_POLICY_OWN_KERNELS) {
    auto result = On(v1::DEVICE_KIND_CPU);  // its profiler saw nothing
    return JudgeWork(Of(v1::CANDIDATE_FORMAT_KERNELBENCH), Under(policy), code, &result).value_or("");
  };
  CHECK(judge(Watched({{kOwn, 0.3}, {python, 0.01}, {c, 0.1}})).empty());
  // A small kernel of its own: making its output and finding its way there take longer than itself.
  CHECK(judge(Watched({{kOwn, 0.05}, {python, 0.2}, {bindings, 0.1}, {torch, 0.15}})).empty());
  CHECK(judge(Watched({{kOwn, 0.02}, {torch, 0.3}, {python, 0.02}})).find("most of it in libtorch_cpu") !=
        std::string::npos);
  // Half of the work, hidden behind a kernel of its own.
  CHECK_FALSE(judge(Watched({{kOwn, 0.2}, {blas, 0.2}, {python, 0.01}})).empty());
  CHECK(judge(Watched({{kOwn, 0.2}, {blas, 0.2}, {python, 0.01}}), v1::WORK_POLICY_LIBRARIES).empty());
  CHECK_FALSE(judge(Watched({{kOwn, 0.2}, {torch, 0.2}}), v1::WORK_POLICY_LIBRARIES).empty());
  CHECK(judge(Watched({{torch, 0.3}}), v1::WORK_POLICY_ANYTHING).empty());
  // Names are no excuse: what came later is not the interpreter.
  CHECK_FALSE(judge(Watched({{kOwn, 0.2}, {File("/tmp/libpython3.so"), 0.3}})).empty());
  CHECK_FALSE(judge(Watched({{kOwn, 0.2}, {File("[anonymous]"), 0.3}})).empty());
  const auto module = File("/opt/python/lib-dynload/_json.so"), mine = File("/tmp/lib-dynload/_json.so");
  CHECK(judge(Watched({{kOwn, 0.2}, {module, 0.3}, {torch, 0.2}})).empty());
  CHECK_FALSE(judge(Watched({{kOwn, 0.2}, {mine, 0.3}, {torch, 0.2}})).empty());
  // Too little to say anything by.
  CHECK(judge(Watched({{torch, 0.008}})).empty());
  CHECK(judge(Watched({{kOwn, 0.012}, {torch, 0.004}})).empty());
}

// Looks of two milliseconds, in turn, at which threads 1, 2, ... stand in these; {} has not run.
SeenCode Looked(const std::vector<std::vector<sandbox::MappedCode>>& looks) {
  SeenCode code = With({kOwn});
  code.watched.emplace();
  for (int i = 0; i < 300; ++i) {
    std::vector<Standing> standing;
    pid_t thread = 0;
    for (const sandbox::MappedCode& mapped : looks[static_cast<size_t>(i) % looks.size()]) {
      ++thread;
      if (mapped.path.empty()) continue;
      standing.push_back({thread, mapped, 2e-3});
      code.watched->squares += 4e-6;
      ++code.watched->seen;
    }
    code.watched->looks.push_back(standing);
  }
  return code;
}

TEST_CASE("Time in which some thread works for others is others', whatever its other threads do", "[work]") {
  const auto torch = File("/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13.0"), python = File("/usr/bin/python3.11"),
             gomp = File("/usr/lib/x86_64-linux-gnu/libgomp.so.1");
  const sandbox::MappedCode away;
  const auto judge = [](const SeenCode& code) {
    auto result = On(v1::DEVICE_KIND_CPU);  // its profiler saw nothing
    return JudgeWork(Of(v1::CANDIDATE_FORMAT_KERNELBENCH), Under(v1::WORK_POLICY_OWN_KERNELS), code, &result)
        .value_or("");
  };
  // Two take turns at torch and at spinning in the interpreter, so that each has its excuse.
  CHECK(judge(Looked({{torch, python}, {python, torch}})).find("some thread of it") != std::string::npos);
  // One works in torch, and twelve spin in code of its own.
  CHECK(
      judge(Looked({{torch, kOwn, kOwn, kOwn, kOwn, kOwn, kOwn, kOwn, kOwn, kOwn, kOwn, kOwn, kOwn}})).find("100 %") !=
      std::string::npos);
  // They take turns at that, too.
  CHECK_FALSE(judge(Looked({{torch, kOwn, kOwn}, {kOwn, torch, kOwn}, {kOwn, kOwn, torch}})).empty());
  // Its own kernel on two threads, between calls: the second one rests meanwhile, or waits.
  CHECK(judge(Looked({{kOwn, kOwn}, {kOwn, kOwn}, {python, away}, {torch, gomp}})).empty());
  CHECK(judge(Looked({{kOwn, kOwn}, {kOwn, gomp}, {kOwn, away}})).empty());
  // Its own kernel on a thread of its own, while another calls and makes tensors.
  CHECK(judge(Looked({{python, kOwn}, {python, kOwn}, {torch, kOwn}})).empty());
}

TEST_CASE("A script's own share on the CPU is what was seen from outside, and none where too little was", "[work]") {
  const auto torch = File("/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13.0");
  const auto share = [](const SeenCode& code) {
    auto result = On(v1::DEVICE_KIND_CPU);  // its profiler saw no operator
    JudgeWork(Of(v1::CANDIDATE_FORMAT_KERNELBENCH), Under(v1::WORK_POLICY_OWN_KERNELS), code, &result);
    return result.work().own_share();
  };
  CHECK(share(With({kOwn})) == 0);
  CHECK(share(Watched({{kOwn, 0.003}, {torch, 0.001}})) == 0);
  CHECK(share(Watched({{kOwn, 0.4}})) == 1);
  CHECK(share(Watched({{kOwn, 0.3}, {torch, 0.1}})) == Approx(0.75));
}

TEST_CASE("A script that has no code of its own has not done the work on the CPU", "[work]") {
  SeenCode code = With({});
  auto result = On(v1::DEVICE_KIND_CPU);
  const auto python = Of(v1::CANDIDATE_FORMAT_KERNELBENCH);
  const auto breach = JudgeWork(python, Under(v1::WORK_POLICY_OWN_KERNELS), code, &result);
  REQUIRE(breach.has_value());
  CHECK(breach->find("never had code of its own") != std::string::npos);
  CHECK(result.work().own_share() == 0);
  auto free = On(v1::DEVICE_KIND_CPU);
  CHECK_FALSE(JudgeWork(python, Under(v1::WORK_POLICY_ANYTHING), code, &free));
  // One that calls a vendor's library has not either, and where that is allowed it need not.
  code.after.insert(File("/usr/lib/libopenblas.so.0"));
  auto library = On(v1::DEVICE_KIND_CPU);
  CHECK_FALSE(JudgeWork(python, Under(v1::WORK_POLICY_LIBRARIES), code, &library));
}

TEST_CASE("Kernels of an extension are its own by their signature, and torch's and libraries' are not by any",
          "[work]") {
  const std::vector<std::string> functions = {"(anonymous namespace)::my_gemm(float const*, float*, int)",
                                              "void Reduce<256>(float const*, float*)",
                                              "void at::native::copy(float*)",
                                              "cub::Scan(float*)",
                                              "softmaxmma_kernel(float*)",
                                              "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n"};
  const auto origin = [&](const char* name) { return OriginOfKernel(name, false, functions); };
  CHECK(origin("(anonymous namespace)::my_gemm(float const*, float*, int)") == CodeOrigin::kOwn);
  CHECK(origin("void Reduce<256>(float const*, float*)") == CodeOrigin::kOwn);
  CHECK(origin("void Reduce<512>(float const*, float*)") == CodeOrigin::kTorch);
  CHECK(origin("their_gemm(float const*, float*, int)") == CodeOrigin::kLibrary);
  // A function of the same name is no leave for theirs.
  CHECK(origin("void at::native::copy(float*)") == CodeOrigin::kTorch);
  CHECK(origin("cub::Scan(float*)") == CodeOrigin::kLibrary);
  CHECK(origin("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n") == CodeOrigin::kLibrary);
  CHECK(origin("softmaxmma_kernel(float*)") == CodeOrigin::kOwn);
  CHECK(OriginOfKernel("void Reduce<256>(float const*, float*)", false) == CodeOrigin::kTorch);
  // The compiler of Triton's kernels, which torch's own tools load; a file of that name that it brought is none.
  CHECK(OriginOfLibrary("/usr/lib/python3/dist-packages/triton/_C/libtriton.so") == CodeOrigin::kHarmless);
  CHECK(OriginOfLibrary("/tmp/libtriton.so") != CodeOrigin::kHarmless);
}

TEST_CASE("Libraries of vendors are allowed where the policy says so, torch is not", "[work]") {
  auto result = On(v1::DEVICE_KIND_CUDA);
  CHECK_FALSE(JudgeWork(Of(v1::CANDIDATE_FORMAT_CUDA), Under(v1::WORK_POLICY_LIBRARIES),
                        With({kOwn, File("/usr/local/cuda/lib64/libcublasLt.so.13")}), &result));
  CHECK(JudgeWork(Of(v1::CANDIDATE_FORMAT_CUDA), Under(v1::WORK_POLICY_LIBRARIES),
                  With({kOwn, File("/opt/torch/lib/libtorch_cuda.so")}), &result));
}

TEST_CASE("A vendor's library is where those are, and what was there stays what it was", "[work]") {
  const auto judge = [](v1::CandidateFormat format, v1::WorkPolicy policy, const SeenCode& code) {
    auto result = On(v1::DEVICE_KIND_CPU);
    return JudgeWork(Of(format), Under(policy), code, &result);
  };
  for (const char* path : {"/memfd:x/libopenblas.so (deleted)", "/tmp/libopenblas.so"}) {
    CAPTURE(path);
    CHECK(judge(v1::CANDIDATE_FORMAT_CPP, v1::WORK_POLICY_LIBRARIES, With({kOwn, File(path)})));
    CHECK(judge(v1::CANDIDATE_FORMAT_KERNELBENCH, v1::WORK_POLICY_LIBRARIES, With({kOwn, File(path)})));
  }
  CHECK_FALSE(
      judge(v1::CANDIDATE_FORMAT_CPP, v1::WORK_POLICY_LIBRARIES, With({kOwn, File("/usr/lib/libopenblas.so.0")})));
  // A package is replaced while the process waits, or while it works.
  SeenCode replaced = With({kOwn});
  const sandbox::MappedCode libm = File("/usr/lib/libm.so.6");
  replaced.before.insert(libm);
  replaced.after.insert({libm.path + " (deleted)", libm.file, false});
  CHECK_FALSE(judge(v1::CANDIDATE_FORMAT_CPP, v1::WORK_POLICY_OWN_KERNELS, replaced));
  SeenCode old = Watched({{kOwn, 0.5}, {{libm.path + " (deleted)", libm.file, false}, 0.4}});
  old.before.insert({libm.path + " (deleted)", libm.file, false});
  CHECK_FALSE(judge(v1::CANDIDATE_FORMAT_KERNELBENCH, v1::WORK_POLICY_OWN_KERNELS, old));
}

TEST_CASE("A Python candidate is judged by the share of kernels that are not its own", "[work]") {
  auto seen = [](double own, double library, double torch) {
    auto result = On(v1::DEVICE_KIND_CUDA);
    // What the build says proves nothing: the script runs in it.
    result.mutable_build()->add_kernels()->set_name("void at::native::vectorized_elementwise_kernel<4>(int)");
    result.mutable_build()->add_kernels()->set_name("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>(Params)");
    Saw(&result, "void my_softmax<4>(float const*, float*)", own);
    Saw(&result, "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>(Params)", library);
    Saw(&result, "void at::native::vectorized_elementwise_kernel<4>(int)", torch);
    return result;
  };
  const auto python = Of(v1::CANDIDATE_FORMAT_KERNELBENCH);
  SeenCode code = With({kOwn});
  code.functions = {"void my_softmax<4>(float const*, float*)"};
  auto honest = seen(0.98, 0, 0.02);
  CHECK_FALSE(JudgeWork(python, Under(v1::WORK_POLICY_OWN_KERNELS), code, &honest));
  CHECK(honest.work().own_share() == Approx(0.98));
  CHECK(honest.work().kernels(0).own());
  auto borrowed = seen(0.1, 0.9, 0);
  const auto breach = JudgeWork(python, Under(v1::WORK_POLICY_OWN_KERNELS), code, &borrowed);
  REQUIRE(breach.has_value());
  CHECK(breach->find("cutlass") != std::string::npos);
  auto library = seen(0.1, 0.9, 0);
  CHECK_FALSE(JudgeWork(python, Under(v1::WORK_POLICY_LIBRARIES), code, &library));
  auto torch = seen(0.5, 0, 0.5);
  CHECK(JudgeWork(python, Under(v1::WORK_POLICY_LIBRARIES), code, &torch));
  auto anything = seen(0, 0, 1);
  CHECK_FALSE(JudgeWork(python, Under(v1::WORK_POLICY_ANYTHING), code, &anything));
}

TEST_CASE("On the CPU torch's operators are told from the candidate's own and from bookkeeping", "[work]") {
  CHECK(OriginOfKernel("aten::mm", true) == CodeOrigin::kTorch);
  CHECK(OriginOfKernel("aten::empty_strided", true) == CodeOrigin::kHarmless);
  CHECK(OriginOfKernel("aten::view", true) == CodeOrigin::kHarmless);
  CHECK(OriginOfKernel("aten::tanh", true) == CodeOrigin::kTorch);
  CHECK(OriginOfKernel("mine::gelu", true) == CodeOrigin::kOwn);
}

TEST_CASE("Kernels are told apart by their objects' functions and by the shape of their names", "[work]") {
  const std::vector<std::string> functions = {"void (anonymous namespace)::mine<float>(float*)"};
  auto origin = [&](const std::string& name) { return OriginOfKernel(name, false, functions); };
  CHECK(origin("void (anonymous namespace)::mine<float>(float*)") == CodeOrigin::kOwn);
  CHECK(origin("void <unnamed>::mine<float>(float *)") == CodeOrigin::kOwn);  // as Nsight Compute writes it
  CHECK(origin("<unnamed>::yours(float *)") != CodeOrigin::kOwn);
  CHECK(origin("void (anonymous namespace)::softmax_warp_forward<float, 10>(float*, int)") == CodeOrigin::kTorch);
  CHECK(origin("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3") == CodeOrigin::kLibrary);
  CHECK(origin("triton_softmax_kernel") == CodeOrigin::kOwn);
}

TEST_CASE("Where no kernel was seen nothing is proven on a GPU", "[work]") {
  auto result = On(v1::DEVICE_KIND_CUDA);
  CHECK(JudgeWork(Of(v1::CANDIDATE_FORMAT_KERNELBENCH), Under(v1::WORK_POLICY_OWN_KERNELS), With({kOwn}), &result));
}

TEST_CASE("Too little seen is no innocence", "[work]") {
  const v1::Candidate native = Of(v1::CANDIDATE_FORMAT_CPP), script = Of(v1::CANDIDATE_FORMAT_KERNELBENCH);
  SeenCode enough = Watched({{kOwn, 0.5}});
  CHECK_FALSE(WorkUnseen(native, enough).has_value());
  CHECK_FALSE(WorkUnseen(script, enough).has_value());
  // Threads that had ended before anybody looked may have worked for whomever.
  SeenCode gone = enough;
  gone.watched->passed_seconds = 0.5;
  gone.watched->ended_seconds = 0.2;
  CHECK(WorkUnseen(script, gone)->find("29 % of its time") != std::string::npos);
  CHECK_FALSE(WorkUnseen(native, gone).has_value());
  gone.watched->ended_seconds = 0.02;
  CHECK_FALSE(WorkUnseen(script, gone).has_value());
  // A native candidate works in its own object, so that one which was not seen there was not seen at all.
  SeenCode absent = enough;
  absent.after.erase(kOwn);
  CHECK(WorkUnseen(native, absent)->find("its own object") != std::string::npos);
  CHECK_FALSE(WorkUnseen(script, absent).has_value());
  // Nobody looked, or too seldom.
  SeenCode unwatched = With({kOwn});
  CHECK(WorkUnseen(native, unwatched).has_value());
  SeenCode seldom = Watched({{kOwn, 0.005}});
  CHECK(WorkUnseen(script, seldom)->find("5 times") != std::string::npos);
  SeenCode coarse = enough;
  coarse.watched->squares = 0.5 * 0.5 / 2;  // worth two looks
  CHECK(WorkUnseen(native, coarse).has_value());
  coarse.watched->Add(*enough.watched);  // worth eight
  CHECK_FALSE(SeenEnough(coarse));
  coarse.watched->Add(*enough.watched);
  CHECK(SeenEnough(coarse));
  // A thread that spins in the interpreter is seen all the time, and says nothing of who works in another.
  const auto torch = File("/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13.0"), python = File("/usr/bin/python3.11");
  SeenCode spinning = Watched({{torch, 0.008}});
  Stand(2, python, 0.5, &*spinning.watched);
  CHECK_FALSE(SeenEnough(spinning));
  CHECK(WorkUnseen(script, spinning).has_value());
  Stand(1, torch, 0.1, &*spinning.watched);
  CHECK(SeenEnough(spinning));
  CHECK(SeenEnough(Watched({{python, 0.5}})));  // who only calls is seen, too
  CHECK_FALSE(SeenEnough(With({kOwn})));
  // Where the kernel does not tell, waiting longer would not help, and `how` says so.
  SeenCode mute = With({kOwn});
  mute.watched.emplace();
  mute.watched->problem = "the kernel does not say where its threads stand";
  CHECK_FALSE(WorkUnseen(script, mute).has_value());
  mute.watched->ended_seconds = 1;  // all that ran, as no thread could be told
  CHECK_FALSE(WorkUnseen(script, mute).has_value());
}

}  // namespace
}  // namespace grove::worker
