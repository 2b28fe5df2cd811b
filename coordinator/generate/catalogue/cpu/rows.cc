#include "coordinator/generate/catalogue/cpu/rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace grove::generate::catalogue::cpu {

std::string RowLoop(const OpSpec& spec, const Recipe& recipe, int64_t extra_floats, const std::string& body) {
  const int64_t n = spec.rows->n;
  const std::string dense = DenseInput(spec.prologue);
  const int64_t staged = dense.empty() ? (n + 63) / 64 * 64 : 0;
  std::string out;
  if (staged + extra_floats > 0) {
    absl::StrAppend(&out, "      float* const buffer = scratch(", Num(staged + extra_floats), ");\n",
                    "      if (buffer == nullptr) { failed = 1; continue; }\n");
    if (extra_floats > 0) absl::StrAppend(&out, "      float* const extra = buffer + ", Num(staged), ";\n");
  }
  absl::StrAppend(&out, "      for (int64_t row_ = begin; row_ < end; ++row_) {\n        const int64_t p0 = row_ * ",
                  Num(n), ";\n");
  if (dense.empty()) {
    RangeOptions options = RangeOf(recipe);
    options.stream = false;
    absl::StrAppend(&out,
                    RangeLoop(
                        spec.prologue, "p0", absl::StrCat("(p0 + ", Num(n), ")"), "buffer", "p0",
                        [](const std::string&, Lanes) { return std::string("0"); }, options, "        "),
                    "        const float* const x = buffer;\n");
  } else {
    absl::StrAppend(&out, "        const float* const x = ", dense, " + p0;\n");
  }
  absl::StrAppend(&out, body, "      }\n");
  return out;
}

std::string LastPass(const OpSpec& spec, const Recipe& recipe, const AccText& acc) {
  const int64_t n = spec.rows->n;
  const RangeOptions options = RangeOf(recipe);
  if (!recipe.Has("backwards")) {
    return RangeLoop(spec.epilogue, "p0", absl::StrCat("(p0 + ", Num(n), ")"), "out", "", acc, options, "        ");
  }
  const int64_t block = recipe.Get("backwards", "block", 4096);
  return absl::StrCat("        for (int64_t at = (", Num(n), " - 1) / ", block, " * ", block,
                      "; at >= 0; at -= ", block, ") {\n          const int64_t from = p0 + at, to = p0 + (at + ",
                      block, " < ", Num(n), " ? at + ", block, " : ", Num(n), ");\n",
                      RangeLoop(spec.epilogue, "from", "to", "out", "", acc, options, "          "), "        }\n");
}

int64_t ColumnUnits(const RowsSpec& rows, int64_t width) { return rows.outer * ((rows.inner + width - 1) / width); }

std::string ColumnLoop(const OpSpec& spec, const Recipe& recipe, int64_t width, const std::string& body) {
  const RowsSpec& rows = *spec.rows;
  const std::string dense = DenseInput(spec.prologue);
  const int64_t blocks = (rows.inner + width - 1) / width;
  std::string out;
  if (dense.empty()) {
    absl::StrAppend(&out, "      float* const buffer = scratch(", Num(rows.n * width), ");\n",
                    "      if (buffer == nullptr) { failed = 1; continue; }\n");
  }
  absl::StrAppend(&out, "      for (int64_t unit = begin; unit < end; ++unit) {\n        const int64_t o = unit / ",
                  Num(blocks), ", j0 = unit % ", Num(blocks), " * ", width,
                  ";\n        const int64_t w = ", Num(rows.inner), " - j0 < ", width, " ? ", Num(rows.inner),
                  " - j0 : ", width, ";\n        const int64_t P0 = o * ", Num(rows.n * rows.inner), " + j0;\n");
  if (dense.empty()) {
    RangeOptions options = RangeOf(recipe);
    options.stream = false;
    absl::StrAppend(&out, "        for (int64_t i_ = 0; i_ < ", Num(rows.n),
                    "; ++i_) {\n          const int64_t from = P0 + i_ * ", Num(rows.inner), ", to = from + w;\n",
                    RangeLoop(
                        spec.prologue, "from", "to", absl::StrCat("(buffer + i_ * ", width, ")"), "from",
                        [](const std::string&, Lanes) { return std::string("0"); }, options, "          "),
                    "        }\n        const float* const X = buffer;\n        constexpr int64_t LD = ", width, ";\n");
  } else {
    absl::StrAppend(&out, "        const float* const X = ", dense,
                    " + P0;\n        constexpr int64_t LD = ", Num(rows.inner), ";\n");
  }
  absl::StrAppend(&out, body, "      }\n");
  return out;
}

Optimisation Backwards() {
  Optimisation o;
  o.id = "backwards";
  o.title = "Write the row from its end";
  o.description =
      "The last pass walks the row block by block from the end, because what the pass before it read last is still in "
      "the "
      "cache. It pays where a row is larger than a cache level.";
  o.category = "memory";
  o.predicted_speedup = 1.08;
  o.parameters = {Parameter{"block", {1024, 4096, 16384}, 4096, 4096, "elements"}};
  return o;
}

Optimisation ColumnBlock(const RowsSpec& rows) {
  Optimisation o;
  o.id = "columns";
  o.title = "Walk blocks of columns, row by row";
  o.description =
      "The dimension worked along is not the last one. A block of neighbouring columns is kept in registers and cache "
      "with "
      "one accumulator each, so that every line of memory is used whole.";
  o.category = "memory";
  o.predicted_speedup = 3;
  std::vector<int64_t> widths;
  for (int64_t width : {64, 128, 256, 512, 1024, 2048}) {
    if (width < 2 * rows.inner || width == 64) widths.push_back(width);
  }
  const int64_t usual = std::find(widths.begin(), widths.end(), 256) != widths.end() ? 256 : widths.back();
  o.parameters = {Parameter{"width", widths, usual, 64, "columns"}};
  return o;
}

}  // namespace grove::generate::catalogue::cpu
