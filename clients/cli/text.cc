#include "clients/cli/text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/measure/replicas.h"

namespace grove::cli {
namespace {

std::string WithoutPrefix(absl::string_view text, absl::string_view prefix) {
  absl::ConsumePrefix(&text, prefix);
  return std::string(text);
}

}  // namespace

std::string Style::Code(absl::string_view code, absl::string_view text) const {
  if (!color || text.empty()) return std::string(text);
  return absl::StrCat("\x1b[", code, "m", text, "\x1b[0m");
}

std::string Style::Verdict(v1::Verdict verdict) const {
  const std::string name = VerdictName(verdict);
  switch (verdict) {
    case v1::VERDICT_UNSPECIFIED:
      return Dim(name);
    case v1::VERDICT_CORRECT:
      return Green(name);
    case v1::VERDICT_UNMEASURABLE:
    case v1::VERDICT_BUILD_FAILED:
      return Yellow(name);
    default:
      return Red(name);
  }
}

std::string FormatSeconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const double magnitude = std::fabs(seconds);
  if (magnitude == 0) return "0 s";
  struct Unit {
    double scale;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  for (const Unit& unit : kUnits) {
    const double value = seconds / unit.scale;
    if (std::fabs(value) >= 0.9995 || unit.scale == 1e-9) {
      const int decimals = std::fabs(value) >= 99.95 ? 0 : std::fabs(value) >= 9.995 ? 1 : 2;
      return absl::StrFormat("%.*f %s", decimals, value, unit.name);
    }
  }
  return "-";
}

std::string FormatClock(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  const int64_t whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
  return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
}

std::string FormatBytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (std::fabs(value) >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%d B", bytes) : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string FormatAge(int64_t unix_nanos, int64_t now_unix_nanos) {
  if (unix_nanos == 0) return "-";
  const int64_t seconds = std::max<int64_t>(0, (now_unix_nanos - unix_nanos) / 1'000'000'000);
  if (seconds < 90) return absl::StrCat(seconds, " s ago");
  if (seconds < 90 * 60) return absl::StrCat(seconds / 60, " min ago");
  if (seconds < 36 * 3600) return absl::StrCat(seconds / 3600, " h ago");
  return absl::StrCat(seconds / 86400, " d ago");
}

std::string FormatTime(int64_t unix_nanos) {
  if (unix_nanos == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixNanos(unix_nanos), absl::UTCTimeZone());
}

std::string FormatSpeedup(double speedup, double low, double high) {
  if (!(speedup > 0)) return "-";
  return absl::StrFormat("%.3gx [%.3g, %.3g]", speedup, low, high);
}

std::string VerdictName(v1::Verdict verdict) {
  if (verdict == v1::VERDICT_UNSPECIFIED) return "PENDING";
  return WithoutPrefix(v1::Verdict_Name(verdict), "VERDICT_");
}
std::string JobStateName(v1::JobState state) { return WithoutPrefix(v1::JobState_Name(state), "JOB_STATE_"); }
std::string NodeStateName(v1::NodeState state) { return WithoutPrefix(v1::NodeState_Name(state), "NODE_STATE_"); }

std::string DeviceKindName(v1::DeviceKind kind) {
  switch (kind) {
    case v1::DEVICE_KIND_CPU:
      return "cpu";
    case v1::DEVICE_KIND_CUDA:
      return "cuda";
    default:
      return "any";
  }
}

std::string BaselineName(v1::Baseline baseline) {
  return baseline == v1::BASELINE_COMPILE ? "torch.compile" : baseline == v1::BASELINE_RIVAL ? "the rival" : "eager";
}

std::string PairsText(const v1::BaselineTiming& timing) {
  const int replicas = measure::ReplicasOf(timing);
  return absl::StrCat(timing.samples(), " pairs",
                      replicas > 1 ? absl::StrCat(" in ", replicas, " pairs of processes") : "");
}

std::string WorkPolicyName(v1::WorkPolicy policy) {
  if (!v1::WorkPolicy_IsValid(policy) || policy == v1::WORK_POLICY_UNSPECIFIED) policy = v1::WORK_POLICY_ANYTHING;
  return absl::AsciiStrToLower(absl::StripPrefix(v1::WorkPolicy_Name(policy), "WORK_POLICY_"));
}

std::string OthersLine(const v1::DeviceState& state) {
  const int others = state.foreign_processes();
  if (others <= 0) return "";
  return absl::StrCat(others, others == 1 ? " process" : " processes", " of others held the GPU while it was timed");
}

std::string ClocksLine(const v1::TimingReport& timing) {
  const v1::DeviceState& state = timing.device_state();
  if (state.readings() <= 0) {
    return state.unavailable().empty() ? "" : absl::StrCat("not known: ", OneLine(state.unavailable()));
  }
  // What the driver does not say is 0.
  const auto known = [](double value, const std::string& text) { return value > 0 ? text : "not known"; };
  std::string line = absl::StrCat(
      "SM ",
      known(state.sm_clock_mhz_high(), absl::StrFormat("%.0f to %.0f MHz, median %.0f", state.sm_clock_mhz_low(),
                                                       state.sm_clock_mhz_high(), state.sm_clock_mhz_median())),
      "; temperature ",
      known(state.temperature_celsius_high(), absl::StrFormat("%.0f C at most", state.temperature_celsius_high())),
      "; power ", known(state.power_watts_median(), absl::StrFormat("%.0f W", state.power_watts_median())), "; ");
  if (state.throttle_reasons().empty()) {
    absl::StrAppend(&line, "not throttled");
  } else {
    absl::StrAppend(&line, "throttled: ",
                    absl::StrJoin(state.throttle_reasons(), ", ", [](std::string* s, const std::string& reason) {
                      absl::StrAppend(s, OneLine(reason));
                    }));
  }
  if (!state.unavailable().empty()) absl::StrAppend(&line, "; ", OneLine(state.unavailable()));
  return line;
}

std::string SampleStateText(const v1::SampleState& state) {
  if (state.readings() <= 0) return "";
  const auto known = [](double value) { return value > 0 ? absl::StrFormat("%.0f", value) : std::string("?"); };
  std::string text =
      absl::StrCat("   SM ", known(state.reference_sm_mhz()), " / ", known(state.candidate_sm_mhz()), " MHz, ",
                   known(state.temperature_celsius()), " C, ", known(state.power_watts()), " W");
  for (const std::string& reason : state.throttle_reasons()) absl::StrAppend(&text, ", ", OneLine(reason));
  return text;
}

std::string RerunsLine(const v1::TimingReport& timing) {
  if (timing.reruns() <= 0) return "";
  return absl::StrCat(timing.reruns(), timing.reruns() == 1 ? " time" : " times",
                      " the measurement began anew, because most of it was invalid");
}

std::string DeviceLine(const v1::DeviceInfo& device) {
  if (device.name().empty() && device.arch().empty()) return "-";
  std::string line = device.name().empty() ? DeviceKindName(device.kind()) : OneLine(device.name());
  if (!device.arch().empty()) absl::StrAppend(&line, " (", OneLine(device.arch()), ")");
  if (!device.torch().empty()) absl::StrAppend(&line, ", torch ", OneLine(device.torch()));
  return line;
}

std::string ShortId(absl::string_view id) {
  const size_t slash = id.rfind('/');
  return std::string(slash == absl::string_view::npos ? id : id.substr(slash + 1));
}

const v1::BaselineTiming* RankingTiming(const v1::EvaluationResult& result) {
  if (result.verdict() != v1::VERDICT_CORRECT) return nullptr;
  for (const v1::BaselineTiming& timing : result.timing().baselines()) {
    if (timing.speedup() > 0) return &timing;
    return nullptr;  // the first is the one that ranks
  }
  return nullptr;
}

size_t DisplayWidth(absl::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0x1b && i + 1 < text.size() && text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && !(text[i] >= '@' && text[i] <= '~')) ++i;
      continue;
    }
    if (byte < 0x20 || byte == 0x7f) continue;
    if ((byte & 0xc0) != 0x80) ++width;
  }
  return width;
}

std::string Fit(absl::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  const size_t room = width > 3 ? width - 3 : 0;
  std::string out;
  size_t used = 0;
  bool coloured = false;
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    size_t length = 1;
    if (byte == 0x1b && i + 1 < text.size() && text[i + 1] == '[') {
      length = 2;
      while (i + length < text.size() && !(text[i + length] >= '@' && text[i + length] <= '~')) ++length;
      if (i + length < text.size()) ++length;
      coloured = true;
    } else {
      if (used == room) break;
      while (i + length < text.size() && (static_cast<unsigned char>(text[i + length]) & 0xc0) == 0x80) ++length;
      ++used;
    }
    out.append(text.data() + i, length);
    i += length;
  }
  absl::StrAppend(&out, absl::string_view("...").substr(0, std::min<size_t>(3, width)));
  if (coloured) absl::StrAppend(&out, "\x1b[0m");
  return out;
}

std::string Printable(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) {  // U+0080 to U+009F, among them the one-character CSI
      out.push_back('?');
      ++i;
    } else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      out.push_back('?');
    } else {
      out.push_back(static_cast<char>(byte));
    }
  }
  return out;
}

std::string OneLine(absl::string_view text) {
  std::string out = Printable(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  absl::StripAsciiWhitespace(&out);
  return out;
}

std::string Table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  const auto measure = [&](const std::vector<std::string>& row) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  };
  measure(header);
  for (const auto& row : rows) measure(row);
  std::string out;
  const auto print = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&line, row[i]);
      if (i + 1 < row.size()) line.append(widths[i] - DisplayWidth(row[i]) + 2, ' ');
    }
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&out, line, "\n");
  };
  if (!header.empty()) print(header);
  for (const auto& row : rows) print(row);
  return out;
}

std::string Excerpt(absl::string_view text, size_t lines, absl::string_view indent, absl::string_view how_to_see_all) {
  const std::string clean = Printable(absl::StripTrailingAsciiWhitespace(text));
  const std::vector<absl::string_view> all = absl::StrSplit(clean, '\n');
  std::string out;
  const size_t shown = std::min(lines, all.size());
  for (size_t i = 0; i < shown; ++i) absl::StrAppend(&out, indent, all[i], "\n");
  if (shown < all.size()) {
    absl::StrAppend(&out, indent, "... ", all.size() - shown, " more lines", how_to_see_all.empty() ? "" : ": ",
                    how_to_see_all, "\n");
  }
  return out;
}

}  // namespace grove::cli
