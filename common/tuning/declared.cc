#include "common/tuning/declared.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace grove::tuning {
namespace {

constexpr absl::string_view kMark = "grove:", kVerb = "try", kDone = "tried";

bool IsWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool IsValue(char c) { return IsWord(c) || c == '.' || c == '+' || c == '-'; }

absl::Status Bad(int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what));
}

// Where a comment of the line begins with "grove: try" and a blank: of its "//" or "#", and of the verb.
bool FindMark(absl::string_view line, std::size_t* comment, std::size_t* verb) {
  const absl::string_view code = absl::StripLeadingAsciiWhitespace(line);
  const std::size_t code_at = line.size() - code.size();
  for (std::size_t at = line.find(kMark); at != absl::string_view::npos; at = line.find(kMark, at + 1)) {
    std::size_t before = at;
    while (before > 0 && (line[before - 1] == ' ' || line[before - 1] == '\t')) --before;
    std::size_t opener = before;
    if (before >= 2 && line.substr(before - 2, 2) == "//") {
      opener = before - 2;
    } else if (before >= 1 && line[before - 1] == '#') {
      opener = before - 1;
    }
    if (opener == before) continue;
    // What is commented out is not declared.
    const bool behind_code = code_at < opener;
    if (behind_code && (code.substr(0, 2) == "//" || (line[opener] == '#' && code[0] == '#'))) continue;
    std::size_t word = at + kMark.size();
    while (word < line.size() && (line[word] == ' ' || line[word] == '\t')) ++word;
    const std::size_t end = word + kVerb.size();
    if (line.substr(word, kVerb.size()) != kVerb || (end < line.size() && line[end] != ' ' && line[end] != '\t')) {
      continue;
    }
    *comment = opener;
    *verb = word;
    return true;
  }
  return false;
}

// Every place where `value` stands as a word of its own.
std::vector<std::size_t> PlacesOf(absl::string_view value, absl::string_view text) {
  std::vector<std::size_t> places;
  for (std::size_t at = text.find(value); at != absl::string_view::npos; at = text.find(value, at + 1)) {
    // Neither a part of 1.5 or 1'000 nor the exponent of 1e-3.
    const auto inside = [](char c) { return IsWord(c) || c == '.' || c == '\''; };
    const bool exponent = at >= 3 && (text[at - 1] == '-' || text[at - 1] == '+') &&
                          (text[at - 2] == 'e' || text[at - 2] == 'E') &&
                          absl::ascii_isdigit(static_cast<unsigned char>(text[at - 3]));
    const bool begins = (at == 0 || !inside(text[at - 1])) && !exponent;
    const std::size_t end = at + value.size();
    const bool ends = end == text.size() || !inside(text[end]);
    if (begins && ends) places.push_back(at);
  }
  return places;
}

// The last name before the value: "constexpr int kTile = ", "#define TILE ", "  block: int = ".
std::string NameBefore(absl::string_view text) {
  static const std::set<absl::string_view> kTypes = {"int", "long", "float", "double", "bool", "auto", "unsigned"};
  std::string name;
  for (std::size_t at = 0; at < text.size();) {
    if (!IsWord(text[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && IsWord(text[at])) ++at;
    const absl::string_view word = text.substr(begin, at - begin);
    const bool number = absl::ascii_isdigit(static_cast<unsigned char>(word[0]));
    if (!number && (name.empty() || kTypes.count(word) == 0)) name = std::string(word);
  }
  return name;
}

absl::StatusOr<Declared> Parse(absl::string_view line, std::size_t begin, int number, std::size_t comment,
                               std::size_t verb) {
  Declared declared;
  declared.verb_at = begin + verb;
  absl::string_view rest = absl::StripAsciiWhitespace(line.substr(verb + kVerb.size()));
  for (absl::string_view value : absl::StrSplit(rest, absl::ByAnyChar(" ,\t\r"), absl::SkipEmpty())) {
    if (value.size() > kMaxValueBytes || !std::all_of(value.begin(), value.end(), IsValue)) {
      return Bad(number, absl::StrCat("'", value.substr(0, kMaxValueBytes),
                                      "' is no value to try: numbers and names of at most ", kMaxValueBytes,
                                      " characters are, with blanks or commas between them"));
    }
    if (std::find(declared.values.begin(), declared.values.end(), value) != declared.values.end()) {
      return Bad(number, absl::StrCat("the value ", value, " is there twice; leave one out"));
    }
    declared.values.emplace_back(value);
    if (declared.values.size() > kMaxValues) break;  // so that none of a million is compared with each of the others
  }
  if (declared.values.size() < 2 || declared.values.size() > kMaxValues) {
    const bool many = declared.values.size() > kMaxValues;
    return Bad(number,
               absl::StrCat(many ? absl::StrCat("more than ", kMaxValues) : absl::StrCat(declared.values.size()),
                            " values to try; give 2 to ", kMaxValues, ", the one that stands in the line first"));
  }
  const std::vector<std::size_t> places = PlacesOf(declared.values[0], line.substr(0, comment));
  if (places.size() != 1) {
    return Bad(number, absl::StrCat("the first value to try, ", declared.values[0], ", stands ", places.size(),
                                    " times in the line before its comment; it must stand there once"));
  }
  const absl::string_view before = line.substr(0, places[0]);
  if (absl::StrContains(before, line[comment] == '#' ? "#" : "//")) {
    return Bad(number, absl::StrCat("the first value to try, ", declared.values[0],
                                    ", stands in a comment; it must stand in the code before"));
  }
  declared.value_at = begin + places[0];
  declared.name = NameBefore(before);
  if (declared.name.empty()) declared.name = absl::StrCat("line ", number);
  declared.name.resize(std::min(declared.name.size(), kMaxNameBytes));
  return declared;
}

}  // namespace

absl::StatusOr<std::vector<Declared>> FindDeclared(absl::string_view source) {
  std::vector<Declared> all;
  std::set<std::string> names;
  std::size_t combinations = 1;
  int number = 0;
  for (std::size_t begin = 0; begin < source.size();) {
    ++number;
    const std::size_t end = std::min(source.find('\n', begin), source.size());
    const absl::string_view line = source.substr(begin, end - begin);
    std::size_t comment = 0, verb = 0;
    if (FindMark(line, &comment, &verb)) {
      absl::StatusOr<Declared> declared = Parse(line, begin, number, comment, verb);
      if (!declared.ok()) return declared.status();
      if (!names.insert(declared->name).second) absl::StrAppend(&declared->name, ":", number);
      combinations *= declared->values.size();
      if (combinations > kMaxCombinations) {
        return Bad(number, absl::StrCat("with this one there are ", combinations, " combinations; at most ",
                                        kMaxCombinations, " are tried: declare fewer values"));
      }
      all.push_back(*std::move(declared));
    }
    begin = end + 1;
  }
  return all;
}

std::vector<std::vector<std::string>> Combinations(const std::vector<Declared>& declared) {
  std::vector<std::vector<std::string>> all;
  if (declared.empty()) return all;
  std::vector<std::size_t> at(declared.size(), 0);
  for (;;) {
    std::vector<std::string>& one = all.emplace_back();
    for (std::size_t i = 0; i < declared.size(); ++i) one.push_back(declared[i].values[at[i]]);
    std::size_t next = declared.size();
    while (next > 0 && ++at[next - 1] == declared[next - 1].values.size()) at[--next] = 0;
    if (next == 0) return all;
  }
}

absl::StatusOr<std::string> WithValues(absl::string_view source, const std::vector<Declared>& declared,
                                       const std::vector<std::string>& values) {
  if (declared.size() != values.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(values.size(), " values for ", declared.size(), " declared parameters"));
  }
  std::string text;
  std::size_t done = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Declared& one = declared[i];
    if (std::find(one.values.begin(), one.values.end(), values[i]) == one.values.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(one.name, " declares no value ", values[i].substr(0, kMaxValueBytes)));
    }
    absl::StrAppend(&text, source.substr(done, one.value_at - done), values[i]);
    done = one.value_at + one.values[0].size();
    absl::StrAppend(&text, source.substr(done, one.verb_at - done), kDone);
    done = one.verb_at + kVerb.size();
  }
  absl::StrAppend(&text, source.substr(done));
  return text;
}

}  // namespace grove::tuning
