// Marks: what an output is off by where one of its factors is rounded, element by element, and whether the errors of a
// program are like that. docs/correctness-distributions.md ("The mark of rounded inputs") derives the constants.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace grove::judge {

// Elements that are looked at of any tensor: its first ones, in one row.
constexpr std::int64_t kMostLookedAt = std::int64_t{1} << 20;
at::Tensor LookedAt(const at::Tensor& all);

// Errors as they are compared: without what a row or a column has in common, so that as many as there are elements are
// independent, and without what they have of the result itself, which a constant that is a little off gives every
// element. Where that leaves no more than what float64 rounds, as where columns are alike, it leaves zeros.
class Plane {
 public:
  explicit Plane(const at::Tensor& result);  // in float64
  // In one row. `errors`: float64, those of the elements that are looked at.
  at::Tensor Without(const at::Tensor& errors) const;

 private:
  at::Tensor Centred(const at::Tensor& all) const;

  const std::int64_t columns_;
  const double least_;  // rms that is left of what is more than rounding
  at::Tensor direction_;
};

struct Likeness {
  double share = 0;        // of the marks that errors have: 1 where they are nothing else
  double correlation = 0;  // between them
};

// Of what a Plane left of both; nothing where it left nothing of one.
Likeness Alike(const at::Tensor& errors, const at::Tensor& marks);

// Whether errors are marks and more, in each part of the output: `alike` is their likeness. Controls have to be asked,
// too: errors of few elements that differ are like any marks by chance.
bool BearMarks(const Likeness& alike, const at::Tensor& errors, const at::Tensor& marks);

}  // namespace grove::judge
