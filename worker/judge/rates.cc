#include "worker/judge/rates.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <optional>
#include <vector>

namespace grove::judge {
namespace {

using Clock = std::chrono::steady_clock;

// Matrices of this many rows: large enough that the product is bound by arithmetic, and below a second each.
constexpr std::int64_t kCudaRows[] = {4096, 8192};
constexpr std::int64_t kCpuRows[] = {512, 1024};
constexpr double kLongest = 0.1;  // seconds; beyond that larger matrices are not tried
// Beyond every last-level cache there is.
constexpr std::int64_t kCudaBytes[] = {std::int64_t{256} << 20, std::int64_t{1} << 30};
constexpr std::int64_t kCpuBytes[] = {std::int64_t{128} << 20, std::int64_t{256} << 20};
constexpr int kRepetitions = 5;

class Meter {
 public:
  Meter(DeviceOps* ops, double seconds)
      : ops_(*ops),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  bool Late() const { return Clock::now() >= end_; }

  // The least of a few: what the device can do.
  double Least(const std::function<void()>& call) {
    for (int i = 0; i < 2; ++i) call();
    ops_.Synchronize();
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kRepetitions && (i == 0 || !Late()); ++i) least = std::min(least, ops_.Time(call));
    return least;
  }

 private:
  DeviceOps& ops_;
  const Clock::time_point end_;
};

}  // namespace

nlohmann::json MeasureRates(DeviceOps* ops, int device_index, double max_seconds,
                            const std::function<void(const std::string&)>& progress) {
  const bool cuda = ops->cuda();
  const at::Device device =
      cuda ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device_index)) : at::Device(at::kCPU);
  Meter meter(ops, max_seconds);
  nlohmann::json found{{"rates", nlohmann::json::array()}, {"launch_seconds", ops->LaunchSeconds()}};

  progress("memory");
  double bandwidth = 0;
  for (const std::int64_t bytes : cuda ? kCudaBytes : kCpuBytes) {
    if (static_cast<std::size_t>(3 * bytes) > ops->free_bytes() / 2 || (bandwidth > 0 && meter.Late())) break;
    const auto options = at::TensorOptions().device(device).dtype(at::kFloat);
    at::Tensor a = at::ones({bytes / 4}, options), b = at::ones({bytes / 4}, options), c = at::empty_like(a);
    const auto moved = static_cast<double>(bytes);
    bandwidth = std::max(bandwidth, 2 * moved / meter.Least([&] { c.copy_(a); }));
    bandwidth = std::max(bandwidth, 3 * moved / meter.Least([&] { at::add_out(c, a, b); }));
  }
  found["bandwidth_bytes_per_second"] = bandwidth;

  struct Precision {
    const char* name;
    at::ScalarType type;
    bool tf32;
  };
  for (const Precision& precision : {Precision{"float32", at::kFloat, false},
                                     {"tf32", at::kFloat, true},
                                     {"bfloat16", at::kBFloat16, false},
                                     {"float16", at::kHalf, false},
                                     {"float64", at::kDouble, false}}) {
    if (precision.tf32 && !cuda) continue;
    progress(precision.name);
    double rate = 0;
    try {
      at::globalContext().setFloat32MatmulPrecision(std::string(precision.tf32 ? "high" : "highest"));
      for (const std::int64_t rows : cuda ? kCudaRows : kCpuRows) {
        if (rate > 0 && meter.Late()) break;
        const auto options = at::TensorOptions().device(device);
        // Random values: a device spends less power, and so clocks higher, on zeros.
        const at::Tensor a = at::randn({rows, rows}, options.dtype(at::kFloat)).to(precision.type);
        const at::Tensor b = at::randn({rows, rows}, options.dtype(at::kFloat)).to(precision.type);
        at::Tensor c = at::empty({rows, rows}, options.dtype(precision.type));
        const double seconds = meter.Least([&] { at::mm_out(c, a, b); });
        const auto n = static_cast<double>(rows);
        rate = std::max(rate, 2 * n * n * n / seconds);
        if (seconds > kLongest) break;
      }
    } catch (const std::exception&) {
      // This torch has no such product on this device.
    }
    if (rate > 0) found["rates"].push_back({{"precision", precision.name}, {"operations_per_second", rate}});
  }
  at::globalContext().setFloat32MatmulPrecision(std::string("highest"));
  ops->ReleaseCache();
  return found;
}

}  // namespace grove::judge
