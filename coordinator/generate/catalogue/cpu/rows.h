// What softmax, normalisations and reductions share: walking rows (inner == 1) or blocks of columns (inner > 1), the
// prologue staged in a buffer where it is more than a plain input, and a last pass that may go backwards.
#pragma once

#include <string>

#include "coordinator/generate/catalogue/cpu/cpu_source.h"

namespace grove::generate::catalogue::cpu {

// Row loop over [begin, end): `body` sees row, p0 (flat position of the row's first element) and x (its values,
// x[0..N)). `extra_floats` of scratch follow at `extra`.
std::string RowLoop(const OpSpec& spec, const Recipe& recipe, int64_t extra_floats, const std::string& body);

// The last pass over a row: RangeLoop of the epilogue over [p0, p0 + N) to out, in blocks from the end when the recipe
// says "backwards".
std::string LastPass(const OpSpec& spec, const Recipe& recipe, const AccText& acc);

// Column blocks: units are outer * blocks of `width` columns. `body` sees o, j0, w (columns in this block), X (pointer
// to the outer slice's values: element i of column j is X[i * INNER + j]) and P0 (flat position of the slice).
std::string ColumnLoop(const OpSpec& spec, const Recipe& recipe, int64_t width, const std::string& body);
// Number of units of ColumnLoop.
int64_t ColumnUnits(const RowsSpec& rows, int64_t width);

Optimisation Backwards();
Optimisation ColumnBlock(const RowsSpec& rows);

}  // namespace grove::generate::catalogue::cpu
