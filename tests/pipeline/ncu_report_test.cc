#include "worker/pipeline/ncu_report.h"

#include <catch2/catch.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace grove::worker {
namespace {

constexpr char kHeader[] =
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\","
    "\"Grid Size\",\"Device\",\"CC\",\"dram__throughput.avg.pct_of_peak_sustained_elapsed\",\"gpu__time_duration.sum\","
    "\"launch__registers_per_thread\",\"launch__shared_mem_per_block_dynamic\",\"launch__shared_mem_per_block_static\","
    "\"lts__t_sector_hit_rate.pct\",\"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active\","
    "\"sm__throughput.avg.pct_of_peak_sustained_elapsed\",\"sm__warps_active.avg.pct_of_peak_sustained_active\","
    "\"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio\","
    "\"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio\","
    "\"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio\","
    "\"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio\"\n";
constexpr char kUnits[] =
    "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"%\",\"ns\",\"register/thread\",\"byte/block\",\"byte/"
    "block\","
    "\"%\",\"%\",\"%\",\"%\",\"inst\",\"inst\",\"inst\",\"inst\"\n";

// One launch: its name, grid, and what follows the eleven columns that say which it is.
std::string Row(int id, const std::string& name, const std::string& grid, const std::string& figures) {
  return absl::StrCat("\"", id, "\",\"7\",\"grove-candidate\",\"127.0.0.1\",\"", name,
                      "\",\"1\",\"13\",\"(256, 1, 1)\",\"", grid, "\",\"0\",\"9.0\",", figures, "\n");
}
const std::string kFast =
    R"("67.16","20,000","40","1,024","2,048","33.80","0","25.58","73.10","1.00","6.00","1.00","2.00")";
const std::string kSlow = R"("40.00","60,000","40","1,024","2,048","50.00","12.5","10.00","50.00","0","8","1","1")";

TEST_CASE("A table of one kernel is read", "[profile]") {
  const NcuReport report = ParseNcu(
      absl::StrCat("==PROF== Connected to process 7 (/x)\n==PROF== Profiling \"Norm\": 0%....100% - 9 passes\n",
                   kHeader, kUnits, Row(0, "void Norm<(int)4>(float *, \"\"x\"\", long)", "(65536, 2, 1)", kFast)));
  REQUIRE(report.kernels.size() == 1);
  CHECK(report.launches == 1);
  CHECK(report.error.empty());
  const v1::KernelProfile& kernel = report.kernels[0];
  CHECK(kernel.name() == "void Norm<(int)4>(float *, \"x\", long)");
  CHECK(kernel.seconds() == Approx(20e-6));
  CHECK(kernel.share() == 1);
  CHECK(kernel.occupancy() == Approx(0.731));
  CHECK(kernel.dram_fraction() == Approx(0.6716));
  CHECK(kernel.l2_hit_fraction() == Approx(0.338));
  CHECK(kernel.sm_fraction() == Approx(0.2558));
  CHECK(kernel.tensor_fraction() == 0);
  CHECK(kernel.registers() == 40);
  CHECK(kernel.shared_bytes() == 3072);
  CHECK(kernel.grid() == "65536x2x1");
  CHECK(kernel.block() == "256x1x1");
  // Of the ten states that a warp is found in between two instructions, one is issuing.
  REQUIRE(kernel.stalls_size() == 3);
  CHECK(kernel.stalls(0).reason() == "long_scoreboard");
  CHECK(kernel.stalls(0).share() == Approx(0.6));
  CHECK(kernel.stalls(1).reason() == "wait");
  CHECK(kernel.stalls(1).share() == Approx(0.2));
  CHECK(kernel.stalls(2).reason() == "barrier");
  CHECK(kernel.stalls(2).share() == Approx(0.1));
}

TEST_CASE("Launches of one kernel are one, weighted by their time, and the longest comes first", "[profile]") {
  const NcuReport report =
      ParseNcu(absl::StrCat(kHeader, kUnits, Row(0, "A", "(8, 1, 1)", kFast), Row(1, "B", "(8, 1, 1)", kSlow),
                            Row(2, "B", "(8, 1, 1)", kFast), Row(3, "B", "(16, 1, 1)", kFast)));
  REQUIRE(report.kernels.size() == 3);
  CHECK(report.launches == 4);
  const v1::KernelProfile& both = report.kernels[0];
  CHECK(both.name() == "B");
  CHECK(both.grid() == "8x1x1");
  CHECK(both.seconds() == Approx(80e-6));
  CHECK(both.share() == 0.6667);
  CHECK(both.occupancy() == Approx((60 * 0.5 + 20 * 0.731) / 80).margin(6e-5));
  CHECK(both.tensor_fraction() == Approx(0.125 * 60 / 80).margin(6e-5));
  CHECK(both.stalls(0).share() == Approx((60 * 0.8 + 20 * 0.6) / 80));
  CHECK(report.kernels[1].share() + report.kernels[2].share() == Approx(40.0 / 120).margin(2e-4));
}

TEST_CASE("What a chip does not count is left at nothing, and the rest is kept", "[profile]") {
  for (const char* none : {"", "nan", "n/a", "(!) n/a", "no data", "inf", "-nan", "0x10", "1;2", "--"}) {
    INFO(none);
    const std::string figures =
        absl::StrCat("\"", none, "\",\"20,000\",\"", none, "\",\"", none, "\",\"", none, "\",\"100.09\",\"", none,
                     "\",\"", none, "\",\"73\",\"", none, "\",\"", none, "\",\"", none, "\",\"", none, "\"");
    const NcuReport report = ParseNcu(absl::StrCat(kHeader, kUnits, Row(0, "A", "garbled", figures)));
    REQUIRE(report.kernels.size() == 1);
    CHECK(report.kernels[0].occupancy() == Approx(0.73));
    CHECK(report.kernels[0].l2_hit_fraction() == 1);  // the counters of two passes, divided
    CHECK(report.kernels[0].dram_fraction() == 0);
    CHECK(report.kernels[0].registers() == 0);
    CHECK(report.kernels[0].stalls().empty());
    CHECK(report.kernels[0].grid().empty());
  }
}

TEST_CASE("Without units figures are in the base units, and others are scaled", "[profile]") {
  const std::string head = "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"launch__shared_mem_per_block\"\n";
  CHECK(ParseNcu(head + "\"0\",\"A\",\"1,500\",\"2\"\n").kernels.at(0).seconds() == Approx(1.5e-6));
  const NcuReport scaled = ParseNcu(head + "\"\",\"\",\"us\",\"Kbyte/block\"\n\"0\",\"A\",\"1.5\",\"2\"\r\n");
  CHECK(scaled.kernels.at(0).seconds() == Approx(1.5e-6));
  CHECK(scaled.kernels.at(0).shared_bytes() == 2000);
}

TEST_CASE("What sections call by another name is read as well", "[profile]") {
  const NcuReport report = ParseNcu(
      "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed\","
      "\"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active\"\n\"\",\"\",\"ns\",\"%\",\"%\"\n"
      "\"0\",\"A\",\"1,000\",\"61.5\",\"12.5\"\n");
  REQUIRE(report.kernels.size() == 1);
  CHECK(report.kernels[0].dram_fraction() == 0.615);
  CHECK(report.kernels[0].tensor_fraction() == 0.125);
}

TEST_CASE("Words of the candidate among the rows change nothing", "[profile]") {
  const NcuReport report =
      ParseNcu(absl::StrCat("\"hello\",\"from the kernel\"\n", Row(9, "before its header", "(1, 1, 1)", kFast), kHeader,
                            "loss = 3\n", kUnits, "\"7\"\n\"not a number\",\"x\"\n", Row(0, "A", "(8, 1, 1)", kFast),
                            "\"open quote\n", "==PROF== Disconnected\n", "\"0\",\"short\"\n"));
  REQUIRE(report.kernels.size() == 1);
  CHECK(report.kernels[0].name() == "A");
}

TEST_CASE("However much a profile says, the report is short", "[profile]") {
  std::string text = absl::StrCat(kHeader, kUnits);
  for (int i = 0; i < 2000; ++i)
    absl::StrAppend(&text, Row(i, absl::StrCat("K", i, std::string(5000, 'x')), "(8, 1, 1)", kFast));
  const NcuReport report = ParseNcu(text);
  CHECK(report.launches == kMaxProfiledLaunches);
  REQUIRE(report.kernels.size() == kMaxProfiledKernels);
  for (const v1::KernelProfile& kernel : report.kernels) {
    CHECK(kernel.name().size() <= 256);
    CHECK(kernel.ByteSizeLong() < 700);
  }
  // Neither does a line without an end, nor one of quotes, take long or much.
  CHECK(ParseNcu(std::string(kMaxNcuText * 2, '"')).kernels.empty());
  std::string wide = "\"ID\"";
  for (int i = 0; i < 100000; ++i) wide += ",\"\"";
  CHECK(ParseNcu(absl::StrCat(wide, "\n", wide, "\n")).kernels.empty());
}

TEST_CASE("A table that was forged holds no figure that cannot be", "[profile]") {
  const NcuReport report = ParseNcu(
      absl::StrCat(kHeader, kUnits,
                   Row(0, "\xff\xfe\x01", "(99999999999, 1, 1)",
                       R"("9e300","1","9e300","9e300","9e300","-5","1e9","400","-1","-3","9e300","1","0")"),
                   Row(1, "negative", "(1, 1, 1)", R"("1","-20,000","1","1","1","1","1","1","1","1","1","1","1")"),
                   Row(2, "an age", "(1, 1, 1)", R"("1","9e18","1","1","1","1","1","1","1","1","1","1","1")")));
  REQUIRE(report.kernels.size() == 1);
  const v1::KernelProfile& kernel = report.kernels[0];
  CHECK(kernel.name() == "??\x01");
  CHECK(kernel.dram_fraction() == 1);
  CHECK(kernel.occupancy() == 0);
  CHECK(kernel.registers() <= 65536);
  CHECK(kernel.shared_bytes() <= 2'000'000'000);
  CHECK(kernel.grid().empty());
  for (const v1::StallShare& stall : kernel.stalls()) CHECK(stall.share() <= 1);
}

TEST_CASE("What the profiler complains of is told apart", "[profile]") {
  const NcuReport forbidden = ParseNcu(
      "==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
      "Performance "
      "Counters on the target device 0.\n==WARNING== No kernels were profiled.\n");
  CHECK(forbidden.not_permitted);
  CHECK(!forbidden.unknown_metric);
  CHECK(absl::StartsWith(forbidden.error, "ERR_NVGPUCTRPERM"));
  CHECK(ParseNcu("==ERROR== Failed to find metric sm__none.sum\n").unknown_metric);
  CHECK(ParseNcu("==ERROR== " + std::string(10000, 'x') + "\n").error.size() <= 500);
}

TEST_CASE("Only metrics that a chip has by that name are asked for", "[profile]") {
  const std::string hopper = NcuMetrics("sm_90"), ampere = NcuMetrics("sm_80"), volta = NcuMetrics("sm_70");
  CHECK(absl::StrContains(hopper, "_stalled_gmma_"));
  CHECK(!absl::StrContains(ampere, "_stalled_gmma_"));
  CHECK(absl::StrContains(ampere, "sm__pipe_tensor_cycles_active"));
  CHECK(!absl::StrContains(volta, "sm__pipe_tensor_cycles_active"));
  CHECK(absl::StrContains(volta, "sm__inst_executed_pipe_tensor."));
  for (const std::string& text : {hopper, ampere, volta, NcuMetrics("nonsense")}) {
    const std::vector<std::string> names = absl::StrSplit(text, ',');
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
    CHECK(absl::StrContains(text, "gpu__time_duration.sum"));
  }
}

}  // namespace
}  // namespace grove::worker
