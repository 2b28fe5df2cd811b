#include "worker/judge/lowered.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "worker/judge/common_errors.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr std::int64_t kFewest = 512, kMost = std::int64_t{1} << 20;  // elements that are looked at
constexpr std::int64_t kParts = 4;
constexpr double kShare = 0.5, kLargestShare = 2, kShareOfPart = 0.2;
constexpr double kCorrelation = 0.15, kSigmas = 7;  // honest errors have 1 / sqrt(elements), of either sign
constexpr double kOwnShare = 0.5;                   // that the reference's own errors may have of any of them
// Marks on grids of the judge's own are as independent of any program's errors: what these have of them by chance,
// where an output has few elements that differ, or rows that are alike.
constexpr int kControls = 16;
constexpr double kTimesControls = 5;
constexpr std::int64_t kFewestValues = 1000;
constexpr double kMostSeconds = 1, kMostSecondsEach = 0.15;  // of the evaluations that marks take

struct Format {
  const char* how;
  int bits;  // of a float32's fraction that go
  bool nearest;
};
constexpr Format kFormats[] = {{"rounded to the 10 bits of half precision and TF32", 13, true},
                               {"cut to the 10 bits of TF32", 13, false},
                               {"rounded to the 7 bits of bfloat16", 16, true}};

at::Tensor Some(const at::Tensor& all) {
  const at::Tensor flat = all.reshape({-1});
  return flat.narrow(0, 0, std::min(flat.numel(), kMost));
}

// As many elements of it at most, as a block that lies in its corner.
at::Tensor Corner(at::Tensor all) {
  for (std::int64_t dim = 0; dim < all.dim() && all.numel() > kMost; ++dim) {
    all = all.narrow(dim, 0, std::max<std::int64_t>(all.size(dim) * kMost / all.numel(), 1));
  }
  return all;
}

std::vector<double> Elements(const at::Tensor& values) {
  const at::Tensor dense = values.to(at::kCPU, at::kDouble).contiguous();
  const double* data = dense.data_ptr<double>();
  return std::vector<double>(data, data + dense.numel());
}

// Whether its values are different ones, most of them with bits that half precision and TF32 do not have.
bool UsesItsBits(const at::Tensor& value) {
  constexpr double kMostElements = 0.9, kSpread = 1.0 / 32;
  constexpr std::int64_t kLost = (std::int64_t{1} << 13) - 1;
  const at::Tensor dense = Some(value);
  if (dense.view(at::kInt).bitwise_and(kLost).ne(0).to(at::kFloat).mean().item<double>() < kMostElements) return false;
  const at::Tensor wide = dense.to(at::kDouble);
  const double rms = wide.square().mean().sqrt().item<double>();
  if (std::get<0>(at::_unique(dense)).numel() < kFewestValues) return false;
  return wide.std(/*unbiased=*/false).item<double>() > kSpread * rms;
}

// `unit`: its values are rounded in multiples of it.
std::vector<Leaf> Rounded(const std::vector<Leaf>& leaves, std::size_t factor, const Format& format, double unit = 1) {
  std::vector<Leaf> rounded = leaves;
  Leaf& leaf = rounded[factor];
  const std::int64_t step = std::int64_t{1} << format.bits;
  const at::Tensor value = unit == 1 ? leaf.tensor : (leaf.tensor.to(at::kDouble) / unit).to(at::kFloat);
  const at::Tensor bits = value.view(at::kInt) + (format.nearest ? step / 2 : 0);
  at::Tensor made = bits.bitwise_and(-step).view(at::kFloat);
  if (unit != 1) made = made.to(at::kDouble) * unit;
  leaf.tensor =
      at::where(at::isfinite(made).logical_and(at::isfinite(leaf.tensor)), made, leaf.tensor.to(made.scalar_type()));
  return rounded;
}

// Errors as they are compared: without what a row or a column has in common, so that as many as there are elements are
// independent, and without what they have of the result itself, which a constant that is a little off gives every
// element.
class Plane {
 public:
  explicit Plane(const at::Tensor& result)
      : columns_(result.dim() > 1 && result.numel() <= kMost ? result.size(-1) : 1), direction_(Centred(result)) {
    const double length = direction_.square().sum().sqrt().item<double>();
    direction_ = length > 0 ? direction_ / length : at::zeros_like(direction_);
  }
  // In one row.
  at::Tensor Without(const at::Tensor& errors) const {
    const at::Tensor centred = Centred(errors);
    return centred - direction_ * (centred * direction_).sum();
  }

 private:
  at::Tensor Centred(const at::Tensor& all) const {
    at::Tensor flat = Some(all).to(at::kDouble);
    flat = flat - flat.mean();
    if (columns_ < 2 || flat.numel() == columns_) return flat;
    const at::Tensor rows = flat.view({-1, columns_});
    return (rows - rows.mean(1, /*keepdim=*/true) - rows.mean(0, /*keepdim=*/true)).reshape({-1});
  }

  const std::int64_t columns_;
  at::Tensor direction_;
};

double Sum(const at::Tensor& products) { return products.sum().item<double>(); }

// The least share of the marks that errors have in any part of the output, of parts that lie together and of such that
// lie apart.
double LeastShareOfParts(const at::Tensor& errors, const at::Tensor& marks) {
  const std::int64_t length = errors.numel() / kParts;
  const at::Tensor products = (errors * marks).narrow(0, 0, length * kParts),
                   squares = marks.square().narrow(0, 0, length * kParts);
  double least = 1;
  for (const auto& [shape, along] : {std::pair{std::vector<std::int64_t>{kParts, length}, std::int64_t{1}},
                                     std::pair{std::vector<std::int64_t>{length, kParts}, std::int64_t{0}}}) {
    const at::Tensor shares = products.view(shape).sum(along) / squares.view(shape).sum(along);
    least = std::min(least, shares.min().item<double>());  // NaN, of a part without marks, is least
    if (!at::isfinite(shares).all().item<bool>()) return 0;
  }
  return least;
}

std::set<std::size_t> AllFactors(const LoadedProblem& problem) {
  std::set<std::size_t> all;
  for (const auto& factors : problem.float_factors) all.insert(factors.begin(), factors.end());
  return all;
}

// An output whose errors may be looked at.
struct Output {
  std::size_t index;
  at::Tensor got, plain, high;
};

// The same as marks are compared.
struct Planar {
  std::size_t index;
  at::Tensor high, errors, own;
  Plane plane;
};

struct Likeness {
  double share = 0, correlation = 0;
};

Likeness Alike(const at::Tensor& errors, const at::Tensor& marks) {
  const double all = Sum(marks.square()), both = Sum(marks * errors), own = Sum(errors.square());
  if (!(all > 0) || !(own > 0) || !std::isfinite(both)) return {};
  return {both / all, both / std::sqrt(all * own)};
}

Lowering InCommon(const LoadedProblem& problem, const Output& output) {
  const at::Tensor high = Corner(output.high);
  const std::vector<double> result = Elements(high);
  const auto errors = [&high, &result](const at::Tensor& values) {
    return ErrorsInCommon(Elements(Corner(values).to(at::kDouble) - high), result, high.sizes().vec());
  };
  const double reduction = problem.ReductionOf(output.index);
  const auto lowered = LoweredFactors(errors(output.got), errors(output.plain), reduction);
  if (!lowered) return {};
  char what[160], figures[100];
  std::snprintf(what, sizeof what,
                "have in common along dimension %zu what factors rounded to some %.0f bits give them", lowered->axis,
                BitsOfFactors(*lowered, reduction));
  std::snprintf(figures, sizeof figures, "%.2g times as much as independent errors, %.2g standard deviations",
                lowered->times, lowered->sigmas);
  return {what, figures, output.index};
}

// Whether the errors are those of factors rounded on the grid of a format.
Lowering Marks(const LoadedProblem& problem, const std::vector<Leaf>& leaves, const std::vector<Output>& looked_at,
               Random* random) {
  std::vector<Planar> outputs;
  for (const Output& output : looked_at) {
    const Plane plane(output.high);
    const auto errors = [&](const at::Tensor& values) {
      return plane.Without(Some(values).to(at::kDouble) - Some(output.high));
    };
    outputs.push_back({output.index, output.high, errors(output.got), errors(output.plain), plane});
  }
  // Of rounding the factor so, in units of its own, the marks on an output; undefined where it has none.
  const auto marks_of = [&](std::size_t factor, const Format& format, double unit) {
    const auto call = problem.reference->Prepare(Rounded(leaves, factor, format, unit), Mode::kDouble);
    call->Run();
    std::vector<at::Tensor> marks;
    const std::vector<at::Tensor> rounded = call->Outputs();
    for (const Planar& output : outputs) {
      marks.emplace_back();
      if (output.index >= rounded.size() || rounded[output.index].sizes() != output.high.sizes()) continue;
      marks.back() = output.plane.Without(Some(rounded[output.index]) - Some(output.high));
    }
    return marks;
  };
  struct Suspicion {
    std::size_t output, factor;
    const Format* format;
    Likeness likeness;
  };
  std::vector<Suspicion> suspicions;
  // Each by itself: the errors of one are alike along a row, and those of the other along a column.
  for (const Format& format : kFormats) {
    for (std::size_t factor : AllFactors(problem)) {
      const std::vector<at::Tensor> marks = marks_of(factor, format, 1);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (!marks[i].defined()) continue;
        // A reference in such a precision allows it, and whoever rounds otherwise is not to be told from it.
        if (Alike(outputs[i].own, marks[i]).share > kOwnShare) return {};
        const Likeness found = Alike(outputs[i].errors, marks[i]);
        const double least = std::max(kCorrelation, kSigmas / std::sqrt(static_cast<double>(marks[i].numel())));
        if (found.share >= kShare && found.share <= kLargestShare && found.correlation >= least &&
            LeastShareOfParts(outputs[i].errors, marks[i]) >= kShareOfPart) {
          suspicions.push_back({i, factor, &format, found});
        }
      }
    }
  }
  for (const Suspicion& one : suspicions) {
    double squares = 0;
    for (int control = 0; control < kControls; ++control) {
      const double unit = 1.1 + 0.8 * static_cast<double>(random->Next() >> 11) * 0x1p-53;
      const at::Tensor marks = marks_of(one.factor, *one.format, unit)[one.output];
      const double correlation = marks.defined() ? Alike(outputs[one.output].errors, marks).correlation : 1;
      squares += correlation * correlation / kControls;
    }
    if (one.likeness.correlation >= kTimesControls * std::sqrt(squares)) {
      char figures[100];
      std::snprintf(figures, sizeof figures, "%.2g times those, correlation %.2g", one.likeness.share,
                    one.likeness.correlation);
      return {std::string("are those of an input ") + one.format->how, figures, outputs[one.output].index};
    }
  }
  return {};
}

}  // namespace

bool MayShowLowering(const LoadedProblem& problem, const std::vector<Leaf>& leaves) {
  if (AllFactors(problem).empty()) return false;
  const auto plain = [](const at::Tensor& value) {
    if (value.dim() < 2 || value.numel() == 0 || !Fractions(value)) return true;
    return value.scalar_type() == at::kFloat && UsesItsBits(value);
  };
  for (const Leaf& leaf : leaves) {
    if (!leaf.scalar && !plain(leaf.tensor)) return false;
  }
  for (const auto& [name, parameter] : problem.reference->Parameters()) {
    if (!plain(parameter)) return false;
  }
  return true;
}

Lowering FindLowering(const LoadedProblem& problem, const std::vector<Leaf>& leaves, const Expected& expected,
                      const std::vector<at::Tensor>& got, Random* random) {
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < got.size() && i < expected.high.size() && i < problem.float_factors.size(); ++i) {
    const at::Tensor& high = expected.high[i];
    if (problem.float_factors[i].empty() || expected.LeftOut(i) || got[i].scalar_type() != at::kFloat ||
        high.scalar_type() != at::kDouble || got[i].numel() < kFewest || high.sizes() != got[i].sizes() ||
        !at::isfinite(high).all().item<bool>() || !at::isfinite(got[i]).all().item<bool>()) {
      continue;
    }
    outputs.push_back({i, got[i], expected.plain[i], high});
  }
  for (const Output& output : outputs) {
    const Lowering found = InCommon(problem, output);
    if (found.found()) return found;
  }
  const auto evaluations = static_cast<double>(std::size(kFormats) * AllFactors(problem).size());
  if (outputs.empty() || problem.double_seconds > kMostSecondsEach ||
      evaluations * problem.double_seconds > kMostSeconds) {
    return {};
  }
  return Marks(problem, leaves, outputs, random);
}

}  // namespace grove::judge
