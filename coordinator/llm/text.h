// Text from outside made fit for messages, prompts and storage.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace grove::llm {

// Valid UTF-8 of at most max_bytes: what is not UTF-8 becomes U+FFFD, NUL and other control characters but \n and \t a
// blank, \r\n and \r become \n. Cut between characters.
std::string CleanText(absl::string_view text, size_t max_bytes);

// CleanText on one line: runs of white space become one blank, none at the ends; "..." (within max_bytes) where it was
// cut.
std::string OneLine(absl::string_view text, size_t max_bytes);

// Whether `text` is well-formed UTF-8 (no surrogates, no overlong forms, nothing above U+10FFFF).
bool IsUtf8(absl::string_view text);

// The longest prefix of `text`, valid UTF-8, of at most max_bytes that does not end inside a character.
absl::string_view CutUtf8(absl::string_view text, size_t max_bytes);

// Whether the brackets of a JSON text are nested at most `depth` deep. Asked before a text from outside is parsed: the
// parser's values are copied recursively, and a million brackets would end the process by its stack.
bool JsonNestingWithin(absl::string_view text, int depth);
inline constexpr int kMaxJsonNesting = 64;  // a chat answer has 6

}  // namespace grove::llm
