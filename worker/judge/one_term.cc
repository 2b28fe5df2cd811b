#include "worker/judge/one_term.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr double kMostFactor = 0x1p7;  // float16 holds values of some hundreds times that

// For each matrix the numbers below `size` in an order of its own, the first `count` of them.
at::Tensor Drawn(std::int64_t matrices, std::int64_t size, std::int64_t count, const at::Tensor& like,
                 const at::Generator& generator) {
  const at::Tensor keys =
      at::rand({matrices, size}, generator, at::TensorOptions().device(like.device()).dtype(at::kFloat));
  return keys.argsort(std::int64_t{1}, /*descending=*/false).narrow(1, 0, count);
}

}  // namespace

Transformed KeepOneTerm(std::size_t input, double reduction, Random* random, std::vector<Leaf>* leaves) {
  Transformed result;
  result.skipped = kTried;
  if (input >= leaves->size()) return result;
  Leaf& leaf = (*leaves)[input];
  if (leaf.scalar || !leaf.tensor.is_floating_point() || leaf.tensor.dim() == 0 || KeepsMeaning(leaf.tensor) ||
      SymmetryOf(leaf.tensor) != Symmetry::kNone) {
    return result;
  }
  for (std::size_t i = 0; i < leaves->size(); ++i) {
    const Leaf& other = (*leaves)[i];
    if (i != input && !other.scalar && other.tensor.scalar_type() == leaf.tensor.scalar_type() &&
        other.tensor.equal(leaf.tensor)) {
      return result;
    }
  }
  const at::Tensor& value = leaf.tensor;
  const std::int64_t columns = value.size(-1), rows = value.dim() > 1 ? value.size(-2) : 1;
  const std::int64_t matrices = value.numel() / (rows * columns), count = std::min(rows, columns);
  const at::Generator generator = MakeGenerator(value.device(), random->Next() >> 1);
  const at::Tensor places =
      Drawn(matrices, rows, count, value, generator) * columns + Drawn(matrices, columns, count, value, generator);
  const double factor = std::min(std::exp2(std::round(std::log2(std::max(reduction, 1.0)) / 2)), kMostFactor);
  const at::Tensor flat = value.contiguous().view({matrices, rows * columns});
  const at::Tensor made = at::zeros_like(flat).scatter(
      1, places, flat.gather(1, places).to(at::kFloat).mul(factor).to(value.scalar_type()));
  if (!at::isfinite(made).all().item<bool>()) return result;
  leaf.tensor = WithStrides(made.view(value.sizes()), value.strides());
  result.skipped.clear();
  result.how = "one factor zero but for one element of each row and column";
  return result;
}

}  // namespace grove::judge
