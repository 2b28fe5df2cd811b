// What the device does at most: bytes a second to and from its memory, operations a second in each precision by torch's
// own matrix product, and what one launch costs. For the floor under every time (docs/comparing.md).
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "worker/judge/device_ops.h"

namespace grove::judge {

// Fields of Calibration: bandwidth_bytes_per_second, rates, launch_seconds. A precision that this torch cannot multiply
// in on this device is left out. Ends within about `max_seconds`.
nlohmann::json MeasureRates(DeviceOps* ops, int device_index, double max_seconds,
                            const std::function<void(const std::string&)>& progress);

}  // namespace grove::judge
