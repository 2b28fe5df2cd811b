// Input values that a problem does not draw itself, made from a draw of its own: they find kernels that are right for
// the values at hand alone. docs/correctness.md says which are used when, and why each is as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "worker/judge/random.h"
#include "worker/judge/reference.h"

namespace grove::judge {

enum class Distribution { kGiven, kScaled, kShifted, kSparse, kOutliers, kRare, kIntegers };

// "INPUT_DISTRIBUTION_SCALED"; also by the enum's number. Throws std::runtime_error naming what is unknown.
const char* EnumName(Distribution distribution);
Distribution ParseDistribution(const std::string& name);

// SCALED has forms: large with signs at random where all have one sign; large as they are, to fall back to; where the
// reference bears neither (an exponential), less large with such signs, or these alone, and one input alone large;
// small; one of the inputs that are sorted, a little larger. SHIFTED has: far from zero, near one to fall back
// to, one input alone, far below zero, and all below zero to fall back to, a little below
// zero, and that without the inputs of one sign to fall back to. OUTLIERS has three: one element in a thousand; a few
// in all, and less large ones where the reference does not bear these. SPARSE has, beside the first, one for each of
// two inputs that are a factor of a product: made by KeepOneTerm (one_term.h), not by Transform. RARE has those of
// rare_values.h and of fixed_inputs.h, INTEGERS those of other_integers.h and few_integers.h.
int Forms(Distribution distribution);
bool Downwards(Distribution distribution, int form);  // of SHIFTED
// Whether such values need not be made: they are to fall back to where others are not borne. `borne`: the forms of the
// distribution that were.
bool Needless(Distribution distribution, int form, const std::set<int>& borne);
// GIVEN has one beside the values as they are: each is moved by less than 2^-10 of itself (float64: 2^-23), to where
// rounding it to half precision or TF32 (to float32) makes it smaller, by some 0.44 of their spacing. Over a long sum
// such errors add up; those of values as drawn average out.
inline constexpr int kAsDrawn = 0, kLeaning = 1;

// Elements of a large input that are others in secret places: a sample of its values does not show them.
inline constexpr int kHiddenElements = 3;

inline constexpr int kOneTerm = 1;  // the first of these forms
bool OneTerm(Distribution distribution, int form);
// OtherDraw::skipped and Transformed::skipped of a form that is none here.
inline constexpr char kTried[] = "tried already";

struct Transformed {
  std::string how;      // for people: "times 128, signs at random"
  std::string skipped;  // why there is nothing to try; empty otherwise
};

// Of the distributions that every problem may have; RARE and INTEGERS ask what its graph says (rare_values.h,
// other_integers.h). Replaces the floating-point leaves, on their device. What has a meaning beyond its size is kept:
// whole numbers (labels, masks), values that are all alike, probabilities that add up to one, rows of norm one or of
// mean zero, values sorted along any dimension, complex numbers of size one; infinities and NaN stay in their places,
// zeros that are many (a triangle) stay zero, a symmetric matrix (Hermitian, skew) stays symmetric, a positive definite
// one definite, equal inputs stay equal; strides are kept, too. `reduction`: length of the problem's longest reduction.
Transformed Transform(Distribution distribution, int form, double reduction, Random* random, std::vector<Leaf>* leaves);

// Whether the values mean something that values beside them would not: see above. Infinities and NaN do.
bool KeepsMeaning(const at::Tensor& value);
// The same of the other values among such.
bool KeepsMeaningWhereFinite(const at::Tensor& value);
// Over the last two dimensions: A, its conjugate, or -A is its own transpose.
enum class Symmetry { kNone, kSymmetric, kHermitian, kSkew };
Symmetry SymmetryOf(const at::Tensor& value);
bool IsSymmetric(const at::Tensor& value);  // kSymmetric: real-valued complex ones are
// `made` with the symmetry of `like`, by what is above the diagonal.
at::Tensor Mirrored(const at::Tensor& like, const at::Tensor& made);
// Along a dimension of two or more, upwards: most of the rows do rise.
bool IsSorted(const at::Tensor& value, std::int64_t dim);
// So many that they are taken for structure: a triangle, blocks.
bool HasManyZeros(const at::Tensor& value);
// The first leaf before this one that holds the very same values: what is equal stays so.
std::optional<std::size_t> EarlierEqual(const std::vector<Leaf>& leaves, std::size_t i);

at::Generator MakeGenerator(const at::Device& device, std::uint64_t seed);
// Of [0, 1), in float32, for each element.
at::Tensor Uniform(const at::Tensor& like, const at::Generator& generator);

// Every floating leaf in float64 and moved by a relative `size`, up or down at random for each element; with its
// strides. `still`: leaves that are not moved (LoadedProblem::still); none where it is empty.
std::vector<Leaf> Nudge(const std::vector<Leaf>& leaves, double size, Random* random,
                        const std::vector<bool>& still = {});
// Every real leaf that does not keep its meaning (KeepsMeaning) moved by a relative 2^-12, or a sixteenth of its
// standard deviation where that is less, up or down at random for each element, and rounded to its own type (half
// types: to a number or two beside it): so far that sums of them are rounded otherwise, and what they say stays.
std::vector<Leaf> Neighbours(const std::vector<Leaf>& leaves, Random* random);
// By so little that only equal numbers change places: different ones of float32 are 2^-24 of themselves apart.
inline constexpr double kPartingNudge = 0x1p-40;

}  // namespace grove::judge
