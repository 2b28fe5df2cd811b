#include "worker/judge/device_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "worker/judge/clock.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

// Inputs of no more bytes come in one piece, within a few microseconds.
constexpr std::size_t kOnePiece = std::size_t{64} << 10;
// Of larger ones so many bytes in each period come last, few enough that these, too, come within microseconds.
constexpr std::size_t kHeld = 64, kMostHeld = 1024, kLeastPeriod = 67 * kHeld;

// An odd multiple of kHeld, so that in rows of any usual length some are missing at the beginning of one, and whoever
// goes along a row has it before him still. Of so few bytes that two such rows may not be left, one half.
std::size_t Period(std::size_t bytes) {
  if (bytes < 3 * kLeastPeriod) return 2 * kHeld;
  return std::max(kLeastPeriod, (bytes / kMostHeld / kHeld | 1) * kHeld + 2 * kHeld);
}

// Looked at in each output, and so many outputs of a step.
constexpr std::size_t kLook = std::size_t{64} << 10, kMostLooks = 64;
static_assert(kLook * kMostLooks <= DeviceOps::kMostBeside);

void Copy(DeviceOps& ops, char* to, const char* from, DeviceOps::Rows rows) {
  const std::size_t at_once = DeviceOps::kMostBeside / rows.width;
  for (std::size_t done = 0; done < rows.count; done += at_once) {
    const std::size_t first = done * rows.pitch;
    ops.CopyBeside(to + first, from + first, {rows.pitch, rows.width, std::min(at_once, rows.count - done)});
  }
}

}  // namespace

void DeviceSteps::Hand(std::size_t i, bool cold) {
  const Places& step = steps_[i];
  // Nothing is left to be done between the last of the inputs and the word that says that they are there.
  looks_[i] = ChooseLooks(i);
  const std::size_t bytes = step.input_bytes;
  const auto copy = [&](std::size_t at, const DeviceOps::Rows& rows) {
    if (rows.width > 0 && rows.count > 0) Copy(ops_, step.inputs + at, step.values + at, rows);
  };
  if (!cold && bytes >= DeviceOps::kLeastPlain && bytes <= kOnePiece) return copy(0, {bytes, bytes, 1});
  const std::size_t period = Period(bytes), first = random_.Below(period - kHeld + 1);
  std::size_t rows = bytes / period;
  // What is left behind them comes by a plain copy.
  if (rows > 1 && bytes % period != 0 && bytes % period < DeviceOps::kLeastPlain) --rows;
  const std::size_t rest = bytes - rows * period;
  copy(0, {period, first, rows});
  copy(first + kHeld, {period, period - first - kHeld, rows});
  copy(rows * period, {rest, rest, 1});
  if (cold) ops_.FlushBeside();
  copy(first, {period, kHeld, rows});
}

DeviceSteps::Looks DeviceSteps::ChooseLooks(std::size_t i) {
  const Places& step = steps_[i];
  Looks looks;
  std::size_t index = random_.Below(std::max<std::size_t>(step.outputs.size(), 1)), all = 0;
  for (std::size_t k = 0; k < step.outputs.size() && looks.where.size() < kMostLooks; ++k) {
    const auto& [at, whole] = step.outputs[index];
    const std::size_t some = std::min(whole, kLook), offset = random_.Below(whole - some + 1);
    if (whole > 0) {
      looks.where.push_back({{i, index}, offset, some});
      looks.pieces.push_back({at + offset, some});
      all += some;
    }
    index = (index + 1) % step.outputs.size();
  }
  looks.held.assign(all, '\0');
  return looks;
}

double DeviceSteps::Look(std::size_t i) {
  const auto begin = Clock::now();
  if (!looks_[i].pieces.empty()) ops_.ReadBeside(looks_[i].held.data(), looks_[i].pieces);
  looks_[i].taken = true;
  return Since(begin);
}

std::vector<DeviceSteps::Output> DeviceSteps::Differing(const std::function<const char*(const Output&)>& now) {
  std::vector<Output> differing;
  for (const Looks& looks : looks_) {
    if (!looks.taken || looks.where.empty()) continue;
    std::vector<DeviceOps::Place> pieces;
    for (const auto& [output, offset, bytes] : looks.where) pieces.push_back({now(output) + offset, bytes});
    std::vector<char> holds(looks.held.size());
    ops_.ReadBeside(holds.data(), pieces);
    std::size_t at = 0;
    for (const auto& [output, offset, bytes] : looks.where) {
      if (std::memcmp(&holds[at], &looks.held[at], bytes) != 0) differing.push_back(output);
      at += bytes;
    }
  }
  return differing;
}

double LookTimes::Late(double seconds) {
  if (std::isinf(most_)) practice_.push_back(seconds);
  return seconds > most_ ? seconds : 0;
}

void LookTimes::Practised() {
  constexpr double kMore = 2;  // times what nine of ten took
  if (!practice_.empty()) most_ = kMore * Quantile(practice_, 0.9);
}

}  // namespace grove::judge
