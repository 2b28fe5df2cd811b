// The values that timed calls are made on, as the judge alone can see them. Laid out as the candidate's slots are, so
// that one copy hands them over and one comparison finds what was written to them; and in the same kind of memory, so
// that the reference, which runs on them, reads what the candidate reads.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "worker/judge/device_ops.h"
#include "worker/judge/manners.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/slots.h"

namespace grove::judge {

class Values {
 public:
  // `leaves`: a draw, which says how large a set is. `most_drawing`: seconds that draws may take in all.
  Values(LoadedProblem& problem, DeviceOps& ops, Random& random, const std::vector<Leaf>& leaves, std::size_t count,
         double most_drawing);

  // New values in these sets, queued on the device: each is a draw that nobody has seen, from the judge's secret seeds.
  // Where a run's draws would take too long, those that do not fit are made of the others in it, and where all of them
  // have taken `most_drawing`, earlier draws come again: with each floating-point element multiplied by a secret factor
  // of its own in [1/2, 1]. So is an input whose values do not come from the seeds (manners.h), in every set. Nothing
  // that was computed before is right for that, nor becomes so by one multiplication, and ranges such as [0, 1], signs,
  // zeros, symmetry and equal inputs are kept. Inputs that have a meaning which factors would destroy (KeepsMeaning)
  // stay as drawn.
  void Refill(const std::vector<std::size_t>& sets);

  double draw_seconds() const { return problem_.draw_seconds; }  // of one set, at best
  double RefillSeconds(std::size_t sets) const;                  // of drawing for so many, at best
  // Seconds spent on draws that take long, which are not the candidate's.
  double drawing() const { return drawing_; }
  // Draws came more than once: drawing takes too long for this problem.
  bool repeated() const { return repeated_; }
  // Some values may be known to whoever has the problem (Manners::known), or nobody could look.
  bool known_draws() const { return manners_.known; }

  const std::vector<Leaf>& leaves(std::size_t set) const { return leaves_[set]; }  // tensors over the memory below
  const char* data() const { return block_->data(); }
  std::size_t bytes() const { return block_->bytes(); }
  std::size_t stride() const { return stride_; }

 private:
  void Learn();
  // Of so many sets those that are drawn; of so many that it takes too long the rest are made of these.
  std::size_t Fresh(std::size_t sets) const;
  void Store(std::size_t set, const std::vector<Leaf>& drawn, bool vary);
  void Multiply(const at::Tensor& to, bool symmetric);
  std::vector<Leaf> Draw();

  LoadedProblem& problem_;
  DeviceOps& ops_;
  Random& random_;
  std::size_t stride_;
  std::unique_ptr<SharedBlock> block_;
  std::vector<std::vector<Leaf>> leaves_;
  Manners manners_;
  bool repeated_ = false;
  double most_drawing_, drawing_ = 0;
  std::vector<std::vector<Leaf>> pool_;  // draws that come again
};

}  // namespace grove::judge
