#include "clients/cli/text.h"

#include <catch2/catch.hpp>
#include <limits>

namespace grove::cli {
namespace {

TEST_CASE("Times have three figures and a unit", "[cli]") {
  CHECK(FormatSeconds(0) == "0 s");
  CHECK(FormatSeconds(12) == "12.0 s");
  CHECK(FormatSeconds(1) == "1.00 s");
  CHECK(FormatSeconds(0.00123) == "1.23 ms");
  CHECK(FormatSeconds(0.0456) == "45.6 ms");
  CHECK(FormatSeconds(456e-6) == "456 us");
  CHECK(FormatSeconds(7e-9) == "7.00 ns");
  CHECK(FormatSeconds(0.9999) == "1.00 s");
  CHECK(FormatSeconds(std::numeric_limits<double>::quiet_NaN()) == "-");
  CHECK(FormatClock(7) == "0:07");
  CHECK(FormatClock(750) == "12:30");
  CHECK(FormatClock(3723) == "1:02:03");
  CHECK(FormatClock(-1) == "-");
}

TEST_CASE("Sizes, ages and speedups are short", "[cli]") {
  CHECK(FormatBytes(512) == "512 B");
  CHECK(FormatBytes(1 << 20) == "1.0 MiB");
  CHECK(FormatAge(0, 5) == "-");
  CHECK(FormatAge(1'000'000'000, 31'000'000'000) == "30 s ago");
  CHECK(FormatAge(1, 600'000'000'001) == "10 min ago");
  CHECK(FormatAge(10, 5) == "0 s ago");  // clocks differ between machines
  CHECK(FormatSpeedup(3.4219, 3.307, 3.5512) == "3.42x [3.31, 3.55]");
  CHECK(FormatSpeedup(0, 0, 0) == "-");
  CHECK(FormatTime(0) == "-");
  CHECK(FormatTime(1'700'000'000'000'000'000) == "2023-11-14 22:13:20 UTC");
}

TEST_CASE("Tables align by what is seen, colours and accents included", "[cli]") {
  CHECK(Table({"A", "LONG"}, {{"é", "x"}, {"\x1b[32mgreen\x1b[0m", "y"}, {"", ""}}) ==
        "A      LONG\né      x\n\x1b[32mgreen\x1b[0m  y\n\n");
}

TEST_CASE("Text is cut to width without breaking characters or leaving a colour on", "[cli]") {
  CHECK(Fit("short", 10) == "short");
  CHECK(Fit("exactly ten", 10) == "exactly...");
  CHECK(Fit("äöüßäöüß", 6) == "äöü...");
  CHECK(Fit("\x1b[31mredredred\x1b[0m", 6) == "\x1b[31mred...\x1b[0m");
  CHECK(DisplayWidth(Fit("\x1b[31mredredred\x1b[0m", 6)) == 6);
  CHECK(Fit("abc", 2) == "..");
}

TEST_CASE("What came from a sandbox cannot write escape sequences to the terminal", "[cli]") {
  CHECK(Printable("a\x1b[2Jb\a\r\nc\td") == "a?[2Jb?\nc\td");
  CHECK(Printable("\xc2\x9b"
                  "2J") == "?2J");
  CHECK(OneLine(" two\nlines\t") == "two lines");
}

TEST_CASE("An excerpt says how much it left out and where the rest is", "[cli]") {
  CHECK(Excerpt("1\n2\n3\n4\n", 2, "  ", "grove show x") == "  1\n  2\n  ... 2 more lines: grove show x\n");
  CHECK(Excerpt("1\n2\n", 2, "  ", "grove show x") == "  1\n  2\n");
}

TEST_CASE("Names are those of the contract without their prefix", "[cli]") {
  CHECK(VerdictName(v1::VERDICT_LIMIT_EXCEEDED) == "LIMIT_EXCEEDED");
  CHECK(VerdictName(v1::VERDICT_UNSPECIFIED) == "PENDING");
  CHECK(JobStateName(v1::JOB_STATE_DONE) == "DONE");
  CHECK(ShortId("j-abcdefgh/k12") == "k12");
  CHECK(ShortId("j-abcdefgh") == "j-abcdefgh");
  CHECK(Style{.color = true}.Verdict(v1::VERDICT_WRONG) == "\x1b[31mWRONG\x1b[0m");
  CHECK(Style().Verdict(v1::VERDICT_WRONG) == "WRONG");
}

}  // namespace
}  // namespace grove::cli
