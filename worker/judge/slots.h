// The memory that one candidate is given: slots (sets of inputs and outputs), parameters, and what guards them. Inputs
// are written and outputs poisoned before a run; after it, what must not have changed is looked at. Each candidate has
// an arena of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/wire/dtype.h"
#include "worker/judge/conversation.h"
#include "worker/judge/device_ops.h"
#include "worker/judge/random.h"
#include "worker/judge/reference.h"

namespace grove::judge {

struct Place {
  std::size_t offset, bytes;
  wire::DType type;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements; dense, so that flat copies hold. Empty = row-major
};

// In front of the first tensor of a set, and behind every one at least: finds a loop that runs over an end.
inline constexpr std::size_t kGuardBytes = 256;

// Where tensors stand in one region, with room around them.
struct Layout {
  std::vector<Place> places;
  std::size_t bytes = kGuardBytes;
  void Add(const at::Tensor& tensor);
};
Layout LayoutOf(const std::vector<Leaf>& leaves);
Layout LayoutOf(const std::vector<at::Tensor>& tensors);

// Guards everywhere: before anything else is written to a piece of memory.
void FillGuards(DeviceOps* ops, SharedBlock* block);

// From one set of tensors to the next in a piece of memory that holds many sets.
std::size_t Stride(const Layout& layout);

struct Slot {
  Layout in, out;                                // offsets from the start of the blocks
  std::shared_ptr<SharedBlock> inputs, outputs;  // of this slot alone, or of many
  std::size_t shape_set = 0;
  std::vector<Leaf> leaves;  // pristine: what the inputs must still hold after a run; none before Fill and after Forget
  // Throws ProblemError unless the reference's outputs are of the shapes and types that this slot has room for.
  void MustFit(const std::vector<at::Tensor>& expected) const;
  bool spoiled = false;         // the inputs were spoiled after the run
  std::uint64_t spoil_key = 0;  // where
  bool waiting = false;         // for Hand
  std::size_t in_region = 0, out_region = 0;
  std::uint32_t poison = 0;  // of the outputs, the latest
  // The judge's own copy of the outputs, from the first one on; null where there is none.
  const char* kept = nullptr;
  // Where output i is to be read.
  const char* Output(std::size_t i) const {
    return kept != nullptr ? kept + (out.places[i].offset - out.places[0].offset)
                           : outputs->data() + out.places[i].offset;
  }
  // Whether NaN in output i, which the reference may have there too, is what stood there before the run. `got`: a copy.
  bool LeftUnwritten(std::size_t i, const at::Tensor& got) const;
};

class Arena {
 public:
  Arena(DeviceOps& ops, Random& random) : ops_(ops), random_(random) {}

  using Parameters = std::vector<std::pair<std::string, at::Tensor>>;
  void SetParameters(const Parameters& parameters);
  // Adds `count` slots that stand one after another in one piece of memory, Stride() apart; returns the first one's
  // index. The tensors say how large they are.
  std::size_t Add(std::size_t count, std::size_t shape_set, const std::vector<Leaf>& leaves,
                  const std::vector<at::Tensor>& outputs);
  Slot& at(std::size_t index) { return *slots_[index]; }
  const Slot& at(std::size_t index) const { return *slots_[index]; }
  std::size_t size() const { return slots_.size(); }

  // Adds room, in the host's memory, where a script says where the results of so many calls of the timed shapes lie.
  void AddResultPlaces(std::size_t calls);
  std::size_t result_places_region() const { return result_places_region_; }
  // Of the last run's call number `call`; the candidate's own words. 0 where it has said nothing.
  std::uint64_t ResultPlace(std::size_t call, std::size_t output) const;

  // Hands the memory to the candidate; nothing of its program runs for that.
  void Map(Conversation* conversation);
  // Then the slots in it, at which the program is loaded. `more`: further members of the `open` frame.
  void Open(Conversation* conversation, const nlohmann::json& more);

  // Lets go of what slots' inputs must hold, until they are filled again: its memory serves the next draw.
  void Forget();
  // Writes the inputs of one slot. All of this is queued on the device: Synchronize before a candidate may look.
  void Fill(Slot* slot, std::vector<Leaf> leaves);
  // The same for those of these slots of one Add that wait for it, guards included, in few steps. `pristine`: the
  // judge's own copy of the whole piece of memory. False when there were none.
  bool Hand(const std::vector<std::size_t>& slots, const char* pristine);
  void Poison(Slot* slot);
  // After a run: takes the inputs away, so that nothing can be computed from them any more. Two words in every 256
  // bytes (4 KiB where a slot is large) become NaN or -1: the first, which is that of every tensor where that is
  // affordable, and one in a secret place, so that nobody can keep just what will be missing.
  void Spoil(Slot* slot);

  bool InputsIntact(Slot* slot);  // and the room behind them; but for what Spoil wrote
  bool OutputGuardsIntact(Slot* slot) { return GuardsIntact(slot->outputs.get(), slot->out, {}); }
  bool ParametersIntact(const Parameters& parameters);
  // The same for many slots of one Add, in few steps. `pristine`: the judge's own copy of the whole piece of memory.
  bool InputsIntact(const std::vector<std::size_t>& slots, const char* pristine);
  bool OutputGuardsIntact(const std::vector<std::size_t>& slots);

 private:
  bool GuardsIntact(SharedBlock* block, const Layout& layout, const Spoiled& spoiled);
  std::size_t AddRegion(SharedBlock* block);
  nlohmann::json SlotJson(const Slot& slot, const std::vector<Leaf>& leaves, std::size_t in, std::size_t out) const;

  DeviceOps& ops_;
  Random& random_;
  std::vector<SharedBlock*> regions_;
  std::unique_ptr<SharedBlock> result_places_;
  std::size_t result_places_region_ = 0;
  std::unique_ptr<SharedBlock> params_, guard_;  // guard_: as much of the guard pattern as the largest room has
  Layout params_layout_;
  nlohmann::json params_json_ = nlohmann::json::array(), names_json_ = nlohmann::json::array();
  nlohmann::json slots_json_ = nlohmann::json::array();
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace grove::judge
