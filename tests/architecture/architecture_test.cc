#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/architecture/rules.h"

namespace grove::architecture {
namespace {

namespace fs = std::filesystem;

std::string ReadWhole(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// The project's text files relative to its root: these folders and the root's own files, without what a build leaves.
std::vector<std::string> Files() {
  const fs::path root = GROVE_SOURCE_DIR;
  std::vector<std::string> out;
  const auto take = [&](const fs::path& path) {
    const std::string name = path.filename().string();
    if (absl::EndsWith(name, ".pyc") || absl::EndsWith(name, ".png") || absl::EndsWith(name, ".gif") ||
        name == "LICENSE" || name == "compile_commands.json" || name == ".git") {  // a file in a linked work tree
      return;
    }
    out.push_back(fs::relative(path, root).generic_string());
  };
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    if (entry.is_regular_file()) take(entry.path());
  }
  for (const char* folder :
       {"proto", "common", "coordinator", "worker", "clients", "deploy", "docker", "tests", "docs", "cmake", ".ci"}) {
    if (!fs::is_directory(root / folder)) continue;
    for (auto it = fs::recursive_directory_iterator(root / folder, fs::directory_options::follow_directory_symlink);
         it != fs::recursive_directory_iterator(); ++it) {
      if (it->is_directory() && it->path().filename() == "__pycache__") it.disable_recursion_pending();
      if (it->is_regular_file()) take(it->path());
    }
  }
  return out;
}

bool IsSource(const std::string& file) {
  for (const char* ending : {".h", ".cc", ".c", ".cu", ".cuh", ".cpp"}) {
    if (absl::EndsWith(file, ending)) return true;
  }
  return false;
}

std::string Listed(const std::vector<Violation>& violations) {
  std::string out;
  for (const Violation& violation : violations)
    absl::StrAppend(&out, violation.file, ":", violation.line, ": ", violation.what, "\n");
  return out;
}

void Append(std::vector<Violation>* to, std::vector<Violation> more) {
  to->insert(to->end(), more.begin(), more.end());
}

TEST_CASE("Every include points down", "[architecture]") {
  std::vector<Violation> violations;
  std::set<std::string> parts;
  for (const std::string& file : Files()) {
    if (IsSource(file)) {
      parts.insert(file.substr(0, file.find('/')));
      Append(&violations, CheckIncludes(file, ReadWhole(fs::path(GROVE_SOURCE_DIR) / file)));
    } else if (absl::EndsWith(file, ".py")) {
      Append(&violations, CheckPython(file, ReadWhole(fs::path(GROVE_SOURCE_DIR) / file)));
    }
  }
  INFO(Listed(violations));
  CHECK(violations.empty());
  // That it looked at all.
  CHECK(parts.count("common") == 1);
  CHECK(parts.count("coordinator") == 1);
}

TEST_CASE("What is built on GPU hosts includes what it names of the standard library", "[architecture]") {
  const auto text_of = [](const std::string& file) {
    const fs::path path = fs::path(GROVE_SOURCE_DIR) / file;
    return fs::exists(path) ? ReadWhole(path) : std::string();
  };
  std::vector<Violation> violations;
  for (const std::string& file : Files()) {
    if (IsSource(file)) Append(&violations, CheckStandardIncludes(file, text_of(file), text_of));
  }
  INFO(Listed(violations));
  CHECK(violations.empty());

  const auto planted = [](const std::string& file) {
    return file == "worker/judge/b.h" ? std::string("#pragma once\n#include <map>\n") : std::string();
  };
  const std::string source =
      "#include \"worker/judge/b.h\"\nstd::map<int, int> a;  // no std::vector\nstd::set<int> b;\n";
  const std::vector<Violation> found = CheckStandardIncludes("worker/judge/a.h", source, planted);
  REQUIRE(found.size() == 1);
  CHECK(found[0].line == 3);
  CHECK(found[0].what == "std::set without <set>");
  CHECK(CheckStandardIncludes("coordinator/engine/a.h", source, planted).empty());
}

TEST_CASE("No file names the machine it was written on or says that it is unfinished", "[architecture]") {
  std::vector<Violation> violations;
  const std::vector<std::string> files = Files();
  for (const std::string& file : files)
    Append(&violations, CheckText(file, ReadWhole(fs::path(GROVE_SOURCE_DIR) / file)));
  INFO(Listed(violations));
  CHECK(violations.empty());
  CHECK(files.size() > 100);
}

TEST_CASE("The scan sees the includes that the preprocessor sees, and no others", "[architecture]") {
  const std::string source =
      "#pragma once\n"
      "// #include <comment.h>\n"
      "/* a\n#include <comment2.h>\n*/ #include \"after_comment.h\"\n"
      "  #  include <spaced.h>  // why\n"
      "const char* a = \"\\\"\\n#include <string.h>\";\n"
      "const char* b = R\"cu(\n#include <cuda_runtime.h>\n\" )\" )cu\";\n"
      "const char* d = u8R\"(\n#include <raw.h>\n)\";\n"
      "int million = 1'000'000; char quote = '\"';\n"
      "#if 0 // \"\n#endif\n"
      "#include <last.h>";
  std::vector<std::string> seen;
  for (const Include& include : IncludesOf(source)) seen.push_back(absl::StrCat(include.path, ":", include.line));
  CHECK(seen == std::vector<std::string>{"after_comment.h:5", "spaced.h:6", "last.h:17"});
}

TEST_CASE("Planted violations of the layering are found", "[architecture]") {
  const auto [file, include] = GENERATE(table<std::string, std::string>({
      {"coordinator/engine/x.cc", "grpcpp/grpcpp.h"},
      {"worker/pipeline/x.h", "grove/v1/services.grpc.pb.h"},
      {"coordinator/main.cc", "grpcpp/server.h"},
      {"worker/build/x.cc", "cuda_runtime.h"},
      {"coordinator/generate/catalogue/x.cc", "cuda_fp16.h"},
      {"worker/candidate/x.cc", "torch/torch.h"},
      {"worker/device/x.cc", "ATen/ATen.h"},
      {"worker/candidate/x.cc", "Python.h"},
      {"coordinator/generate/x.cc", "curl/curl.h"},
      {"clients/cli/x.cc", "curl/curl.h"},
      {"coordinator/engine/x.cc", "sqlite3.h"},
      {"coordinator/engine/x.cc", "prometheus/registry.h"},
      {"coordinator/engine/x.cc", "worker/pipeline/pipeline.h"},
      {"worker/rpc/x.cc", "coordinator/engine/engine.h"},
      {"common/base/x.h", "common/rpc/server.h"},
      {"common/rpc/x.cc", "coordinator/engine/engine.h"},
      {"common/wire/x.cc", "common/base/files.h"},
      {"worker/judge/x.cc", "common/base/log.h"},
      {"worker/judge/x.cc", "worker/candidate/device.h"},
      {"worker/candidate/x.cc", "worker/judge/compare.h"},
      {"worker/judge/x.cc", "absl/strings/str_cat.h"},
      {"worker/judge/x.cc", "grove/v1/types.pb.h"},
      {"coordinator/search/x.cc", "coordinator/engine/engine.h"},
      {"coordinator/llm/x.cc", "coordinator/generate/prompts.h"},
      {"coordinator/engine/x.cc", "coordinator/rpc/services.h"},
      {"worker/pipeline/x.cc", "worker/rpc/session.h"},
      {"worker/sandbox/x.cc", "worker/pipeline/pipeline.h"},
      {"clients/cli/x.cc", "coordinator/engine/engine.h"},
      {"coordinator/engine/x.cc", "tests/support/fake_clock.h"},
      {"coordinator/engine/x.cc", "catch2/catch.hpp"},
      {"coordinator/engine/x.cc", "coordinator/engine/../rpc/x.h"},
  }));
  CAPTURE(file, include);
  CHECK_FALSE(CheckIncludes(file, "#pragma once\n#include <" + include + ">\n").empty());
  CHECK_FALSE(CheckIncludes(file, "#include \"" + include + "\"\n").empty());
}

TEST_CASE("What the layering allows is not reported", "[architecture]") {
  const auto [file, include] = GENERATE(table<std::string, std::string>({
      {"coordinator/rpc/x.cc", "grpcpp/grpcpp.h"},
      {"clients/cpp/x.cc", "grove/v1/services.grpc.pb.h"},
      {"worker/judge/x.cu", "cuda_runtime.h"},
      {"worker/judge/python/x.cc", "Python.h"},
      {"worker/candidate/x.cc", "grove/kernel.h"},
      {"coordinator/llm/curl_transport.cc", "curl/curl.h"},
      {"coordinator/store/x.cc", "sqlite3.h"},
      {"coordinator/engine/x.cc", "grove/v1/tree.pb.h"},
      {"coordinator/generate/x.cc", "coordinator/llm/model_client.h"},
      {"coordinator/main.cc", "coordinator/rpc/services.h"},
      {"tests/rpc/x.cc", "grpcpp/grpcpp.h"},
  }));
  CAPTURE(file, include);
  CHECK(CheckIncludes(file, "#include <" + include + ">\n").empty());
}

TEST_CASE("Planted words and imports are found", "[architecture]") {
  CHECK(CheckText("a.cc",
                  "// TO"
                  "DO: later")
            .size() == 1);
  CHECK(CheckText("a.cc",
                  "cd /wo"
                  "rk/main")
            .size() == 1);
  CHECK(CheckText("a.sh",
                  "x\n<<<"
                  "<<<< HEAD")
            .size() == 1);
  CHECK(CheckText("a.cc", "mkstemp(\"/tmp/aXXXXXX\"); // TODOS, a word of its own").empty());
  CHECK(CheckText("a.md",
                  "see ./wo"
                  "rk/x and https://example.com/network/")
            .empty());
  CHECK(CheckPython("clients/python/x.py", "import os\nimport torch\n").size() == 1);
  CHECK(CheckPython("deploy/x.py", "import torch\n").empty());
  CHECK(CheckPython("worker/judge/x.py", "from torch import nn\n").empty());
}

}  // namespace
}  // namespace grove::architecture
