// Whether whole numbers are as chance would have it, seen in several draws of one problem: order, padding,
// permutations, pairs that are there once and relations to other inputs mean something, and other numbers in their
// place would not.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "worker/judge/indices.h"
#include "worker/judge/reference.h"

namespace grove::judge {

bool Integers(const Leaf& leaf);  // a tensor of int32 or int64

class Draws {
 public:
  // `first`: what was drawn already. `draw`: another draw of the same problem; it is asked up to fifteen times, once at
  // least, for 0.2 s.
  Draws(const std::vector<Leaf>& first, const std::function<std::vector<Leaf>()>& draw);

  // What all gave for an input: int64[draws, ...], two draws or more (of more than 2^16 elements two). Undefined for
  // what is not Integers, has more than 2^20 elements, or has another shape in another draw.
  const at::Tensor& Of(std::size_t input) const { return stacked_.at(input); }

  // Of an input that Of has. Of labels any may come anywhere, and as often as it likes; what adds says what becomes of
  // those that come twice, which is asked for unless some would have been seen. On the processor 0.45 s for the largest
  // there are.
  bool ByChance(std::size_t input, const Indices& indices, const at::Generator& generator) const;

 private:
  // What other inputs have beside an input's elements: those of its shape, one number for each of its rows (a place and
  // a length), and the ends of what stands in theirs (a length and places).
  std::vector<at::Tensor> Beside(std::size_t input) const;

  std::vector<at::Tensor> stacked_;  // for each input
};

}  // namespace grove::judge
