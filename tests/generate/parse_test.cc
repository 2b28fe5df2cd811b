#include "coordinator/generate/parse.h"

#include <catch2/catch.hpp>
#include <random>

#include "coordinator/llm/text.h"
#include "tests/generate/fixtures.h"

namespace grove::generate {
namespace {

std::vector<std::string> Titles(const std::string& answer, int max = 10) {
  std::vector<std::string> out;
  absl::StatusOr<std::vector<v1::IdeaNode>> ideas = ParseIdeas(answer, max);
  if (!ideas.ok()) return {std::string(ideas.status().message())};
  for (const v1::IdeaNode& idea : *ideas) out.push_back(idea.title());
  return out;
}

TEST_CASE("Ideas are read from a fenced list with all their fields", "[generate]") {
  absl::StatusOr<std::vector<v1::IdeaNode>> ideas = ParseIdeas(kIdeasAnswer, 4);
  REQUIRE(ideas.ok());
  REQUIRE(ideas->size() == 2);
  CHECK((*ideas)[0].title() == "Vectorise");
  CHECK((*ideas)[0].description() == "Use wide loads.");
  CHECK((*ideas)[0].category() == "memory");
  CHECK((*ideas)[0].predicted_speedup() == 1.8);
  CHECK((*ideas)[1].predicted_speedup() == 2.5);
}

TEST_CASE("Ideas are found however the list is wrapped", "[generate]") {
  const std::vector<std::string> both = {"A", "B"};
  CHECK(Titles(R"([{"title":"A"},{"title":"B"}])") == both);
  CHECK(Titles(R"({"ideas":[{"title":"A"},{"title":"B"}]})") == both);
  CHECK(Titles("Here you are [as asked]:\n[{\"title\":\"A\"},{\"name\":\"B\"}]\nGood luck [really].") == both);
  CHECK(Titles("~~~JSON\n[{\"title\":\"A\"},{\"title\":\"B\"}]\n~~~") == both);
  CHECK(Titles("```json\r\n[{\"title\":\"A\"},\r\n{\"title\":\"B\"}]\r\n```\r\n") == both);
  CHECK(Titles("```json\n[{\"title\":\"A\"},{\"title\":\"B\"}]") == both);  // the fence never closes
  CHECK(Titles("<think>maybe [{\"title\":\"wrong\"}]?</think>\n[{\"title\":\"A\"},{\"title\":\"B\"}]") == both);
  CHECK(Titles("```json\n// two of them\n[{\"title\":\"A\"},{\"title\":\"B\"}]\n```") == both);
  CHECK(Titles("```json\n[\"A\", \"B\"]\n```") == both);
  CHECK(Titles(R"({"title":"alone"})") == std::vector<std::string>{"alone"});
  CHECK(Titles("```cpp\nint a[1];\n```\n```json\n[{\"title\":\"A\"},{\"title\":\"B\"}]\n```") == both);
}

TEST_CASE("No more ideas than asked for are taken, and those without a title are skipped", "[generate]") {
  CHECK(Titles(R"([{"title":"A"},{"title":" \n"},{"x":1},7,{"title":"B"},{"title":"C"}])", 2) ==
        std::vector<std::string>{"A", "B"});
}

TEST_CASE("Hostile fields of an idea are bounded and cleaned", "[generate]") {
  const std::string answer = R"([{"title":"a\u0000b\n)" + std::string(5000, 't') + R"(","description":")" +
                             std::string(50000, 'd') + R"(","category":"Fusion & more","predicted_speedup":1e300}])";
  absl::StatusOr<std::vector<v1::IdeaNode>> ideas = ParseIdeas(answer, 1);
  REQUIRE(ideas.ok());
  const v1::IdeaNode& idea = ideas->front();
  CHECK(idea.title().size() <= kMaxTitleBytes);
  CHECK(idea.title().substr(0, 4) == "a b ");
  CHECK(idea.description().size() == kMaxDescriptionBytes);
  CHECK(idea.category() == "memory");
  CHECK(idea.predicted_speedup() == 0);
}

TEST_CASE("An answer without ideas says so with its beginning", "[generate]") {
  for (const std::string answer :
       {"", "I cannot help with that.", "[]", "{}", "[1,2,3]", "```json\n[{]\n```", "<think>still thinking"}) {
    CAPTURE(answer);
    absl::StatusOr<std::vector<v1::IdeaNode>> ideas = ParseIdeas(answer, 3);
    REQUIRE_FALSE(ideas.ok());
    CHECK(ideas.status().code() == absl::StatusCode::kDataLoss);
  }
  CHECK(Titles("I cannot help with that.")[0].find("I cannot help") != std::string::npos);
}

TEST_CASE("Answers made of brackets cost neither the stack nor quadratic time", "[generate]") {
  CHECK_FALSE(ParseIdeas(std::string(1 << 20, '['), 3).ok());
  CHECK_FALSE(ParseIdeas("```json\n" + std::string(1 << 20, '[') + "\n```", 3).ok());
  CHECK_FALSE(ParseIdeas("```json\n" + std::string(200'000, '[') + std::string(200'000, ']') + "\n```", 3).ok());
  CHECK_FALSE(ParseIdeas(std::string(kMaxAnswerBytes + 1, ' '), 3).ok());
}

TEST_CASE("A kernel is the fenced block with the entry point, in the device's format, with the words around as notes",
          "[generate]") {
  absl::StatusOr<v1::KernelNode> kernel = ParseKernel(kKernelAnswer, v1::DEVICE_KIND_CPU);
  REQUIRE(kernel.ok());
  CHECK(kernel->candidate().format() == v1::CANDIDATE_FORMAT_CPP);
  CHECK(kernel->candidate().source() == "#include <grove/kernel.h>\nGROVE_KERNEL(args) { return 0; }\n");
  CHECK(kernel->notes() == "Two rows at a time.");
  CHECK(ParseKernel(kKernelAnswer, v1::DEVICE_KIND_CUDA)->candidate().format() == v1::CANDIDATE_FORMAT_CUDA);
}

TEST_CASE("The kernel is chosen among several blocks, and found where fences are unusual", "[generate]") {
  const auto source = [](const std::string& answer) {
    absl::StatusOr<v1::KernelNode> kernel = ParseKernel(answer, v1::DEVICE_KIND_CUDA);
    return kernel.ok() ? kernel->candidate().source() : std::string(kernel.status().message());
  };
  CHECK(source("```cuda\nGROVE_KERNEL(args) { return 1; }\n```\nBetter:\n```cuda\nGROVE_KERNEL(args) { return 2; "
               "}\n```\n") == "GROVE_KERNEL(args) { return 2; }\n");
  CHECK(source("```cpp\nGROVE_KERNEL(args) { return 1; }\n```\nused as\n```cpp\na much longer block without any entry "
               "point;\n```\n") == "GROVE_KERNEL(args) { return 1; }\n");
  CHECK(source("```bash\nnvcc GROVE_KERNEL\n```\n```c++\nGROVE_KERNEL(a) {}\n```") == "GROVE_KERNEL(a) {}\n");
  CHECK(source("````cuda\n// ```\nGROVE_KERNEL(a) {}\n````\n") == "// ```\nGROVE_KERNEL(a) {}\n");
  CHECK(source("```cuda\nGROVE_KERNEL(a) {}\n") == "GROVE_KERNEL(a) {}\n");
  CHECK(source("Sure.\n#include <grove/kernel.h>\nGROVE_KERNEL(a) {}\n") ==
        "#include <grove/kernel.h>\nGROVE_KERNEL(a) {}\n");
  CHECK(source("```cpp\nint main() {}\n```") == "int main() {}\n");  // the build will say what is missing
  CHECK(source("<think>```cuda\nGROVE_KERNEL(bad) {}\n```</think>```cuda\nGROVE_KERNEL(a) {}\n```") ==
        "GROVE_KERNEL(a) {}\n");
}

TEST_CASE("An answer without a usable kernel says why", "[generate]") {
  const auto why = [](const std::string& answer) {
    absl::StatusOr<v1::KernelNode> kernel = ParseKernel(answer, v1::DEVICE_KIND_CPU);
    REQUIRE_FALSE(kernel.ok());
    CHECK(kernel.status().code() == absl::StatusCode::kDataLoss);
    return std::string(kernel.status().message());
  };
  CHECK(why("Sorry, no.").find("no fenced code block") != std::string::npos);
  CHECK(why("```cpp\nGROVE_KERNEL(args) {\n  int x =").find("ends inside") != std::string::npos);
  CHECK(why("```cpp\n\n```").find("empty") != std::string::npos);
  CHECK(why("```cpp\nGROVE_KERNEL " + std::string(kMaxSourceBytes, 'x') + "}\n```").find("1 MiB") != std::string::npos);
  CHECK(why(std::string("```cpp\nGROVE_KERNEL(a) {}\0\n```", 28)).find("no UTF-8") != std::string::npos);
  CHECK(why("```cpp\nGROVE_KERNEL(a) {} // \xFF\n```").find("no UTF-8") != std::string::npos);
}

TEST_CASE("No mutation of an answer breaks the parser, and what is taken is within its bounds", "[generate]") {
  const unsigned seed = GENERATE(1u, 2u, 3u);
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> seeds = {kKernelAnswer, kIdeasAnswer,
                                          std::string("<think>x</think>\n") + kKernelAnswer + kIdeasAnswer,
                                          "````cpp\n```\nGROVE_KERNEL(a) {}\n````\n[{\"title\":\"\\ud83c\\udf33\"}]"};
  const std::vector<std::string> bits = {"```",
                                         "~~~",
                                         "\n",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         "\"",
                                         "\\",
                                         "</think>",
                                         "<think>",
                                         "\\u0000",
                                         "GROVE_KERNEL",
                                         std::string(1, '\0'),
                                         "\xFF",
                                         "\xE2\x82",
                                         "json",
                                         "cpp",
                                         "[[[[[[[[[["};
  int kernels = 0;
  int lists = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (unsigned n = 1 + random() % 6; n > 0 && !text.empty(); --n) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, 1 + random() % 12);
          break;
        case 2:
          text.insert(at, bits[random() % bits.size()]);
          break;
        case 3:
          text.insert(at, text.substr(random() % text.size(), random() % 60));
          break;
      }
    }
    absl::StatusOr<v1::KernelNode> kernel = ParseKernel(text, v1::DEVICE_KIND_CPU);
    if (kernel.ok()) {
      ++kernels;
      REQUIRE_FALSE(kernel->candidate().source().empty());
      REQUIRE(kernel->candidate().source().find('\0') == std::string::npos);
      REQUIRE(llm::IsUtf8(kernel->candidate().source()));
      REQUIRE(llm::IsUtf8(kernel->notes()));
      REQUIRE(kernel->notes().size() <= kMaxNotesBytes);
    } else {
      REQUIRE(llm::IsUtf8(kernel.status().message()));
    }
    absl::StatusOr<std::vector<v1::IdeaNode>> ideas = ParseIdeas(text, 3);
    if (ideas.ok()) {
      ++lists;
      REQUIRE_FALSE(ideas->empty());
      REQUIRE(ideas->size() <= 3);
      for (const v1::IdeaNode& idea : *ideas) {
        REQUIRE_FALSE(idea.title().empty());
        REQUIRE(idea.title().size() <= kMaxTitleBytes);
        REQUIRE(idea.description().size() <= kMaxDescriptionBytes);
        REQUIRE(llm::IsUtf8(idea.title() + idea.description() + idea.category()));
        REQUIRE(idea.predicted_speedup() >= 0);
        REQUIRE(idea.predicted_speedup() <= 1000);
      }
    } else {
      REQUIRE(llm::IsUtf8(ideas.status().message()));
    }
  }
  CHECK(kernels > 100);
  CHECK(lists > 100);
}

}  // namespace
}  // namespace grove::generate
