#include "worker/judge/other_integers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr int kFewIntegers = 1;   // a form: who looks at a sample of the values finds them as the problem draws them
constexpr double kFewValues = 4;  // two are flags, three are signs, four are codes of two bits
constexpr double kMostZeros = 1.0 / 4;  // more are left out on purpose
constexpr double kNegative = 1.0 / 4, kSmall = 1.0 / 2;
constexpr std::int64_t kMostElements = std::int64_t{1} << 26;  // made by way of several tensors of float64

// One value for each of its places, each once.
bool Places(const at::Tensor& row, std::int64_t dim) {
  const std::int64_t size = row.size(dim);
  std::vector<std::int64_t> shape(static_cast<std::size_t>(row.dim()), 1);
  shape[static_cast<std::size_t>(dim)] = size;
  return True(std::get<0>(row.sort(dim)).eq(at::arange(size, row.options()).view(shape)).all());
}

bool MeansMore(const at::Tensor& value, const at::Tensor& again) {
  if (value.numel() < 2 || value.numel() > kMostElements || value.equal(again) || IsSymmetric(value)) return true;
  const double least = value.min().item<double>(), most = value.max().item<double>();
  if (most - least < kFewValues) return true;
  // Bytes that stand in a longer type, signed or not.
  if (least >= 0 && most > 200 && most < 256) return true;
  if (least >= -128 && least < -100 && most > 100 && most < 128) return true;
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    if (value.size(dim) > 1 && ((value.size(dim) > 2 && IsSorted(value, dim)) || Places(value, dim))) return true;
  }
  return false;
}

// Some elements, in secret places, have the values of others.
at::Tensor FewChanged(const at::Tensor& value, Random* random) {
  constexpr int kTries = 16;  // for another value
  const at::Tensor made = value.clone(at::MemoryFormat::Contiguous), flat = made.view({-1});
  const auto any = [&] {
    return flat[static_cast<std::int64_t>(random->Below(static_cast<std::uint64_t>(flat.numel())))];
  };
  for (int one = 0; one < kHiddenElements; ++one) {
    const at::Tensor to = any();
    at::Tensor from = any();
    for (int tries = 1; tries < kTries && from.equal(to); ++tries) from = any();
    to.copy_(from);
  }
  return made;
}

}  // namespace

Transformed MakeIntegers(int form, const std::vector<double>& most, const std::vector<Leaf>& again, Random* random,
                         std::vector<Leaf>* leaves) {
  Transformed result;
  const std::vector<Leaf> given = *leaves;
  bool changed = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].scalar || i >= most.size() || most[i] == 0 || i >= again.size()) continue;
    const at::Tensor& value = given[i].tensor;
    if (value.sizes() != again[i].tensor.sizes() || MeansMore(value, again[i].tensor)) continue;
    at::Tensor& leaf = (*leaves)[i].tensor;
    if (const auto earlier = EarlierEqual(given, i)) {
      leaf = WithStrides((*leaves)[*earlier].tensor, value.strides());
      continue;
    }
    if (form == kFewIntegers) {
      const at::Tensor made = FewChanged(value, random);
      if (made.equal(value)) continue;
      leaf = WithStrides(made, value.strides());
      changed = true;
      continue;
    }
    const at::Generator generator = MakeGenerator(value.device(), random->Next() >> 1);
    const auto uniform = [&] {
      return at::rand(value.sizes(), generator, at::TensorOptions().device(value.device()).dtype(at::kDouble));
    };
    const double drawn = std::min(value.abs().max().item<double>(), most[i]);
    const at::Tensor reach = uniform().lt(kSmall).to(at::kDouble) * (drawn - most[i]) + most[i];
    const at::Tensor size = at::floor(uniform() * (reach + 1)).clamp_max(most[i]);
    at::Tensor made = at::where(uniform().lt(kNegative), -size, size).to(value.scalar_type());
    const at::Tensor zeros = value.eq(0);
    if (zeros.sum().item<double>() > kMostZeros * static_cast<double>(value.numel())) {
      made = made.masked_fill(zeros, 0);
    }
    leaf = WithStrides(made, value.strides());
    changed = true;
  }
  if (!changed) {
    result.skipped =
        "the integer inputs' values are flags, codes, sorted or the same in every draw, and others would "
        "mean something else, or they are too many";
    return result;
  }
  result.how = form == kFewIntegers ? "a few of the whole numbers changed for others of them"
                                    : "other whole numbers, some of them negative";
  return result;
}

}  // namespace grove::judge
