// Defaults and bounds of what an evaluation may use. Each has a flag of `grove eval` / `grove-worker` and a test.
#pragma once

#include "grove/v1/types.pb.h"

namespace grove::sandbox {

// 60 s: the slowest honest native build seen takes a few seconds; `load_inline` with torch's headers takes 40 to 60 s
// on one core, so builds of Python candidates get kPythonBuildFactor times as long.
inline constexpr double kBuildWallSeconds = 60;
inline constexpr double kPythonBuildFactor = 5;
// Twice the wall time: nvcc and ninja use more than one core.
inline constexpr double kBuildCpuSeconds = 120;
// 4 GiB: cicc on large unrolled kernels and cc1plus on torch's headers stay below 3 GiB.
inline constexpr int64_t kBuildMemoryBytes = int64_t{4} << 30;
// 64 MiB: a shared object with one architecture has well below 1 MiB; CUTLASS-heavy ones some 20.
inline constexpr int64_t kBuildOutputBytes = int64_t{64} << 20;
// 120 s: KernelBench's own bound per evaluation is 180 s with the build; a whole check and timing takes 1 to 20 s.
inline constexpr double kRunWallSeconds = 120;
// One call of a kernel. 10 s: a thousand times what the slowest of KernelBench's references takes on a GPU, and what a
// spinning kernel may cost the queue. On the CPU device naive loops over large shapes are slower: 30 s.
inline constexpr double kCallWallSecondsCuda = 10;
inline constexpr double kCallWallSecondsCpu = 30;
// Device memory of a candidate: half. The judge has the reference, inputs and expected outputs in the other half.
inline constexpr double kDeviceMemoryShare = 0.5;
// Threads and processes. OpenMP takes one per hardware thread, CUDA some ten, torch one pool per kind.
inline constexpr int kBaseProcesses = 128;
inline constexpr int kProcessesPerThread = 4;
// Private /tmp and /dev/shm together. Triton's and inductor's caches stay below 200 MiB. Memory, not disk, backs it.
inline constexpr int64_t kDiskBytes = int64_t{512} << 20;
// stdout and stderr. Past it a program is ended: it is writing a log and no kernel.
inline constexpr int64_t kOutputBytes = int64_t{4} << 20;
// What of it is kept for reports: the beginning and the end.
inline constexpr int64_t kKeptOutputBytes = int64_t{64} << 10;
// RLIMIT_NOFILE. CUDA and torch keep some hundred open. Each process has so many, and closing them all delays its end.
inline constexpr int kDescriptors = 4096;
// The judge's, which sends some: the kernel refuses whoever has a limit below the number of his user's that were sent
// and not received yet, and all sandboxes of a machine are one user's. Candidates can get that number to their own
// limit (and 253 more for each thread that sends at the same moment), so the judge's is well above.
inline constexpr int kJudgeDescriptors = 4 * kDescriptors;

// Every field set. Memory is half of the machine's, at most 16 GiB and at least 1 GiB; CPU time is the wall time on
// every hardware thread that may be used.
v1::Limits DefaultLimits(v1::DeviceKind device);

// Zero (and nonsense: negative, NaN) fields of `asked` become those of `operator_limits`, whose own zero fields become
// the default. What is asked for is cut at the bounds below, so that a request cannot hold a worker for good.
// `device_bytes`: memory of a GPU, of which the default of device_memory_bytes is a share; 0 = not known.
v1::Limits FillLimits(const v1::Limits& asked, const v1::Limits& operator_limits, v1::DeviceKind device,
                      int64_t device_bytes = 0);

// The limits of building a candidate of this format: torch's headers make builds of Python candidates
// kPythonBuildFactor times as long. A limit that was asked for stays as it is.
v1::Limits BuildLimits(const v1::Limits& filled, v1::CandidateFormat format);

// Bounds: an hour of wall time, all of memory but an eighth, 4096 processes, 8 GiB of disk, 256 MiB of output.
inline constexpr double kMaxWallSeconds = 3600;
inline constexpr int kMaxProcesses = 4096;
inline constexpr int64_t kMaxDiskBytes = int64_t{8} << 30;
inline constexpr int64_t kMaxOutputBytes = int64_t{256} << 20;

// The judge holds the reference, its inputs and the expected outputs: three quarters of the machine's memory.
int64_t DefaultJudgeMemoryBytes();

// Hardware threads that this process may use: affinity and cgroup quota. At least 1.
int UsableThreads();
int64_t MachineMemoryBytes();

}  // namespace grove::sandbox
