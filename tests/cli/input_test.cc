#include "clients/cli/input.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace grove::cli {
namespace {

class TempDir {
 public:
  TempDir() {
    char name[] = "/tmp/grove-input-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_CASE("Formats follow the extension", "[cli]") {
  TempDir dir;
  CHECK(ReadProblem(dir.Write("softmax.py", "x"))->format() == v1::PROBLEM_FORMAT_KERNELBENCH);
  CHECK(ReadProblem(dir.Write("softmax.py", "x"))->name() == "softmax");
  CHECK(ReadProblem(dir.Write("m.toml", "x"))->format() == v1::PROBLEM_FORMAT_NATIVE);
  CHECK(ReadCandidate(dir.Write("k.cu", "x"))->format() == v1::CANDIDATE_FORMAT_CUDA);
  CHECK(ReadCandidate(dir.Write("k.cpp", "x"))->format() == v1::CANDIDATE_FORMAT_CPP);
  CHECK(ReadCandidate(dir.Write("K.PY", "x"))->format() == v1::CANDIDATE_FORMAT_KERNELBENCH);
  CHECK(ReadCandidate(dir.Write("k.cu", "x"))->name() == "k.cu");
  CHECK(ReadCandidate(dir.Write("k.cu", "grüße\n"))->source() == "grüße\n");
}

TEST_CASE("Each kind of bad file has one line that names the file, the cause and the remedy", "[cli]") {
  TempDir dir;
  const std::string long_path = dir.Write("big.cu", std::string(kMaxSourceBytes + 1, 'x'));
  struct Row {
    std::string path;
    const char* what;
  };
  const std::vector<Row> rows = {
      {dir.path() + "/none.cu", "no such file"},
      {dir.path(), "is a folder"},
      {long_path, "at most 1.0 MiB are accepted"},
      {dir.Write("empty.cu", ""), "is empty (zero bytes)"},
      {dir.Write("nul.cu", std::string("a\nb\0c", 5)), "NUL byte at offset 3 (line 2)"},
      {dir.Write("latin.cu", "a\nb\n\xff"), "not UTF-8: invalid byte at offset 4 (line 3)"},
      {dir.Write("k.txt", "x"), "cannot tell its format"},
      {dir.Write("noextension", "x"), "cannot tell its format"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path);
    for (const absl::Status& status : {ReadCandidate(row.path).status(), ReadProblem(row.path).status()}) {
      if (status.ok()) continue;
      CHECK(absl::IsInvalidArgument(status));
      CHECK(absl::StrContains(status.message(), row.path));
      CHECK_FALSE(absl::StrContains(status.message(), "\n"));
    }
    const absl::Status status = ReadCandidate(row.path).status();
    REQUIRE_FALSE(status.ok());
    CAPTURE(std::string(status.message()));
    CHECK(absl::StrContains(status.message(), row.what));
  }
}

TEST_CASE("A file of exactly 1 MiB is accepted, one of 100 MB is refused without being read", "[cli]") {
  TempDir dir;
  CHECK(ReadCandidate(dir.Write("edge.cu", std::string(kMaxSourceBytes, 'x'))).ok());
  const std::string huge = dir.Write("huge.cu", "x");
  REQUIRE(truncate(huge.c_str(), 100'000'000) == 0);
  CHECK(absl::StrContains(ReadCandidate(huge).status().message(), "95.4 MiB"));
}

TEST_CASE("UTF-8 is checked strictly", "[cli]") {
  CHECK(FindInvalidUtf8("plain") == absl::string_view::npos);
  CHECK(FindInvalidUtf8("\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\xb3") == absl::string_view::npos);
  CHECK(FindInvalidUtf8("a\xc0\x80") == 1);         // overlong
  CHECK(FindInvalidUtf8("\xed\xa0\x80") == 0);      // surrogate
  CHECK(FindInvalidUtf8("\xf4\x90\x80\x80") == 0);  // above U+10FFFF
  CHECK(FindInvalidUtf8("ab\xe2\x82") == 2);        // cut off
  CHECK(FindInvalidUtf8("\x80") == 0);
}

TEST_CASE("Names are text, whatever bytes a file's has", "[input]") {
  CHECK(*JobName("", "relu") == "relu");
  CHECK(*JobName("mine", "relu") == "mine");
  CHECK(JobName("\xff\xfe", "relu").status().message() == "--name is not UTF-8 text");
}

}  // namespace
}  // namespace grove::cli
