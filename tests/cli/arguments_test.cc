#include "clients/cli/arguments.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"

namespace grove::cli {
namespace {

TEST_CASE("Durations take units and must be above zero", "[cli]") {
  CHECK(ParseDuration("10").value() == 10);
  CHECK(ParseDuration("1.5s").value() == 1.5);
  CHECK(ParseDuration("500ms").value() == 0.5);
  CHECK(ParseDuration("2m").value() == 120);
  CHECK(ParseDuration("1h").value() == 3600);
  CHECK(ParseDuration("1e-3").value() == 1e-3);
  for (const char* bad : {"", "0", "-1", "5 parsecs", "s", "nan", "inf", "1e999"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseDuration(bad).ok());
  }
}

TEST_CASE("Sizes are powers of 1024 and must be above zero", "[cli]") {
  CHECK(ParseBytes("1048576").value() == 1 << 20);
  CHECK(ParseBytes("512MiB").value() == int64_t{512} << 20);
  CHECK(ParseBytes("4G").value() == int64_t{4} << 30);
  CHECK(ParseBytes("1.5k").value() == 1536);
  CHECK(ParseBytes("7 B").value() == 7);
  for (const char* bad : {"", "0", "-4G", "4X", "MiB", "9999999T", "4i"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseBytes(bad).ok());
  }
}

TEST_CASE("A tolerance is scaled or two numbers", "[cli]") {
  CHECK(ParseTolerance("scaled")->mode() == v1::TOLERANCE_MODE_SCALED);
  const auto both = ParseTolerance("1e-2,1e-4");
  REQUIRE(both.ok());
  CHECK(both->mode() == v1::TOLERANCE_MODE_ABSOLUTE_RELATIVE);
  CHECK(both->atol() == 1e-2);
  CHECK(both->rtol() == 1e-4);
  for (const char* bad : {"", "1e-2", "1,2,3", "a,b", "-1,1", "0,0", "nan,1"}) {
    CAPTURE(bad);
    const auto parsed = ParseTolerance(bad);
    REQUIRE_FALSE(parsed.ok());
    CHECK(absl::StrContains(parsed.status().message(), "--tolerance"));
  }
}

TEST_CASE("A precision is same, or reduced within a bound", "[cli]") {
  v1::EvaluationOptions options;
  CHECK(ParsePrecision("", &options).ok());
  CHECK(options.precision() == v1::PRECISION_POLICY_UNSPECIFIED);
  CHECK(ParsePrecision("same", &options).ok());
  CHECK(options.precision() == v1::PRECISION_POLICY_SAME);
  CHECK(ParsePrecision("reduced", &options).ok());
  CHECK(options.precision() == v1::PRECISION_POLICY_REDUCED);
  CHECK(options.precision_tolerance() == 0);
  CHECK(ParsePrecision("reduced,1e-3", &options).ok());
  CHECK(options.precision_tolerance() == 1e-3);
  for (const char* bad :
       {"high", "same,1", "reduced,", "reduced,0", "reduced,-1", "reduced,1", "reduced,nan", "reduced,1e-3,2"}) {
    CAPTURE(bad);
    const absl::Status parsed = ParsePrecision(bad, &options);
    REQUIRE_FALSE(parsed.ok());
    CHECK(absl::StrContains(parsed.message(), "--precision"));
  }
}

TEST_CASE("Distributions are names, and an unknown one is named", "[cli]") {
  const auto parsed = ParseDistributions({"scaled,shifted", "sparse", "scaled"});
  REQUIRE(parsed.ok());
  CHECK(*parsed == std::vector<v1::InputDistribution>{v1::INPUT_DISTRIBUTION_SCALED, v1::INPUT_DISTRIBUTION_SHIFTED,
                                                      v1::INPUT_DISTRIBUTION_SPARSE});
  for (const char* bad : {"", "normal", "unspecified", "scaled,", "Scaled shifted"}) {
    CAPTURE(bad);
    const auto wrong = ParseDistributions({bad});
    REQUIRE_FALSE(wrong.ok());
    CHECK(absl::StrContains(wrong.status().message(), "--distributions"));
  }
}

TEST_CASE("Every field of Limits can be set by its name", "[cli]") {
  v1::Limits limits;
  for (const std::string& name : LimitNames()) {
    CAPTURE(name);
    CHECK(ApplyLimit(name + "=3", &limits).ok());
  }
  CHECK(limits.build_wall_seconds() == 3);
  CHECK(limits.memory_bytes() == 3);
  CHECK(limits.processes() == 3);
  CHECK(limits.output_bytes() == 3);
  CHECK(ApplyLimit("run_wall_seconds=2m", &limits).ok());
  CHECK(limits.run_wall_seconds() == 120);
  CHECK(ApplyLimit("memory_bytes=8GiB", &limits).ok());
  CHECK(limits.memory_bytes() == int64_t{8} << 30);
}

TEST_CASE("A wrong limit is told with the one that was meant", "[cli]") {
  v1::Limits limits;
  const absl::Status typo = ApplyLimit("run_wal_seconds=3", &limits);
  REQUIRE_FALSE(typo.ok());
  CHECK(absl::StrContains(typo.message(), "did you mean 'run_wall_seconds'?"));
  CHECK_FALSE(ApplyLimit("memory_bytes", &limits).ok());
  CHECK_FALSE(ApplyLimit("memory_bytes=much", &limits).ok());
  CHECK_FALSE(ApplyLimit("processes=1.5", &limits).ok());
  CHECK_FALSE(ApplyLimit("processes=0", &limits).ok());
}

TEST_CASE("Devices, baselines and generators know their words", "[cli]") {
  CHECK(ParseDevice("")->kind == v1::DEVICE_KIND_UNSPECIFIED);
  CHECK(ParseDevice("auto")->kind == v1::DEVICE_KIND_UNSPECIFIED);
  CHECK(ParseDevice("cpu")->kind == v1::DEVICE_KIND_CPU);
  CHECK(ParseDevice("cuda")->index == -1);
  CHECK(ParseDevice("cuda:3")->index == 3);
  for (const char* bad : {"gpu", "cuda:", "cuda:-1", "cuda:x", "CPU", "tpu"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseDevice(bad).ok());
  }
  CHECK(ParseBaselines("all")->size() == 2);
  CHECK(ParseBaselines("all")->front() == v1::BASELINE_EAGER);
  CHECK_FALSE(ParseBaselines("jit").ok());
  CHECK(*ParseWork("") == v1::WORK_POLICY_UNSPECIFIED);
  CHECK(*ParseWork("anything") == v1::WORK_POLICY_ANYTHING);
  CHECK(*ParseWork("libraries") == v1::WORK_POLICY_LIBRARIES);
  CHECK(*ParseWork("own_kernels") == v1::WORK_POLICY_OWN_KERNELS);
  CHECK(ParseWork("own").status().message() == "--work: 'own' is not one of anything, libraries, own_kernels");
  CHECK(*ParseCache("") == v1::CACHE_POLICY_UNSPECIFIED);
  CHECK(*ParseCache("cold") == v1::CACHE_POLICY_COLD);
  CHECK(*ParseCache("warm") == v1::CACHE_POLICY_WARM);
  CHECK(ParseCache("hot").status().message() == "--cache: 'hot' is not one of cold, warm");
  CHECK(ParseGenerator("catalogue")->kind == v1::GENERATOR_KIND_CATALOGUE);
  CHECK(ParseGenerator("openai")->kind == v1::GENERATOR_KIND_OPENAI);
  CHECK(ParseGenerator("replay:a.jsonl")->recording_file == "a.jsonl");
  CHECK_FALSE(ParseGenerator("replay:").ok());
  CHECK_FALSE(ParseGenerator("oracle").ok());
}

}  // namespace
}  // namespace grove::cli
