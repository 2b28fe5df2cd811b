// Among equal keys sort, topk and their kind may choose any, and which one is no part of what the reference computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "worker/judge/reference.h"
#include "worker/judge/turns.h"

namespace grove::judge {

// `got` with the reference's choice in place of each other one that is as good: where output `output` of a run of the
// reference is the places that one of these operations gave, those with the very same keys, in rows in which no place
// comes twice where the operation gives each once. Undefined where there is none of that.
// `places`: whether the output is such places at all.
at::Tensor WithEqualChoices(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output,
                            const at::Tensor& got, bool* places);

// Elements of an output that come out as a candidate has them, and what they come out as (fractions: not quite so).
struct Reached {
  at::Tensor elements, values;
  enum Order { kOther, kFirst, kLast } order = kOther;  // by which of equal keys all of them do
};

// While it lives, what this thread runs chooses the first or the last of equal keys; kOther: as torch does.
class Choosing {
 public:
  explicit Choosing(Reached::Order order);
  ~Choosing();
  bool had_choice() const;  // there were equal keys
  Choosing(const Choosing&) = delete;
  Choosing& operator=(const Choosing&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Which elements of an output that is made of such places are as the reference gives them where these operations choose
// otherwise among equal keys: the first, the last, each in turn. Fractions: within `most` and `slack` of themselves.
// Undefined where there are no equal keys, or where `got` lacks what all choices have in common (how many elements a
// mask has, what a row adds up to). `turns`: how many runs there may be, of `each` seconds.
Reached ReachedByOtherChoices(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output,
                              const at::Tensor& got, double most, double slack, Turns* turns, double each);

}  // namespace grove::judge
