#include "common/tuning/declared.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace grove::tuning {
namespace {

absl::StatusOr<std::string> With(absl::string_view source, const std::vector<std::string>& values) {
  return WithValues(source, *FindDeclared(source), values);
}

std::string Why(absl::string_view source) {
  const auto declared = FindDeclared(source);
  return declared.ok() ? "" : std::string(declared.status().message());
}

TEST_CASE("What a source declares is found in every language", "[tuning]") {
  const std::string source =
      "#include <x>\n"
      "constexpr int kTile = 16;  // grove: try 16 32\n"
      "#define UNROLL 4  // grove:try 4, 8\n"
      "BLOCK = 128    #  grove: try 128 256\n"
      "template <bool kFast = false>  // grove: try false true\n"
      "float f = 1.5f;\t// grove: try 1.5f 2e-3f\r\n"
      "x = 7 - 3  # grove: try 3 -3\n";
  const auto declared = FindDeclared(source);
  REQUIRE(declared.ok());
  REQUIRE(declared->size() == 6);
  std::vector<std::string> names;
  for (const Declared& one : *declared) {
    names.push_back(one.name);
    CHECK(source.substr(one.value_at, one.values[0].size()) == one.values[0]);
    CHECK(source.substr(one.verb_at, 3) == "try");
  }
  CHECK(names == std::vector<std::string>{"kTile", "UNROLL", "BLOCK", "kFast", "f", "x"});
  CHECK((*declared)[0].values == std::vector<std::string>{"16", "32"});
  CHECK((*declared)[4].values == std::vector<std::string>{"1.5f", "2e-3f"});
  CHECK(Combinations(*declared).size() == kMaxCombinations);
}

TEST_CASE("What looks like a declaration and is none is left alone", "[tuning]") {
  for (const char* source :
       {"", "\n\n", "int x = 1;", "int x = 1;  // try 1 2", "int x = 1;  // grove: tried 1 2",
        "int x = 1;  // grove: trying 1 2", "s = 'grove: try 1 2'", "int x = 1; // see grove: try 1 2",
        "grove: try 1 2", "//int x = 1;  // grove: try 1 2", "  # X = 1  # grove: try 1 2"}) {
    const auto declared = FindDeclared(source);
    CAPTURE(source);
    REQUIRE(declared.ok());
    CHECK(declared->empty());
    CHECK(Combinations(*declared).empty());
    CHECK(*With(source, {}) == source);
  }
}

TEST_CASE("A declaration that cannot be followed says where it stands and what to do", "[tuning]") {
  CHECK(absl::StrContains(Why("\nint x = 1;  // grove: try 1"), "line 2: 1 values to try; give 2 to 16"));
  CHECK(absl::StrContains(Why("int x = 1;  // grove: try"), "0 values"));
  CHECK(absl::StrContains(Why("int x = 1;  // grove: try 2 1"), "stands 0 times"));
  CHECK(absl::StrContains(Why("int x = 1 + 1;  // grove: try 1 2"), "stands 2 times"));
  CHECK(absl::StrContains(Why("int x1 = 11 + 1.1;  // grove: try 1 2"), "stands 0 times"));
  CHECK(absl::StrContains(Why("int x = 1;  // grove: try 1 2 1"), "there twice"));
  CHECK(absl::StrContains(Why("int x = 1;  // grove: try 1 2;"), "'2;' is no value"));
  CHECK(absl::StrContains(Why("int x = 1;  // grove: try 1 " + std::string(65, '9')), "at most 64 characters"));
  std::string many = "int x = 0;  // grove: try";
  for (int i = 0; i < 17; ++i) absl::StrAppend(&many, " ", i);
  CHECK(absl::StrContains(Why(many), "more than 16 values"));
  std::string wide;
  for (int i = 0; i < 7; ++i) absl::StrAppend(&wide, "int x", i, "_ = 1;  // grove: try 1 2\n");
  CHECK(absl::StrContains(Why(wide), "line 7: with this one there are 128 combinations"));
  CHECK(absl::StrContains(Why("double x = 2e-1;  // grove: try 1 2"), "stands 0 times"));
  CHECK(absl::StrContains(Why("int x = 1'000;  // grove: try 1 2"), "stands 0 times"));
  CHECK(absl::StrContains(Why("int x;  // was 1  // grove: try 1 2"), "stands in a comment"));
  CHECK(absl::StrContains(Why("x = y  # was 1  # grove: try 1 2"), "stands in a comment"));
  CHECK(Why("x = y // 2  # grove: try 2 4").empty());
  CHECK(Why("#define X 1  // grove: try 1 2").empty());
  CHECK_FALSE(With("int x = 1;  // grove: try 1 2", {"3"}).ok());
  CHECK_FALSE(With("int x = 1;  // grove: try 1 2", {}).ok());
  CHECK_FALSE(With("int x = 1;", {"1"}).ok());
}

TEST_CASE("Every combination is made once, as the source stands first, and declares nothing more", "[tuning]") {
  const std::string source = "int a = 1;  // grove: try 1 2\r\n  int b = x;// grove: try x yy z\nint c = a;";
  const auto all = Combinations(*FindDeclared(source));
  REQUIRE(all.size() == 6);
  CHECK(all[0] == std::vector<std::string>{"1", "x"});
  CHECK(all[1] == std::vector<std::string>{"1", "yy"});
  CHECK(all[5] == std::vector<std::string>{"2", "z"});
  CHECK(*With(source, all[4]) == "int a = 2;  // grove: tried 1 2\r\n  int b = yy;// grove: tried x yy z\nint c = a;");
  std::set<std::string> texts;
  for (const auto& one : all) texts.insert(*With(source, one));
  CHECK(texts.size() == 6);
  for (const std::string& text : texts) CHECK(FindDeclared(text)->empty());
  const std::string two = "int a = 1;  // grove: try 1 2\nint a = 1;  // grove: try 1 3\n";
  CHECK((*FindDeclared(two))[1].name == "a:2");
}

TEST_CASE("The time that a source takes grows as its length, not as its square", "[tuning]") {
  // Blanks, and then marks that are none, each of which could look at all the blanks.
  const auto seconds = [](std::size_t length) {
    std::string source(length / 2, ' ');
    while (source.size() < length) source += "//grove:";
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      CHECK(FindDeclared(source)->empty());
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
  };
  const double small = seconds(1 << 16), large = seconds(1 << 20);
  CHECK(large < 16 * 6 * small);  // 256 times, were it the square
}

TEST_CASE("Names and values that are too long or too many are cut or refused", "[tuning]") {
  // A million bytes of values: each would be compared with all before it, were they not too many already.
  std::string values = "int x = 0;  // grove: try";
  for (int i = 0; values.size() < (1 << 20); ++i) absl::StrAppend(&values, " ", i);
  CHECK(absl::StrContains(Why(values), "more than 16 values"));
  const std::string name(500'000, 'n');
  const auto declared =
      FindDeclared("int " + name + " = 1;  // grove: try 1 2\nint " + name + " = 1;  // grove: try 1 3");
  REQUIRE(declared.ok());
  CHECK((*declared)[0].name.size() == kMaxNameBytes);
  CHECK((*declared)[1].name != (*declared)[0].name);
}

TEST_CASE("Whatever the text, what is found can be followed", "[tuning]") {
  std::mt19937_64 random(7);
  const std::vector<std::string> pieces = {"grove:",
                                           "try",
                                           " ",
                                           "//",
                                           "#",
                                           "1",
                                           "22",
                                           "x",
                                           "=",
                                           "\n",
                                           "\r",
                                           ",",
                                           ".",
                                           "-",
                                           "// grove: try 1 22",
                                           "1 // grove: try 1 x",
                                           std::string(1, '\0'),
                                           "\xff",
                                           "\t",
                                           "_"};
  int followed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string source;
    const std::size_t count = random() % 24;
    for (std::size_t i = 0; i < count; ++i) source += pieces[random() % pieces.size()];
    const auto declared = FindDeclared(source);
    if (!declared.ok()) {
      CHECK(absl::StrContains(declared.status().message(), "line "));
      continue;
    }
    for (const auto& values : Combinations(*declared)) {
      const auto text = WithValues(source, *declared, values);
      REQUIRE(text.ok());
      REQUIRE(FindDeclared(*text)->empty());
      ++followed;
    }
  }
  CHECK(followed > 100);
}

}  // namespace
}  // namespace grove::tuning
