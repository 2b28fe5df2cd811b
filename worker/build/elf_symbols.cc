#include "worker/build/elf_symbols.h"

#include <elf.h>

#include <cstring>

namespace grove::build {
namespace {

constexpr size_t kMaxSymbols = 1 << 20, kMaxNames = 10000, kMaxName = 4096;

// Copies out of the object; false when it does not lie inside.
template <typename T>
bool ReadAt(absl::string_view object, uint64_t offset, T* value) {
  if (offset > object.size() || object.size() - offset < sizeof(T)) return false;
  memcpy(value, object.data() + offset, sizeof(T));
  return true;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExportedFunctions(absl::string_view object) {
  const absl::Status malformed = absl::InvalidArgumentError("the compiled object is malformed");
  Elf64_Ehdr header;
  if (!ReadAt(object, 0, &header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return absl::InvalidArgumentError("the compiled object is not a 64-bit ELF file");
  }
  if (header.e_type != ET_DYN) return absl::InvalidArgumentError("the compiled object is not a shared object");
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return malformed;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!ReadAt(object, header.e_shoff + uint64_t{i} * sizeof(section), &section)) return malformed;
    if (section.sh_type != SHT_DYNSYM) continue;
    Elf64_Shdr strings;
    if (section.sh_link >= header.e_shnum ||
        !ReadAt(object, header.e_shoff + uint64_t{section.sh_link} * sizeof(strings), &strings)) {
      return malformed;
    }
    if (strings.sh_offset > object.size() || object.size() - strings.sh_offset < strings.sh_size) return malformed;
    const absl::string_view table = object.substr(strings.sh_offset, strings.sh_size);
    const uint64_t count = section.sh_size / sizeof(Elf64_Sym);
    if (count > kMaxSymbols) return malformed;
    for (uint64_t s = 0; s < count && names.size() < kMaxNames; ++s) {
      Elf64_Sym symbol;
      if (!ReadAt(object, section.sh_offset + s * sizeof(symbol), &symbol)) return malformed;
      const int bind = ELF64_ST_BIND(symbol.st_info), type = ELF64_ST_TYPE(symbol.st_info);
      if (symbol.st_shndx == SHN_UNDEF || type != STT_FUNC || (bind != STB_GLOBAL && bind != STB_WEAK)) continue;
      if (symbol.st_name >= table.size()) return malformed;
      const absl::string_view rest = table.substr(symbol.st_name, kMaxName);
      const size_t end = rest.find('\0');
      if (end == absl::string_view::npos) return malformed;
      names.emplace_back(rest.substr(0, end));
    }
  }
  return names;
}

}  // namespace grove::build
