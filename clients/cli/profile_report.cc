#include "clients/cli/profile_report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "clients/cli/text.h"

namespace grove::cli {
namespace {

constexpr int kKernels = 8, kOpcodes = 10, kReasons = 3;
constexpr size_t kNameWidth = 44;

std::string Field(absl::string_view name, absl::string_view value) {
  return absl::StrFormat("  %-10s %s\n", name, value);
}

std::string Percent(double fraction) { return absl::StrFormat("%.0f %%", 100 * fraction); }

std::vector<std::string> Row(const v1::KernelProfile& kernel) {
  std::vector<std::string> stalls;
  for (const v1::StallShare& stall : kernel.stalls()) {
    if (static_cast<int>(stalls.size()) == kReasons) break;
    stalls.push_back(
        absl::StrCat(absl::StrReplaceAll(OneLine(stall.reason()), {{"_", " "}}), " ", Percent(stall.share())));
  }
  return {absl::StrCat("   ", Fit(OneLine(kernel.name()), kNameWidth)),
          kernel.own() ? "own" : "other",
          FormatSeconds(kernel.seconds()),
          Percent(kernel.share()),
          Percent(kernel.occupancy()),
          Percent(kernel.dram_fraction()),
          Percent(kernel.l2_hit_fraction()),
          Percent(kernel.sm_fraction()),
          Percent(kernel.tensor_fraction()),
          absl::StrCat(kernel.registers()),
          FormatBytes(kernel.shared_bytes()),
          FormatBytes(kernel.local_bytes()),
          absl::StrCat(OneLine(kernel.grid()), " of ", OneLine(kernel.block())),
          absl::StrJoin(stalls, ", ")};
}

}  // namespace

std::string RenderProfile(const v1::ProfileReport& profile, bool all) {
  std::string out;
  if (!profile.unavailable().empty()) {
    absl::StrAppend(&out, Field("profile", absl::StrCat(profile.kernels().empty() ? "none: " : "",
                                                        OneLine(profile.unavailable()))));
  }
  if (!profile.kernels().empty()) {
    const int shown = all ? profile.kernels_size() : std::min(kKernels, profile.kernels_size());
    const int more = profile.kernels_size() - shown;
    absl::StrAppend(&out,
                    Field("profile", absl::StrCat("kernels of one call, as Nsight Compute saw them",
                                                  more > 0 ? absl::StrCat(" (", more, " more are not shown)") : "")));
    std::vector<std::vector<std::string>> rows;
    for (int i = 0; i < shown; ++i) rows.push_back(Row(profile.kernels(i)));
    absl::StrAppend(&out, Table({"   KERNEL", "WHOSE", "TIME", "SHARE", "OCCUPANCY", "DRAM", "L2 HITS", "SM", "TENSOR",
                                 "REGISTERS", "SHARED", "SPILLED", "GRID", "STALLED BY"},
                                rows));
  }
  if (!profile.instructions().empty()) {
    const int shown = all ? profile.instructions_size() : std::min(kOpcodes, profile.instructions_size());
    std::vector<std::string> parts;
    for (int i = 0; i < shown; ++i) {
      const v1::Rate& one = profile.instructions(i);
      parts.push_back(absl::StrFormat("%.0f %s", one.operations_per_second(), OneLine(one.precision())));
    }
    absl::StrAppend(
        &out, Field("code", absl::StrCat(absl::StrJoin(parts, ", "), profile.instructions_size() > shown ? ", ..." : "",
                                         " (instructions in the build)")));
  }
  return out;
}

}  // namespace grove::cli
