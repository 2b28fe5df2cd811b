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
  // `leaves`: a draw, which says how large a set is.
  Values(LoadedProblem& problem, DeviceOps& ops, Random& random, const std::vector<Leaf>& leaves, std::size_t count);

  // New values in these sets. Each is a new draw where drawing is cheap, at times otherwise (up to a third of the time
  // since the first Refill), and else an earlier draw with each of its floating-point elements multiplied by a secret
  // factor of its own in [31/32, 1): nothing that was computed before is right for it, nor becomes so by one
  // multiplication, and ranges such as [0, 1], signs, zeros, symmetry and equal inputs are kept. Where an input that
  // changes from draw to draw has a meaning that this would destroy (indices, masks, probabilities, sorted values:
  // KeepsMeaning), where sums of many terms average the factors out, or where the result is chosen among the inputs,
  // most of these, of their slices or of what is made of them on the way have no part in it or zeros are in other
  // places in each draw, so that an earlier one says where to look, every set is a draw, until that has taken
  // kMostDrawing seconds; such sums then get factors in [1/2, 1), and so they do where draws are always the same, or
  // where sets of one draw have results that are too close for the rule. Queued on the device.
  void Refill(const std::vector<std::size_t>& sets);

  // Every set is a new draw, where that can be. Before the first Refill.
  void DrawAlways() { always_ = true; }

  // What the rule allows of each output, of its rms: results of two sets made of one draw have to be further apart.
  // Before the first Refill.
  void Allow(std::vector<double> allowed) { allowed_ = std::move(allowed); }

  // How many sets a run should have, so that drawing them does not take too long. Known after the first Refill.
  std::size_t most_sets() const { return most_sets_; }
  // Seconds spent on draws that had to be made, which are not the candidate's.
  double drawing() const { return fresh_spent_; }
  // Draws came back although they should not have: drawing takes too long for this problem.
  bool repeated() const { return repeated_; }
  static constexpr double kMostDrawing = 30;

  const std::vector<Leaf>& leaves(std::size_t set) const { return leaves_[set]; }  // tensors over the memory below
  const char* data() const { return block_->data(); }
  std::size_t bytes() const { return block_->bytes(); }
  std::size_t stride() const { return stride_; }

 private:
  // What may be varied, from two draws.
  bool SameForVaried(const std::vector<Leaf>& drawn);
  std::vector<at::Tensor> OutputsOf(const std::vector<Leaf>& leaves, Mode mode = Mode::kEager);
  bool Varies() const;
  // `whole`: made false where there was no time or memory to look at all.
  bool FewMatter(const std::vector<Leaf>& drawn, bool* whole);
  bool SlicesIdle(const std::vector<Leaf>& drawn, bool* whole);
  bool IdleInside(const std::vector<Leaf>& drawn, const std::vector<Leaf>& other);
  bool AveragesOut(const std::vector<Leaf>& drawn);
  bool ManyTerms() const;
  bool Wide() const { return always_ || wide_ || ManyTerms(); }  // factors: where narrow ones say too little
  static bool SameDraws(const std::vector<Leaf>& one, const std::vector<Leaf>& two);
  void Learn(const std::vector<Leaf>& one, const std::vector<Leaf>& two);
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
  bool always_ = false, wide_ = false, fresh_ = false, repeated_ = false;
  std::vector<double> allowed_;
  double fresh_spent_ = 0;
  std::size_t most_sets_ = SIZE_MAX;
  std::vector<std::vector<Leaf>> pool_;
  std::vector<at::Tensor> factors_;  // of each element type that occurs
  std::chrono::steady_clock::time_point begin_{};
  double draw_spent_ = 0;
};

}  // namespace grove::judge
