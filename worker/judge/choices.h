// Among equal keys sort, topk and their kind may choose any, and which one is no part of what the reference computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/judge/reference.h"
#include "worker/judge/turns.h"

namespace grove::judge {

// One operation that chose places along a dimension.
struct Choice {
  at::Tensor keys, places;
  std::int64_t dim = -1;
  bool stable = false;   // the order among equal keys is part of what was asked for
  bool ordered = false;  // each place once
  bool running = false;  // no place behind the own one
  bool largest = false;  // of those that order
  bool first = false;    // of equal keys the first, as torch documents it
  bool often = false;    // the one that comes most often: a key says nothing by itself

  // `values` (of places, or of what stands there) with the dimension that was chosen along, and without it where the
  // places have none.
  std::int64_t Dim() const { return dim < 0 ? dim + keys.dim() : dim; }
  bool gone() const { return places.dim() + 1 == keys.dim(); }
  at::Tensor Along(const at::Tensor& values) const { return gone() ? values.unsqueeze(Dim()) : values; }
  at::Tensor Alone(const at::Tensor& values) const { return gone() ? values.squeeze(Dim()) : values; }
};

// What a run of the reference chose, in order, and its outputs. Throws as the reference does.
struct Chosen {
  std::vector<Choice> choices;
  std::vector<at::Tensor> outputs;
};
Chosen ChosenBy(Reference& reference, const std::vector<Leaf>& leaves, Mode mode);

// Whether the output is what this operation gave, or its beginning, and not something that was made of it.
bool Is(const at::Tensor& output, const Choice& choice);

// Which of the places `got`, in the shape of the output, this operation cannot have given, whatever its keys are: there
// is no such place, or it comes twice in a row in which each comes once.
at::Tensor Misplaced(const Choice& choice, const at::Tensor& got);

// The keys at these places, in the shape of the output; of what is no place any one.
at::Tensor KeysAt(const Choice& choice, const at::Tensor& places);
// Which of `got` are places of the very same keys as those of the reference.
at::Tensor AsGood(const Choice& choice, const at::Tensor& places, const at::Tensor& got);

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
// mask has, what a row adds up to, how many are infinite). `turns`: how many runs there may be, of `each` seconds.
Reached ReachedByOtherChoices(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output,
                              const at::Tensor& got, double most, double slack, Turns* turns, double each);

}  // namespace grove::judge
