#include "worker/pipeline/ncu_report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "worker/pipeline/verdict.h"

namespace grove::worker {
namespace {

constexpr size_t kMaxLine = 512 << 10, kMaxColumns = 8192, kMaxName = 256, kMaxError = 500;

constexpr char kTime[] = "gpu__time_duration.sum";
constexpr char kOccupancy[] = "sm__warps_active.avg.pct_of_peak_sustained_active";
constexpr char kDram[] = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
// What its own sections call the same.
constexpr char kSectionDram[] = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";
constexpr char kL2[] = "lts__t_sector_hit_rate.pct";
constexpr char kSm[] = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr char kRegisters[] = "launch__registers_per_thread";
constexpr char kStaticShared[] = "launch__shared_mem_per_block_static";
constexpr char kDynamicShared[] = "launch__shared_mem_per_block_dynamic";
constexpr char kShared[] = "launch__shared_mem_per_block";
// Of both names, since not every chip counts the cycles.
constexpr char kTensorCycles[] = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";
constexpr char kTensorInstructions[] = "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active";
constexpr absl::string_view kStallBegin = "smsp__average_warps_issue_stalled_";
constexpr absl::string_view kStallEnd = "_per_issue_active.ratio";
// A warp that issues is not stalled; it counts only as what the stalls are shares of.
constexpr absl::string_view kSelected = "selected";

constexpr const char* kStalls[] = {
    "barrier",         "branch_resolving",   "dispatch_stall",   "drain",        "imc_miss",     "lg_throttle",
    "long_scoreboard", "math_pipe_throttle", "membar",           "mio_throttle", "misc",         "no_instruction",
    "not_selected",    "selected",           "short_scoreboard", "sleeping",     "tex_throttle", "wait"};

// The fields of one line of CSV, in which every field stands in quotation marks; empty where it is no such line.
std::vector<std::string> Fields(absl::string_view line) {
  std::vector<std::string> fields;
  size_t at = 0;
  for (;;) {
    if (at >= line.size() || line[at] != '"' || fields.size() >= kMaxColumns) return {};
    std::string field;
    for (++at;; ++at) {
      if (at >= line.size()) return {};
      if (line[at] != '"') {
        field += line[at];
      } else if (at + 1 < line.size() && line[at + 1] == '"') {
        field += line[++at];
      } else {
        break;
      }
    }
    fields.push_back(std::move(field));
    if (++at == line.size()) return fields;
    if (line[at++] != ',') return {};
  }
}

// "1,048,576" and "72.91"; NaN for "n/a", "nan", "(!) n/a", "no data" and everything else.
double Number(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  double value = 0;
  if (text.empty() || text.size() > 40 || text.find_first_not_of("0123456789.eE+-") != std::string::npos ||
      !absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
    return std::nan("");
  }
  return value;
}

// Seconds or bytes in one of what the unit names; 1 for everything else.
double Scale(std::string unit) {
  unit = unit.substr(0, unit.find('/'));
  static const auto* scales = new std::map<std::string, double>{
      {"ns", 1e-9}, {"nsecond", 1e-9}, {"us", 1e-6},   {"usecond", 1e-6}, {"ms", 1e-3},  {"msecond", 1e-3},
      {"s", 1},     {"second", 1},     {"Kbyte", 1e3}, {"Mbyte", 1e6},    {"Gbyte", 1e9}};
  const auto it = scales->find(unit);
  return it == scales->end() ? 1 : it->second;
}

// "(65536, 1, 1)" -> "65536x1x1"; empty when it is nothing of the kind.
std::string Extent(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, "(") || !absl::ConsumeSuffix(&text, ")")) return "";
  std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (parts.size() != 3) return "";
  for (std::string& part : parts) {
    absl::StripAsciiWhitespace(&part);
    if (part.empty() || part.size() > 10 || part.find_first_not_of("0123456789") != std::string::npos) return "";
  }
  return absl::StrJoin(parts, "x");
}

// One kernel's launches: sums of what is weighted by time, and of the time by which it is.
struct Sum {
  std::string name, grid, block;
  double seconds = 0;
  struct Mean {
    double sum = 0, weight = 0;
    void Add(double value, double by) {
      if (std::isnan(value)) return;
      sum += value * by;
      weight += by;
    }
    double value() const { return weight > 0 ? sum / weight : 0; }
  };
  Mean occupancy, dram, l2, sm, tensor;
  std::map<std::string, double> stalls;
  double registers = 0, shared = 0;
};

double Fraction(double percent) { return std::isnan(percent) ? percent : std::clamp(percent / 100, 0.0, 1.0); }

// Counters have no more figures than these.
double Rounded(double fraction) { return std::round(fraction * 1e4) / 1e4; }

// Not a number where neither is one.
double Larger(double one, double other) {
  return std::isnan(one) ? other : std::isnan(other) ? one : std::max(one, other);
}

}  // namespace

std::string NcuMetrics(const std::string& arch) {
  int version = 0;
  if (!absl::SimpleAtoi(absl::StripPrefix(arch, "sm_"), &version)) version = 0;
  std::vector<std::string> metrics = {kTime,      kOccupancy,    kDram,          kL2,    kSm,
                                      kRegisters, kStaticShared, kDynamicShared, kShared};
  metrics.push_back(version >= 80 ? kTensorCycles : kTensorInstructions);
  for (const char* reason : kStalls) metrics.push_back(absl::StrCat(kStallBegin, reason, kStallEnd));
  // Waiting for the tensor cores' asynchronous products.
  if (version == 90) metrics.push_back(absl::StrCat(kStallBegin, "gmma", kStallEnd));
  return absl::StrJoin(metrics, ",");
}

std::vector<std::string> NcuSections() {
  return {"SpeedOfLight",           "LaunchStats", "Occupancy", "WarpStateStats", "MemoryWorkloadAnalysis",
          "ComputeWorkloadAnalysis"};
}

NcuReport ParseNcu(absl::string_view text) {
  NcuReport report;
  text = text.substr(0, kMaxNcuText);
  std::map<std::string, size_t> columns;
  std::vector<std::string> units;
  size_t width = 0;
  std::map<std::tuple<std::string, std::string, std::string>, Sum> sums;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    absl::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (absl::StartsWith(line, "==ERROR==")) {
      const std::string words(absl::StripAsciiWhitespace(line.substr(9, kMaxError)));
      report.not_permitted = report.not_permitted || absl::StrContains(words, "ERR_NVGPUCTRPERM");
      report.unknown_metric = report.unknown_metric || absl::StrContains(words, "Failed to find metric") ||
                              absl::StrContains(words, "nvalid metric");
      if (report.error.empty()) report.error = RepairUtf8(words, kMaxError);
      continue;
    }
    if (line.empty() || line[0] != '"' || line.size() > kMaxLine) continue;
    if (absl::StartsWith(line, "\"ID\",")) {
      const std::vector<std::string> names = Fields(line);
      columns.clear();
      units.clear();
      width = names.size();
      for (size_t i = 0; i < names.size(); ++i) columns.emplace(names[i], i);
      continue;
    }
    if (width == 0 || report.launches >= kMaxProfiledLaunches) continue;
    std::vector<std::string> fields = Fields(line);
    if (fields.size() != width) continue;
    if (fields[0].empty()) {
      units = std::move(fields);
      continue;
    }
    if (fields[0].find_first_not_of("0123456789") != std::string::npos) continue;
    const auto field = [&](const char* name) {
      const auto it = columns.find(name);
      return it == columns.end() ? std::string() : fields[it->second];
    };
    const auto value = [&](const char* name) {
      const auto it = columns.find(name);
      if (it == columns.end()) return std::nan("");
      const double number = Number(fields[it->second]);
      return units.empty() ? number : number * Scale(units[it->second]);
    };
    const std::string name = RepairUtf8(field("Kernel Name").substr(0, 4 * kMaxName), kMaxName);
    // Nanoseconds are its base unit; more than an hour is nonsense.
    double seconds = value(kTime) * (units.empty() ? 1e-9 : 1);
    if (name.empty() || std::isnan(seconds) || seconds < 0 || seconds > 3600) continue;
    ++report.launches;
    const std::string grid = Extent(field("Grid Size")), block = Extent(field("Block Size"));
    Sum& sum = sums[{name, grid, block}];
    sum.name = name, sum.grid = grid, sum.block = block;
    sum.seconds += seconds;
    seconds = std::max(seconds, 1e-12);  // a weight even where the clock saw nothing
    sum.occupancy.Add(Fraction(value(kOccupancy)), seconds);
    sum.dram.Add(Fraction(Larger(value(kDram), value(kSectionDram))), seconds);
    sum.l2.Add(Fraction(value(kL2)), seconds);
    sum.sm.Add(Fraction(value(kSm)), seconds);
    sum.tensor.Add(Fraction(Larger(value(kTensorCycles), value(kTensorInstructions))), seconds);
    const auto whole = [](double number, double most) {
      return std::isnan(number) ? 0 : std::clamp(std::round(number), 0.0, most);
    };
    sum.registers = std::max(sum.registers, whole(value(kRegisters), 65536));
    const double parts = whole(value(kStaticShared), 1e9) + whole(value(kDynamicShared), 1e9);
    const bool known = !std::isnan(value(kStaticShared)) || !std::isnan(value(kDynamicShared));
    sum.shared = std::max(sum.shared, known ? parts : whole(value(kShared), 1e9));
    double all = 0;
    std::map<std::string, double> stalls;
    for (auto it = columns.lower_bound(std::string(kStallBegin));
         it != columns.end() && absl::StartsWith(it->first, kStallBegin); ++it) {
      if (!absl::EndsWith(it->first, kStallEnd) || it->first.size() <= kStallBegin.size() + kStallEnd.size() ||
          it->first.size() > 100) {
        continue;
      }
      const double warps = Number(fields[it->second]);
      if (!(warps > 0) || warps > 1e9) continue;
      all += warps;
      stalls[it->first.substr(kStallBegin.size(), it->first.size() - kStallBegin.size() - kStallEnd.size())] = warps;
    }
    for (const auto& [reason, warps] : stalls) sum.stalls[reason] += warps / all * seconds;
  }

  double all = 0;
  for (const auto& [key, sum] : sums) all += sum.seconds;
  for (const auto& [key, sum] : sums) {
    v1::KernelProfile kernel;
    kernel.set_name(sum.name);
    kernel.set_seconds(sum.seconds);
    kernel.set_share(all > 0 ? Rounded(sum.seconds / all) : 0);
    kernel.set_occupancy(Rounded(sum.occupancy.value()));
    kernel.set_dram_fraction(Rounded(sum.dram.value()));
    kernel.set_l2_hit_fraction(Rounded(sum.l2.value()));
    kernel.set_sm_fraction(Rounded(sum.sm.value()));
    kernel.set_tensor_fraction(Rounded(sum.tensor.value()));
    kernel.set_registers(static_cast<int32_t>(sum.registers));
    kernel.set_shared_bytes(static_cast<int64_t>(sum.shared));
    kernel.set_grid(sum.grid);
    kernel.set_block(sum.block);
    double states = 0;
    std::vector<std::pair<double, std::string>> reasons;
    for (const auto& [reason, weight] : sum.stalls) {
      states += weight;
      if (reason != kSelected) reasons.emplace_back(weight, reason);
    }
    std::sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) {
      return std::make_tuple(-a.first, a.second) < std::make_tuple(-b.first, b.second);
    });
    for (const auto& [weight, reason] : reasons) {
      if (kernel.stalls_size() == kMaxStalls || weight < 0.01 * states) break;
      v1::StallShare* stall = kernel.add_stalls();
      stall->set_reason(RepairUtf8(reason, 64));
      stall->set_share(Rounded(std::clamp(weight / states, 0.0, 1.0)));
    }
    report.kernels.push_back(std::move(kernel));
  }
  std::stable_sort(report.kernels.begin(), report.kernels.end(),
                   [](const v1::KernelProfile& a, const v1::KernelProfile& b) { return a.seconds() > b.seconds(); });
  if (report.kernels.size() > kMaxProfiledKernels) report.kernels.resize(kMaxProfiledKernels);
  return report;
}

}  // namespace grove::worker
