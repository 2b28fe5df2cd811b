#include "worker/judge/compare.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "worker/judge/random.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

wire::DType Type(const char* name) { return wire::FindDType(name).value(); }

double Gaussian(Random* random) {
  const double u = 1 - random->Uniform(), v = random->Uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

struct Case {
  std::vector<float> got, reference;
  std::vector<double> high;
};

Comparison Judge(const Case& c, const Rule& rule = {}, double reduction = 1, bool with_high = true) {
  ComparisonInput input;
  input.got = c.got.data();
  input.reference = c.reference.data();
  input.high = with_high ? c.high.data() : nullptr;
  input.elements = static_cast<std::int64_t>(c.got.size());
  input.type = Type("float32");
  input.reduction = reduction;
  return Compare(input, rule);
}

Case Same(std::vector<double> values) {
  Case c;
  for (double value : values) {
    c.reference.push_back(static_cast<float>(value));
    c.high.push_back(value);
  }
  c.got = c.reference;
  return c;
}

// Rounds to the 11 significant bits of float16 (the range does not matter here).
float Half(float value) {
  int exponent;
  const float fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(fraction * 2048) / 2048, exponent);
}

// Dot products of uniform values: reference in blocks, candidate in one run or from rounded inputs.
Case Dots(int k, int n, bool lowered, bool normal, std::uint64_t seed) {
  Random random(seed);
  Case c;
  std::vector<float> a(static_cast<std::size_t>(k)), b(a.size());
  for (int i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < a.size(); ++j) {
      a[j] = static_cast<float>(normal ? Gaussian(&random) : random.Uniform());
      b[j] = static_cast<float>(normal ? Gaussian(&random) : random.Uniform());
    }
    double exact = 0;
    float straight = 0, blocked = 0, block = 0, low = 0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      exact += static_cast<double>(a[j]) * b[j];
      straight += a[j] * b[j];
      block += a[j] * b[j];
      low += Half(a[j]) * Half(b[j]);
      if (j % 256 == 255) {
        blocked += block;
        block = 0;
      }
    }
    c.reference.push_back(blocked + block);
    c.high.push_back(exact);
    c.got.push_back(lowered ? low : straight);
  }
  return c;
}

}  // namespace

TEST_CASE("An equal output passes every rule", "[compare]") {
  Comparison result = Judge(Same({1, -2, 3, 0}));
  CHECK(result.ok);
  CHECK(result.passes_1e4);
  CHECK(result.passes_1e2);
  CHECK(result.mismatched == 0);
  CHECK(result.worst == -1);
}

TEST_CASE("Zeros do not pass for a softmax, whose values are far below 1e-2", "[compare]") {
  Random random(7);
  Case c;
  double total = 0;
  for (int i = 0; i < 65536; ++i) {
    c.high.push_back(std::exp(Gaussian(&random)));
    total += c.high.back();
  }
  for (double& value : c.high) {
    value /= total;
    c.reference.push_back(static_cast<float>(value));
  }
  c.got.assign(c.high.size(), 0.0f);
  Comparison result = Judge(c, {}, 65536);
  CHECK_FALSE(result.ok);
  CHECK(result.passes_1e2);
}

TEST_CASE("An honest float32 sum in another order passes, and inputs rounded to half precision do not", "[compare]") {
  const int k = GENERATE(363, 1024, 4096);
  const bool normal = GENERATE(false, true);
  CAPTURE(k, normal);
  CHECK(Judge(Dots(k, 400, false, normal, 11), {}, k).ok);
  Comparison lowered = Judge(Dots(k, 400, true, normal, 11), {}, k);
  CHECK_FALSE(lowered.ok);
  INFO(lowered.why);
}

TEST_CASE("Lowered precision is told from a defect, whether single elements are beyond the limit or all together are",
          "[compare]") {
  Random random(5);
  Case even;  // errors of one size everywhere, as a coarser type makes them
  for (int i = 0; i < 4096; ++i) {
    even.high.push_back(1000 + Gaussian(&random));
    even.reference.push_back(static_cast<float>(even.high.back()));
    even.got.push_back(even.reference.back() * static_cast<float>(1 + 3e-4 * (2 * random.Uniform() - 1)));
  }
  const Comparison coarse = Judge(even);
  CHECK_FALSE(coarse.ok);
  CHECK(coarse.mismatched > 0);
  CHECK(coarse.why.find("lower precision") != std::string::npos);
  Case one = even;
  one.got = one.reference;
  one.got[77] *= 1.001f;
  const Comparison defect = Judge(one);
  CHECK_FALSE(defect.ok);
  CHECK(defect.why.find("lower precision") == std::string::npos);
}

TEST_CASE("A sum of very many terms is not known well enough from most of them", "[compare]") {
  // What rounding may make of a longer sum grows with the root of its length, and what leaving out terms makes falls
  // so.
  const auto off = [](double relative, double terms) {
    Case c = Same({1.0 / 6});
    c.got[0] = static_cast<float>(1.0 / 6 * (1 + relative));
    return Judge(c, {}, terms).ok;
  };
  CHECK(off(2e-5, 0x1p19));
  CHECK(off(2e-5, 0x1p20));
  for (const double terms : {0x1p24, 0x1p27, 0x1p30}) {
    CAPTURE(terms);
    CHECK(off(1e-6, terms));  // sums in blocks are off by a tenth of that
    // A twentieth left out of squares of uniform differences, whose standard deviation is 1.18 of their mean.
    const double sampled = 1.18 * std::sqrt(0.05 / 0.95 / terms);
    CHECK_FALSE(off(sampled, terms));
  }
}

TEST_CASE("float64 that holds what was computed in float32 is judged as float32", "[compare]") {
  Random random(8);
  std::vector<double> high, reference, got;
  for (int i = 0; i < 1000; ++i) {
    high.push_back(Gaussian(&random));
    reference.push_back(static_cast<float>(high.back()) / 3.0);
    got.push_back(std::nextafter(static_cast<float>(high.back()), 9.0f) / 3.0);
    high.back() /= 3;
  }
  ComparisonInput input{got.data(), reference.data(), high.data(), nullptr, 1000, Type("float64"), 64, {}};
  CHECK(Compare(input, {}).ok);
  for (double& value : got) value *= 1 + 1e-4;
  CHECK_FALSE(Compare(input, {}).ok);
  input.reference = high.data();  // a reference that works in float64
  for (std::size_t i = 0; i < got.size(); ++i) got[i] = static_cast<float>(high[i]);
  CHECK_FALSE(Compare(input, {}).ok);
}

TEST_CASE("What float64 makes of widened inputs may not lose what it keeps, on values that the problem gives",
          "[compare]") {
  ReferenceNoise narrow, wide;
  narrow.known = wide.known = wide.widened = true;
  narrow.condition = wide.condition = 1024;
  narrow.condition_max = wide.condition_max = 4096;
  const auto allowed = [](const char* type, const ReferenceNoise& noise, const Rule& rule = {}) {
    return ThresholdsFor(Type(type), 1, 64, 1, 0, noise, rule).rms;
  };
  Rule any_order, reduced;
  any_order.any_order = true;
  reduced.reduced = 1e-3;
  CHECK(allowed("float32", wide) < allowed("float32", narrow) / 256);
  CHECK(allowed("float32", wide) == allowed("float32", ReferenceNoise{true}));
  CHECK(allowed("complex64", wide) < allowed("complex64", narrow) / 256);
  CHECK(allowed("float64", wide) == allowed("float64", narrow));
  CHECK(allowed("float32", wide, any_order) == allowed("float32", narrow, any_order));
  CHECK(allowed("float32", wide, reduced) == allowed("float32", narrow, reduced));
  wide.condition = narrow.condition = 0x1p30;  // of which not all goes
  CHECK(allowed("float32", wide) > 100 * allowed("float32", ReferenceNoise{true}));
}

TEST_CASE("A float32 candidate passes against a reference that used TF32", "[compare]") {
  Case c = Dots(363, 400, true, true, 3);
  std::swap(c.got, c.reference);
  CHECK(Judge(c, {}, 363).ok);
}

TEST_CASE("Small elements that were never computed are found beside large ones", "[compare]") {
  Case c = Same({});
  Random random(5);
  for (int i = 0; i < 10000; ++i) {
    const double value = std::exp(8 * Gaussian(&random));
    c.high.push_back(value);
    c.reference.push_back(static_cast<float>(value));
    c.got.push_back(value < 1e-3 ? 0.0f : static_cast<float>(value));
  }
  Comparison result = Judge(c);
  CHECK_FALSE(result.ok);
}

TEST_CASE("Elements far below a heavy tail are asked for by their own responses", "[compare]") {
  // Exponentials of values that spread by 10: a few are all of the rms, and so are their responses.
  Random random(5);
  std::vector<double> high, nudged;
  std::vector<float> reference, got, cut, rough;
  for (int i = 0; i < 1 << 16; ++i) {
    const float x = static_cast<float>(10 * Gaussian(&random));
    const double exact = std::exp(static_cast<double>(x));
    high.push_back(exact);
    nudged.push_back(std::exp(x * (1 + (random.Uniform() < 0.5 ? kNudge : -kNudge))));
    reference.push_back(static_cast<float>(exact));
    got.push_back(std::exp2(x * 1.44269504f));
    cut.push_back(x < 10 ? 0 : got.back());
    rough.push_back(x < 10 ? got.back() * 1.01f : got.back());
  }
  ComparisonInput input;
  input.reference = reference.data();
  input.high = high.data();
  input.nudged = nudged.data();
  input.elements = static_cast<std::int64_t>(high.size());
  input.type = Type("float32");
  for (const auto& [values, ok] : {std::pair{&got, true}, {&cut, false}, {&rough, false}}) {
    input.got = values->data();
    const Comparison compared = Compare(input, {});
    CHECK(compared.ok == ok);
    if (!ok) CHECK(compared.why.find("small elements are not computed") != std::string::npos);
    CHECK(compared.noise.condition_max > 1000);
  }
}

TEST_CASE("An element that is all of the rms is judged by its own response", "[compare]") {
  // Exponentials near the largest float: what a nudge does to the first one is beyond what counts as a jump.
  Random random(11);
  const auto fast = [](float x) { return std::exp2(x * 1.44269504f); };
  const auto off = [&](float x) {
    return std::fabs(static_cast<double>(fast(x)) / std::exp(static_cast<double>(x)) - 1);
  };
  float largest = 86;
  while (off(largest) < 3e-6) largest += 1e-3f;
  std::vector<double> high, nudged;
  std::vector<float> reference, got, cut, rough;
  for (int i = 0; i < 1 << 20; ++i) {
    const float x = i == 0 ? largest : std::min(static_cast<float>(16 * Gaussian(&random)), 75.0f);
    const double exact = std::exp(static_cast<double>(x));
    high.push_back(exact);
    nudged.push_back(std::exp(x * (1 + (random.Uniform() < 0.5 ? kNudge : -kNudge))));
    reference.push_back(static_cast<float>(exact));
    got.push_back(fast(x));
    cut.push_back(x < 40 ? 0 : got.back());
    rough.push_back(x < 40 ? got.back() * 1.01f : got.back());
  }
  ComparisonInput input;
  input.reference = reference.data();
  input.high = high.data();
  input.nudged = nudged.data();
  input.elements = static_cast<std::int64_t>(high.size());
  input.type = Type("float32");
  for (const auto& [values, ok] : {std::pair{&got, true}, {&cut, false}, {&rough, false}}) {
    input.got = values->data();
    const Comparison compared = Compare(input, {});
    INFO(compared.why);
    CHECK(compared.ok == ok);
    CHECK(compared.noise.unstable > 0);
  }
}

TEST_CASE("One wrong element among a million is found and named", "[compare]") {
  Random random(9);
  Case c;
  for (int i = 0; i < 1000000; ++i) {
    c.high.push_back(Gaussian(&random));
    c.reference.push_back(static_cast<float>(c.high.back()));
  }
  c.got = c.reference;
  c.got[345678] += 0.01f;
  Comparison result = Judge(c);
  CHECK_FALSE(result.ok);
  CHECK(result.worst == 345678);
  CHECK(result.mismatched == 1);
  CHECK(Unravel(result.worst, {1000, 1000}) == std::vector<std::int64_t>{345, 678});
}

TEST_CASE("NaN and infinities must stand where the reference has them", "[compare]") {
  Case c = Same({kNan, kInfinity, -kInfinity, 1});
  CHECK(Judge(c).ok);
  c.got[3] = static_cast<float>(kNan);
  CHECK_FALSE(Judge(c).ok);
  CHECK(Judge(c).worst == 3);
  c = Same({kNan, kInfinity, -kInfinity, 1});
  c.got[0] = 0;
  CHECK_FALSE(Judge(c).ok);
  c = Same({kNan, kInfinity, -kInfinity, 1});
  c.got[1] = static_cast<float>(-kInfinity);
  CHECK_FALSE(Judge(c).ok);
  CHECK_FALSE(Judge(c, {RuleMode::kAbsoluteRelative, 1e9, 1e9}).ok);
}

TEST_CASE("The absolute and relative rule is KernelBench's", "[compare]") {
  Case c = Same({100, 0});
  c.got[0] = 100.9f;
  CHECK(Judge(c, {RuleMode::kAbsoluteRelative, 1e-2, 1e-2}).ok);
  CHECK_FALSE(Judge(c, {RuleMode::kAbsoluteRelative, 1e-4, 1e-4}).ok);
  c = Same({100, 0});
  c.got[1] = 0.009f;
  CHECK(Judge(c, {RuleMode::kAbsoluteRelative, 1e-2, 0}).ok);
  CHECK_FALSE(Judge(c, {RuleMode::kAbsoluteRelative, 0, 1}).ok);
}

TEST_CASE("An element in which the reference jumped is no measure for the others", "[compare]") {
  Random random(21);
  Case c;
  for (int i = 0; i < 1 << 16; ++i) {
    c.high.push_back(Gaussian(&random));
    c.reference.push_back(static_cast<float>(c.high.back()));
  }
  c.reference[777] = 0;  // where float64 has it beyond a threshold
  c.high[777] = 2;
  c.got = c.reference;
  CHECK(Judge(c).ok);
  c.got[777] = 2;
  c.got[4242] = 0;
  CHECK(Judge(c).ok);
  for (float& value : c.got) value = Half(value);
  CHECK_FALSE(Judge(c).ok);
  for (std::size_t i = 0; i < c.got.size(); ++i) c.got[i] = i % 1000 == 0 ? 0 : c.reference[i];
  CHECK_FALSE(Judge(c).ok);
}

TEST_CASE("A number that the reference has right by chance is judged by the errors that it has on other inputs",
          "[compare]") {
  Case c = Same({3});
  c.got[0] = 3.03f;
  CHECK_FALSE(Judge(c).ok);
  const auto with = [&c](double own_error) {
    ComparisonInput input;
    input.got = c.got.data();
    input.reference = c.reference.data();
    input.high = c.high.data();
    input.elements = 1;
    input.type = Type("float32");
    input.own_error = own_error;
    return Compare(input, {});
  };
  CHECK(with(0.01).ok);
  CHECK(with(0.01).noise.rms == Approx(0.01 / 3));
  CHECK_FALSE(with(0.001).ok);
}

TEST_CASE("A single number that one accumulator makes of many terms is right in every draw", "[compare]") {
  // The rms of one error is what chance makes it: beyond what thousands of errors have in one draw of a hundred.
  constexpr int kTerms = 8192, kDraws = 4000;
  int beyond = 0;
  for (const bool signs : {false, true}) {
    Random random(7);
    int wrong = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      float straight = 0, low = 0;
      double exact = 0, squares = 0;
      for (int i = 0; i < kTerms; ++i) {
        const float term = static_cast<float>(signs ? 2 * random.Uniform() - 1 : random.Uniform());
        straight += term;
        low += Half(Half(term) + low) - low;
        exact += static_cast<double>(term);
        squares += static_cast<double>(term) * term;
      }
      const float reference = static_cast<float>(exact);
      const double nudged = exact + 0x1p-23 * std::sqrt(squares);  // the rms of responses
      ComparisonInput input;
      input.got = &straight;
      input.reference = &reference;
      input.high = &exact;
      input.nudged = &nudged;
      input.elements = 1;
      input.type = Type("float32");
      input.reduction = kTerms;
      const Comparison compared = Compare(input, {});
      wrong += !compared.ok;
      beyond += compared.scaled_error > compared.scaled_allowed / FewElements(1);
      if (draw % 100 == 0) {
        input.got = &low;
        CHECK_FALSE(Compare(input, {}).ok);
      }
    }
    CHECK(wrong == 0);
  }
  CHECK(beyond > 0);
  CHECK(FewElements(1) == Approx(2.38).margin(0.01));
  for (int n = 1; n < 20; ++n) CHECK(FewElements(n) >= FewElements(n + 1));
  CHECK(FewElements(10) == 1);
}

TEST_CASE("Integers and booleans are exact", "[compare]") {
  std::vector<std::int64_t> reference{1, 1LL << 60, 3}, got{1, (1LL << 60) + 1, 3};
  ComparisonInput input{got.data(), reference.data(), nullptr, nullptr, 3, Type("int64"), 1, {}};
  Comparison result = Compare(input, {RuleMode::kAbsoluteRelative, 1, 1});
  CHECK_FALSE(result.ok);
  CHECK(result.mismatched == 1);
  CHECK(result.worst == 1);
}

TEST_CASE("Exact values that rounding decides may differ in as many elements as it explains", "[compare]") {
  constexpr std::int64_t n = 1 << 20;
  std::vector<unsigned char> reference(n, 1), got(n, 1);
  auto judged = [&](double unstable, int wrong) {
    for (std::int64_t i = 0; i < n; ++i) got[static_cast<std::size_t>(i)] = i < wrong ? 0 : 1;
    ComparisonInput input{got.data(), reference.data(), nullptr, nullptr, n, Type("bool"), 512, {}};
    input.noise.known = true;
    input.noise.unstable = unstable;
    return Compare(input, {});
  };
  CHECK(judged(0, 0).ok);
  CHECK_FALSE(judged(0, 1).ok);
  // A fifth of an element in each nudge, that is a dozen for the work of an honest program at most.
  const double few = 0.2 / static_cast<double>(n);
  CHECK(judged(few, 2).ok);
  CHECK(judged(few, 12).ok);
  // What was excused is no measure for other outputs.
  CHECK(judged(few, 12).excused);
  CHECK_FALSE(judged(few, 0).excused);
  CHECK_FALSE(judged(few, 60).ok);
  CHECK_FALSE(judged(few, 60).undecided);
  CHECK(judged(0.1, 5).undecided);
}

TEST_CASE("Of equal keys any may be chosen, and that is no leave for other elements", "[compare]") {
  constexpr std::int64_t n = 1 << 14;
  std::vector<std::int64_t> reference(n, 1), got(n, 1);
  auto judged = [&](double ties, int wrong) {
    for (std::int64_t i = 0; i < n; ++i) got[static_cast<std::size_t>(i)] = i < wrong ? 0 : 1;
    ComparisonInput input{got.data(), reference.data(), nullptr, nullptr, n, Type("int64"), 512, {}};
    input.noise.known = true;
    input.noise.ties = ties;
    return Compare(input, {});
  };
  const double some = 80.0 / static_cast<double>(n);
  CHECK(judged(some, 80).ok);
  CHECK_FALSE(judged(some, 200).ok);
  CHECK_FALSE(judged(some, 200).undecided);
  CHECK_FALSE(judged(0, 1).ok);
  CHECK(judged(0.3, 1).undecided);
}

TEST_CASE("An output left as it was poisoned fails for every element type", "[compare]") {
  for (const char* name : {"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
                           "bool", "complex64", "complex128"}) {
    CAPTURE(name);
    const wire::DType type = Type(name);
    std::vector<unsigned char> reference(type.bytes() * 64, 0), got;
    for (int i = 0; i < 64; ++i) {
      auto poison = PoisonElement(type, 0x12345678);
      got.insert(got.end(), poison.begin(), poison.end());
    }
    ComparisonInput input{got.data(), reference.data(), nullptr, nullptr, 64, type, 1, {}};
    Comparison result = Compare(input, {});
    CHECK_FALSE(result.ok);
    CHECK(result.mismatched == 64);
  }
}

TEST_CASE("Half and bfloat16 read as their definition says", "[compare]") {
  CHECK(HalfToFloat(0x3c00) == 1.0f);
  CHECK(HalfToFloat(0xc000) == -2.0f);
  CHECK(HalfToFloat(0x0001) == std::ldexp(1.0f, -24));
  CHECK(HalfToFloat(0x8001) == -std::ldexp(1.0f, -24));
  CHECK(HalfToFloat(0x7bff) == 65504.0f);
  CHECK(std::isinf(HalfToFloat(0x7c00)));
  CHECK(std::isnan(HalfToFloat(0x7e00)));
  CHECK(std::signbit(HalfToFloat(0x8000)));
  CHECK(BfloatToFloat(0x3f80) == 1.0f);
  for (int exponent = -14; exponent <= 15; ++exponent) {
    for (int fraction = 0; fraction < 1024; ++fraction) {
      const auto bits = static_cast<std::uint16_t>((exponent + 15) << 10 | fraction);
      REQUIRE(HalfToFloat(bits) == std::ldexp(1.0f + static_cast<float>(fraction) / 1024, exponent));
    }
  }
}

namespace {

std::uint16_t ToBfloat(double value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
double RoundedToBfloat(double value) { return static_cast<double>(BfloatToFloat(ToBfloat(value))); }

// Products of bfloat16 numbers, each a sum of its own, to which a bias of their size is added.
struct Products {
  std::vector<double> x, w, bias;
  explicit Products(std::uint64_t seed) {
    Random random(seed);
    for (int i = 0; i < 4096; ++i) {
      for (std::vector<double>* values : {&x, &w, &bias}) values->push_back(RoundedToBfloat(Gaussian(&random)));
    }
  }

  // `got`: an element of the candidate by its number.
  template <typename Got>
  Comparison Judge(bool biased, const Got& got, bool one_term = true) const {
    std::vector<double> high;
    std::vector<std::uint16_t> reference, candidate;
    double lost = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      high.push_back(x[i] * w[i] + (biased ? bias[i] : 0));
      reference.push_back(ToBfloat(high[i]));
      candidate.push_back(ToBfloat(got(i)));
      lost += std::pow(RoundedToBfloat(high[i]) - high[i], 2);
    }
    ComparisonInput input;
    input.got = candidate.data();
    input.reference = reference.data();
    input.high = high.data();
    input.elements = static_cast<std::int64_t>(x.size());
    input.type = Type("bfloat16");
    input.own_rounding = std::sqrt(lost / static_cast<double>(x.size()));
    Rule rule;
    rule.one_term = one_term;
    return Compare(input, rule);
  }
};

}  // namespace

TEST_CASE(
    "A product of one term in bfloat16 is rounded before its bias is added, and has weights of more than eight bits",
    "[compare]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Products p(seed);
    const auto exact = [&p](std::size_t i) { return p.x[i] * p.w[i]; };
    CHECK(p.Judge(false, exact).ok);
    CHECK(p.Judge(true, [&](std::size_t i) { return exact(i) + p.bias[i]; }).ok);
    CHECK(p.Judge(true, [&](std::size_t i) { return RoundedToBfloat(exact(i)) + p.bias[i]; }).ok);
    // A factor is rounded, and the product, before the bias is.
    CHECK(p.Judge(true, [&](std::size_t i) {
             return RoundedToBfloat(RoundedToBfloat(exact(i) / 3) * 3) + RoundedToBfloat(p.bias[i]);
           }).ok);
    // With a factor for every 8, 16 or 32 of them.
    for (const std::size_t group : {8u, 16u, 32u}) {
      const auto eight_bits = [&](std::size_t i) {
        double most = 0;
        for (std::size_t j = i / group * group; j < (i / group + 1) * group; ++j)
          most = std::max(most, std::fabs(p.w[j]));
        return p.x[i] * std::nearbyint(p.w[i] / most * 127) * most / 127;
      };
      CAPTURE(group);
      const Comparison found = p.Judge(false, eight_bits);
      CHECK_FALSE(found.ok);
      CHECK(found.why.find("lower precision") != std::string::npos);
      CHECK(p.Judge(false, eight_bits, /*one_term=*/false).ok);  // where many terms are added up it may be their order
    }
  }
}

TEST_CASE("A reference that rounds on its way widens what a product of one term may be off by", "[compare]") {
  const Products p(3);
  std::vector<double> high;
  std::vector<std::uint16_t> reference, got;
  double lost = 0;
  for (std::size_t i = 0; i < p.x.size(); ++i) {
    high.push_back(p.x[i] * p.w[i] + p.bias[i]);
    reference.push_back(ToBfloat(RoundedToBfloat(p.x[i] * p.w[i]) + p.bias[i]));
    double value = high[i];
    for (double by : {3, 5, 7, 9, 11, 13}) value = RoundedToBfloat(value / by) * by;
    got.push_back(ToBfloat(value));
    lost += std::pow(RoundedToBfloat(high[i]) - high[i], 2);
  }
  ComparisonInput input;
  input.got = got.data();
  input.high = high.data();
  input.elements = static_cast<std::int64_t>(high.size());
  input.type = Type("bfloat16");
  input.own_rounding = std::sqrt(lost / static_cast<double>(high.size()));
  Rule rule;
  rule.one_term = true;
  input.reference = reference.data();
  CHECK(Compare(input, rule).ok);
  std::vector<std::uint16_t> once;
  for (double value : high) once.push_back(ToBfloat(value));
  input.reference = once.data();
  CHECK_FALSE(Compare(input, rule).ok);
  // What it is rounded to is not known: as elsewhere.
  input.own_rounding = -1;
  CHECK(Compare(input, rule).ok);
}

}  // namespace grove::judge
