#include "worker/judge/marks.h"

#include <ATen/ATen.h>
#undef CHECK  // torch's

#include <catch2/catch.hpp>
#include <cstdint>

namespace grove::judge {
namespace {

at::Tensor Normal(std::int64_t rows, std::int64_t columns) { return at::randn({rows, columns}, at::kDouble); }

// Whether what is off by `errors` bears the marks that are off by `marks`.
bool Bears(const at::Tensor& result, const at::Tensor& errors, const at::Tensor& marks) {
  const Plane plane(result);
  const at::Tensor one = plane.Without(errors), other = plane.Without(marks);
  return BearMarks(Alike(one, other), one, other);
}

TEST_CASE("Errors that are marks and as much of their own bear them, and others do not") {
  at::manual_seed(1);
  const at::Tensor result = 4096 + 20 * Normal(24, 24);
  const at::Tensor marks = 1e-3 * Normal(24, 24), own = 1e-3 * Normal(24, 24);
  const at::Tensor rows = 1e-2 * Normal(24, 1), columns = 1e-2 * Normal(1, 24);
  CHECK(Bears(result, marks + own, marks));
  CHECK(Bears(result, marks + own + rows + columns + 1e-5 * result, marks));
  CHECK_FALSE(Bears(result, own, marks));
  CHECK_FALSE(Bears(result, own - marks, marks));
  CHECK_FALSE(Bears(result, 0.3 * marks, marks));
  CHECK_FALSE(Bears(result, 3 * marks, marks));
  at::Tensor half = marks.clone();
  half.narrow(0, 12, 12).zero_();
  CHECK_FALSE(Bears(result, half, marks));
  at::Tensor apart = marks.clone();  // without every fourth element
  apart.view({-1, 4}).select(1, 0).zero_();
  CHECK_FALSE(Bears(result, apart, marks));
  CHECK_FALSE(Bears(result, marks + 20 * own, marks));
}

TEST_CASE("Marks are found where they are a hundred millionth of the result") {
  at::manual_seed(2);
  const at::Tensor result = 1 + Normal(64, 64) / 100, marks = 1e-8 * Normal(64, 64);
  CHECK(Bears(result, marks + 1e-8 * Normal(64, 64), marks));
}

// Nothing but float64's rounding is left of them where rows and columns are taken off, of errors and of marks, and that
// of one is often like that of the other.
TEST_CASE("Where columns are alike no errors bear any marks") {
  at::manual_seed(3);
  int bear = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto alike = [](const at::Tensor& column) { return column.expand({24, 24}).contiguous(); };
    const at::Tensor result = alike(4096 + 20 * Normal(24, 1));
    const at::Tensor errors = alike(5e-3 + 5e-3 * Normal(24, 1)), marks = alike(1e-2 + 2e-3 * Normal(24, 1));
    bear += Bears(result, errors, marks) ? 1 : 0;
  }
  CHECK(bear == 0);
}

}  // namespace
}  // namespace grove::judge
