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
};

// Where tensors stand in one region, with room between them.
struct Layout {
  std::vector<Place> places;
  std::size_t bytes = 0;
  void Add(const at::Tensor& tensor);
};

struct Slot {
  Layout in, out;
  std::unique_ptr<SharedBlock> inputs, outputs;
  std::size_t shape_set = 0;
  std::vector<Leaf> leaves;  // pristine: what the inputs must still hold after a run
};

class Arena {
 public:
  Arena(DeviceOps& ops, Random& random) : ops_(ops), random_(random) {}

  using Parameters = std::vector<std::pair<std::string, at::Tensor>>;
  void SetParameters(const Parameters& parameters);
  // Returns the slot's index. The tensors say how large it is.
  std::size_t Add(std::size_t shape_set, const std::vector<Leaf>& leaves, const std::vector<at::Tensor>& outputs);
  Slot& at(std::size_t index) { return *slots_[index]; }
  const Slot& at(std::size_t index) const { return *slots_[index]; }
  std::size_t size() const { return slots_.size(); }

  // Hands everything to the candidate. `more`: further members of the `open` frame.
  void Open(Conversation* conversation, const nlohmann::json& more);

  void Fill(Slot* slot, std::vector<Leaf> leaves);
  void Poison(Slot* slot);
  bool InputsIntact(Slot* slot);  // and the room behind them
  bool OutputGuardsIntact(Slot* slot) { return GuardsIntact(slot->outputs.get(), slot->out); }
  bool ParametersIntact(const Parameters& parameters);

 private:
  bool GuardsIntact(SharedBlock* block, const Layout& layout);
  std::size_t AddRegion(SharedBlock* block);
  nlohmann::json SlotJson(const Slot& slot);

  DeviceOps& ops_;
  Random& random_;
  std::vector<SharedBlock*> regions_;
  std::unique_ptr<SharedBlock> params_;
  Layout params_layout_;
  nlohmann::json params_json_ = nlohmann::json::array(), names_json_ = nlohmann::json::array();
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace grove::judge
