// Names of operations, as lists of words say them.
#pragma once

#include <set>
#include <sstream>
#include <string>

namespace grove::judge {

// The words of a text, which spaces part.
inline std::set<std::string> Words(const char* text) {
  std::istringstream words(text);
  std::set<std::string> all;
  for (std::string word; words >> word;) all.insert(word);
  return all;
}

// A list that is looked into often: its words are parted once.
class WordList {
 public:
  explicit WordList(const char* text) : words_(Words(text)) {}
  bool Has(const std::string& word) const { return words_.count(word) != 0; }

 private:
  std::set<std::string> words_;
};

}  // namespace grove::judge
