// The values that timed calls are made on, as the judge alone can see them. Laid out as the candidate's slots are, so
// that one copy hands them over and one comparison finds what was written to them; and in the same kind of memory, so
// that the reference, which runs on them, reads what the candidate reads.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "worker/judge/device_ops.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/slots.h"

namespace grove::judge {

class Values {
 public:
  // `leaves`: a draw, which says how large a set is. `most_drawing`: seconds that draws may take in all.
  Values(LoadedProblem& problem, DeviceOps& ops, Random& random, const std::vector<Leaf>& leaves, std::size_t count,
         double most_drawing);

  // New values in these sets, queued on the device: each is a draw that nobody has seen. Only where get_inputs() gives
  // the same whatever the seed, or drawing has taken `most_drawing`, an earlier draw comes again with each of its
  // floating-point elements multiplied by a secret factor of its own in [1/2, 1): nothing that was computed before is
  // right for it, nor becomes so by one multiplication, and ranges such as [0, 1], signs, zeros, symmetry and equal
  // inputs are kept, as are inputs that have a meaning which factors would destroy (KeepsMeaning).
  void Refill(const std::vector<std::size_t>& sets);

  double draw_seconds() const { return problem_.draw_seconds; }  // of one set, at best
  // Seconds spent on draws that take long, which are not the candidate's.
  double drawing() const { return drawing_; }
  // Draws came back although they should not have: drawing takes too long for this problem.
  bool repeated() const { return repeated_; }

  const std::vector<Leaf>& leaves(std::size_t set) const { return leaves_[set]; }  // tensors over the memory below
  const char* data() const { return block_->data(); }
  std::size_t bytes() const { return block_->bytes(); }
  std::size_t stride() const { return stride_; }

 private:
  static bool SameDraws(const std::vector<Leaf>& one, const std::vector<Leaf>& two);
  void FillPool();
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
  // Of each leaf: its floating-point elements get factors; those of a symmetric one the same on both sides; or it is
  // equal to this earlier leaf.
  struct Manner {
    bool varied = false, symmetric = false;
    std::size_t same_as = SIZE_MAX;
  };
  std::vector<Manner> manners_;
  std::optional<bool> same_draws_;
  bool repeated_ = false;
  double most_drawing_, drawing_ = 0;
  std::vector<std::vector<Leaf>> pool_;
  std::vector<at::Tensor> factors_;  // of each element type that occurs
};

}  // namespace grove::judge
