// Runs one more process of a candidate, under Nsight Compute, and reports what the profiler saw. For people and models:
// the candidate shares its sandbox with the profiler and could forge every figure, so nothing here may touch a verdict.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grove/v1/types.pb.h"
#include "worker/device/ncu.h"
#include "worker/pipeline/candidate_process.h"
#include "worker/pipeline/judge_process.h"

namespace grove::worker {

// All of one profile, from the process's start to its end. Starting takes a profiler some seconds, a torch as many, and
// each kernel is replayed some ten times; what is not done by then is not waited for.
inline constexpr absl::Duration kProfileTime = absl::Seconds(60);

// What runs `program` under the profiler, which writes its table to `log_file`. `sections` in place of metrics by name:
// see ncu_report.h.
std::vector<std::string> NcuCommand(const device::Ncu& ncu, const std::string& arch, bool sections,
                                    const std::string& log_file, const std::vector<std::string>& program);

class KernelProfiler {
 public:
  // Hands the candidate's program to its process.
  using SendProgram = std::function<absl::Status(StartedProcess*)>;
  // Drives it through one marked call, within so many seconds. An error says why it did not come to that.
  using Drive = std::function<absl::Status(JudgeProcess::Contestant, double seconds)>;

  // `ncu`: as given to FindNcu, which is asked when the first profile is wanted. `arch` as in DeviceInfo.
  KernelProfiler(CandidateConfig config, std::string ncu, std::string arch)
      : config_(std::move(config)), ncu_name_(std::move(ncu)), arch_(std::move(arch)) {}

  struct Outcome {
    std::vector<v1::KernelProfile> kernels;
    std::string unavailable;                // why there are none, or not all, and what to do; else empty
    std::optional<sandbox::Ending> ending;  // of the last process that was started
  };
  // Never longer than kProfileTime and what it takes to end a process. `cancelled` is asked now and then.
  Outcome Run(bool python, const v1::Limits& limits, const SendProgram& send, const Drive& drive,
              const std::function<bool()>& cancelled);

 private:
  struct Attempt {
    std::string text, err;  // the profiler's words, and all that came on stderr
    absl::Status driven;
    sandbox::Ending ending;
  };
  absl::StatusOr<Attempt> Try(bool python, bool sections, const v1::Limits& limits, const SendProgram& send,
                              const Drive& drive, const std::function<bool()>& cancelled, absl::Time deadline);

  const CandidateConfig config_;
  const std::string ncu_name_, arch_;
  std::optional<device::Ncu> ncu_;
};

// What the build knows and the profiler does not: whose a kernel is, what it spilled, and registers and shared memory
// where they were not counted.
// `functions`: names of those in its machine code, which says of extensions what their build's log does not.
void AddBuildFacts(const v1::BuildReport& build, const std::vector<std::string>& functions,
                   std::vector<v1::KernelProfile>* kernels);

}  // namespace grove::worker
