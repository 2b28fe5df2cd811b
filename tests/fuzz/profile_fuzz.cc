// What a profiler's table and a disassembly may hold, when the sandbox that they come from is hostile.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "worker/build/sass.h"
#include "worker/pipeline/ncu_report.h"
#include "worker/pipeline/verdict.h"

namespace {

constexpr char kHeader[] =
    "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"gpu__time_duration.sum\","
    "\"sm__warps_active.avg.pct_of_peak_sustained_active\",\"launch__registers_per_thread\","
    "\"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio\","
    "\"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio\"\n"
    "\"\",\"\",\"\",\"\",\"ns\",\"%\",\"register/thread\",\"inst\",\"inst\"\n";

void Expect(bool holds) {
  if (!holds) std::abort();
}

bool Share(double value) { return value >= -0.01 && value <= 1 + 1e-9; }

}  // namespace

std::string FuzzWrap(const std::string& text) { return kHeader + text; }

std::vector<std::string> FuzzSeeds() {
  const std::string row =
      "\"0\",\"A(float *, \"\"x\"\")\",\"(256, 1, 1)\",\"(65536, 1, "
      "1)\",\"59,360\",\"73.10\",\"16\",\"4.5\",\"1.00\"\n";
  const std::string code = "\tFunction : _Z1Af\n        /*0000*/  @!P0 FFMA.FTZ R1, R2, R3, R4 ;  /* 0x1 */\n";
  return {row,
          row + row,
          kHeader + row,
          kHeader + row + kHeader,
          "==ERROR== ERR_NVGPUCTRPERM - no\n",
          code,
          code + code,
          "\"0\",\"B\",\"\",\"\",\"nan\",\"n/a\",\"-1\",\"1e300\",\"no data\"\n",
          std::string(300, '"'),
          std::string(300, ',')};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace grove;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const worker::NcuReport report = worker::ParseNcu(text);
  Expect(report.kernels.size() <= worker::kMaxProfiledKernels && report.launches <= worker::kMaxProfiledLaunches);
  Expect(report.error.size() <= 500 && worker::RepairUtf8(report.error, 500) == report.error);
  double shares = 0, last = HUGE_VAL;
  for (const v1::KernelProfile& kernel : report.kernels) {
    Expect(kernel.name().size() <= 256 && worker::RepairUtf8(kernel.name(), 256) == kernel.name());
    Expect(kernel.seconds() >= 0 && kernel.seconds() <= last && kernel.registers() >= 0 && kernel.shared_bytes() >= 0);
    last = kernel.seconds();
    shares += kernel.share();
    for (double one : {kernel.share(), kernel.occupancy(), kernel.dram_fraction(), kernel.l2_hit_fraction(),
                       kernel.sm_fraction(), kernel.tensor_fraction()}) {
      Expect(Share(one));
    }
    Expect(kernel.stalls_size() <= worker::kMaxStalls && kernel.grid().size() <= 32 && kernel.block().size() <= 32);
    double stalls = 0;
    for (const v1::StallShare& stall : kernel.stalls()) stalls += stall.share();
    Expect(Share(stalls - 0.001));
  }
  Expect(Share(shares - 0.01));  // rounded
  const build::InstructionMix mix = build::ParseSass(text);
  int64_t sum = 0;
  for (const auto& [opcode, count] : mix.counts) {
    Expect(count > 0 && !opcode.empty() && opcode.size() <= 24);
    sum += count;
  }
  Expect(mix.counts.size() <= build::kMaxOpcodes && sum <= mix.total && mix.sha256.empty() == (mix.total == 0));
  return 0;
}
