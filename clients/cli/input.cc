#include "clients/cli/input.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/text.h"
#include "common/base/files.h"

namespace grove::cli {
namespace {

std::string LowerExtension(const std::string& path) {
  return absl::AsciiStrToLower(std::filesystem::path(path).extension().string());
}

std::string Stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

size_t LineOf(absl::string_view text, size_t offset) {
  return 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

// A file's name as text: names of files may hold any bytes.
std::string Readable(std::string name) {
  for (size_t bad; (bad = FindInvalidUtf8(name)) != absl::string_view::npos;) name[bad] = '?';
  return name;
}

}  // namespace

size_t FindInvalidUtf8(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto byte = static_cast<unsigned char>(text[i]);
    size_t length = 0;
    uint32_t smallest = 0, value = 0;
    if (byte < 0x80) {
      ++i;
      continue;
    } else if ((byte & 0xe0) == 0xc0) {
      length = 2, smallest = 0x80, value = byte & 0x1f;
    } else if ((byte & 0xf0) == 0xe0) {
      length = 3, smallest = 0x800, value = byte & 0x0f;
    } else if ((byte & 0xf8) == 0xf0) {
      length = 4, smallest = 0x10000, value = byte & 0x07;
    } else {
      return i;
    }
    if (i + length > text.size()) return i;
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0) != 0x80) return i;
      value = (value << 6) | (next & 0x3f);
    }
    if (value < smallest || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return i;
    i += length;
  }
  return absl::string_view::npos;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, int64_t max_bytes, absl::string_view what) {
  const auto error = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(what, " ", path, ": ", parts...));
  };
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return error("no such file; check the path");
    return error(std::strerror(errno));
  }
  if (S_ISDIR(info.st_mode)) return error("is a folder; name a file in it");
  if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode))
    return error("is not a regular file");
  if (S_ISREG(info.st_mode) && info.st_size > max_bytes) {
    return error("is ", FormatBytes(info.st_size), "; at most ", FormatBytes(max_bytes), " are accepted");
  }
  auto text = ReadFile(path, max_bytes);
  if (!text.ok()) {
    if (absl::IsResourceExhausted(text.status())) {
      return error("is larger than the ", FormatBytes(max_bytes), " that are accepted");
    }
    if (absl::IsPermissionDenied(text.status())) return error("permission denied; make it readable for you");
    return error(text.status().message());
  }
  if (text->empty()) return error("is empty (zero bytes)");
  if (const size_t nul = text->find('\0'); nul != std::string::npos) {
    return error("has a NUL byte at offset ", nul, " (line ", LineOf(*text, nul),
                 "); source must be text, is this a binary file?");
  }
  if (const size_t bad = FindInvalidUtf8(*text); bad != absl::string_view::npos) {
    return error("is not UTF-8: invalid byte at offset ", bad, " (line ", LineOf(*text, bad), "); save it as UTF-8");
  }
  return text;
}

absl::StatusOr<std::string> JobName(const std::string& said, const std::string& problem) {
  if (FindInvalidUtf8(said) == absl::string_view::npos) return said.empty() ? problem : said;
  return absl::InvalidArgumentError("--name is not UTF-8 text");
}

absl::StatusOr<v1::Problem> ReadProblem(const std::string& path) {
  const std::string extension = LowerExtension(path);
  v1::Problem problem;
  problem.set_name(Readable(Stem(path)));
  if (extension == ".py") {
    problem.set_format(v1::PROBLEM_FORMAT_KERNELBENCH);
  } else if (extension == ".toml") {
    problem.set_format(v1::PROBLEM_FORMAT_NATIVE);
  }
  auto source = ReadTextFile(path, kMaxSourceBytes, "problem");
  if (!source.ok()) return source.status();
  if (problem.format() == v1::PROBLEM_FORMAT_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat("problem ", path, ": cannot tell its format from the extension '", extension,
                     "'; a problem is a .py file with Model, get_inputs and get_init_inputs, or a native .toml file"));
  }
  problem.set_source(*std::move(source));
  return problem;
}

absl::StatusOr<v1::Candidate> ReadCandidate(const std::string& path) {
  const std::string extension = LowerExtension(path);
  v1::Candidate candidate;
  candidate.set_name(Readable(std::filesystem::path(path).filename().string()));
  if (extension == ".cu") {
    candidate.set_format(v1::CANDIDATE_FORMAT_CUDA);
  } else if (extension == ".cpp" || extension == ".cc" || extension == ".cxx") {
    candidate.set_format(v1::CANDIDATE_FORMAT_CPP);
  } else if (extension == ".py") {
    candidate.set_format(v1::CANDIDATE_FORMAT_KERNELBENCH);
  }
  auto source = ReadTextFile(path, kMaxSourceBytes, "candidate");
  if (!source.ok()) return source.status();
  if (candidate.format() == v1::CANDIDATE_FORMAT_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat("candidate ", path, ": cannot tell its format from the extension '", extension,
                     "'; a candidate is a .cu file (CUDA), a .cpp file (C++ for the CPU) or a .py file with ModelNew"));
  }
  candidate.set_source(*std::move(source));
  return candidate;
}

}  // namespace grove::cli
