#include "worker/build/flags.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace grove::build {
namespace {

constexpr size_t kMaxFlags = 64, kMaxFlagLength = 256;

// -f flags that run code in the compiler, choose programs, or write files.
constexpr absl::string_view kDeniedF[] = {"-fplugin",
                                          "-fuse-ld",
                                          "-fprofile",
                                          "-fauto-profile",
                                          "-fdump",
                                          "-fcompare-debug",
                                          "-foffload",
                                          "-fmodule",
                                          "-fpch",
                                          "-fcallgraph-info",
                                          "-fsave-optimization-record",
                                          "-fstack-usage",
                                          "-fdiagnostics-add-output",
                                          "-fdiagnostics-set-output",
                                          "-fwpa",
                                          "-fltrans",
                                          "-fresolution"};

bool HarmlessCharacters(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           absl::string_view("_=.,:+-/").find(c) != absl::string_view::npos;
  });
}

bool Allowed(const std::string& flag, bool cuda) {
  const absl::string_view f = flag;
  if (absl::StartsWith(f, "-D")) {
    return f.size() > 2 && ((f[2] >= 'a' && f[2] <= 'z') || (f[2] >= 'A' && f[2] <= 'Z') || f[2] == '_');
  }
  if (absl::StartsWith(f, "-O")) {
    const absl::string_view level = f.substr(2);
    return level.empty() || level == "0" || level == "1" || level == "2" || level == "3" || level == "s" ||
           level == "fast";
  }
  if (absl::StartsWith(f, "-std=")) return f.size() > 5;
  if (cuda) {
    if (f == "--use_fast_math" || f == "-use_fast_math") return true;
    if (absl::StartsWith(f, "-maxrregcount=") || absl::StartsWith(f, "--maxrregcount=")) return true;
    if (absl::StartsWith(f, "-Xptxas=")) return true;
    return f == "--fmad=false" || f == "-fmad=false" || f == "--fmad=true" || f == "-fmad=true" || f == "-ftz=true" ||
           f == "-ftz=false";
  }
  if (absl::StartsWith(f, "-f")) {
    return std::none_of(std::begin(kDeniedF), std::end(kDeniedF),
                        [&](absl::string_view denied) { return absl::StartsWith(f, denied); });
  }
  return absl::StartsWith(f, "-m") && f.size() > 2;
}

}  // namespace

absl::Status CheckFlags(const std::vector<std::string>& flags, v1::CandidateFormat format) {
  if (flags.empty()) return absl::OkStatus();
  if (format == v1::CANDIDATE_FORMAT_KERNELBENCH) {
    return absl::InvalidArgumentError(
        "build_flags do not apply to a KernelBench candidate; give extra_cflags or extra_cuda_cflags to load_inline");
  }
  const bool cuda = format == v1::CANDIDATE_FORMAT_CUDA;
  if (flags.size() > kMaxFlags) {
    return absl::InvalidArgumentError(absl::StrCat(flags.size(), " build flags; at most ", kMaxFlags, " are accepted"));
  }
  for (size_t i = 0; i < flags.size(); ++i) {
    const std::string& flag = flags[i];
    if (flag.size() > kMaxFlagLength) {
      return absl::InvalidArgumentError(
          absl::StrCat("a build flag of ", flag.size(), " characters; at most ", kMaxFlagLength, " are accepted"));
    }
    if (!HarmlessCharacters(flag)) {
      return absl::InvalidArgumentError(absl::StrCat("build flag ", flag,
                                                     " has a character other than letters, digits "
                                                     "and _ = . , : + - /"));
    }
    // "-Xptxas -O3" as two words.
    if (cuda && flag == "-Xptxas" && i + 1 < flags.size() && absl::StartsWith(flags[i + 1], "-") &&
        HarmlessCharacters(flags[i + 1])) {
      ++i;
      continue;
    }
    if (!Allowed(flag, cuda)) {
      return absl::InvalidArgumentError(absl::StrCat("build flag ", flag,
                                                     " is not accepted; accepted are -D, -O, -std=, ",
                                                     cuda ? "-Xptxas, --use_fast_math, -maxrregcount=, -fmad=, -ftz="
                                                          : "-f (none that loads plugins or writes files) and -m"));
    }
  }
  return absl::OkStatus();
}

}  // namespace grove::build
