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
#include "worker/judge/marks.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr std::int64_t kFewest = 512;  // elements of an output that are looked at
constexpr double kOwnShare = 0.5;      // that the reference's own errors may have of any of them
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

// As many elements at most as are looked at, as a block that lies in its corner.
at::Tensor Corner(at::Tensor all) {
  for (std::int64_t dim = 0; dim < all.dim() && all.numel() > kMostLookedAt; ++dim) {
    all = all.narrow(dim, 0, std::max<std::int64_t>(all.size(dim) * kMostLookedAt / all.numel(), 1));
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
  const at::Tensor dense = LookedAt(value);
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
      return plane.Without(LookedAt(values).to(at::kDouble) - LookedAt(output.high));
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
      marks.back() = output.plane.Without(LookedAt(rounded[output.index]) - LookedAt(output.high));
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
        if (BearMarks(found, outputs[i].errors, marks[i])) {
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
