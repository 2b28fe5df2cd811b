// The values that timed calls are made on, as the judge alone can see them. Laid out as the candidate's slots are, so
// that one copy hands them over and one comparison finds what was written to them; and in the same kind of memory, so
// that the reference, which runs on them, reads what the candidate reads.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "worker/judge/device_ops.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/slots.h"

namespace grove::judge {

class Values {
 public:
  // `leaves`: a draw, which says how large a set is.
  Values(LoadedProblem& problem, DeviceOps& ops, Random& random, const std::vector<Leaf>& leaves, std::size_t count);

  // New values in these sets. Each is a new draw where drawing is cheap, at times otherwise (up to a third of the time
  // since the first Refill), and else an earlier draw with each of its floating-point elements multiplied by a secret
  // factor of its own in [31/32, 1): nothing that was computed before is right for it, nor becomes so by one
  // multiplication, and ranges such as [0, 1], signs and zeros are kept. Where no input is floating-point every set is
  // a draw. Queued on the device.
  void Refill(const std::vector<std::size_t>& sets);

  const std::vector<Leaf>& leaves(std::size_t set) const { return leaves_[set]; }  // tensors over the memory below
  const char* data() const { return block_->data(); }
  std::size_t bytes() const { return block_->bytes(); }
  std::size_t stride() const { return stride_; }

 private:
  void Store(std::size_t set, const std::vector<Leaf>& drawn);
  void StoreVaried(std::size_t set, const std::vector<Leaf>& drawn);
  at::Tensor Factors(at::ScalarType type, std::int64_t count);
  std::vector<Leaf> Draw();

  LoadedProblem& problem_;
  DeviceOps& ops_;
  Random& random_;
  std::size_t stride_;
  std::unique_ptr<SharedBlock> block_;
  std::vector<std::vector<Leaf>> leaves_;
  bool floating_ = false;
  std::vector<std::vector<Leaf>> pool_;
  std::vector<at::Tensor> factors_;  // of each element type that occurs
  std::chrono::steady_clock::time_point begin_{};
  double draw_spent_ = 0;
};

}  // namespace grove::judge
