#include "coordinator/llm/text.h"

#include <catch2/catch.hpp>
#include <random>

namespace grove::llm {
namespace {

TEST_CASE("Well-formed UTF-8 is told from what only looks like it", "[llm]") {
  CHECK(IsUtf8(""));
  CHECK(IsUtf8("plain"));
  CHECK(IsUtf8("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x8C\xB3"));
  CHECK_FALSE(IsUtf8("\x80"));
  CHECK_FALSE(IsUtf8("\xC0\xAF"));          // overlong
  CHECK_FALSE(IsUtf8("\xE0\x80\xAF"));      // overlong
  CHECK_FALSE(IsUtf8("\xED\xA0\x80"));      // surrogate
  CHECK_FALSE(IsUtf8("\xF4\x90\x80\x80"));  // above U+10FFFF
  CHECK_FALSE(IsUtf8("\xE2\x82"));          // cut
}

TEST_CASE("Cleaning repairs encoding, control characters and line ends, and keeps within its bound", "[llm]") {
  CHECK(CleanText("a\r\nb\rc\td", 100) == "a\nb\nc\td");
  CHECK(CleanText(absl::string_view("x\0y\x1b[31m", 8), 100) == "x y [31m");
  CHECK(CleanText("\xFF!", 100) == "\xEF\xBF\xBD!");
  CHECK(CleanText("ab\xE2\x82\xAC", 4) == "ab");
  CHECK(OneLine("  one\n\n two\t three  ", 100) == "one two three");
  CHECK(OneLine("abcdefghij", 8) == "abcde...");
  CHECK(OneLine("\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC", 8) == "\xE2\x82\xAC...");
}

TEST_CASE("Whatever goes in, clean text is UTF-8 within its bound", "[llm]") {
  const unsigned seed = 20260101;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 80, '\0');
    for (char& c : text) c = static_cast<char>(random() % 4 == 0 ? random() % 128 : random() % 256);
    const size_t bound = random() % 90;
    const std::string clean = CleanText(text, bound);
    const std::string line = OneLine(text, bound);
    REQUIRE(IsUtf8(clean));
    REQUIRE(IsUtf8(line));
    REQUIRE(clean.size() <= bound);
    REQUIRE(line.size() <= bound);
    REQUIRE(clean.find('\0') == std::string::npos);
    REQUIRE(line.find('\n') == std::string::npos);
    REQUIRE(CleanText(clean, bound) == clean);
  }
}

}  // namespace
}  // namespace grove::llm
