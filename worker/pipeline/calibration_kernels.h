// The kernels that a device is calibrated with: small enough for any device, from microseconds to a millisecond, bound
// by arithmetic and by memory. They are part of the program and need no file.
#pragma once

#include <string>
#include <vector>

#include "grove/v1/types.pb.h"

namespace grove::worker {

struct CalibrationCase {
  std::string name;
  v1::Problem problem;
  // Steps of arithmetic per element; 0 = a kernel that only moves memory. Where `target_seconds` is given, the steps
  // are to be scaled after a first run so that a call takes about so long.
  int64_t steps = 0;
  double target_seconds = 0;
  int64_t step_unit = 1;  // of which `steps` is to be a multiple: whole rounds of a loop, also with 2 % more of them
};

std::vector<CalibrationCase> CalibrationCases(v1::DeviceKind device);
// The one that slowdowns are planted in: about 100 us, bound by arithmetic. Index into CalibrationCases.
size_t PlantedCase(const std::vector<CalibrationCase>& cases);

// Its kernel with so many steps.
v1::Candidate CalibrationCandidate(v1::DeviceKind device, int64_t steps);

}  // namespace grove::worker
