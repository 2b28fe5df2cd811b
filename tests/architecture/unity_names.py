"""Sources that are compiled as one (CMAKE_UNITY_BUILD) share an unnamed namespace: a name of one of them that another one
defines, too, or calls, may be taken for the other's without a word of the compiler's (an overload that fits better).

    unity_names.py BUILD     says each such name; 77 where nothing is compiled as one

A source of which it speaks goes to grove_alone in its CMakeLists.txt, or the name is changed."""

import os
import re
import sys

LITERAL = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|//(?! namespace)[^\n]*|"(?:\\.|[^"\\\n])*"')
FUNCTION = re.compile(r"(?:template.*>\s*)?[A-Za-z_][\w:<>,\s*&\[\]()]*?\b(\w+)\(")
TYPE = re.compile(r"(?:struct|class|enum class|enum)\s+(\w+)|using\s+(\w+)\s*=")
CONSTANT = re.compile(r"(?:constexpr|const|inline|static)\b[^=]*?\b(k[A-Z]\w*)")
STATEMENT = re.compile(r"(?:if|for|while|return|else|switch|using|TEST_CASE|TEMPLATE_TEST_CASE|SCENARIO|static_assert)\b")


def without_literals(path):
    with open(path, encoding="utf-8") as file:
        return LITERAL.sub('""', file.read())


def names(text):
    """Of what is defined at the beginning of a line of an unnamed namespace."""
    found, inside = set(), False
    for line in text.split("\n"):
        if line.startswith("namespace {"):
            inside = True
        elif line.startswith("}  // namespace"):
            inside = False
        elif inside:
            kind = TYPE.match(line)
            if kind:
                found.add(kind[1] or kind[2])
                continue
            constant = CONSTANT.match(line)
            if constant:
                found.add(constant[1])
                continue
            function = None if STATEMENT.match(line) else FUNCTION.match(line)
            if function:
                found.add(function[1])
    return found


def complaints(unit):
    with open(unit, encoding="utf-8") as file:
        sources = re.findall(r'#include "([^"]+)"', file.read())
    texts = {source: without_literals(source) for source in sources}
    own = {source: names(text) for source, text in texts.items()}
    seen = []
    for first, second in ((a, b) for i, a in enumerate(sources) for b in sources[i + 1:]):
        for name in sorted(own[first]):
            if name in own[second]:
                seen.append(f"{name}: in {first} and in {second}")
            elif re.search(r"(?<![\w.>:])" + name + r"\s*[({<]", texts[second]):
                seen.append(f"{name}: in {first}, and another one is used in {second}")
    return seen


def main():
    units = [os.path.join(folder, name) for folder, _, files in os.walk(sys.argv[1]) for name in sorted(files)
             if re.fullmatch(r"unity_\d+_cxx\.cxx", name)]
    if not units:
        print("skipped: nothing is compiled as one here")
        return 77
    wrong = [line for unit in sorted(units) for line in complaints(unit)]
    print("\n".join(wrong) if wrong else f"{len(units)} units, no name of one source in another")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
