#include "common/metrics/families.h"

#include <pthread.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/metrics/http_endpoint.h"
#include "tests/support/http_get.h"
#include "tests/support/temp_folder.h"

namespace grove::metrics {
namespace {

using testing::HttpGet;

prometheus::MetricFamily Only(const LabelledHistogram& histogram) {
  Families families;
  histogram.Collect(families);
  REQUIRE(families.size() == 1);
  return families[0];
}

TEST_CASE("A histogram's buckets are cumulative, hold their bound, and end with everything", "[metrics]") {
  LabelledHistogram histogram("grove_x_seconds", "Help.", "stage", {1, 2, 5});
  for (double value : {0.5, 1.0, 1.5, 2.0, 5.0, 7.0}) histogram.Observe("build", value);
  const auto family = Only(histogram);
  REQUIRE(family.metric.size() == 1);
  const auto& h = family.metric[0].histogram;
  REQUIRE(h.bucket.size() == 4);
  CHECK(h.bucket[0].cumulative_count == 2);
  CHECK(h.bucket[1].cumulative_count == 4);
  CHECK(h.bucket[2].cumulative_count == 5);
  CHECK(h.bucket[3].cumulative_count == 6);
  CHECK(h.sample_count == 6);
  CHECK(h.sample_sum == 17);
}

TEST_CASE("A histogram agrees with counting by hand for random observations", "[metrics]") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::vector<double> bounds = StageSecondsBounds();
  LabelledHistogram histogram("grove_x_seconds", "Help.", "stage", bounds);
  std::vector<double> values(1000);
  for (double& value : values) {
    value = std::exponential_distribution<double>(0.2)(random);
    histogram.Observe("s", value);
  }
  const auto family = Only(histogram);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const auto expected = std::count_if(values.begin(), values.end(), [&](double v) { return v <= bounds[i]; });
    CAPTURE(bounds[i]);
    CHECK(family.metric[0].histogram.bucket[i].cumulative_count == static_cast<uint64_t>(expected));
  }
}

TEST_CASE("Label values and nonsense from a faulty peer are bounded", "[metrics]") {
  LabelledHistogram histogram("grove_x_seconds", "Help.", "stage", {1});
  for (int i = 0; i < 1000; ++i) histogram.Observe(absl::StrCat("stage", i), 0.5);
  histogram.Observe("stage0", -1);
  histogram.Observe("stage0", std::numeric_limits<double>::quiet_NaN());
  histogram.Observe("stage0", std::numeric_limits<double>::infinity());
  const auto family = Only(histogram);
  CHECK(family.metric.size() == LabelledHistogram::kMaxLabelValues + 1);
  uint64_t total = 0;
  for (const auto& metric : family.metric) total += metric.histogram.sample_count;
  CHECK(total == 1000);
}

TEST_CASE("The endpoint serves a page that promtool accepts, hostile labels included", "[metrics]") {
  testing::TempFolder folder;
  LabelledHistogram histogram("grove_stage_duration_seconds", "Time by stage.", "stage", {0.1, 1});
  histogram.Observe("build", 0.5);
  auto endpoint = HttpEndpoint::Start(
      "127.0.0.1:0",
      [&] {
        Families families;
        AddProcess(families, "test");
        AddCounter(families, "grove_things_total", "Things.", 3);
        AddGauge(families, "grove_kinds", "By kind.", Samples{{{{"kind", "a\"b\\c\nd"}}, 1}, {{{"kind", "plain"}}, 2}});
        AddGauge(families, "grove_nothing", "Left out.", Samples{});
        histogram.Collect(families);
        return families;
      },
      [] { return absl::OkStatus(); });
  REQUIRE(endpoint.ok());
  const auto answer = HttpGet((*endpoint)->address(), "/metrics");
  CHECK(answer.code == 200);
  CHECK(absl::StrContains(answer.headers, "text/plain; version=0.0.4"));
  CHECK(absl::StrContains(answer.body, "grove_things_total 3"));
  CHECK(absl::StrContains(answer.body, "grove_build_info{part=\"test\""));
  CHECK(absl::StrContains(answer.body, "process_resident_memory_bytes "));
  CHECK_FALSE(absl::StrContains(answer.body, "grove_nothing"));
  CHECK(testing::PromtoolComplaints(answer.body, folder / "page") == "");
}

TEST_CASE("promtool does object to a name against the rules", "[metrics]") {
  testing::TempFolder folder;
  CHECK(testing::PromtoolComplaints("# HELP grove_things Things.\n# TYPE grove_things counter\ngrove_things 1\n",
                                    folder / "page") != "");
}

TEST_CASE("Health is 200 or 503 with the reason, and other paths and methods are refused", "[metrics]") {
  std::atomic<bool> well{true};
  auto endpoint = HttpEndpoint::Start(
      "127.0.0.1:0", [] { return Families(); },
      [&] { return well ? absl::OkStatus() : absl::UnavailableError("the engine is stuck"); });
  REQUIRE(endpoint.ok());
  const std::string address = (*endpoint)->address();
  CHECK(HttpGet(address, "/healthz").code == 200);
  well = false;
  const auto ill = HttpGet(address, "/healthz");
  CHECK(ill.code == 503);
  CHECK(ill.body == "the engine is stuck\n");
  CHECK(HttpGet(address, "/").code == 404);
  CHECK(HttpGet(address, "/metrics/x").code == 404);
  CHECK(HttpGet(address, "/../etc/passwd").code != 200);
  CHECK(HttpGet(address, "/metrics", "POST").code == 405);
  CHECK(HttpGet(address, "/metrics", "HEAD").body.empty());
}

TEST_CASE("A taken port and a bad address are refused with the remedy", "[metrics]") {
  auto nothing = [] { return Families(); };
  auto well = [] { return absl::OkStatus(); };
  auto first = HttpEndpoint::Start("127.0.0.1:0", nothing, well);
  REQUIRE(first.ok());
  auto second = HttpEndpoint::Start((*first)->address(), nothing, well);
  CHECK_FALSE(second.ok());
  CHECK(absl::StrContains(second.status().message(), (*first)->address()));
  CHECK(absl::StrContains(second.status().message(), "--metrics-listen"));
  const std::string bad = GENERATE(as<std::string>{}, "", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
                                   "127.0.0.1:99999", "a:1,b:2", "h:1s");
  CAPTURE(bad);
  CHECK(absl::IsInvalidArgument(HttpEndpoint::Start(bad, nothing, well).status()));
}

TEST_CASE("Files are read on the small stacks of a web server's threads", "[metrics]") {
  testing::TempFolder folder;
  const std::string path = folder.path() + "/file";
  const std::string content(200'000, 'x');
  REQUIRE(WriteFileAtomically(path, content, 0600).ok());
  struct Task {
    std::string path, content, status;
  } task{path, "", ""};
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 48 << 10) == 0);
  pthread_t thread;
  REQUIRE(pthread_create(
              &thread, &attributes,
              [](void* argument) -> void* {
                Task& mine = *static_cast<Task*>(argument);
                for (const std::string& name : {mine.path, std::string("/proc/self/stat")}) {
                  absl::StatusOr<std::string> read = ReadFile(name, 1 << 20);
                  if (read.ok() && name == mine.path) mine.content = *read;
                  if (read.ok() && name != mine.path) mine.status = *read;
                }
                return nullptr;
              },
              &task) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
  CHECK(task.content == content);
  CHECK(task.status.find(") ") != std::string::npos);
  CHECK(absl::IsResourceExhausted(ReadFile(path, 199'999).status()));
  CHECK(ReadFile(path, 200'000).ok());
}

TEST_CASE("A slow scrape does not hold up a health check", "[metrics]") {
  std::mutex gate;
  gate.lock();
  std::atomic<bool> scraping{false};
  auto endpoint = HttpEndpoint::Start(
      "127.0.0.1:0",
      [&] {
        scraping = true;
        std::lock_guard<std::mutex> wait(gate);
        return Families();
      },
      [] { return absl::OkStatus(); });
  REQUIRE(endpoint.ok());
  std::thread scrape([&] { HttpGet((*endpoint)->address(), "/metrics"); });
  while (!scraping) std::this_thread::yield();
  CHECK(HttpGet((*endpoint)->address(), "/healthz").code == 200);
  gate.unlock();
  scrape.join();
}

}  // namespace
}  // namespace grove::metrics
