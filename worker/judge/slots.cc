#include "worker/judge/slots.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "worker/judge/compare.h"
#include "worker/judge/memory_file.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

using nlohmann::json;

constexpr std::size_t kAlignment = 256;  // of every tensor in a region: as cudaMalloc aligns
static_assert(kGuardBytes % kAlignment == 0, "the first tensor of a set stands behind a guard");
constexpr unsigned char kGuard[4] = {0xC3, 0x5A, 0x96, 0x3C};

std::size_t RoundUp(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

// The room around the tensors of one set, as [begin, end) from the start of the block.
std::vector<std::pair<std::size_t, std::size_t>> Gaps(const Layout& layout) {
  std::vector<std::pair<std::size_t, std::size_t>> gaps;
  if (!layout.places.empty()) gaps.emplace_back(layout.places[0].offset - kGuardBytes, layout.places[0].offset);
  for (std::size_t i = 0; i < layout.places.size(); ++i) {
    const std::size_t begin = layout.places[i].offset + layout.places[i].bytes;
    gaps.emplace_back(begin, i + 1 < layout.places.size() ? layout.places[i + 1].offset : layout.bytes);
  }
  return gaps;
}

// Tensors begin at multiples of kAlignment, so that small steps meet the first word of each.
std::size_t SpoilStep(std::size_t bytes) { return bytes <= (std::size_t{1} << 20) ? kAlignment : 4096; }

// Of its inputs, from the first place on.
Spoiled SpoiledOf(const Slot& slot) {
  if (!slot.spoiled) return {};
  return {SpoilStep(slot.in.bytes - slot.in.places[0].offset), 0, slot.spoil_key};
}

json Tensor(std::size_t region, const Place& place) {
  json tensor{{"region", region}, {"offset", place.offset}, {"dtype", place.type.name}, {"shape", place.shape}};
  if (!place.strides.empty()) tensor["strides"] = place.strides;
  return tensor;
}

}  // namespace

void Layout::Add(const at::Tensor& tensor) {
  Place place;
  place.offset = bytes;
  place.bytes = tensor.nbytes();
  place.type = wire::FindDType(ShortType(tensor.scalar_type())).value();
  place.shape = tensor.sizes().vec();
  bytes = RoundUp(place.offset + place.bytes + kGuardBytes, kAlignment);
  places.push_back(std::move(place));
}

Layout LayoutOf(const std::vector<Leaf>& leaves) {
  Layout layout;
  for (const Leaf& leaf : leaves) {
    if (leaf.scalar) continue;
    layout.Add(leaf.tensor);
    if (leaf.tensor.strides() != RowMajor(leaf.tensor.sizes())) {
      layout.places.back().strides = leaf.tensor.strides().vec();
    }
  }
  return layout;
}

Layout LayoutOf(const std::vector<at::Tensor>& tensors) {
  Layout layout;
  for (const at::Tensor& tensor : tensors) layout.Add(tensor);
  return layout;
}

void Slot::MustFit(const std::vector<at::Tensor>& expected) const {
  bool fits = expected.size() == out.places.size();
  for (std::size_t i = 0; fits && i < expected.size(); ++i) {
    fits = expected[i].sizes() == at::IntArrayRef(out.places[i].shape) &&
           ShortType(expected[i].scalar_type()) == out.places[i].type.name;
  }
  if (fits) return;
  throw ProblemError(
      "the reference's outputs have other shapes or types from draw to draw, so that a candidate cannot be given "
      "memory "
      "for them: give outputs of one shape (a mask or a count instead of the elements that it selects)");
}

bool Slot::LeftUnwritten(std::size_t i, const at::Tensor& got) const {
  if (!got.is_floating_point() || got.numel() == 0) return false;
  const at::Tensor none = at::isnan(got);
  if (!none.any().item<bool>()) return false;
  const at::Tensor values = got.masked_select(none).contiguous().cpu();
  const std::vector<unsigned char> element = PoisonElement(out.places[i].type, poison);
  const auto* bytes = static_cast<const unsigned char*>(values.data_ptr());
  for (std::size_t at = 0; at < values.nbytes(); at += element.size()) {
    if (std::memcmp(bytes + at, element.data(), element.size()) == 0) return true;
  }
  return false;
}

void FillGuards(DeviceOps* ops, SharedBlock* block) { ops->Fill(block->data(), kGuard, sizeof kGuard, block->bytes()); }

// Not a multiple of 4 KiB: the same element of every set would fall into the same lines of a cache.
std::size_t Stride(const Layout& layout) {
  const std::size_t stride = std::max(layout.bytes, kAlignment);
  return stride % 4096 == 0 ? stride + kAlignment : stride;
}

void Arena::SetParameters(const Parameters& parameters) {
  for (const auto& [name, tensor] : parameters) {
    names_json_.push_back(name);
    params_layout_.Add(tensor);
  }
  if (parameters.empty()) return;
  params_ = ops_.Allocate(params_layout_.bytes);
  const std::size_t region = AddRegion(params_.get());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Place& place = params_layout_.places[i];
    if (place.bytes > 0) ops_.Copy(params_->data() + place.offset, parameters[i].second.data_ptr(), place.bytes);
    params_json_.push_back(Tensor(region, place));
  }
}

std::size_t Arena::Add(std::size_t count, std::size_t shape_set, const std::vector<Leaf>& leaves,
                       const std::vector<at::Tensor>& outputs) {
  const Layout in = LayoutOf(leaves), out = LayoutOf(outputs);
  const std::size_t in_stride = Stride(in), out_stride = Stride(out), first = slots_.size();
  const std::shared_ptr<SharedBlock> in_block = ops_.Allocate(count * in_stride);
  const std::shared_ptr<SharedBlock> out_block = ops_.Allocate(count * out_stride);
  FillGuards(&ops_, in_block.get());
  FillGuards(&ops_, out_block.get());
  const std::size_t in_region = AddRegion(in_block.get()), out_region = AddRegion(out_block.get());
  for (std::size_t i = 0; i < count; ++i) {
    auto slot = std::make_unique<Slot>();
    slot->shape_set = shape_set;
    slot->in = in;
    slot->out = out;
    for (Place& place : slot->in.places) place.offset += i * in_stride;
    for (Place& place : slot->out.places) place.offset += i * out_stride;
    slot->in.bytes += i * in_stride;
    slot->out.bytes += i * out_stride;
    slot->inputs = in_block;
    slot->outputs = out_block;
    slot->in_region = in_region;
    slot->out_region = out_region;
    slots_json_.push_back(SlotJson(*slot, leaves, in_region, out_region));
    slots_.push_back(std::move(slot));
  }
  return first;
}

std::size_t Arena::AddRegion(SharedBlock* block) {
  regions_.push_back(block);
  return regions_.size() - 1;
}

json Arena::SlotJson(const Slot& slot, const std::vector<Leaf>& leaves, std::size_t in, std::size_t out) const {
  json inputs = json::array(), outputs = json::array();
  std::size_t next = 0;
  for (const Leaf& leaf : leaves) {
    if (!leaf.scalar) {
      inputs.push_back(Tensor(in, slot.in.places[next++]));
    } else if (leaf.dtype == "bool") {
      inputs.push_back({{"scalar", leaf.integer != 0}, {"dtype", "bool"}});
    } else if (leaf.dtype == "int64") {
      inputs.push_back({{"scalar", leaf.integer}, {"dtype", "int64"}});
    } else {
      inputs.push_back({{"scalar", Number(leaf.number)}, {"dtype", "float64"}});
    }
  }
  for (const Place& place : slot.out.places) outputs.push_back(Tensor(out, place));
  return {{"inputs", inputs}, {"outputs", outputs}};
}

void Arena::AddResultPlaces(std::size_t calls) {
  result_places_ =
      MakeMemoryFile(std::max<std::size_t>(calls * slots_.at(0)->out.places.size(), 1) * sizeof(std::uint64_t));
  std::memset(result_places_->data(), 0, result_places_->bytes());
  result_places_region_ = AddRegion(result_places_.get());
}

std::uint64_t Arena::ResultPlace(std::size_t call, std::size_t output) const {
  std::uint64_t place = 0;
  const std::size_t at = (call * slots_.at(0)->out.places.size() + output) * sizeof place;
  if (result_places_ == nullptr || at + sizeof place > result_places_->bytes()) return 0;
  std::memcpy(&place, result_places_->data() + at, sizeof place);
  return place;
}

void Arena::Map(Conversation* conversation) {
  for (std::size_t first = 0; first < regions_.size(); first += wire::kMaxFds) {
    const std::size_t last = std::min<std::size_t>(first + wire::kMaxFds, regions_.size());
    json list = json::array();
    std::vector<int> fds;
    for (std::size_t i = first; i < last; ++i) {
      list.push_back({{"bytes", regions_[i]->bytes()}});
      fds.push_back(regions_[i]->fd());
    }
    json regions{{"type", "regions"}, {"first", first}, {"regions", list}};
    if (result_places_ != nullptr && result_places_region_ >= first && result_places_region_ < last) {
      regions["result_places"] = result_places_region_;
    }
    conversation->Send(regions, fds);
    conversation->Receive("ok");
  }
}

void Arena::Open(Conversation* conversation, const json& more) {
  json open{{"type", "open"}, {"slots", slots_json_}, {"params", params_json_}, {"names", names_json_}};
  open.update(more);
  conversation->Send(open);
  conversation->Receive("opened", true);
}

void Arena::Forget() {
  for (const auto& slot : slots_) slot->leaves.clear();
}

void Arena::Fill(Slot* slot, std::vector<Leaf> leaves) {
  slot->leaves = std::move(leaves);
  slot->spoiled = slot->waiting = false;
  std::size_t next = 0;
  for (Leaf& leaf : slot->leaves) {
    if (leaf.scalar) continue;
    const Place& place = slot->in.places[next++];
    if (leaf.tensor.nbytes() != place.bytes || leaf.tensor.sizes() != at::IntArrayRef(place.shape)) {
      throw ProblemError(
          "get_inputs() gives tensors of other sizes on each call, so a candidate cannot be given memory "
          "for them; make their shapes the same each time");
    }
    leaf.tensor = WithStrides(leaf.tensor, place.strides.empty() ? RowMajor(place.shape) : place.strides);
    if (place.bytes > 0) ops_.Copy(slot->inputs->data() + place.offset, leaf.tensor.data_ptr(), place.bytes);
  }
}

bool Arena::Hand(const std::vector<std::size_t>& slots, const char* pristine) {
  std::vector<std::size_t> offsets;
  const Slot* last = nullptr;
  for (std::size_t index : slots) {
    Slot& slot = *slots_[index];
    if (!slot.waiting) continue;
    slot.waiting = false;
    if (slot.in.places.empty()) continue;
    offsets.push_back(slot.in.places[0].offset);
    last = &slot;
  }
  if (last == nullptr) return false;
  ops_.CopyPieces(last->inputs->data(), pristine, offsets, last->in.bytes - offsets.back());
  return true;
}

void Arena::Poison(Slot* slot) {
  const auto salt = static_cast<std::uint32_t>(random_.Next());
  slot->poison = salt;
  for (const Place& place : slot->out.places) {
    const auto pattern = PoisonElement(place.type, salt);
    if (place.bytes > 0) ops_.Fill(slot->outputs->data() + place.offset, pattern.data(), pattern.size(), place.bytes);
  }
}

void Arena::Spoil(Slot* slot) {
  if (slot->in.places.empty()) return;
  const std::size_t begin = slot->in.places[0].offset, bytes = slot->in.bytes - begin;
  slot->spoiled = true;
  slot->spoil_key = random_.Next();
  ops_.Spoil(slot->inputs->data() + begin, bytes, SpoiledOf(*slot));
}

// The room around every tensor must hold what was put there.
bool Arena::GuardsIntact(SharedBlock* block, const Layout& layout, const Spoiled& spoiled) {
  if (layout.places.empty()) return true;
  const std::size_t first = layout.places[0].offset;
  for (const auto& [begin, end] : Gaps(layout)) {
    std::vector<char> bytes(end - begin);
    ops_.ToHost(bytes.data(), block->data() + begin, bytes.size());
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      if (begin + at >= first && LeftOut(spoiled, begin + at - first)) continue;
      if (static_cast<unsigned char>(bytes[at]) != kGuard[(begin + at) % sizeof kGuard]) return false;
    }
  }
  return true;
}

bool Arena::InputsIntact(Slot* slot) {
  if (slot->in.places.empty()) return true;
  if (slot->leaves.empty()) throw std::logic_error("inputs are looked at of which nothing is known");
  const std::size_t first = slot->in.places[0].offset;
  Spoiled spoiled = SpoiledOf(*slot);
  std::size_t next = 0;
  for (const Leaf& leaf : slot->leaves) {
    if (leaf.scalar) continue;
    const Place& place = slot->in.places[next++];
    if (place.bytes == 0) continue;
    spoiled.phase = place.offset - first;
    ops_.Compare(slot->inputs->data() + place.offset, leaf.tensor.data_ptr(), place.bytes, spoiled);
  }
  return !ops_.Differed() && GuardsIntact(slot->inputs.get(), slot->in, SpoiledOf(*slot));
}

bool Arena::InputsIntact(const std::vector<std::size_t>& slots, const char* pristine) {
  for (std::size_t index : slots) {
    const Slot& slot = *slots_[index];
    if (slot.in.places.empty()) continue;
    const std::size_t first = slot.in.places[0].offset, bytes = slot.in.bytes - first;
    ops_.Compare(slot.inputs->data() + first, pristine + first, bytes, SpoiledOf(slot));
  }
  return !ops_.Differed();
}

bool Arena::OutputGuardsIntact(const std::vector<std::size_t>& slots) {
  for (std::size_t index : slots) {
    const Slot& slot = *slots_[index];
    for (const auto& [begin, end] : Gaps(slot.out)) {
      const std::size_t phase = begin % sizeof kGuard;
      if (guard_ == nullptr || guard_->bytes() < end - begin + phase) {
        guard_ = ops_.Allocate(end - begin + phase);
        ops_.Fill(guard_->data(), kGuard, sizeof kGuard, guard_->bytes());
      }
      ops_.Compare(slot.outputs->data() + begin, guard_->data() + phase, end - begin, {});
    }
  }
  return !ops_.Differed();
}

bool Arena::ParametersIntact(const Parameters& parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Place& place = params_layout_.places[i];
    if (place.bytes > 0 && !ops_.Equal(params_->data() + place.offset, parameters[i].second.data_ptr(), place.bytes)) {
      return false;
    }
  }
  return true;
}

}  // namespace grove::judge
