#include "coordinator/engine/normalise.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "common/tuning/declared.h"

namespace grove::coordinator {
namespace {

bool IsWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Characters next to which a space is never needed, when the other side is a word: `a + b` is `a+b`. Not among them:
// '.', '+' and '-' (parts of numbers), quotes (prefixes of literals) and anything beyond ASCII.
bool IsLoose(char c) { return absl::StrContains("()[]{};,=<>*/%&|^!~?:", absl::string_view(&c, 1)); }

// Characters that are a token by themselves wherever they stand in code.
bool IsSolo(char c) { return absl::StrContains("()[]{};,", absl::string_view(&c, 1)); }

// Length of the literal that starts at `at` (a quote, or R"), up to the end of the text when it is never closed.
size_t CLiteral(absl::string_view text, size_t at) {
  const char quote = text[at];
  if (quote == '"' && at > 0 && text[at - 1] == 'R') {
    const size_t open = text.find('(', at);
    if (open != absl::string_view::npos && open - at <= 17) {
      const std::string close = absl::StrCat(")", text.substr(at + 1, open - at - 1), "\"");
      const size_t end = text.find(close, open);
      return (end == absl::string_view::npos ? text.size() : end + close.size()) - at;
    }
  }
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote || text[i] == '\n') {
      return i + 1 - at;
    }
  }
  return text.size() - at;
}

std::string NormaliseC(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool gap = false;        // white space since the last token
  bool line_start = true;  // only white space since the last line end
  bool directive = false;  // inside a preprocessor line
  const auto put = [&](absl::string_view token) {
    if (gap && !out.empty() && out.back() != '\n') {
      const char before = out.back();
      const char after = token[0];
      const bool loose = !directive && (IsSolo(before) || IsSolo(after) || (IsWord(before) && IsLoose(after)) ||
                                        (IsLoose(before) && IsWord(after)));
      if (!loose) out.push_back(' ');
    }
    gap = false;
    line_start = false;
    out.append(token.data(), token.size());
  };
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      gap = true;
      i += 2;
    } else if (absl::StartsWith(text.substr(i), "//")) {
      while (i < text.size() && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
      gap = true;
    } else if (absl::StartsWith(text.substr(i), "/*")) {
      const size_t end = text.find("*/", i + 2);
      i = end == absl::string_view::npos ? text.size() : end + 2;
      gap = true;
    } else if (c == '\n') {
      if (directive) out.push_back('\n');
      directive = false;
      line_start = true;
      gap = true;
      ++i;
    } else if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      gap = true;
      ++i;
    } else if (c == '"' || (c == '\'' && !(i > 0 && absl::ascii_isdigit(static_cast<unsigned char>(text[i - 1]))))) {
      const size_t length = CLiteral(text, i);
      put(text.substr(i, length));
      i += length;
    } else {
      if (c == '#' && line_start) {
        if (!out.empty() && out.back() != '\n') out.push_back('\n');
        directive = true;
      }
      put(text.substr(i, 1));
      ++i;
    }
  }
  return out;
}

std::string NormalisePython(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t line = 0;  // where the current line starts in `out`
  const auto end_line = [&] {
    while (out.size() > line && (out.back() == ' ' || out.back() == '\t' || out.back() == '\r')) out.pop_back();
    if (out.size() > line) out.push_back('\n');
    line = out.size();
  };
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') {
      end_line();
      ++i;
    } else if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (c == '"' || c == '\'') {
      const std::string triple(3, c);
      const bool is_triple = absl::StartsWith(text.substr(i), triple);
      size_t end = i + (is_triple ? 3 : 1);
      while (end < text.size()) {
        if (text[end] == '\\') {
          end += 2;
        } else if (is_triple ? absl::StartsWith(text.substr(end), triple) : text[end] == c || text[end] == '\n') {
          end += is_triple ? 3 : 1;
          break;
        } else {
          ++end;
        }
      }
      end = std::min(end, text.size());
      out.append(text.data() + i, end - i);
      i = end;
    } else {
      out.push_back(c);
      ++i;
    }
  }
  end_line();
  return out;
}

}  // namespace

std::string NormaliseSource(v1::CandidateFormat format, absl::string_view source) {
  return format == v1::CANDIDATE_FORMAT_KERNELBENCH ? NormalisePython(source) : NormaliseC(source);
}

std::string NormalisedSha256(const v1::Candidate& candidate) {
  // Comments say nothing, but for those that say what is to be tried: their values stand where they are to be put.
  std::string source = candidate.source(), wrong;
  if (auto declared = tuning::FindDeclared(source); !declared.ok()) {
    wrong = std::string(declared.status().message());
  } else {
    for (auto one = declared->rbegin(); one != declared->rend(); ++one) {
      source.replace(one->value_at, one->values[0].size(),
                     absl::StrCat("grove_try(", absl::StrJoin(one->values, ";"), ")"));
    }
  }
  return Sha256HexOfParts(
      {absl::StrCat(static_cast<int>(candidate.format())), absl::StrJoin(candidate.build_flags(), "\n"),
       absl::StrCat(NormaliseSource(candidate.format(), source), wrong.empty() ? "" : "\n#error ", wrong)});
}

}  // namespace grove::coordinator
