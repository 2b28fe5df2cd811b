#include "coordinator/generate/parse.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "coordinator/llm/text.h"

namespace grove::generate {
namespace {

using llm::CleanText;
using llm::OneLine;
using nlohmann::json;

// Where a list may begin in running text: so many brackets are tried, so that a text of brackets costs no quadratic
// time.
constexpr int kMaxStarts = 64;

absl::Status NoUse(absl::string_view why, absl::string_view answer) {
  return absl::DataLossError(absl::StrCat("the model's answer ", why, "; it begins with '", OneLine(answer, 160), "'"));
}

// Reasoning models served as they are put their thoughts before the answer.
absl::string_view WithoutThoughts(absl::string_view answer) {
  constexpr absl::string_view kEnd = "</think>";
  if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(answer), "<think>")) return answer;
  const size_t end = answer.rfind(kEnd);
  return end == absl::string_view::npos ? "" : answer.substr(end + kEnd.size());
}

// The fence that `line` begins with: its character and length, and what follows; length 0 = none.
struct Fence {
  char mark = 0;
  size_t length = 0;
  absl::string_view info;
};
Fence FenceOf(absl::string_view line) {
  size_t indent = 0;
  while (indent < line.size() && indent < 4 && line[indent] == ' ') ++indent;
  if (indent > 3 || indent == line.size()) return {};
  const char mark = line[indent];
  if (mark != '`' && mark != '~') return {};
  size_t end = indent;
  while (end < line.size() && line[end] == mark) ++end;
  if (end - indent < 3) return {};
  const absl::string_view info = absl::StripAsciiWhitespace(line.substr(end));
  if (mark == '`' && absl::StrContains(info, "`")) return {};
  return {mark, end - indent, info};
}

// The JSON value that begins at text[0] (a bracket), up to its closing bracket; empty if it never closes or is too
// deep.
absl::string_view Balanced(absl::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > llm::kMaxJsonNesting) return "";
    } else if (c == ']' || c == '}') {
      if (--depth == 0) return text.substr(0, i + 1);
    }
  }
  return "";
}

const json* Find(const json& object, std::initializer_list<const char*> names) {
  if (!object.is_object()) return nullptr;
  for (const char* name : names) {
    const auto found = object.find(name);
    if (found != object.end()) return &*found;
  }
  return nullptr;
}

std::string TextOf(const json* value) {
  return value != nullptr && value->is_string() ? value->get_ref<const std::string&>() : std::string();
}

double Prediction(const json* value) {
  double number = 0;
  if (value == nullptr) return 0;
  if (value->is_number()) {
    number = value->get<double>();
  } else if (value->is_string()) {
    // "1.5x", "1.5 x", "1.5×"
    absl::string_view text = absl::StripAsciiWhitespace(value->get_ref<const std::string&>());
    size_t end = 0;
    while (end < text.size() && (absl::ascii_isdigit(text[end]) || text[end] == '.')) ++end;
    if (!absl::SimpleAtod(text.substr(0, end), &number)) number = 0;
  }
  return std::isfinite(number) && number > 0 && number <= 1000 ? number : 0;
}

std::string Category(const json* value) {
  const std::string given = absl::AsciiStrToLower(OneLine(TextOf(value), 80));
  // Names as the prompt gives them, and words by which models paraphrase them.
  constexpr std::array<std::pair<absl::string_view, absl::string_view>, 14> kWords = {{{"memory", "memory"},
                                                                                       {"latency", "latency"},
                                                                                       {"async", "latency"},
                                                                                       {"precision", "precision"},
                                                                                       {"dtype", "precision"},
                                                                                       {"parallel", "parallelism"},
                                                                                       {"occupancy", "parallelism"},
                                                                                       {"thread", "parallelism"},
                                                                                       {"control", "control"},
                                                                                       {"loop", "control"},
                                                                                       {"fusion", "memory"},
                                                                                       {"cache", "memory"},
                                                                                       {"compute", "compute"},
                                                                                       {"instruction", "compute"}}};
  for (const auto& [word, category] : kWords) {
    if (absl::StrContains(given, word)) return std::string(category);
  }
  return "compute";
}

// Ideas in a parsed value; empty when it is no list of ideas.
std::vector<v1::IdeaNode> IdeasIn(const json& value, int max_ideas) {
  const json* list = &value;
  if (value.is_object()) {
    if (const json* inner = Find(value, {"ideas", "Ideas", "list", "results"}); inner != nullptr) list = inner;
  }
  std::vector<v1::IdeaNode> out;
  const auto take = [&](const json& element) {
    if (static_cast<int>(out.size()) >= max_ideas) return;
    v1::IdeaNode idea;
    std::string title = TextOf(Find(element, {"title", "name", "idea"}));
    std::string description = TextOf(Find(element, {"description", "details", "explanation", "rationale"}));
    if (element.is_string()) title = description = element.get_ref<const std::string&>();
    idea.set_title(OneLine(title, kMaxTitleBytes));
    if (idea.title().empty()) return;
    const std::string body = CleanText(absl::StripAsciiWhitespace(description), kMaxDescriptionBytes);
    idea.set_description(body.empty() ? idea.title() : body);
    idea.set_category(Category(Find(element, {"category", "kind", "type"})));
    idea.set_predicted_speedup(
        Prediction(Find(element, {"predicted_speedup", "speedup", "prediction", "expected_speedup"})));
    out.push_back(std::move(idea));
  };
  if (list->is_array()) {
    for (const json& element : *list) take(element);
  } else if (list == &value && Find(value, {"title"}) != nullptr) {
    take(value);  // one idea alone
  }
  return out;
}

std::vector<v1::IdeaNode> IdeasInText(absl::string_view text, int max_ideas) {
  int starts = 0;
  for (size_t at = text.find_first_of("[{"); at != absl::string_view::npos && starts < kMaxStarts;
       at = text.find_first_of("[{", at + 1), ++starts) {
    const absl::string_view piece = Balanced(text.substr(at));
    if (piece.empty()) continue;
    const json value =
        json::parse(piece.begin(), piece.end(), nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
    if (value.is_discarded()) continue;
    // A list of strings in running text ("[the first]") is no list of ideas; there it takes objects.
    if (value.is_array() && std::none_of(value.begin(), value.end(), [](const json& e) { return e.is_object(); }))
      continue;
    std::vector<v1::IdeaNode> ideas = IdeasIn(value, max_ideas);
    if (!ideas.empty()) return ideas;
  }
  return {};
}

bool IsCode(const FencedBlock& block) {
  constexpr std::array<absl::string_view, 12> kLanguages = {"",  "cuda", "cu",  "cuh", "cpp",      "c++",
                                                            "c", "cc",   "cxx", "h",   "cuda-cpp", "cuda_cpp"};
  return std::find(kLanguages.begin(), kLanguages.end(), block.info) != kLanguages.end();
}

bool HasEntry(absl::string_view text) {
  return absl::StrContains(text, "GROVE_KERNEL") || absl::StrContains(text, "grove_kernel");
}

}  // namespace

std::vector<FencedBlock> FencedBlocks(absl::string_view answer, std::string* outside) {
  std::vector<FencedBlock> blocks;
  Fence open;
  absl::string_view rest = WithoutThoughts(answer);
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    absl::string_view line = rest.substr(0, end);
    rest = end == absl::string_view::npos ? "" : rest.substr(end + 1);
    const absl::string_view bare = absl::StripSuffix(line, "\r");
    const Fence fence = FenceOf(bare);
    if (open.length == 0) {
      if (fence.length > 0) {
        open = fence;
        const size_t word = fence.info.find_first_of(" \t{");
        blocks.push_back({absl::AsciiStrToLower(OneLine(fence.info.substr(0, word), 40)), "", false});
      } else if (outside != nullptr) {
        absl::StrAppend(outside, bare, "\n");
      }
    } else if (fence.mark == open.mark && fence.length >= open.length && fence.info.empty()) {
      blocks.back().closed = true;
      open = {};
    } else {
      absl::StrAppend(&blocks.back().text, bare, "\n");
    }
  }
  return blocks;
}

absl::StatusOr<std::vector<v1::IdeaNode>> ParseIdeas(absl::string_view answer, int max_ideas) {
  if (answer.size() > kMaxAnswerBytes) return NoUse(absl::StrCat("has ", answer.size(), " bytes"), answer);
  if (max_ideas < 1) return absl::InvalidArgumentError("no ideas were asked for");
  for (const FencedBlock& block : FencedBlocks(answer, nullptr)) {
    if (!block.info.empty() && block.info != "json" && block.info != "json5" && block.info != "jsonc") continue;
    if (!llm::JsonNestingWithin(block.text, llm::kMaxJsonNesting)) continue;
    const json value = json::parse(block.text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
    std::vector<v1::IdeaNode> ideas =
        value.is_discarded() ? IdeasInText(block.text, max_ideas) : IdeasIn(value, max_ideas);
    if (!ideas.empty()) return ideas;
  }
  std::vector<v1::IdeaNode> ideas = IdeasInText(WithoutThoughts(answer), max_ideas);
  if (!ideas.empty()) return ideas;
  return NoUse("has no JSON list of ideas with titles", answer);
}

absl::StatusOr<v1::KernelNode> ParseKernel(absl::string_view answer, v1::DeviceKind device) {
  if (answer.size() > kMaxAnswerBytes) return NoUse(absl::StrCat("has ", answer.size(), " bytes"), answer);
  std::string outside;
  std::vector<FencedBlock> blocks = FencedBlocks(answer, &outside);
  const FencedBlock* best = nullptr;
  for (const FencedBlock& block : blocks) {
    if (!IsCode(block) || block.text.empty()) continue;
    // The last with the entry point: models that correct themselves repeat the whole file.
    if (HasEntry(block.text)) {
      best = &block;
    } else if (best == nullptr || (!HasEntry(best->text) && block.text.size() > best->text.size())) {
      best = &block;
    }
  }
  FencedBlock bare;
  if (best == nullptr && HasEntry(outside)) {
    // No fence at all: from the first include to the end.
    const size_t begin = absl::StartsWith(outside, "#include") ? 0 : outside.find("\n#include");
    if (begin != std::string::npos) {
      bare.text = outside.substr(begin == 0 ? 0 : begin + 1);
      bare.closed = true;
      outside.resize(begin);
      best = &bare;
    }
  }
  if (best == nullptr) return NoUse("has no fenced code block with a kernel", answer);
  if (!best->closed && !absl::StrContains(best->text, "}")) return NoUse("ends inside the code block", answer);
  if (best->text.size() > kMaxSourceBytes) {
    return NoUse(absl::StrCat("has a kernel of ", best->text.size(), " bytes, above the limit of 1 MiB"), answer);
  }
  if (best->text.find('\0') != std::string::npos || !llm::IsUtf8(best->text)) {
    return NoUse("has a kernel that is no UTF-8 text", answer);
  }
  if (absl::StripAsciiWhitespace(best->text).empty()) return NoUse("has an empty code block", answer);
  v1::KernelNode node;
  v1::Candidate* candidate = node.mutable_candidate();
  candidate->set_format(device == v1::DEVICE_KIND_CUDA ? v1::CANDIDATE_FORMAT_CUDA : v1::CANDIDATE_FORMAT_CPP);
  candidate->set_source(best->text);
  node.set_notes(CleanText(absl::StripAsciiWhitespace(outside), kMaxNotesBytes));
  return node;
}

}  // namespace grove::generate
