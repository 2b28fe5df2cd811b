// Properties of the scaled rule: what honest programs of the reference's precision compute passes, whatever order and
// functions they use; what leaves work out or lowers the precision does not. Every program here is computed, none is
// an error that was made up.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "worker/judge/compare.h"
#include "worker/judge/random.h"

namespace grove::judge {
namespace {

using Index = std::size_t;

double Gaussian(Random* random) {
  const double u = 1 - random->Uniform(), v = random->Uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

// ------------------------------------------------------------------------------------------------ ways to do the work
enum class Order { kStraight, kReversed, kPairwise, kBlocks, kThreads, kKahan, kDouble, kHalfSum };
enum class Cut { kNone, kHalf, kBfloat, kTf32 };  // of what is multiplied and added

struct Way {
  std::string name;
  Order order = Order::kStraight;
  bool fused = false;     // multiply-add with one rounding
  bool fast_exp = false;  // by exp2 of a rounded product, as __expf
  bool one_pass = false;  // variance from the sum of squares
  bool online = false;    // softmax with a running maximum
  bool no_max = false;    // softmax without taking the maximum off
  Cut cut = Cut::kNone;
  Index skip = 0;    // terms left out at the end of every sum
  Index stride = 1;  // only every n-th term, scaled up
};

float CutTo(float value, Cut cut) {
  if (cut == Cut::kNone || !std::isfinite(value) || value == 0) return value;
  int exponent;
  const float fraction = std::frexp(value, &exponent);
  const float steps = cut == Cut::kBfloat ? 256.0f : 2048.0f;
  return std::ldexp(std::nearbyint(fraction * steps) / steps, exponent);
}
double CutTo(double value, Cut) { return value; }

template <typename T, typename Term>
T PairwiseSum(Index begin, Index end, const Term& term) {
  if (end - begin <= 8) {
    T sum = 0;
    for (Index i = begin; i < end; ++i) sum += term(i);
    return sum;
  }
  const Index middle = begin + (end - begin) / 2;
  return PairwiseSum<T>(begin, middle, term) + PairwiseSum<T>(middle, end, term);
}

template <typename T, typename Term>
T Sum(const Way& way, Index n, const Term& term) {
  const Index whole = n;
  n -= std::min(n, way.skip);
  if (way.stride > 1) {
    T sum = 0;
    Index used = 0;
    for (Index i = 0; i < n; i += way.stride, ++used) sum += term(i);
    return sum * static_cast<T>(whole) / static_cast<T>(used);
  }
  T sum = 0;
  switch (way.order) {
    case Order::kStraight:
      for (Index i = 0; i < n; ++i) sum += term(i);
      return sum;
    case Order::kReversed:
      for (Index i = n; i-- > 0;) sum += term(i);
      return sum;
    case Order::kPairwise:
      return PairwiseSum<T>(0, n, term);
    case Order::kBlocks: {
      for (Index begin = 0; begin < n; begin += 64) {
        T block = 0;
        for (Index i = begin; i < std::min(begin + 64, n); ++i) block += term(i);
        sum += block;
      }
      return sum;
    }
    case Order::kThreads: {
      std::vector<T> partial(128, 0);
      for (Index i = 0; i < n; ++i) partial[i % partial.size()] += term(i);
      for (Index width = partial.size() / 2; width > 0; width /= 2)
        for (Index i = 0; i < width; ++i) partial[i] += partial[i + width];
      return partial[0];
    }
    case Order::kKahan: {
      T lost = 0;
      for (Index i = 0; i < n; ++i) {
        const T value = term(i) - lost, next = sum + value;
        lost = (next - sum) - value;
        sum = next;
      }
      return sum;
    }
    case Order::kDouble: {
      double wide = 0;
      for (Index i = 0; i < n; ++i) wide += static_cast<double>(term(i));
      return static_cast<T>(wide);
    }
    case Order::kHalfSum:
      for (Index i = 0; i < n; ++i) sum = CutTo(sum + term(i), Cut::kHalf);
      return sum;
  }
  return sum;
}

template <typename T>
T Exp(const Way& way, T x) {
  if constexpr (std::is_same_v<T, float>) {
    if (way.fast_exp) return std::exp2(x * 1.4426950408889634f);
  }
  return std::exp(x);
}

// ------------------------------------------------------------------------------------------------------ the operations
template <typename T>
struct Data {
  std::vector<T> x, y;  // y: weights, a second operand
  Index rows = 0, columns = 0;
};

template <typename T>
std::vector<T> Prepared(const std::vector<T>& values, const Way& way) {
  std::vector<T> cut = values;
  for (T& value : cut) value = CutTo(value, way.cut);
  return cut;
}

// x [rows, columns] times y [columns, columns2].
template <typename T>
std::vector<T> MatMul(const Data<T>& d, const Way& way) {
  const auto x = Prepared(d.x, way), y = Prepared(d.y, way);
  const Index n = y.size() / d.columns;
  std::vector<T> out;
  for (Index r = 0; r < d.rows; ++r) {
    for (Index c = 0; c < n; ++c) {
      if (way.fused) {
        T sum = 0;
        for (Index k = 0; k < d.columns; ++k) sum = std::fma(x[r * d.columns + k], y[k * n + c], sum);
        out.push_back(sum);
      } else {
        out.push_back(Sum<T>(way, d.columns, [&](Index k) { return x[r * d.columns + k] * y[k * n + c]; }));
      }
    }
  }
  return out;
}

template <typename T>
std::vector<T> Softmax(const Data<T>& d, const Way& way) {
  const auto x = Prepared(d.x, way);
  std::vector<T> out;
  for (Index r = 0; r < d.rows; ++r) {
    const T* row = &x[r * d.columns];
    T top = row[0], sum = 0;
    if (way.online) {
      for (Index i = 0; i < d.columns; ++i) {
        const T next = std::max(top, row[i]);
        sum = sum * Exp(way, top - next) + Exp(way, row[i] - next);
        top = next;
      }
    } else {
      for (Index i = 0; i < d.columns; ++i) top = std::max(top, row[i]);
      if (way.no_max) top = 0;
      sum = Sum<T>(way, d.columns, [&](Index i) { return Exp(way, row[i] - top); });
    }
    for (Index i = 0; i < d.columns; ++i) out.push_back(Exp(way, row[i] - top) / sum);
  }
  return out;
}

template <typename T>
std::vector<T> LayerNorm(const Data<T>& d, const Way& way) {
  const auto x = Prepared(d.x, way);
  std::vector<T> out;
  const T n = static_cast<T>(d.columns);
  for (Index r = 0; r < d.rows; ++r) {
    const T* row = &x[r * d.columns];
    T mean, variance;
    if (way.online) {  // Welford's
      mean = 0;
      T squares = 0;
      for (Index i = 0; i < d.columns; ++i) {
        const T delta = row[i] - mean;
        mean += delta / static_cast<T>(i + 1);
        squares += delta * (row[i] - mean);
      }
      variance = squares / n;
    } else {
      mean = Sum<T>(way, d.columns, [&](Index i) { return row[i]; }) / n;
      if (way.one_pass) {
        variance = Sum<T>(way, d.columns, [&](Index i) { return row[i] * row[i]; }) / n - mean * mean;
      } else {
        variance = Sum<T>(way, d.columns, [&](Index i) { return (row[i] - mean) * (row[i] - mean); }) / n;
      }
    }
    const T scale = 1 / std::sqrt(variance + static_cast<T>(1e-5));
    for (Index i = 0; i < d.columns; ++i) out.push_back((row[i] - mean) * scale * d.y[i] + d.y[i]);
  }
  return out;
}

template <typename T>
std::vector<T> RowMean(const Data<T>& d, const Way& way) {
  const auto x = Prepared(d.x, way);
  std::vector<T> out;
  for (Index r = 0; r < d.rows; ++r)
    out.push_back(Sum<T>(way, d.columns, [&](Index i) { return x[r * d.columns + i]; }) / static_cast<T>(d.columns));
  return out;
}

template <typename T>
std::vector<T> Variance(const Data<T>& d, const Way& way) {
  const auto x = Prepared(d.x, way);
  std::vector<T> out;
  const T n = static_cast<T>(d.columns);
  for (Index r = 0; r < d.rows; ++r) {
    const T* row = &x[r * d.columns];
    const T mean = Sum<T>(way, d.columns, [&](Index i) { return row[i]; }) / n;
    out.push_back(Sum<T>(way, d.columns, [&](Index i) { return (row[i] - mean) * (row[i] - mean); }) / (n - 1));
  }
  return out;
}

template <typename T>
std::vector<T> LogSumExp(const Data<T>& d, const Way& way) {
  const auto x = Prepared(d.x, way);
  std::vector<T> out;
  for (Index r = 0; r < d.rows; ++r) {
    const T* row = &x[r * d.columns];
    T top = row[0];
    for (Index i = 0; i < d.columns; ++i) top = std::max(top, row[i]);
    out.push_back(top + std::log(Sum<T>(way, d.columns, [&](Index i) { return Exp(way, row[i] - top); })));
  }
  return out;
}

template <typename T>
std::vector<T> Normalise(const Data<T>& d, const Way& way) {
  const auto x = Prepared(d.x, way);
  std::vector<T> out;
  for (Index r = 0; r < d.rows; ++r) {
    const T* row = &x[r * d.columns];
    const T norm = std::sqrt(Sum<T>(way, d.columns, [&](Index i) { return row[i] * row[i]; }) + static_cast<T>(1e-12));
    for (Index i = 0; i < d.columns; ++i) out.push_back(row[i] / norm);
  }
  return out;
}

template <typename T>
std::vector<T> Cumsum(const Data<T>& d, const Way& way) {
  const auto x = Prepared(d.x, way);
  std::vector<T> out;
  for (Index r = 0; r < d.rows; ++r) {
    const Index base = out.size();
    T sum = 0, block = 0;
    for (Index i = 0; i < d.columns; ++i) {
      const T value = x[r * d.columns + i];
      if (way.order == Order::kBlocks) {
        if (i % 64 == 0) {
          sum += block;
          block = 0;
        }
        block += value;
        out.push_back(sum + block);
      } else if (way.order == Order::kDouble) {
        out.push_back(Sum<T>(way, i + 1, [&](Index j) { return x[r * d.columns + j]; }));
      } else {
        out.push_back(sum += value);
      }
    }
    (void)base;
  }
  return out;
}

template <typename T>
std::vector<T> Silu(const Data<T>& d, const Way& way) {
  std::vector<T> out;
  for (T value : Prepared(d.x, way)) out.push_back(value / (1 + Exp(way, -value)));
  return out;
}

template <typename T>
std::vector<T> Tanh(const Data<T>& d, const Way& way) {
  std::vector<T> out;
  for (T value : Prepared(d.x, way)) {
    if (way.no_max) {  // the form that overflows
      const T e = Exp(way, 2 * value);
      out.push_back((e - 1) / (e + 1));
    } else if (way.fast_exp) {
      out.push_back(1 - 2 / (Exp(way, 2 * value) + 1));
    } else {
      out.push_back(std::tanh(value));
    }
  }
  return out;
}

// Two layers with a nonlinearity between: errors of the first go through the second.
template <typename T>
std::vector<T> Mlp(const Data<T>& d, const Way& way) {
  Data<T> hidden = d;
  hidden.x = MatMul(d, way);
  hidden.x = Silu(hidden, way);
  hidden.columns = hidden.x.size() / d.rows;
  hidden.y.resize(hidden.columns * (d.y.size() / hidden.columns));
  return MatMul(hidden, way);
}

// Scores, softmax, weighted values: x are queries, y keys and values both.
template <typename T>
std::vector<T> Attention(const Data<T>& d, const Way& way) {
  const Index keys = d.y.size() / d.columns;
  Data<T> scores;
  scores.rows = d.rows;
  scores.columns = keys;
  const T scale = 1 / std::sqrt(static_cast<T>(d.columns));
  const auto x = Prepared(d.x, way), y = Prepared(d.y, way);
  for (Index r = 0; r < d.rows; ++r)
    for (Index k = 0; k < keys; ++k)
      scores.x.push_back(scale *
                         Sum<T>(way, d.columns, [&](Index i) { return x[r * d.columns + i] * y[k * d.columns + i]; }));
  const auto weights = Softmax(scores, way);
  std::vector<T> out;
  for (Index r = 0; r < d.rows; ++r)
    for (Index i = 0; i < d.columns; ++i)
      out.push_back(Sum<T>(way, keys, [&](Index k) { return weights[r * keys + k] * y[k * d.columns + i]; }));
  return out;
}

// ------------------------------------------------------------------------------------------------------------- values
enum class Values { kUniform, kNormal, kShifted, kScaled, kSparse, kOutliers, kNearOneValue };
const char* NameOf(Values values) {
  static const char* const kNames[] = {"uniform", "normal",   "shifted",       "scaled",
                                       "sparse",  "outliers", "near one value"};
  return kNames[static_cast<int>(values)];
}

std::vector<float> Draw(Values values, Index n, Random* random) {
  std::vector<float> out(n);
  for (float& value : out) {
    double v = values == Values::kUniform ? random->Uniform() : Gaussian(random);
    if (values == Values::kShifted) v = v * 0.1 + 1000;
    if (values == Values::kNearOneValue) v = v * 0.01 + 1000;
    if (values == Values::kScaled) v *= 128;
    if (values == Values::kSparse && random->Below(8) != 0) v = 0;
    if (values == Values::kOutliers && random->Below(1000) == 0) v *= 1000;
    value = static_cast<float>(v);
  }
  return out;
}

struct Op {
  std::string name;
  std::function<std::vector<float>(const Data<float>&, const Way&)> single;
  std::function<std::vector<double>(const Data<double>&, const Way&)> wide;
  Index second = 0;          // elements of y, in columns; 0 = one row of weights
  bool keeps_shape = false;  // one output per element of x
  double depth = 1;          // reductions behind one another
};

#define GROVE_OP(function, ...) \
  Op { #function, function < float>, function < double>, __VA_ARGS__ }

const std::vector<Op>& Ops() {
  static const std::vector<Op> ops{
      GROVE_OP(MatMul, 24),         GROVE_OP(Softmax, 0, true), GROVE_OP(LayerNorm, 0, true),
      GROVE_OP(RowMean, 0),         GROVE_OP(Variance, 0),      GROVE_OP(LogSumExp, 0),
      GROVE_OP(Normalise, 0, true), GROVE_OP(Cumsum, 0, true),  GROVE_OP(Silu, 0, true),
      GROVE_OP(Tanh, 0, true),      GROVE_OP(Mlp, 16),          GROVE_OP(Attention, 32),
  };
  return ops;
}
const Op& OpNamed(const std::string& name) {
  for (const Op& op : Ops())
    if (op.name == name) return op;
  throw std::runtime_error(name);
}

struct Trial {
  Data<float> data;
  std::vector<float> reference;
  std::vector<double> high, nudged;
  double reduction = 1;
};

Data<double> Widen(const Data<float>& d, Random* nudge) {
  Data<double> wide;
  wide.rows = d.rows;
  wide.columns = d.columns;
  auto widen = [nudge](const std::vector<float>& from) {
    std::vector<double> to(from.begin(), from.end());
    if (nudge != nullptr)
      for (double& value : to) value *= 1 + (nudge->Below(2) == 0 ? kNudge : -kNudge);
    return to;
  };
  wide.x = widen(d.x);
  wide.y = widen(d.y);
  return wide;
}

Trial Make(const Op& op, Values values, Index rows, Index columns, std::uint64_t seed, Way reference = {}) {
  Random random(seed);
  Trial trial;
  trial.data.rows = rows;
  trial.data.columns = columns;
  trial.data.x = Draw(values, rows * columns, &random);
  trial.data.y = Draw(values == Values::kUniform ? Values::kUniform : Values::kNormal,
                      columns * std::max<Index>(op.second, 1), &random);
  if (reference.name.empty()) reference.order = Order::kBlocks;  // as torch sums
  trial.reference = op.single(trial.data, reference);
  trial.high = op.wide(Widen(trial.data, nullptr), Way{});
  trial.nudged = op.wide(Widen(trial.data, &random), Way{});
  trial.reduction = op.name == "Silu" || op.name == "Tanh" ? 1 : static_cast<double>(columns);
  return trial;
}

// As the check judges values that the problem does not draw.
Rule Foreign() {
  Rule rule;
  rule.cap = 0.5;
  rule.any_order = true;
  return rule;
}
Rule RuleFor(Values values) { return values == Values::kUniform || values == Values::kNormal ? Rule{} : Foreign(); }

Comparison Judge(const Trial& trial, const std::vector<float>& got, const Rule& rule = {}) {
  ComparisonInput input;
  input.got = got.data();
  input.reference = trial.reference.data();
  input.high = trial.high.data();
  input.nudged = trial.nudged.data();
  input.elements = static_cast<std::int64_t>(trial.reference.size());
  input.type = wire::FindDType("float32").value();
  input.reduction = trial.reduction;
  return Compare(input, rule);
}

const std::vector<Way>& HonestWays() {
  static const std::vector<Way> ways{
      {"straight", Order::kStraight},
      {"reversed", Order::kReversed},
      {"pairwise", Order::kPairwise},
      {"blocks", Order::kBlocks},
      {"threads", Order::kThreads},
      {"Kahan", Order::kKahan},
      {"double sums", Order::kDouble},
      {"fused", Order::kStraight, true},
      {"fast exp", Order::kThreads, true, true},
      {"online", Order::kThreads, false, false, false, true},
      {"online, fast exp", Order::kThreads, false, true, false, true},
  };
  return ways;
}

}  // namespace

TEST_CASE("Every honest way to sum and to exponentiate passes, for every operation and kind of values", "[honest]") {
  const std::vector<std::pair<Index, Index>> sizes{{64, 17}, {16, 256}, {6, 2000}};
  std::uint64_t seed = 1;
  for (const Op& op : Ops()) {
    for (Values values :
         {Values::kUniform, Values::kNormal, Values::kShifted, Values::kScaled, Values::kSparse, Values::kOutliers}) {
      for (const auto& [rows, columns] : sizes) {
        const Trial trial = Make(op, values, rows, columns, ++seed);
        for (const Way& way : HonestWays()) {
          const Comparison result = Judge(trial, op.single(trial.data, way), RuleFor(values));
          INFO(op.name << " " << NameOf(values) << " " << rows << "x" << columns << " " << way.name << ": "
                       << result.why << "; error " << result.scaled_error << ", allowed " << result.scaled_allowed
                       << ", condition " << result.noise.condition << ", worst " << result.error << " of "
                       << result.allowed);
          CHECK(result.ok);
        }
      }
    }
  }
}

TEST_CASE("Long reductions in one run pass beside a reference that sums in blocks", "[honest]") {
  for (const char* name : {"RowMean", "LayerNorm", "Softmax", "Variance", "Normalise"}) {
    for (Values values : {Values::kUniform, Values::kNormal, Values::kShifted, Values::kOutliers}) {
      const Op& op = OpNamed(name);
      const Trial trial = Make(op, values, 2, 65536, 77);
      for (const Way& way : HonestWays()) {
        const Comparison result = Judge(trial, op.single(trial.data, way), RuleFor(values));
        INFO(name << " " << NameOf(values) << " " << way.name << ": " << result.why << "; error " << result.scaled_error
                  << ", allowed " << result.scaled_allowed << ", condition " << result.noise.condition);
        CHECK(result.ok);
      }
    }
  }
}

TEST_CASE("An honest program passes against a reference of lowered precision, which widens its own rule", "[honest]") {
  for (Cut cut : {Cut::kTf32, Cut::kBfloat}) {
    Way lowered{"lowered", Order::kBlocks};
    lowered.cut = cut;
    for (const char* name : {"MatMul", "Mlp", "Attention"}) {
      const Op& op = OpNamed(name);
      const Trial trial = Make(op, Values::kNormal, 16, 256, 5, lowered);
      for (const Way& way : HonestWays()) {
        INFO(name << " " << way.name);
        CHECK(Judge(trial, op.single(trial.data, way)).ok);
      }
    }
  }
}

TEST_CASE("Lowered precision is wrong, whichever step it is in", "[honest]") {
  for (Values values : {Values::kUniform, Values::kNormal, Values::kScaled}) {
    for (const char* name : {"MatMul", "Softmax", "LayerNorm", "Variance", "Normalise", "Silu", "Mlp", "Attention"}) {
      const Op& op = OpNamed(name);
      for (const auto& [rows, columns] : std::vector<std::pair<Index, Index>>{{64, 64}, {32, 500}}) {
        const Trial trial = Make(op, values, rows, columns, 9);
        for (Cut cut : {Cut::kHalf, Cut::kBfloat, Cut::kTf32}) {
          Way way{"cut", Order::kThreads};
          way.cut = cut;
          const Comparison result = Judge(trial, op.single(trial.data, way));
          INFO(name << " " << NameOf(values) << " " << rows << "x" << columns << " cut " << static_cast<int>(cut)
                    << ": error " << result.scaled_error << ", allowed " << result.scaled_allowed);
          CHECK_FALSE(result.ok);
        }
        if (op.name == "Silu") continue;
        const Comparison sums = Judge(trial, op.single(trial.data, {"half sums", Order::kHalfSum}));
        INFO(name << " half sums: " << sums.scaled_error << " of " << sums.scaled_allowed);
        CHECK_FALSE(sums.ok);
      }
    }
  }
}

TEST_CASE("Terms left out of a sum are found", "[honest]") {
  for (const char* name : {"MatMul", "Softmax", "LayerNorm", "RowMean", "Variance", "Normalise", "Attention"}) {
    const Op& op = OpNamed(name);
    for (Values values : {Values::kUniform, Values::kNormal}) {
      const Trial trial = Make(op, values, 16, 1000, 21);
      Way skip{"skips the last", Order::kThreads};
      skip.skip = 1;
      INFO(name << " " << NameOf(values));
      CHECK_FALSE(Judge(trial, op.single(trial.data, skip)).ok);
      Way part{"every second", Order::kThreads};
      part.stride = 2;
      CHECK_FALSE(Judge(trial, op.single(trial.data, part)).ok);
    }
  }
}

TEST_CASE("A mean of a million values without its last one is found on sparse values", "[honest]") {
  // On dense ones it is less than what an honest program's order of summation moves.
  const Op& op = OpNamed("RowMean");
  Trial trial = Make(op, Values::kUniform, 1, 1000000, 3);
  for (Index i = 0; i + 1 < trial.data.x.size(); ++i)
    if (i % 8192 != 0) trial.data.x[i] = 0;
  trial.data.x.back() = 1;
  trial.reference = op.single(trial.data, {"blocks", Order::kBlocks});
  trial.high = op.wide(Widen(trial.data, nullptr), Way{});
  Random random(4);
  trial.nudged = op.wide(Widen(trial.data, &random), Way{});
  Way skip{"skips the last", Order::kThreads};
  skip.skip = 1;
  CHECK_FALSE(Judge(trial, op.single(trial.data, skip), Foreign()).ok);
  Way part{"every second", Order::kThreads};
  part.stride = 3;
  CHECK_FALSE(Judge(trial, op.single(trial.data, part), Foreign()).ok);
  for (const Way& way : HonestWays()) CHECK(Judge(trial, op.single(trial.data, way), Foreign()).ok);
}

TEST_CASE("What works for the values at hand alone is wrong on others", "[honest]") {
  Way overflows{"no maximum taken off", Order::kThreads};
  overflows.no_max = true;
  const Op& softmax = OpNamed("Softmax");
  const Trial given = Make(softmax, Values::kNormal, 16, 500, 31);
  CHECK(Judge(given, softmax.single(given.data, overflows)).ok);
  const Trial scaled = Make(softmax, Values::kScaled, 16, 500, 31);
  CHECK_FALSE(Judge(scaled, softmax.single(scaled.data, overflows), Foreign()).ok);

  const Op& tanh = OpNamed("Tanh");
  const Trial large = Make(tanh, Values::kScaled, 16, 500, 31);
  CHECK_FALSE(Judge(large, tanh.single(large.data, overflows), Foreign()).ok);

  Way one_pass{"one pass", Order::kThreads};
  one_pass.one_pass = true;
  const Op& norm = OpNamed("LayerNorm");
  for (Index columns : {64, 2000, 300000}) {
    CAPTURE(columns);
    const Trial centred = Make(norm, Values::kNormal, 2, columns, 8);
    CHECK(Judge(centred, norm.single(centred.data, one_pass)).ok);
    const Trial shifted = Make(norm, Values::kShifted, 2, columns, 8);
    CHECK_FALSE(Judge(shifted, norm.single(shifted.data, one_pass), Foreign()).ok);
  }
}

TEST_CASE("Damage to a few elements, a row, a border or a tile is found", "[honest]") {
  Random random(17);
  for (const char* name : {"MatMul", "Softmax", "LayerNorm", "Cumsum", "Silu", "Attention"}) {
    const Op& op = OpNamed(name);
    for (Values values : {Values::kUniform, Values::kNormal, Values::kOutliers}) {
      const Trial trial = Make(op, values, 128, 96, 41);
      const auto right = op.single(trial.data, {"threads", Order::kThreads});
      REQUIRE(Judge(trial, right).ok);
      const Index width = right.size() / 128;
      INFO(name << " " << NameOf(values));
      auto damaged = [&](const std::function<void(std::vector<float>&)>& damage) {
        auto got = right;
        damage(got);
        return got;
      };
      double squares = 0;
      for (float value : right) squares += static_cast<double>(value) * value;
      const auto rms = static_cast<float>(std::sqrt(squares / static_cast<double>(right.size())));
      CHECK_FALSE(Judge(trial, damaged([&](auto& g) { g[random.Below(g.size())] += 0.01f * rms; })).ok);
      CHECK_FALSE(Judge(trial, damaged([&](auto& g) {
                          for (Index i = 0; i < width; ++i) g[77 * width + i] = g[76 * width + i];
                        }))
                      .ok);
      CHECK_FALSE(Judge(trial, damaged([&](auto& g) {
                          for (Index i = 0; i < width; ++i) g[127 * width + i] = 0;
                        }))
                      .ok);
      CHECK_FALSE(Judge(trial, damaged([&](auto& g) { g.back() = std::numeric_limits<float>::quiet_NaN(); })).ok);
      CHECK_FALSE(Judge(trial, damaged([&](auto& g) {
                          for (int i = 0; i < 5; ++i) {
                            float& value = g[random.Below(g.size())];
                            value = value * 1.01f + 0.001f * rms;
                          }
                        }))
                      .ok);
      CHECK_FALSE(Judge(trial, damaged([&](auto& g) {  // shifted by one
                          for (Index i = g.size() - 1; i > 0; --i) g[i] = g[i - 1];
                        }))
                      .ok);
      CHECK_FALSE(Judge(trial, std::vector<float>(right.size(), 0.0f)).ok);
      CHECK_FALSE(Judge(trial, std::vector<float>(right.size(), rms)).ok);
      if (op.keeps_shape) CHECK_FALSE(Judge(trial, trial.data.x).ok);
    }
  }
}

TEST_CASE("A wrong row is found that is a hundred thousand times smaller than the others", "[honest]") {
  const Op& op = OpNamed("Softmax");
  Trial trial = Make(op, Values::kNormal, 256, 300, 51);
  // Rows of very unequal size: the first is small.
  auto scale = [](auto& values) {
    for (Index i = 0; i < values.size(); ++i) values[i] *= i < 300 ? 1e-5f : 1.0f;
  };
  auto got = op.single(trial.data, {"threads", Order::kThreads});
  scale(trial.reference);
  scale(trial.high);
  scale(trial.nudged);
  scale(got);
  CHECK(Judge(trial, got).ok);
  for (Index i = 0; i < 256; ++i) got[i] = got[(i + 7) % 256];
  const Comparison result = Judge(trial, got);
  CHECK_FALSE(result.ok);
  CHECK(result.why.find("neighbours") != std::string::npos);
}

TEST_CASE("An approximation of low rank is wrong", "[honest]") {
  const Op& op = OpNamed("MatMul");
  Trial trial = Make(op, Values::kUniform, 64, 128, 61);
  // The best guess from sums alone: row sums times column sums over the total, as for a matrix of rank one.
  const Index n = trial.reference.size() / 64;
  std::vector<double> rows(64, 0), columns(n, 0);
  double total = 0;
  for (Index r = 0; r < 64; ++r)
    for (Index c = 0; c < n; ++c) {
      rows[r] += trial.high[r * n + c];
      columns[c] += trial.high[r * n + c];
      total += trial.high[r * n + c];
    }
  std::vector<float> got;
  for (Index r = 0; r < 64; ++r)
    for (Index c = 0; c < n; ++c) got.push_back(static_cast<float>(rows[r] * columns[c] / total));
  CHECK_FALSE(Judge(trial, got).ok);
}

TEST_CASE("Reduced precision passes where it is allowed, as far as it is allowed", "[honest]") {
  Rule reduced;
  reduced.reduced = 1e-2;
  for (const char* name : {"MatMul", "LayerNorm", "Mlp", "Attention"}) {
    const Op& op = OpNamed(name);
    const Trial trial = Make(op, Values::kNormal, 16, 256, 71);
    INFO(name);
    for (Cut cut : {Cut::kHalf, Cut::kBfloat, Cut::kTf32}) {
      Way way{"cut", Order::kThreads};
      way.cut = cut;
      CHECK(Judge(trial, op.single(trial.data, way), reduced).ok);
      Rule tight;
      tight.reduced = 1e-5;
      CHECK_FALSE(Judge(trial, op.single(trial.data, way), tight).ok);
    }
    Way part{"every second", Order::kThreads};
    part.stride = 2;
    if (op.name != "LayerNorm") CHECK_FALSE(Judge(trial, op.single(trial.data, part), reduced).ok);
    CHECK_FALSE(Judge(trial, std::vector<float>(trial.reference.size(), 0.0f), reduced).ok);
  }
}

TEST_CASE("Reduced precision allows no more than an eighth where errors of the inputs grow", "[honest]") {
  Rule reduced;
  reduced.reduced = 1e-2;
  for (Values values : {Values::kShifted, Values::kNearOneValue}) {
    INFO(NameOf(values));
    const Trial trial = Make(OpNamed("LayerNorm"), values, 64, 256, 72);
    CHECK(Judge(trial, trial.reference, reduced).ok);
    const Comparison zeros = Judge(trial, std::vector<float>(trial.reference.size(), 0.0f), reduced);
    CHECK_FALSE(zeros.ok);
    CHECK_FALSE(zeros.undecided);
    std::vector<float> less = trial.reference;
    for (float& value : less) value *= 0.8f;
    CHECK_FALSE(Judge(trial, less, reduced).ok);
    // What is asked for may be more.
    Rule more = reduced;
    more.reduced = 0.25;
    CHECK(Judge(trial, less, more).ok);
  }
}

TEST_CASE("Where rounding decides most of an output, what no rounding makes of it is wrong", "[honest]") {
  const Trial trial = Make(OpNamed("LayerNorm"), Values::kNearOneValue, 64, 256, 73);
  REQUIRE(Judge(trial, trial.reference).undecided);
  CHECK(Judge(trial, trial.reference).ok);
  const Comparison zeros = Judge(trial, std::vector<float>(trial.reference.size(), 0.0f));
  CHECK_FALSE(zeros.ok);
  CHECK_FALSE(zeros.undecided);
  // Other inputs, each a rounding off: nobody knows.
  const std::vector<float> others(trial.nudged.begin(), trial.nudged.end());
  const Comparison moved = Judge(trial, others);
  CHECK((moved.ok || moved.undecided));
}

TEST_CASE("Values that jump where rounding decides may jump as often as the reference's own, and no oftener",
          "[honest]") {
  // sign(sum) of normal terms: a share of the sums is so near zero that their sign is rounding's.
  Random random(81);
  const Index rows = 200000, columns = 32;
  Trial trial;
  std::vector<float> straight, wrong;
  for (Index r = 0; r < rows; ++r) {
    double exact = 0, nudged = 0;
    float forward = 0, pairs = 0;
    for (Index i = 0; i < columns; i += 2) {
      // Pairs that cancel but for a little: the sums lie within some roundings of zero.
      const auto a = static_cast<float>(Gaussian(&random)),
                 b = -a * (1 + static_cast<float>(Gaussian(&random)) * 1e-5f);
      exact += static_cast<double>(a) + b;
      nudged +=
          a * (1 + (random.Below(2) == 0 ? kNudge : -kNudge)) + b * (1 + (random.Below(2) == 0 ? kNudge : -kNudge));
      forward = forward + a + b;
      pairs += a + b;
    }
    trial.high.push_back(exact > 0 ? 1 : 0);
    trial.nudged.push_back(nudged > 0 ? 1 : 0);
    trial.reference.push_back(pairs > 0 ? 1.0f : 0.0f);
    straight.push_back(forward > 0 ? 1.0f : 0.0f);
  }
  trial.reduction = columns;
  const Comparison honest = Judge(trial, straight);
  INFO(honest.why << " mismatched " << honest.mismatched << " unstable " << honest.noise.unstable);
  CHECK(honest.ok);
  CHECK(straight != trial.reference);
  wrong = straight;
  for (Index i = 0; i < wrong.size(); i += 3) wrong[i] = 1 - wrong[i];
  CHECK_FALSE(Judge(trial, wrong).ok);
  // Without a jump of the reference not a single one is allowed.
  trial.nudged = trial.high;
  trial.reference.assign(trial.high.begin(), trial.high.end());
  std::vector<float> one = trial.reference;
  one[5] = 1 - one[5];
  CHECK_FALSE(Judge(trial, one).ok);
}

TEST_CASE("The last of equal keys passes beside a reference that takes the first, be they many or one", "[honest]") {
  // argmax of normal values in bfloat16, of which one row in forty or so has two largest ones; in float32, one of none.
  struct Keys {
    Cut cut;
    Index rows, planted;  // rows with one tie more
    int trials;
    Index apart;  // every such row is wrong in what must be found: of 2,000, about as many as there are ties
  };
  const std::vector<Keys> kinds = {
      {Cut::kBfloat, 2000, 0, 40, 40}, {Cut::kBfloat, 200, 0, 100, 8}, {Cut::kNone, 200, 1, 40, 20}};
  constexpr Index columns = 64;
  constexpr int turns = 24;
  Random random(82);
  for (const Keys& keys : kinds) {
    int wrong = 0, found = 0;
    for (int t = 0; t < keys.trials; ++t) {
      std::vector<std::int64_t> first, last, other;
      const auto turned = std::make_unique<bool[]>(keys.rows);
      for (Index r = 0; r < keys.rows; ++r) {
        std::vector<float> row;
        for (Index c = 0; c < columns; ++c) row.push_back(CutTo(static_cast<float>(Gaussian(&random)), keys.cut));
        if (r < keys.planted) row.back() = row[columns / 2] = 9;
        const auto choose = [&](const auto& key) {
          Index best = 0;
          for (Index c = 1; c < columns; ++c) best = key(c) > key(best) ? c : best;
          return static_cast<std::int64_t>(best);
        };
        first.push_back(choose([&](Index c) { return static_cast<double>(row[c]); }));
        const auto from_behind = std::max_element(row.rbegin(), row.rend());
        last.push_back(static_cast<std::int64_t>(columns) - 1 - (from_behind - row.rbegin()));
        other.push_back(r % keys.apart == 0 ? (first.back() + 1) % static_cast<std::int64_t>(columns) : last.back());
        bool over = false;
        for (int n = 0; n < turns; ++n) {
          std::vector<double> moved;
          for (float value : row) moved.push_back(value * (1 + (random.Below(2) == 0 ? kNudge : -kNudge)));
          over = over || choose([&](Index c) { return moved[c]; }) != first.back();
        }
        turned[r] = over;
      }
      const auto judged = [&](const std::vector<std::int64_t>& got) {
        ComparisonInput input{got.data(),
                              first.data(),
                              nullptr,
                              nullptr,
                              static_cast<std::int64_t>(got.size()),
                              wire::FindDType("int64").value(),
                              1,
                              {}};
        input.noise.known = true;
        const auto over = std::count(turned.get(), turned.get() + keys.rows, true);
        input.noise.ties = TieShare(static_cast<double>(over) / static_cast<double>(keys.rows), turns, 0);
        input.turned = turned.get();
        input.turns = turns;
        return Compare(input, {}).ok;
      };
      wrong += !judged(last);
      found += !judged(other);
    }
    CAPTURE(keys.rows, keys.planted);
    CHECK(wrong == 0);
    CHECK(found == keys.trials);
  }
}

}  // namespace grove::judge
