// Figures and tables as text. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "grove/v1/tree.pb.h"
#include "grove/v1/types.pb.h"

namespace grove::cli {

// How to draw: colours by ANSI codes, and box characters or plain ASCII.
struct Style {
  bool color = false;
  bool unicode = false;

  std::string Bold(absl::string_view text) const { return Code("1", text); }
  std::string Dim(absl::string_view text) const { return Code("2", text); }
  std::string Red(absl::string_view text) const { return Code("31", text); }
  std::string Green(absl::string_view text) const { return Code("32", text); }
  std::string Yellow(absl::string_view text) const { return Code("33", text); }
  // A verdict's name in its colour.
  std::string Verdict(v1::Verdict verdict) const;

 private:
  std::string Code(absl::string_view code, absl::string_view text) const;
};

std::string FormatSeconds(double seconds);                           // "1.23 ms", "45.6 us", "12.0 s"
std::string FormatClock(double seconds);                             // "0:07", "12:30", "1:02:03"
std::string FormatBytes(int64_t bytes);                              // "1.0 MiB", "512 B"
std::string FormatAge(int64_t unix_nanos, int64_t now_unix_nanos);   // "3 min ago"; "-" for 0
std::string FormatTime(int64_t unix_nanos);                          // "2026-01-31 12:00:00 UTC"; "-" for 0
std::string FormatSpeedup(double speedup, double low, double high);  // "3.42x [3.31, 3.55]"; "-" for 0

std::string VerdictName(v1::Verdict verdict);             // "BUILD_FAILED"; "PENDING" for none
std::string JobStateName(v1::JobState state);             // "RUNNING"
std::string NodeStateName(v1::NodeState state);           // "REFUTED"
std::string DeviceKindName(v1::DeviceKind kind);          // "cpu", "cuda", "any"
std::string BaselineName(v1::Baseline baseline);          // "eager", "compile"
std::string PairsText(const v1::BaselineTiming& timing);  // "40 pairs", "40 pairs in 4 pairs of processes"
std::string WorkPolicyName(v1::WorkPolicy policy);  // "anything" (also where none is set), "libraries", "own_kernels"
// "2 processes of others held the GPU while it was timed"; empty where there were none, or nobody knows.
std::string OthersLine(const v1::DeviceState& state);
// "SM 1700 to 1980 MHz, median 1965; temperature 65 C at most; power 512 W; throttled: sw_power_cap", or why that is
// not known; "" where there is no state of the device, as on a CPU.
std::string ClocksLine(const v1::TimingReport& timing);
// The GPU during one pair, to stand behind its two times; "?" for what was not read. Empty where nothing was.
std::string SampleStateText(const v1::SampleState& state);
// How often the measurement began anew; "" where it never did.
std::string RerunsLine(const v1::TimingReport& timing);
std::string DeviceLine(const v1::DeviceInfo& device);  // "NVIDIA L40S (sm_89), torch 2.11.0"
std::string ShortId(absl::string_view id);             // "k12" of "j-abcdefgh/k12"

// The kernel's ranking baseline, or null when it has no timing.
const v1::BaselineTiming* RankingTiming(const v1::EvaluationResult& result);

// Columns that a code point is wide is not known here: every code point counts as one, combining marks and control
// characters as none. Control characters (and escape sequences) in text that came from a sandbox are replaced.
size_t DisplayWidth(absl::string_view text);
std::string Fit(absl::string_view text, size_t width);  // cut with "..." to at most width columns
std::string Printable(absl::string_view text);          // control characters other than \n and \t become '?'
std::string OneLine(absl::string_view text);            // Printable, with line ends and tabs as spaces

// Left-aligned columns, two spaces apart, no trailing blanks; a header row when `header` is not empty.
std::string Table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

// The first `lines` lines, each indented; a last line says how many were left out and how to see them.
std::string Excerpt(absl::string_view text, size_t lines, absl::string_view indent, absl::string_view how_to_see_all);

}  // namespace grove::cli
