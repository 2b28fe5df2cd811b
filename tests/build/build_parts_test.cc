#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/hash.h"
#include "worker/build/build_cache.h"
#include "worker/build/elf_symbols.h"
#include "worker/build/flags.h"
#include "worker/build/ptxas.h"

namespace grove::build {
namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/grove-build-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_CASE("Flags on the list are accepted", "[flags]") {
  CHECK(CheckFlags({"-DN=4", "-O2", "-ffast-math", "-mavx2", "-std=c++17", "-fno-math-errno", "-funroll-loops"},
                   v1::CANDIDATE_FORMAT_CPP)
            .ok());
  // What people tune with.
  for (const char* flag : {"-fopenmp",
                           "-fno-trapping-math",
                           "-ffp-contract=fast",
                           "-fno-signed-zeros",
                           "-ftree-vectorize",
                           "-fno-tree-slp-vectorize",
                           "-fvect-cost-model=unlimited",
                           "-fprefetch-loop-arrays",
                           "-fstrict-aliasing",
                           "-fomit-frame-pointer",
                           "-fno-exceptions",
                           "-fno-rtti",
                           "-flto",
                           "-finline-functions",
                           "-finline-limit=1000",
                           "-fno-semantic-interposition",
                           "-falign-loops=32",
                           "-fassociative-math",
                           "-freciprocal-math",
                           "-fcx-limited-range",
                           "-floop-nest-optimize",
                           "-fgraphite-identity",
                           "-fipa-pta",
                           "-fno-stack-protector",
                           "-fno-plt",
                           "-fwrapv",
                           "-ftemplate-depth=2000",
                           "-fconstexpr-ops-limit=100000000",
                           "-fpermissive",
                           "-fPIC",
                           "-fno-math-errno",
                           "-funroll-all-loops",
                           "-fschedule-insns",
                           "-fsplit-loops",
                           "-fno-builtin"}) {
    CAPTURE(flag);
    CHECK(CheckFlags({flag}, v1::CANDIDATE_FORMAT_CPP).ok());
  }
  CHECK(CheckFlags(
            {"-DN=4", "-O3", "--use_fast_math", "-maxrregcount=64", "-Xptxas", "-O3", "-Xptxas=-dlcm=cg", "-std=c++20"},
            v1::CANDIDATE_FORMAT_CUDA)
            .ok());
}

TEST_CASE("Flags that run code, write files or reach a shell are refused by name", "[flags]") {
  for (const char* flag : {"-fplugin=/tmp/x.so",
                           "-fplugin-arg-x-y",
                           "-I/etc",
                           "-L/",
                           "-Wl,-rpath,/",
                           "-o/tmp/x",
                           "-x",
                           "@file",
                           "-include/etc/passwd",
                           "-specs=x",
                           "-B/tmp",
                           "-wrapper",
                           "-fuse-ld=bfd",
                           "-fprofile-generate",
                           "-fdump-tree-all",
                           "--param",
                           "-DX=$(id)",
                           "-DX=a;b",
                           "-DX=\"a\"",
                           "-DX=`id`",
                           "-DX=a b",
                           "-D",
                           "-D1",
                           "kernel.cpp",
                           "",
                           "-save-temps",
                           "-foffload=x",
                           "-fbranch-probabilities",
                           "-fprofile-use=/etc/x",
                           "-fcompare-debug=x",
                           "-fsave-optimization-record",
                           "-fdiagnostics-format=sarif-file",
                           "-fmodules-ts",
                           "-fmacro-prefix-map=a=b",
                           "-frandom-seed=1",
                           "-fpreprocessed",
                           "-fsyntax-only",
                           "-fworking-directory",
                           "-finput-charset=x",
                           "-fno-such-thing",
                           "-f",
                           "-fno-",
                           "-pipe",
                           "-l",
                           "-O9"}) {
    CAPTURE(flag);
    const absl::Status status = CheckFlags({flag}, v1::CANDIDATE_FORMAT_CPP);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  }
  for (const char* flag : {"-ccbin=/tmp/x", "--compiler-bindir=/tmp", "-Xcompiler=-fplugin=x", "-Xlinker", "-fplugin=x",
                           "-keep", "--options-file=x", "-Xptxas", "-dryrun", "-mavx2"}) {
    CAPTURE(flag);
    CHECK_FALSE(CheckFlags({flag}, v1::CANDIDATE_FORMAT_CUDA).ok());
  }
  CHECK_FALSE(CheckFlags(std::vector<std::string>(65, "-O2"), v1::CANDIDATE_FORMAT_CPP).ok());
  CHECK_FALSE(CheckFlags({"-D" + std::string(300, 'A')}, v1::CANDIDATE_FORMAT_CPP).ok());
  CHECK_FALSE(CheckFlags({"-O2"}, v1::CANDIDATE_FORMAT_KERNELBENCH).ok());
}

constexpr char kPtxasLog[] = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5scalePfi' for 'sm_90a'
ptxas info    : Function properties for _Z5scalePfi
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 4096 bytes smem, 372 bytes cmem[0]
ptxas info    : Compile time = 5.123 ms
kernel.cu(3): warning #177-D: variable "x" was declared but never referenced
ptxas info    : Compiling entry function 'plain' for 'sm_90a'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 352 bytes cmem[0]
)";

TEST_CASE("ptxas figures are read for each kernel", "[ptxas]") {
  const auto kernels = ParsePtxas(kPtxasLog);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].name() == "scale(float*, int)");
  CHECK(kernels[0].registers() == 40);
  CHECK(kernels[0].shared_bytes() == 4096);
  CHECK(kernels[0].stack_bytes() == 16);
  CHECK(kernels[0].spill_store_bytes() == 8);
  CHECK(kernels[0].spill_load_bytes() == 12);
  CHECK(kernels[1].name() == "plain");
  CHECK(kernels[1].registers() == 8);
  CHECK(kernels[1].shared_bytes() == 0);
  CHECK(WithoutPtxasLines(kPtxasLog) ==
        "kernel.cu(3): warning #177-D: variable \"x\" was declared but never referenced");
}

TEST_CASE("Reading ptxas output never fails, whatever the log says", "[ptxas]") {
  std::mt19937 random(7);
  const std::string log = kPtxasLog;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = log;
    for (int k = 0; k < 5; ++k) damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    damaged.resize(random() % damaged.size());
    CHECK(ParsePtxas(damaged).size() <= 3);
    WithoutPtxasLines(damaged);
  }
}

TEST_CASE("Exported functions are read from a real object", "[elf]") {
  auto self = ReadFile("/lib/x86_64-linux-gnu/libz.so.1", 64 << 20);
  if (!self.ok()) self = ReadFile("/lib/x86_64-linux-gnu/libdl.so.2", 64 << 20);
  REQUIRE(self.ok());
  const auto names = ExportedFunctions(*self);
  REQUIRE(names.ok());
  CHECK_FALSE(names->empty());
}

TEST_CASE("A damaged object is an error or a list, and never more", "[elf]") {
  auto object = ReadFile("/lib/x86_64-linux-gnu/libdl.so.2", 64 << 20);
  REQUIRE(object.ok());
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = *object;
    for (int k = 0; k < 20; ++k) damaged[random() % 64] = static_cast<char>(random() % 256);
    for (int k = 0; k < 200; ++k) damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    if (i % 3 == 0) damaged.resize(random() % damaged.size());
    memcpy(damaged.data(),
           "\x7f"
           "ELF\x02\x01",
           std::min<size_t>(6, damaged.size()));
    (void)ExportedFunctions(damaged);
  }
  CHECK_FALSE(ExportedFunctions("").ok());
  CHECK_FALSE(ExportedFunctions("not an object at all").ok());
}

CachedBuild Entry(const std::string& content) {
  CachedBuild build;
  build.report.set_ok(true);
  build.report.set_log("log of " + content.substr(0, 10));
  build.objects.push_back({"key", "name", content});
  return build;
}

TEST_CASE("What is put into the cache comes back, also for the next process", "[cache]") {
  Folder folder;
  const std::string key = Sha256Hex("one");
  {
    BuildCache cache(folder.path(), 1 << 20);
    CHECK_FALSE(cache.Get(key).has_value());
    REQUIRE(cache.Put(key, Entry(std::string("a\0b", 3))).ok());
  }
  BuildCache cache(folder.path(), 1 << 20);
  const auto found = cache.Get(key);
  REQUIRE(found.has_value());
  CHECK(found->report.ok());
  REQUIRE(found->objects.size() == 1);
  CHECK(found->objects[0].content == std::string("a\0b", 3));
  CHECK(found->objects[0].key == "key");
}

TEST_CASE("A damaged cache entry is a miss, whichever byte is wrong", "[cache]") {
  Folder folder;
  BuildCache cache(folder.path(), 1 << 20);
  const std::string key = Sha256Hex("x"), path = absl::StrCat(folder.path(), "/", key);
  REQUIRE(cache.Put(key, Entry("content of the object")).ok());
  const std::string good = *ReadFile(path, 1 << 20);
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    std::string bad = good;
    if (i % 2 == 0) {
      bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
    } else {
      bad.resize(random() % bad.size());
    }
    REQUIRE(WriteFileAtomically(path, bad).ok());
    CHECK_FALSE(cache.Get(key).has_value());
    CHECK(access(path.c_str(), F_OK) != 0);
  }
}

TEST_CASE("The cache keeps within its bound and drops what was used longest ago", "[cache]") {
  Folder folder;
  BuildCache cache(folder.path(), 10000);
  std::vector<std::string> keys;
  for (int i = 0; i < 8; ++i) keys.push_back(Sha256Hex(absl::StrCat(i)));
  for (int i = 0; i < 3; ++i) REQUIRE(cache.Put(keys[i], Entry(std::string(2500, 'x'))).ok());
  CHECK(cache.Get(keys[0]).has_value());  // used again
  for (int i = 3; i < 5; ++i) REQUIRE(cache.Put(keys[i], Entry(std::string(2500, 'x'))).ok());
  CHECK(cache.TotalBytes() <= 10000);
  CHECK(cache.Get(keys[0]).has_value());
  CHECK_FALSE(cache.Get(keys[1]).has_value());
  CHECK_FALSE(cache.Get("../../etc/passwd").has_value());
}

TEST_CASE("An entry larger than the whole cache is not kept", "[cache]") {
  Folder folder;
  BuildCache cache(folder.path(), 1000);
  CHECK(cache.Put(Sha256Hex("big"), Entry(std::string(5000, 'x'))).ok());
  CHECK(cache.TotalBytes() == 0);
}

}  // namespace
}  // namespace grove::build
