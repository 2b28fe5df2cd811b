#include "worker/judge/slots.h"

#include <algorithm>

#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

using nlohmann::json;

constexpr std::size_t kAlignment = 256;   // of every tensor in a region: as cudaMalloc aligns
constexpr std::size_t kGuardBytes = 256;  // behind every tensor at least: finds a loop that runs over the end
constexpr unsigned char kGuard[4] = {0xC3, 0x5A, 0x96, 0x3C};

std::size_t RoundUp(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

json Tensor(std::size_t region, const Place& place) {
  return {{"region", region}, {"offset", place.offset}, {"dtype", place.type.name}, {"shape", place.shape}};
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

std::size_t Arena::Add(std::size_t shape_set, const std::vector<Leaf>& leaves, const std::vector<at::Tensor>& outputs) {
  auto slot = std::make_unique<Slot>();
  slot->shape_set = shape_set;
  for (const Leaf& leaf : leaves) {
    if (!leaf.scalar) slot->in.Add(leaf.tensor);
  }
  for (const at::Tensor& output : outputs) slot->out.Add(output);
  slot->inputs = ops_.Allocate(std::max(slot->in.bytes, kAlignment));
  slot->outputs = ops_.Allocate(std::max(slot->out.bytes, kAlignment));
  slot->leaves = leaves;
  slots_.push_back(std::move(slot));
  return slots_.size() - 1;
}

std::size_t Arena::AddRegion(SharedBlock* block) {
  regions_.push_back(block);
  return regions_.size() - 1;
}

json Arena::SlotJson(const Slot& slot) {
  const std::size_t in = AddRegion(slot.inputs.get()), out = AddRegion(slot.outputs.get());
  json inputs = json::array(), outputs = json::array();
  std::size_t next = 0;
  for (const Leaf& leaf : slot.leaves) {
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

void Arena::Open(Conversation* conversation, const json& more) {
  json slots = json::array();
  for (const auto& slot : slots_) slots.push_back(SlotJson(*slot));
  for (std::size_t first = 0; first < regions_.size(); first += wire::kMaxFds) {
    const std::size_t last = std::min<std::size_t>(first + wire::kMaxFds, regions_.size());
    json list = json::array();
    std::vector<int> fds;
    for (std::size_t i = first; i < last; ++i) {
      list.push_back({{"bytes", regions_[i]->bytes()}});
      fds.push_back(regions_[i]->fd());
    }
    conversation->Send({{"type", "regions"}, {"first", first}, {"regions", list}}, fds);
    conversation->Receive("ok");
  }
  json open{{"type", "open"}, {"slots", slots}, {"params", params_json_}, {"names", names_json_}};
  open.update(more);
  conversation->Send(open);
  conversation->Receive("opened", true);
}

void Arena::Fill(Slot* slot, std::vector<Leaf> leaves) {
  slot->leaves = std::move(leaves);
  ops_.Fill(slot->inputs->data(), kGuard, sizeof kGuard, slot->inputs->bytes());
  std::size_t next = 0;
  for (const Leaf& leaf : slot->leaves) {
    if (leaf.scalar) continue;
    const Place& place = slot->in.places[next++];
    if (leaf.tensor.nbytes() != place.bytes) {
      throw ProblemError(
          "get_inputs() gives tensors of other sizes on each call, so a candidate cannot be given memory "
          "for them; make their shapes the same each time");
    }
    if (place.bytes > 0) ops_.Copy(slot->inputs->data() + place.offset, leaf.tensor.data_ptr(), place.bytes);
  }
}

void Arena::Poison(Slot* slot) {
  ops_.Fill(slot->outputs->data(), kGuard, sizeof kGuard, slot->outputs->bytes());
  const auto salt = static_cast<std::uint32_t>(random_.Next());
  for (const Place& place : slot->out.places) {
    const auto pattern = PoisonElement(place.type, salt);
    if (place.bytes > 0) ops_.Fill(slot->outputs->data() + place.offset, pattern.data(), pattern.size(), place.bytes);
  }
}

// The room behind every tensor must hold what was put there.
bool Arena::GuardsIntact(SharedBlock* block, const Layout& layout) {
  for (std::size_t i = 0; i < layout.places.size(); ++i) {
    const std::size_t begin = layout.places[i].offset + layout.places[i].bytes;
    const std::size_t end = i + 1 < layout.places.size() ? layout.places[i + 1].offset : layout.bytes;
    std::vector<char> bytes(end - begin);
    ops_.ToHost(bytes.data(), block->data() + begin, bytes.size());
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      if (static_cast<unsigned char>(bytes[at]) != kGuard[(begin + at) % sizeof kGuard]) return false;
    }
  }
  return true;
}

bool Arena::InputsIntact(Slot* slot) {
  std::size_t next = 0;
  for (const Leaf& leaf : slot->leaves) {
    if (leaf.scalar) continue;
    const Place& place = slot->in.places[next++];
    if (place.bytes > 0 && !ops_.Equal(slot->inputs->data() + place.offset, leaf.tensor.data_ptr(), place.bytes)) {
      return false;
    }
  }
  return GuardsIntact(slot->inputs.get(), slot->in);
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
