// What get_inputs() makes of a seed: which inputs are drawn from it, and what else may be done with their values. The
// values of timed runs are to be such as nobody knows (values.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/judge/reference.h"

namespace grove::judge {

// Of an input.
struct Manner {
  bool drawn = true;               // its values come from the seed of the draw, most of them
  bool varied = false;             // its elements may get factors: they mean nothing that these would destroy
  bool symmetric = false;          // those of both sides the same ones
  std::size_t same_as = SIZE_MAX;  // it is equal to this earlier one
};

struct Manners {
  std::vector<Manner> inputs;
  // Some values do not come from the seeds, and may be known to whoever has the problem: no input is drawn, or the
  // same seed gives other values, or an input that is no mask or table is the same by all seeds.
  bool known = false;
};

// From draws by some seeds, and by one of them twice; two are held at a time. Throws ProblemError where they are not
// like `leaves`, and what the program throws.
Manners LearnManners(Reference& reference, const std::vector<Leaf>& leaves);

// Throws ProblemError where a draw has other leaves, sizes or types than another one.
void MustBeLike(const std::vector<Leaf>& leaves, const std::vector<Leaf>& drawn);

}  // namespace grove::judge
