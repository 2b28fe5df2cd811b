#include "worker/build/flags.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace grove::build {
namespace {

constexpr size_t kMaxFlags = 64, kMaxFlagLength = 256;

// Families of g++'s -f flags (gcc.gnu.org, "Option Summary"), without "-f" and "no-": what computes differently or
// generates other code, and nothing that loads code into the compiler, chooses programs, reads profiles or writes
// files. A name ends at '='; a family covers all names that begin with it.
constexpr absl::string_view kNames[] = {
    "PIC",
    "pic",
    "PIE",
    "pie",
    "openmp",
    "openmp-simd",
    "lto",
    "fat-lto-objects",
    "exceptions",
    "rtti",
    "permissive",
    "coroutines",
    "char8_t",
    "concepts",
    "signed-char",
    "unsigned-char",
    "trapv",
    "non-call-exceptions",
    "plt",
    "common",
    "semantic-interposition",
    "visibility",
    "visibility-inlines-hidden",
    "tls-model",
    "ident",
    "asynchronous-unwind-tables",
    "unwind-tables",
    "elide-constructors",
    "threadsafe-statics",
    "sized-deallocation",
    "verbose-asm",
    "max-errors",
    "whole-program",
    "section-anchors",
    "split-stack",
    "ivopts",
    "web",
    "tracer",
    "dce",
    "dse",
    "forward-propagate",
    "rename-registers",
    "caller-saves",
    "crossjumping",
    "thread-jumps",
    "defer-pop",
    "compare-elim",
    "code-hoisting",
    "cprop-registers",
    "combine-stack-adjustments",
    "hoist-adjacent-loads",
    "jump-tables",
    "bit-tests",
    "store-merging",
    "stdarg-opt",
    "partial-inlining",
    "auto-inc-dec",
    "omit-frame-pointer",
    "strict-overflow",
    "strict-enums",
    "keep-inline-functions",
    "printf-return-value",
    "stack-clash-protection",
    "cf-protection",
    "short-enums",
};
constexpr absl::string_view kFamilies[] = {
    // arithmetic
    "fast-math",
    "math-errno",
    "unsafe-math-optimizations",
    "associative-math",
    "reciprocal-math",
    "finite-math-only",
    "signed-zeros",
    "trapping-math",
    "rounding-math",
    "signaling-nans",
    "cx-",
    "excess-precision",
    "fp-",
    "float-store",
    "single-precision-constant",
    "wrapv",
    // loops and vectors
    "tree-",
    "unroll-",
    "peel-loops",
    "loop-",
    "graphite",
    "vect-cost-model",
    "simd-cost-model",
    "prefetch-loop-arrays",
    "split-",
    "unswitch-loops",
    "version-loops-for-strides",
    "modulo-sched",
    "move-loop-",
    "aggressive-loop-",
    "finite-loops",
    // inlining, aliasing, code
    "inline",
    "early-inlining",
    "strict-aliasing",
    "align-",
    "schedule-",
    "sched-",
    "sched2-",
    "reorder-",
    "gcse",
    "ipa-",
    "if-conversion",
    "selective-scheduling",
    "sel-sched",
    "devirtualize",
    "data-sections",
    "function-sections",
    "merge-",
    "expensive-optimizations",
    "delete-",
    "allow-store-data-races",
    "assume-",
    "ira-",
    "lra-",
    "live-",
    "isolate-",
    "optimize-",
    "shrink-wrap",
    "peephole",
    "zero-",
    "cse-",
    "branch-count-reg",
    "guess-branch-probability",
    "stack-protector",
    "builtin",
    "hosted",
    "freestanding",
    "function-cse",
    "toplevel-reorder",
    "unit-at-a-time",
    "implicit-",
    // language and messages
    "constexpr-",
    "template-",
    "aligned-new",
    "new-",
    "diagnostics-color",
    "diagnostics-show-",
    "message-length",
};

bool AllowedF(absl::string_view flag) {
  absl::string_view name = flag.substr(2, flag.find('=') == absl::string_view::npos ? flag.npos : flag.find('=') - 2);
  absl::ConsumePrefix(&name, "no-");
  if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) return true;
  return std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [&](absl::string_view family) { return absl::StartsWith(name, family); });
}

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
  if (absl::StartsWith(f, "-f")) return AllowedF(f);
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
                                                          : "-m and -f flags of arithmetic, loops, inlining and code "
                                                            "generation (docs/candidates.md)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace grove::build
