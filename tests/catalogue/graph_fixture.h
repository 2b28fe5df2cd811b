// Descriptions of small problems, traced from real modules, with what torch computes for known inputs
// (tests/testdata/graphs, written by make.py there).
#pragma once

#include <string>
#include <vector>

#include "grove/v1/types.pb.h"

namespace grove::testing {

struct GraphFixture {
  std::string name;
  v1::ProblemDescription description;
  std::vector<double> expected;  // the output, flattened; empty for what the catalogue does not know
};

GraphFixture LoadGraph(const std::string& name);
std::vector<std::string> GraphNames();  // all, sorted

// The value that argument `arg` has at flat position i.
float InputValue(int64_t i, int arg, const std::string& name);

}  // namespace grove::testing
