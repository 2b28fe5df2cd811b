#include "worker/judge/glances.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace grove::judge {

void Glances::Forget() {
  places_.clear();
  chosen_.clear();
}

void Glances::Choose(const std::vector<std::size_t>& sets) {
  Forget();
  if (!ops_.cuda() || sets.empty()) return;
  constexpr std::size_t kEachOnce = DeviceOps::kMostGlances / 2;
  const std::vector<Place>& places = arena_.at(sets[0]).out.places;
  std::uint64_t bytes = 0;
  for (const Place& place : places) bytes += place.bytes;
  if (bytes == 0) return;
  for (std::size_t i = 0; i < DeviceOps::kMostGlances; ++i) {
    Glance glance{{sets[random_.Below(sets.size())], 0}, 0};
    Output& output = glance.output;
    if (sets.size() * places.size() <= kEachOnce && i < sets.size() * places.size()) {
      output = {sets[i / places.size()], i % places.size()};
    } else {
      for (std::uint64_t at = random_.Below(bytes); at >= places[output.index].bytes; ++output.index) {
        at -= places[output.index].bytes;
      }
    }
    const std::size_t its = places[output.index].bytes;
    if (its == 0) continue;
    glance.offset = random_.Below(its - std::min(its, DeviceOps::kGlanceBytes) + 1);
    chosen_.push_back(glance);
  }
}

void Glances::Find(const std::function<const char*(const Output&)>& where) {
  std::vector<Glance> found;
  for (const Glance& glance : chosen_) {
    const char* its = where(glance.output);
    if (its == nullptr) continue;
    const Place& place = arena_.at(glance.output.set).out.places[glance.output.index];
    found.push_back(glance);
    places_.push_back({its + glance.offset, std::min(place.bytes, DeviceOps::kGlanceBytes)});
  }
  chosen_ = std::move(found);
}

void Glances::Look() {
  ops_.Glance(places_);
  ops_.Synchronize();
}

std::vector<Glances::Output> Glances::Differing() {
  std::vector<Output> differing;
  if (places_.empty()) return differing;
  constexpr std::size_t kBytes = DeviceOps::kMostGlances * DeviceOps::kGlanceBytes;
  std::vector<unsigned char> then(kBytes), now(kBytes);
  ops_.Glanced(then.data());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto& [output, offset] = chosen_[i];
    const Slot& slot = arena_.at(output.set);
    places_[i].at = slot.kept + (slot.out.places[output.index].offset - slot.out.places[0].offset) + offset;
  }
  ops_.Glance(places_);
  ops_.Glanced(now.data());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::size_t at = i * DeviceOps::kGlanceBytes;
    if (std::memcmp(&then[at], &now[at], places_[i].bytes) != 0) differing.push_back(chosen_[i].output);
  }
  places_.clear();
  return differing;
}

}  // namespace grove::judge
