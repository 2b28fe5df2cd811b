#include "worker/judge/common_errors.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "worker/judge/random.h"

namespace grove::judge {
namespace {

struct Matrix {
  std::size_t rows, columns;
  std::vector<float> values;
  float at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

Matrix Uniform(std::size_t rows, std::size_t columns, Random* random) {
  Matrix made{rows, columns, std::vector<float>(rows * columns)};
  for (float& value : made.values) value = static_cast<float>(random->Uniform());
  return made;
}

// To `bits` of the fraction, in multiples of `unit`.
Matrix Rounded(Matrix matrix, int bits, float unit) {
  const std::uint32_t lost = std::uint32_t{1} << (23 - bits);
  for (float& value : matrix.values) {
    const std::uint32_t made = (std::bit_cast<std::uint32_t>(value / unit) + lost / 2) & ~(lost - 1);
    value = std::bit_cast<float>(made) * unit;
  }
  return matrix;
}

using Product = std::vector<double>;

Product Exact(const Matrix& a, const Matrix& b) {
  Product c(a.rows * b.columns, 0);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t k = 0; k < a.columns; ++k) {
      for (std::size_t j = 0; j < b.columns; ++j) {
        c[i * b.columns + j] += static_cast<double>(a.at(i, k)) * static_cast<double>(b.at(k, j));
      }
    }
  }
  return c;
}

// In float32, in one run or in runs of `block` terms.
Product Single(const Matrix& a, const Matrix& b, std::size_t block) {
  Product c(a.rows * b.columns);
  for (std::size_t i = 0; i < a.rows; ++i) {
    std::vector<float> all(b.columns, 0), part(b.columns, 0);
    for (std::size_t k = 0; k < a.columns; ++k) {
      for (std::size_t j = 0; j < b.columns; ++j) part[j] += a.at(i, k) * b.at(k, j);
      if (k % block != block - 1 && k + 1 != a.columns) continue;
      for (std::size_t j = 0; j < b.columns; ++j) {
        all[j] += part[j];
        part[j] = 0;
      }
    }
    for (std::size_t j = 0; j < b.columns; ++j) c[i * b.columns + j] = static_cast<double>(all[j]);
  }
  return c;
}

constexpr std::size_t kTerms = 4096, kRows = 24, kColumns = 32, kBlock = 64;

class Trial {
 public:
  explicit Trial(std::uint64_t seed)
      : random_(seed), a(Uniform(kRows, kTerms, &random_)), b(Uniform(kTerms, kColumns, &random_)) {}

  std::optional<CommonErrors> Lowered(const Product& got) const {
    const Product exact = Exact(a, b);
    const auto in_common = [&exact](Product values) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] -= exact[i];
      return ErrorsInCommon(values, exact, {kRows, kColumns});
    };
    return LoweredFactors(in_common(got), in_common(Single(a, b, 128)), kTerms);
  }

 private:
  Random random_;

 public:
  Matrix a, b;
};

TEST_CASE("Rounded factors are seen by what their errors have in common, on whatever grid they were rounded",
          "[common_errors]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Trial trial(seed);
    for (const int bits : {7, 10}) {
      for (const float unit : {1.0f, 1.3717421f}) {
        const Matrix a = Rounded(trial.a, bits, unit), b = Rounded(trial.b, bits, unit);
        for (const std::size_t block : {kBlock, kTerms}) {
          const auto both = trial.Lowered(Single(a, b, block));
          REQUIRE(both);
          CHECK(BitsOfFactors(*both, kTerms) == Approx(bits).margin(1));
          // Errors of the first factor are those of a row, which lies along the last axis.
          const auto left = trial.Lowered(Single(a, trial.b, block)), right = trial.Lowered(Single(trial.a, b, block));
          INFO("seed " << seed << ", " << bits << " bits in units of " << unit << ", in blocks of " << block);
          REQUIRE(left);
          CHECK(left->axis == 1);
          REQUIRE(right);
          CHECK(right->axis == 0);
        }
      }
    }
  }
}

TEST_CASE("Honest sums have nothing in common, in whatever order they are made", "[common_errors]") {
  double most = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Trial trial(seed);
    for (const std::size_t block : {std::size_t{8}, kBlock, kTerms}) {
      const Product got = Single(trial.a, trial.b, block), exact = Exact(trial.a, trial.b);
      CHECK_FALSE(trial.Lowered(got));
      Product errors(got.size());
      for (std::size_t i = 0; i < got.size(); ++i) errors[i] = got[i] - exact[i];
      for (const CommonErrors& one : ErrorsInCommon(errors, exact, {kRows, kColumns}))
        most = std::max(most, one.sigmas);
    }
  }
  CHECK(most < 5);
  // A factor that is multiplied by a constant first, and sixteen bits of each: no less than float32 has, or nearly.
  const Trial trial(99);
  Matrix scaled = trial.a, back = trial.b;
  for (float& value : scaled.values) value *= 1.37f;
  for (float& value : back.values) value /= 1.37f;
  CHECK_FALSE(trial.Lowered(Single(scaled, back, kBlock)));
  CHECK_FALSE(trial.Lowered(Single(Rounded(trial.a, 15, 1), Rounded(trial.b, 15, 1), kBlock)));
}

TEST_CASE("A constant that is slightly off is no rounding of factors", "[common_errors]") {
  const Trial trial(3);
  Product got = Single(trial.a, trial.b, kBlock);
  for (double& value : got) value *= 1 + 1e-6;
  CHECK_FALSE(trial.Lowered(got));
}

TEST_CASE("Nothing is said where the reference's own errors are alike: elements that repeat err alike",
          "[common_errors]") {
  Trial trial(4);
  for (std::size_t k = 0; k < kTerms; ++k) {
    for (std::size_t j = 1; j < kColumns; ++j) trial.b.values[k * kColumns + j] = trial.b.values[k * kColumns];
  }
  CHECK_FALSE(trial.Lowered(Single(trial.a, trial.b, kTerms)));
}

TEST_CASE("Nothing is said of few elements, of lines that are too short, nor of a shape that is another",
          "[common_errors]") {
  Random random(1);
  const auto normal = [&random] { return random.Uniform() + random.Uniform() - 1; };
  Product errors(49), result(49);
  for (double& value : errors) value = normal();
  for (double& value : result) value = 10 + normal();
  CHECK(ErrorsInCommon(errors, result, {7, 7}).empty());
  CHECK(ErrorsInCommon(errors, result, {}).empty());
  CHECK(ErrorsInCommon(errors, result, {5, 9}).empty());
  CHECK(ErrorsInCommon({}, {}, {0, 8}).empty());
  CHECK(ErrorsInCommon(Product(64, 0), Product(64, 1), {8, 8}).empty());
  // One line that has nearly all of the errors tells of itself alone.
  Product one(16 * 16), all(16 * 16, 1);
  for (double& value : one) value = 1e-7 * normal();
  for (std::size_t j = 0; j < 16; ++j) one[j] = 1e-3;
  for (const CommonErrors& common : ErrorsInCommon(one, all, {16, 16})) CHECK(common.sigmas < 5);
}

}  // namespace
}  // namespace grove::judge
