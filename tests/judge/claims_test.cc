#include "worker/judge/claims.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace grove::judge {

// What a single call may lack: two requests of nothing, 200 us, and a quarter of 3 ms.
constexpr double kAllowed = 2 * 150e-6 + 200e-6 + 0.25 * 3e-3;

TEST_CASE("A claim that agrees with the clock is no contradiction, on any machine", "[claims]") {
  for (const std::vector<double>& waits :
       {std::vector<double>{}, std::vector<double>{30e-6, 40e-6}, std::vector<double>{4e-3, 9e-3}}) {
    CHECK(Judge(-1e-3, kAllowed, waits) == Contradiction::kNone);
    CHECK(Judge(0, kAllowed, waits) == Contradiction::kNone);
    CHECK(Judge(kAllowed, kAllowed, waits) == Contradiction::kNone);
  }
}

TEST_CASE("What a thread of the judge's own waited as well accuses nobody", "[claims]") {
  // Six busy processes on two processors: a kernel of 3 ms was heard 4 ms late in its quickest single call.
  const std::vector<double> overrun = {3.9e-3, 4.1e-3, 8.0e-3, 60e-6, 4.0e-3, 12e-3, 3.8e-3, 4.0e-3, 7.9e-3};
  CHECK(Judge(4e-3, kAllowed, overrun) == Contradiction::kUnsure);
  CHECK(Busy(overrun).find("0.004 s") != std::string::npos);
  // Half of the time there was a processor.
  const std::vector<double> busy = {60e-6, 4e-3, 50e-6, 4e-3, 50e-6, 4e-3, 50e-6, 4e-3, 50e-6};
  CHECK(Judge(4e-3, kAllowed, busy) == Contradiction::kUnsure);
}

TEST_CASE("What a machine that wakes sleepers later than before makes of every run accuses nobody", "[claims]") {
  // A virtual machine: practice took 0.2 ms beside another process, and runs of nothing 1.5 ms when that was gone. What
  // a run of two calls of 0.35 ms lacked: 1.54 ms.
  const std::vector<double> quiet(9, 60e-6);
  const double allowed = 0.25 * 2 * 1.1e-3 + 0.6e-3, dearer = 1.5e-3 - 0.2e-3;
  CHECK(Judge(1.54e-3, allowed, quiet) == Contradiction::kPlain);
  CHECK(Judge(1.54e-3, allowed, quiet, dearer) == Contradiction::kUnsure);
  CHECK(Busy(quiet, dearer).find("0.0013 s") != std::string::npos);
  CHECK(Judge(4e-3, allowed, quiet, dearer) == Contradiction::kPlain);
  CHECK(Judge(1.54e-3, allowed, quiet, -1e-3) == Contradiction::kPlain);
}

TEST_CASE("A lie on a quiet machine is one, whatever happened once", "[claims]") {
  const std::vector<double> quiet = {45e-6, 60e-6, 52e-6, 48e-6, 130e-6, 51e-6, 3e-3, 49e-6, 55e-6};
  CHECK(Explained(quiet) == 0);
  CHECK(Busy(quiet).find("more work than processors") == std::string::npos);
  CHECK(Judge(1.01 * kAllowed, kAllowed, quiet) == Contradiction::kPlain);
  CHECK(Judge(1.01 * kAllowed, kAllowed, {}) == Contradiction::kPlain);
  // Nor does a machine that keeps everyone waiting for a little explain what takes a hundred times as long.
  CHECK(Judge(50e-3, kAllowed, std::vector<double>(9, 400e-6)) == Contradiction::kPlain);
}

TEST_CASE("What calls by themselves take is told where the clock does not contradict it", "[claims]") {
  CHECK(Alone({}, 10e-6) == 0);
  CHECK(Alone({9.6e-6}, 10e-6) == 9.6e-6);
  // The second half counts.
  CHECK(Alone({12e-6, 9e-6, 9.5e-6}, 10e-6) == Approx(9.25e-6));
  CHECK(Alone({3e-6, 3e-6, 3e-6, 9.5e-6, 9.7e-6, 40e-6}, 10e-6) == 9.7e-6);
  // A row lets calls overlap, or waits between them.
  CHECK(Alone({4.1e-6}, 10e-6) == 4.1e-6);
  CHECK(Alone({3.9e-6}, 10e-6) == 0);
  CHECK(Alone({14.9e-6}, 10e-6) == 14.9e-6);
  CHECK(Alone({15.1e-6}, 10e-6) == 0);
  CHECK(Alone({0.48e-3}, 1e-3) == 0);
  // Of a call that is shorter than a launch a row says little.
  CHECK(Alone({0.9e-6}, 3.3e-6) == 0.9e-6);
  CHECK(Alone({0}, 1.5e-6) == 0);
}

}  // namespace grove::judge
