#include "worker/build/sass.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"

namespace grove::build {
namespace {

// As cuobjdump -sass prints it: the second line of each instruction is the rest of its encoding.
constexpr char kSass[] = R"sass(
Fatbin elf code:
================
arch = sm_90a
code version = [1,8]
host = linux
compile_size = 64bit

	code for sm_90a
		Function : _Z5scalePfi
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                                /* 0x00000a00ff017b82 */
                                                                                         /* 0x000fe20000000800 */
        /*0010*/                   S2R R0, SR_TID.X ;                                    /* 0x0000000000007919 */
                                                                                         /* 0x000e220000002100 */
        /*0020*/                   ISETP.GE.AND P0, PT, R0, UR4, PT ;                    /* 0x0000000400007c0c */
        /*0030*/               @P0 EXIT ;                                                /* 0x000000000000094d */
        /*0040*/                   LDG.E.128 R4, desc[UR6][R2.64] ;                      /* 0x0000000602047981 */
        /*0050*/                   FFMA R4, R4, 2, RZ ;
        /*0060*/              @!P1 FFMA.FTZ R5, R5, 2, RZ ;
        /*0070*/              @UP0 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0080*/                   HGMMA.64x64x16.F32 R24, gdesc[UR4], R24 ;
        /*0090*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*00a0*/                   { FADD R1, R2, R3 ;
        /*00b0*/                   STG.E.128 desc[UR6][R2.64], R4 ;
        /*00c0*/                   EXIT ;
        /*00d0*/                   BRA 0xd0;
        /*00e0*/                   NOP;
        /*00f0*/                   NOP;
		..........
)sass";

std::map<std::string, int64_t> Counts(const InstructionMix& mix) { return {mix.counts.begin(), mix.counts.end()}; }

TEST_CASE("Instructions are counted by what they are, without suffixes and predicates", "[sass]") {
  const InstructionMix mix = ParseSass(kSass);
  const auto counts = Counts(mix);
  CHECK(mix.total == 14);
  CHECK(counts == std::map<std::string, int64_t>{{"LDC", 1},
                                                 {"S2R", 1},
                                                 {"ISETP", 1},
                                                 {"EXIT", 2},
                                                 {"LDG", 1},
                                                 {"FFMA", 2},
                                                 {"UIADD3", 1},
                                                 {"HGMMA", 1},
                                                 {"BAR", 1},
                                                 {"FADD", 1},
                                                 {"STG", 1},
                                                 {"BRA", 1}});
  CHECK(mix.counts[0].second == 2);  // the most frequent first
  CHECK(mix.functions == std::vector<std::string>{"scale(float*, int)"});
  CHECK(mix.sha256.size() == 64);
}

TEST_CASE("The hash is of the code, whatever stands around it", "[sass]") {
  const std::string whole = kSass;
  const std::string function = whole.substr(whole.find("\t\tFunction"));
  CHECK(ParseSass(function).sha256 == ParseSass(whole).sha256);
  std::string other = whole;
  other.replace(other.find("R4, R4, 2"), 9, "R4, R4, 3");
  CHECK(ParseSass(other).sha256 != ParseSass(whole).sha256);
  CHECK(ParseSass("").sha256.empty());
  CHECK(ParseSass("cuobjdump info    : File 'x' does not contain device code\n").total == 0);
}

TEST_CASE("However many kinds of instructions there are, the most frequent are named", "[sass]") {
  std::string text;
  for (int kind = 0; kind < 100; ++kind) {
    for (int i = 0; i <= kind; ++i) absl::StrAppend(&text, "/*0000*/ OP", kind, ".X R1 ;\n");
  }
  const InstructionMix mix = ParseSass(text);
  CHECK(mix.total == 100 * 101 / 2);
  REQUIRE(mix.counts.size() == kMaxOpcodes);
  CHECK(mix.counts[0] == std::make_pair(std::string("OP99"), int64_t{100}));
}

TEST_CASE("What is no instruction is not counted, whatever it looks like", "[sass]") {
  for (const char* line :
       {"/*0000*/", "/*0000*/ lower R1;", "/*xyz*/ FFMA R1;", "/**/ FFMA R1;", "FFMA R1;", "/*0000*/ @P0",
        "/*0000*/ FFMA/x", "/*0000*/ AVERYVERYLONGNAMEOFAMNEMONIC R1;", "/* 0x0000000400007c0c */",
        "/*00000000000000000000*/ FFMA R1;", "/*0000*/ 7FFMA;", "/*0000*/ {", "/*0000*/ @"}) {
    CAPTURE(line);
    CHECK(ParseSass(line).total == 0);
  }
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = kSass;
    for (int k = 0; k < 20; ++k) damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    damaged.resize(random() % damaged.size());
    CHECK(ParseSass(damaged).total <= 16);
  }
}

// A toolkit of the test's own, whose cuobjdump says what it is told to.
struct Toolkit {
  explicit Toolkit(const std::string& script) {
    char name[] = "/tmp/grove-sass-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    folder = name;
    std::filesystem::create_directories(folder + "/bin");
    nvcc.path = folder + "/bin/nvcc";
    nvcc.folders = {folder};
    std::ofstream(folder + "/bin/cuobjdump") << "#!/bin/sh\n" << script;
    REQUIRE(chmod((folder + "/bin/cuobjdump").c_str(), 0755) == 0);
    auto made = sandbox::SandboxHost::Create({});
    INFO(made.status());
    REQUIRE(made.ok());
    host = *made;
  }
  ~Toolkit() { std::filesystem::remove_all(folder); }
  absl::StatusOr<InstructionMix> Count(const std::vector<BuiltObject>& objects) {
    return CountInstructions(host, nvcc, objects, nullptr);
  }
  std::string folder;
  device::Compiler nvcc;
  std::shared_ptr<sandbox::SandboxHost> host;
};

TEST_CASE("Objects are disassembled in a sandbox, all of them, and those without device code count nothing", "[sass]") {
  Toolkit toolkit(
      "[ \"$1\" = -sass ] || exit 9\n"
      "read word < \"$2\"\n"
      "[ \"$word\" = none ] && echo \"cuobjdump info    : File '$2' does not contain device code\" >&2 "
      "&& exit 255\n"
      "echo '		Function : '$word; echo '        /*0000*/    FFMA R1, R2 ;'\n"
      "ls /etc/hostname >&2 && exit 9\nexit 0\n");
  const auto mix = toolkit.Count({{"", "a", "one\n"}, {"", "b", "none\n"}, {"", "c", "two\n"}});
  INFO(mix.status());
  REQUIRE(mix.ok());
  CHECK(mix->total == 2);
  CHECK(mix->sha256.size() == 64);
  CHECK(mix->sha256 != toolkit.Count({{"", "a", "one\n"}})->sha256);
}

TEST_CASE("A toolkit in /usr, where it may be a link, is disassembled with as well", "[sass]") {
  Toolkit toolkit("echo '        /*0000*/    FFMA R1, R2 ;'\n");
  // This one has no cuobjdump beside its nvcc, so that the test's own is found on PATH.
  toolkit.nvcc.folders.clear();
  for (const char* nvcc : {"/usr/bin/nvcc", "/usr/local/cuda/bin/nvcc", "/usr/local/lib/../cuda/bin/nvcc"}) {
    CAPTURE(nvcc);
    toolkit.nvcc.path = nvcc;
    if (FindCuobjdump(toolkit.nvcc) != "") continue;  // a real one, which would read no such object
    const std::string path = getenv("PATH");
    setenv("PATH", absl::StrCat(toolkit.folder, "/bin:", path).c_str(), 1);
    const auto mix = toolkit.Count({{"", "", "x"}});
    setenv("PATH", path.c_str(), 1);
    INFO(mix.status());
    REQUIRE(mix.ok());
    CHECK(mix->total == 1);
  }
}

TEST_CASE("A disassembler that fails, floods or is absent is an error with its reason", "[sass]") {
  CHECK_THAT(
      std::string(
          Toolkit("echo 'cuobjdump fatal : bad image' >&2; exit 255\n").Count({{"", "", "x"}}).status().message()),
      Catch::Contains("bad image"));
  const auto flood = Toolkit("yes '        /*0000*/    FFMA R1, R2 ;'\n").Count({{"", "", "x"}});
  CHECK(absl::IsResourceExhausted(flood.status()));
}

TEST_CASE("The machine code of a kernel that nvcc built has what its source asks for", "[sass]") {
  const auto nvcc = device::FindNvcc("");
  if (!nvcc.ok() || FindCuobjdump(*nvcc).empty()) {
    WARN("no nvcc with cuobjdump on this machine");
    return;
  }
  Toolkit toolkit("");
  const std::string source = toolkit.folder + "/k.cu", object = toolkit.folder + "/k.so";
  std::ofstream(source)
      << "__global__ void k(float* y, const float* x) { __shared__ float s[256]; s[threadIdx.x] = "
         "fmaf(x[threadIdx.x], 3.f, 1.f); __syncthreads(); y[threadIdx.x] = s[255 - threadIdx.x]; }\n";
  const auto built = device::RunTool(
      {nvcc->path, "-shared", "-Xcompiler", "-fPIC", "-gencode=arch=compute_90a,code=sm_90a", "-o", object, source},
      {absl::StrCat("PATH=", nvcc->home, "/bin:/usr/bin:/bin"), "HOME=/tmp"}, absl::Seconds(120));
  REQUIRE(built.ok());
  REQUIRE(built->exit_code == 0);
  std::ifstream file(object, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto mix = CountInstructions(toolkit.host, *nvcc, {{"", "", content}}, nullptr);
  INFO(mix.status());
  REQUIRE(mix.ok());
  const auto counts = Counts(*mix);
  for (const char* opcode : {"FFMA", "LDG", "STS", "BAR", "LDS", "STG", "EXIT"}) {
    CAPTURE(opcode);
    CHECK(counts.count(opcode) == 1);
  }
}

}  // namespace
}  // namespace grove::build
