// The values that timed calls are made on, as the judge alone can see them. Laid out as the candidate's slots are, so
// that one copy hands them over and one comparison finds what was written to them; and in the same kind of memory, so
// that the reference, which runs on them, reads what the candidate reads.
#pragma once

#include <ATen/core/Generator.h>

#include <memory>
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

  // New values in these sets, queued on the device: each is a draw that nobody has seen, from the judge's secret seeds.
  // Of an input whose values do not come from these (it is the same in all draws, or other values come of the same
  // seed: get_inputs() has a generator of its own), and of a draw that comes again because drawing has taken
  // `most_drawing`, each floating-point element is multiplied by a secret factor of its own in [1/2, 1): nothing that
  // was computed before is right for it, nor becomes so by one multiplication, and ranges such as [0, 1], signs, zeros,
  // symmetry and equal inputs are kept. Inputs that have a meaning which factors would destroy (KeepsMeaning) stay as
  // drawn.
  void Refill(const std::vector<std::size_t>& sets);

  double draw_seconds() const { return problem_.draw_seconds; }  // of one set, at best
  // Seconds spent on draws that take long, which are not the candidate's.
  double drawing() const { return drawing_; }
  // Draws came back: drawing takes too long for this problem.
  bool repeated() const { return repeated_; }
  // Some values that change results do not come from the judge's seeds: whoever has the problem may know them, but for
  // factors.
  bool known_draws() const { return problem_.known_draws.value_or(false); }

  const std::vector<Leaf>& leaves(std::size_t set) const { return leaves_[set]; }  // tensors over the memory below
  const char* data() const { return block_->data(); }
  std::size_t bytes() const { return block_->bytes(); }
  std::size_t stride() const { return stride_; }

 private:
  void LearnManners();
  void Store(std::size_t set, const std::vector<Leaf>& drawn, bool vary);
  at::Tensor Factors(at::ScalarType type, at::IntArrayRef shape);
  std::vector<Leaf> Draw();

  LoadedProblem& problem_;
  DeviceOps& ops_;
  Random& random_;
  std::size_t stride_;
  std::unique_ptr<SharedBlock> block_;
  std::vector<std::vector<Leaf>> leaves_;
  bool repeated_ = false;
  double most_drawing_, drawing_ = 0;
  std::vector<std::vector<Leaf>> pool_;  // draws that come again
  at::Generator generator_;              // of factors: get_inputs() may know what torch's own gives
};

}  // namespace grove::judge
